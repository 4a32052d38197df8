"""Both sides of a comparison with their runtimes: which tensors are pairs, and their arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.model import Model
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError
from irexec.ir.graph import Node, Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.constants import KnownConstants, has_values
from irexec.tools.compare.inputs import Inputs, shapes_of_b
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.observe import Facts, Kept, Observed, observe
from irexec.tools.compare.options import CompareOptions, opened_runtime
from irexec.tools.compare.pairs import TensorPair, pair_models, pair_recorded
from irexec.tools.compare.rows import Rows
from irexec.tools.compare.sides import AnySide, ModelSide, RecordedSide
from irexec.tools.compare.tolerances import Precision, Tolerances
from irexec.tools.engines.runtimes import runtime_kind
from irexec.tools.run.shapes import reshape

Advance = Callable[[float], None]
"""Called with each finished part of the work, as a fraction of it."""

_BUDGET = 1 << 30
"""Maximum number of bytes of the tensors of one batch, unless less memory is left."""
_UNKNOWN = 1 << 20
"""Assumed number of bytes of a tensor of unknown shape."""


class OpenSides:
    """Both sides of a comparison, open in their runtimes.

    Args:
        a, b: the sides.
        options: the options of the comparison.
        stack: closes the runtimes.
        advance: see Advance.

    Attributes:
        pairs: the pairs of tensors.
        run_a, run_b: the runtimes of both sides; None for recorded tensors.
        tolerances: the tolerances of pairs.
        inputs: the inputs of all runs.
        runs: number of runs.
        errors: errors of layers that could not be run.
    """

    def __init__(self, a: AnySide, b: ModelSide, options: CompareOptions, stack: ExitStack, advance: Advance) -> None:
        self.a, self.b, self.options, self.advance = a, b, options, advance
        self.errors: list[IrexecError] = []
        _check_runtimes(a, options)
        self.pairs = (
            pair_recorded(a, b, options.maps) if isinstance(a, RecordedSide) else pair_models(a, b, options.maps)
        )
        model_side = a if isinstance(a, ModelSide) else None
        model_a = None if model_side is None else model_side.model
        self._reshape()
        self.run_a = (
            None if model_a is None else stack.enter_context(opened_runtime(options, options.a_runtime, model_a))
        )
        self.run_b = stack.enter_context(opened_runtime(options, options.b_runtime, b.model))
        self.tolerances = Tolerances(options, Precision(model_a), Precision(None if model_a is None else b.model))
        self.inputs = Inputs(model_side, b, self.pairs)
        limit = min(_BUDGET, MemoryLimit(options.max_memory).left() // 6)
        self._kept_a, self._kept_b = Kept(limit), Kept(limit)
        has_state = model_side is not None and (model_side.has_state or b.has_state)
        self.runs = options.runs or (2 if has_state else 1)
        if model_side is None and self.runs > 1:
            raise InputError("recorded tensors are of one run")

    @functools.cached_property
    def unknown_constants(self) -> Mapping[Node, tuple[Node, ...]]:
        """Constants without a counterpart in A, by the layers of B that read them; empty for one model or recorded
        tensors."""
        if isinstance(self.a, RecordedSide) or self.a.model is self.b.model:
            return {}
        found = KnownConstants(self.a.model).unknown(self.b.model)
        computed = self._computed_from_constants(self.a.model, {leaf for leaves in found.values() for leaf in leaves})
        left = {node: tuple(one for one in leaves if not has_values(one, computed)) for node, leaves in found.items()}
        return {node: leaves for node, leaves in left.items() if leaves}

    def _computed_from_constants(self, a: Model, leaves: set[Node]) -> list[np.ndarray]:
        """Floating-point tensors of A that layers compute from constants alone, of the sizes of some Constants."""
        sizes = {leaf.constant.count for leaf in leaves if leaf.constant is not None}
        values = [
            value
            for node in constant_layers(a)
            for value in node.outputs
            if (fact := value.fact) is not None and fact.is_static and math.prod(fact.static_shape) in sizes
            if fact.element is not None and fact.element.is_float
        ]
        return [arrays[0] for arrays in self.observed_a(values).arrays.values()]

    def _reshape(self) -> None:
        shapes = self.options.shapes or {}
        if not shapes:
            return
        if isinstance(self.a, ModelSide) and self.a.model is not self.b.model:
            of_b = shapes_of_b(shapes, self.a, self.b, self.pairs)
            reshape(self.a.model, shapes, tolerant=True)
            reshape(self.b.model, of_b, tolerant=True)
        else:
            reshape(self.b.model, shapes, tolerant=True)

    def sources(self) -> dict[Value, Value | str]:
        """The observable value of A for each value of B, or the name of a recorded tensor."""
        if self.run_a is not None:
            return {
                value: one
                for value, one in self.pairs.by_b.items()
                if value.node.type != "Constant" and (one.node.type == "Constant" or self.run_a.gives(one))
            }
        inputs: dict[Value, Value | str] = {port.node.outputs[0]: port.name for port in self.b.model.inputs}
        return inputs | {pair.b: pair.a for pair in self.pairs.tensors}

    @property
    def seeded(self) -> bool:
        """Whether layers with seeds have other values on the two sides: runtimes of ONNX have their own generators."""
        runtimes = set(map(runtime_kind, (self.options.a_runtime, self.options.b_runtime)))
        return len(runtimes) > 1 and not runtimes.isdisjoint(("onnx", "onnxruntime"))

    def batches(self, tensors: Sequence[TensorPair], facts: Facts) -> Iterator[list[TensorPair]]:
        """The tensors in batches that fit into the memory."""
        budget = min(_BUDGET, MemoryLimit(self.options.max_memory).left() // 6) // (2 * self.runs)
        batch: list[TensorPair] = []
        size = 0
        for pair in tensors:
            fact = facts.get(pair.b)
            own = fact.nbytes if fact is not None and fact.is_static and fact.element is not None else _UNKNOWN
            if batch and size + own > budget:
                yield batch
                batch, size = [], 0
            batch.append(pair)
            size += own
        if batch:
            yield batch

    def add(
        self,
        batch: Sequence[TensorPair],
        rows: Rows,
        uncompared: list[Uncompared],
        isolated: Isolated | None = None,
        part: float = 0.0,
    ) -> None:
        """Compare the tensors of a batch, each of which is ``part`` of the work."""
        of_a = self.observed_a([*(pair.a for pair in batch), *(isolated.needed(batch) if isolated else [])])
        self.advance(part * len(batch) / 2)
        if isolated:
            of_b = isolated.observed(batch, of_a, self.options.b_runtime, self.runs)
            if self._is_one_model_of_halves(batch):
                # Tensors of f16 are rounded as B's inputs; inside of a run in f32 they are not.
                again = isolated.observed_each(batch, of_a, self.options.a_runtime, self.runs)
                of_a.arrays |= {pair.a: again.arrays[pair.b] for pair in batch if pair.b in again.arrays}
        else:
            of_b = self.observed_b(pair.b for pair in batch)
        self.advance(part * len(batch) / 2)
        self.errors += [*of_a.errors, *of_b.errors]
        for pair in batch:
            if pair.a in of_a.failures:
                uncompared.append(Uncompared("A", pair.b.name, pair.b.node.type, of_a.failures[pair.a]))
            elif pair.b in of_b.failures:
                uncompared.append(Uncompared("B", pair.b.name, pair.b.node.type, of_b.failures[pair.b]))
            else:
                rows.add(pair, of_a.arrays[pair.a], of_b.arrays[pair.b])

    def _is_one_model_of_halves(self, batch: Sequence[TensorPair]) -> bool:
        """Whether both sides are one model, in which layers of a batch read f16 or bf16."""
        if not isinstance(self.a, ModelSide) or self.a.model is not self.b.model:
            return False
        read = (value for pair in batch for value in pair.b.node.inputs if value is not None)
        return any(value.fact is not None and value.fact.element in HALVES for value in read)

    def observed_a(self, sources: Sequence[Value | str]) -> Observed:
        """Tensors of A, by value or by recorded name; a tensor that was observed before is the same array."""
        if isinstance(self.a, RecordedSide):
            found = Observed()
            names = [name for name in sources if isinstance(name, str)]
            given = self.inputs.b[0]
            found.arrays = {name: [self.a.read(name) if name in self.a.names else given[name]] for name in names}
            return found
        if self.run_a is None:
            raise AssertionError("a model has a runtime")
        return self._kept_a.observed(self.run_a, self.inputs.a, self.a.order, sources)

    def unobserved(self, of_a: Sequence[Value | str], of_b: Sequence[Value]) -> tuple[Observed, Observed]:
        """Results of A and of B from runs in which nothing else is observed: layers are fused as usual."""
        values = [value for value in of_a if isinstance(value, Value)]
        one = self.observed_a(of_a) if self.run_a is None else observe(self.run_a, self.inputs.a, values)
        return one, observe(self.run_b, self.inputs.b, of_b)

    def observed_b(self, sources: Iterable[Value | str]) -> Observed:
        """Tensors of B; names are left out, and a tensor that was observed before is the same array."""
        return self._kept_b.observed(self.run_b, self.inputs.b, self.b.order, sources)


def _check_runtimes(a: AnySide, options: CompareOptions) -> None:
    if isinstance(a, RecordedSide):
        if options.a_runtime != "irexec":
            raise InputError(f"{a.label} holds recorded tensors, which nothing runs: --a-runtime is for a model")
        if options.inputs_of is not None or options.isolate:
            raise InputError(f"{a.label} holds recorded tensors: --from-inputs-of and --isolate need two models")
    if options.isolate and options.b_runtime in ("onnx", "onnxruntime"):
        raise InputError(
            f"--isolate runs each layer of B as a model of its own, and {options.b_runtime} runs whole .onnx files"
        )
