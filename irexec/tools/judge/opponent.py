"""The runtime that is judged: a process, or tensors that were recorded in it; and its runs beside irexec's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import differences
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.bounds import ARITHMETICS, Arithmetic, Interval, caches_after
from irexec.bounds.evaluate import known_inputs, layer_of
from irexec.compile.memory_limit import MemoryLimit
from irexec.compile.passes.quantise_activations import quantised_products
from irexec.dtypes.elements import BF16, F16, Element
from irexec.errors import EngineError, InputError, IrexecError, UnsupportedError
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import values_by_name, values_of_copy
from irexec.ops.paged import paged_attention_extension
from irexec.schema.attributes import Written
from irexec.schema.registry import resolve
from irexec.tools.compare.scopes import folded, pairs_by_module
from irexec.tools.engines.runtimes import (
    Arrays,
    Runtime,
    Worker,
    default_functions,
    open_runtime,
    precision_beside,
    runtime_kind,
)
from irexec.tools.judge.judgement import JudgeOptions
from irexec.tools.observing.observe import observe
from irexec.tools.observing.sides import ModelSide, RecordedSide, computed

Tensors = Mapping[Value, np.ndarray]

_FEW = 8
"""Fewer numbers may have few bits by chance."""
_COARSENESS = {"f32": 0, "f16": 1, "bf16": 2}


class Opponent:
    """A runtime with a model, to be observed.

    Args:
        model: the model.
        options: the runtime.
        stack: closes the runtime.

    Attributes:
        runtime: None for recorded tensors.
        keys: the names of the recorded tensors, by the tensors of the model; see ``paired``.
        folded: recorded tensors of which the model computes several modules with the weights of one.
        failures: reasons for tensors that the runtime does not give.
        errors: errors of its runs.
    """

    def __init__(self, model: Model, options: JudgeOptions, stack: ExitStack) -> None:
        self.model, self.options = model, options
        self.runtime: Runtime | None = None
        self.recorded: RecordedSide | None = None
        self.keys: dict[Value, str] = {}
        self.folded: set[Value] = set()
        self.failures: dict[Value, str] = {}
        self.errors: list[IrexecError] = []
        if options.is_recorded:
            self.recorded = RecordedSide(Path(options.runtime), MemoryLimit(options.max_memory), stack)
        else:
            self.runtime = stack.enter_context(self._opened(model))

    def _opened(self, model: Model, worker: Worker | None = None) -> Runtime:
        options = self.options
        return open_runtime(
            options.runtime, model, properties=options.properties, threads=options.threads,
            max_memory=options.max_memory, dynamic_quantization=options.group, timeout=options.timeout,
            environments=options.environments, worker=worker,
        )  # fmt: skip

    def run(self, model: Model, steps: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """Values of each step of another model in OpenVINO's CPU plugin; none in other runtimes, of which devices and
        commands may take fixed sizes only.

        Raises:
            EngineError: the runtime does not run the model.
        """
        name = self.options.runtime
        if runtime_kind(name) != "openvino" or name.partition(":")[2] not in ("", "CPU"):
            return []
        with self._opened(model, getattr(self.runtime, "worker", None)) as runtime:
            return runtime.run_all(steps, values)

    def paired(self, side: ModelSide, facts: Mapping[Value, Fact]) -> list[str]:
        """Pair recorded tensors with those of the model, by names or by the modules of PyTorch; let tensors that were
        recorded in another layout be read in the model's; sentences about them."""
        if self.recorded is None:
            return []
        names, named = self.recorded.names, values_by_name(self.model)
        of_modules, _ = pairs_by_module(names, self.recorded.read, side, facts)
        self.keys = of_modules | {named[name]: name for name in reversed(names) if name in named}
        self.folded = folded(of_modules, names, self.recorded.read)
        self.recorded, texts = self.recorded.arranged([(name, value) for value, name in self.keys.items()], facts)
        return [text.replace("A's tensors are B's", "the recorded tensors are the model's") for text in texts]

    def observed(self, steps: Sequence[Arrays], values: Sequence[Value]) -> list[dict[Value, np.ndarray]]:
        """The tensors of each step, with state from step to step, in a run in which all these values are asked for."""
        if self.recorded is not None:
            made = [value for value in values if value in self.keys]
            if not made:
                raise InputError(f"{self.options.runtime} has no tensor that the model computes")
            return [{value: self.recorded.read(self.keys[value]) for value in made}]
        assert self.runtime is not None
        seen = observe(self.runtime, steps, values)
        self.errors += seen.errors
        self.failures |= {value: reason for value, reason in seen.failures.items() if isinstance(value, Value)}
        arrays = {value: given for value, given in seen.arrays.items() if isinstance(value, Value)}
        return [{value: given[i] for value, given in arrays.items()} for i in range(len(steps))]

    @property
    def is_openvino(self) -> bool:
        """Whether the runtime is OpenVINO, or a recording says so: known differences are its own."""
        if self.recorded is not None:
            return "openvino" in self.recorded.arithmetic.lower()
        return runtime_kind(self.options.runtime) == "openvino"

    @property
    def functions(self) -> str:
        """The name of the published errors of functions that the runtime is held to."""
        if self.options.functions is not None:
            return self.options.functions
        if self.recorded is not None:
            device = self.recorded.arithmetic.rpartition(" on ")[2]
            return {"CPU": "ieee", "CUDA": "cuda"}.get(device, "opencl")
        return default_functions(self.options.runtime)

    @cached_property
    def stored(self) -> Element | None:
        """The type of 16 bits in which a recording has all tensors of floating-point numbers; None for others."""
        if self.recorded is None:
            return None
        found = None
        for name in self.keys.values():
            array = self.recorded.read(name)
            if array.dtype.kind != "f" or not array.any():
                continue
            element = F16 if array.dtype == np.float16 else BF16 if _is_bf16(array) else None
            if element is None or found not in (None, element):
                return None
            found = element
        return found

    def arithmetic(self, facts: Mapping[Value, Fact], computed: Iterable[Value]) -> str:
        """The name of the arithmetic that a recording or the runtime states, or in which computed values are written.

        Raises:
            InputError: another device than the CPU does not say it.
        """
        recorded = "" if self.recorded is None else self.recorded.arithmetic.partition(" ")[0]
        if stated := self.options.arithmetic or recorded:
            return stated
        if self.stored is not None:
            return self.stored.name
        said = "" if self.runtime is None else self.runtime.precision
        name = self.options.runtime
        if not said and self.runtime is not None and runtime_kind(name) == "openvino" and name != "openvino":
            raise InputError(f"{name} does not say in which precision it computes: --arithmetic f16, for example")
        # Compressed weights are f16 on their way to f32: what is computed from constants alone does not count.
        elements = [facts[value].element for value in computed if value in facts]
        written = {"f32" if one is None or one not in (BF16, F16) else one.name for one in elements}
        if said == "f16" and "bf16" in written:
            return "bf16-f16"
        return max({said if said in _COARSENESS else "f32", *written}, key=lambda one: _COARSENESS[one])


def _is_bf16(array: np.ndarray) -> bool:
    """Whether all numbers of f32 have the 8 significant bits of bf16, and some need more than none of them."""
    if array.dtype != np.float32 or array.size < _FEW:
        return False
    bits = np.ascontiguousarray(array).view(np.uint32)
    return not (bits & 0xFFFF).any() and bool((bits & 0x7FFFFF).any())


class Runs:
    """The steps of a model, with state from step to step.

    Args:
        model: the model, with static inputs unless their shapes change.
        steps: the inputs of each step.
        options: the runtime.
        stack: closes the runtime.
        declared: the model in the shapes that it declares, if it leaves sizes open that the inputs have.

    Attributes:
        values: the tensors that are asked for.
        results: the tensors of the results of the model, each once.
        layouts: sentences about recorded tensors in another layout.
        groups: for products whose rows the runtime may quantise, the size of the groups.
        known: codes of known differences by layer, if the runtime is OpenVINO.
        variables: for each ReadValue the tensor that is written to its variable.
        unknown: layers that write caches of which is not known how earlier steps left them.
    """

    def __init__(
        self, model: Model, steps: Sequence[Arrays], options: JudgeOptions, stack: ExitStack,
        declared: Model | None = None,
    ) -> None:  # fmt: skip
        self.model, self.steps, self.options = model, steps, options
        self.declared = declared
        self.side = ModelSide(str(model.path or model.name or "the model"), model, options.runtime)
        inference = infer_shapes(model, tolerant=True)
        self.facts = inference.facts
        self.opponent = Opponent(model, options, stack)
        self.layouts = self.opponent.paired(self.side, self.facts)
        self.groups = quantised_products(model, inference, options.group or 0)
        self.known = _known_differences(model, inference) if self.opponent.is_openvino else {}
        self.values = [value for value in computed(self.side.order) if value.node not in self.side.constant]
        self.results = list(self.side.results)
        self.variables = _variables(model)
        self.unknown: set[Node] = set()

    def observed(self, values: Sequence[Value], count: int | None = None) -> list[Tensors]:
        """A run of the first steps in which the results and these values are asked for, with the inputs of each."""
        asked = list(dict.fromkeys([*values, *self.results]))
        steps = self.steps[:count]
        return self._with_inputs(self.opponent.observed(steps, asked))

    @cached_property
    def seen(self) -> list[Tensors]:
        """All tensors of each step in the runtime. Inputs to which layers write, such as caches of keys, follow from
        the tensors in front of these layers in the steps before."""
        steps = [dict(one) for one in self.observed([*self.values, *self.variables.values()])]
        caching = {node: found for node in self.side.order if (found := _caches(node))}
        for step, following in pairwise(steps):
            for node, caches in caching.items():
                others = {value for other, of in caching.items() if other is not node for value in of.values()}
                is_input = all(value.node.type == "Parameter" and value not in others for value in caches.values())
                left = _left(node, self.facts, step) if is_input else None
                if left is None:
                    self.unknown.add(node)
                else:
                    following |= {caches[name]: array for name, array in left.items()}
        return [*steps]

    def written(self, index: int, held: Arithmetic) -> dict[Value, Interval]:
        """The intervals of inputs, such as tables of states, that layers have computed in the steps before."""
        if not index:
            return {}
        found, step = self.written(index - 1, held), self.seen[index - 1]
        for node in self.side.order:
            caches = _caches(node) if node not in self.unknown else {}
            sources = [value for value in node.inputs if value is not None and value.node.constant is None]
            # Attention copies keys and values, without an error.
            if caches and node.type != paged_attention_extension.type and all(value in step for value in sources):
                left = caches_after(node, {**step, **found}, self.facts, held)
                found = found | {caches[name]: one for name, one in left.items()}
        return found

    @cached_property
    def plain(self) -> list[Tensors]:
        """The results of each step in the runtime, while no inner tensor is observed, in the shapes that the model
        declares: a runtime may compute open sizes otherwise.

        Raises:
            EngineError: it does not run the model in these.
        """
        if self.opponent.runtime is None:
            return self.seen
        return self._as_declared() or self.observed(self.results)

    def _as_declared(self) -> list[Tensors]:
        if self.declared is None:
            return []
        own = values_of_copy(self.model, self.declared)
        try:
            found = self.opponent.run(self.declared, self.steps, [own[value] for value in self.results])
        except EngineError as error:
            text = f"{error}; it runs with the sizes of the inputs in place of open ones: --shape sets them"
            raise EngineError(text, engine=error.engine) from error
        return self._with_inputs([dict(zip(self.results, arrays, strict=True)) for arrays in found])

    @cached_property
    def ours(self) -> list[Tensors]:
        """All tensors of each step in irexec."""
        with irexec_beside(self.options, self.model) as own:
            found = observe(own, self.steps, [*self.values, *self.results])
        arrays = {value: given for value, given in found.arrays.items() if isinstance(value, Value)}
        return self._with_inputs([{value: of[i] for value, of in arrays.items()} for i in range(len(self.steps))])

    def _with_inputs(self, steps: Sequence[Tensors]) -> list[Tensors]:
        ports = [(port.node.outputs[0], port.name) for port in self.model.inputs]
        given = [{value: arrays[name] for value, name in ports} for arrays in self.steps]
        return [{**one, **own} for one, own in zip(steps, given, strict=False)]


def irexec_beside(options: JudgeOptions, model: Model) -> Runtime:
    """A model in irexec, which computes as the runtime does."""
    return open_runtime(
        "irexec", model, precision=precision_beside(options.runtime), dynamic_quantization=options.group,
        caches=options.caches,
    )  # fmt: skip


def _known_differences(model: Model, inference: Inference) -> dict[Node, tuple[str, ...]]:
    """Codes of the portability table by layers in which OpenVINO is known to have other results."""
    found: dict[Node, tuple[str, ...]] = {}
    owners = {inner: node for node in model.nodes for body in node.bodies.values() for inner in body.graph.walk()}
    for node, row in differences(model, inference, [row for row in DIFFERENCES.values() if row.effect != "fails"]):
        # A layer of a body is judged with the layer that owns the body.
        owner = owners.get(node, node)
        found[owner] = (*found.get(owner, ()), row.code)
    return found


def _variables(model: Model) -> dict[Value, Value]:
    """Each ReadValue's tensor and what is written to its variable."""
    name = "variable_id"
    written = {node.attributes.get(name): node.inputs[0] for node in model.nodes if node.type == "Assign"}
    read = {node.outputs[0]: node.attributes.get(name) for node in model.nodes if node.type == "ReadValue"}
    return {value: source for value, key in read.items() if (source := written.get(key)) is not None}


def _caches(node: Node) -> dict[str, Value]:
    """The tensors that a layer writes, by the names of its inputs."""
    try:
        return resolve(node.type, node.version).kept_inputs(node)
    except UnsupportedError:
        return {}


def _left(node: Node, facts: Mapping[Value, Fact], given: Tensors) -> dict[str, np.ndarray] | None:
    """The caches after a layer has run, by the names of its inputs; None where it does not run with these tensors."""
    left, known = Written(), known_inputs([node], given)
    if any(value is not None and value not in known for value in node.inputs):
        return None
    try:
        layer = layer_of(node, facts, ARITHMETICS["f32"], caches=left)
        layer.run(*(None if value is None else known[value] for value in node.inputs))
    except IrexecError:
        return None
    return left.inputs
