"""Values of a run of a model: inputs of the parts that are cut out of it, and the states after a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError, NodeError, RunTimeoutError
from irexec.ir.dims import Dim, PartialShape, smallest
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.order import topological
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.run.input_sources import generated_array
from irexec.tools.run.result_files import with_state

BOUNDARY = ("Parameter", "Constant", "Result")
"""Types that do not count as layers of a part."""
_DETERMINING = 1024
"""Maximum number of elements of a tensor that may determine later shapes."""
_FAILURES = 8
"""Maximum number of failing layers; values after more of them are unknown."""


class RecordedRun:
    """The values of one run of a model, computed on demand: all at once, if they take at most a quarter of the memory.

    Args:
        model: the model; layers that cannot run, and layers after them, have no recorded values.
        inputs: an array for each Parameter, by its layer.
        seed: seed of random values in place of unknown ones.
        keep_shapes: whether cut values keep sizes that are unknown before a run.
        timeout: maximum time of a run in seconds.
        precision: precision of f16 and bf16.
        reference: values of another runtime. If there are any, only these values and constants are cut: after a fault
            the values of irexec are wrong.
    """

    def __init__(
        self,
        model: Model,
        inputs: Mapping[Node, np.ndarray],
        *,
        seed: int = 0,
        keep_shapes: bool = False,
        timeout: float | None = None,
        precision: Precision = DEFAULT_PRECISION,
        reference: Mapping[Value, np.ndarray] | None = None,
    ) -> None:
        self.model, self.inputs, self.keep_shapes, self.reference = model, inputs, keep_shapes, reference or {}
        self._seed, self._timeout, self._precision = seed, timeout, precision
        self.inference = infer_shapes(model, tolerant=True)
        self._held: dict[Value, np.ndarray] = dict(self.reference)
        self._absent: set[Node] = {*self.inference.blocked(model), *topological(model)[1]}
        self._boundaries: dict[Value, Fact | None] = {}
        self._constant = constant_layers(model) | {node for node in model.nodes if node.constant is not None}
        values = [value for node in model.nodes if node.type not in BOUNDARY for value in node.outputs]
        sizes = sum(self.inference.facts[value].known_nbytes for value in values)
        self._holds_all = sizes <= MemoryLimit().left() // 4
        if self._holds_all:
            self._record(values)

    def of_body(self, model: Model, inputs: Mapping[Node, np.ndarray]) -> RecordedRun:
        """The values of a body as a model of its own, with the options of this recording."""
        return RecordedRun(
            model, inputs, seed=self._seed, keep_shapes=self.keep_shapes, timeout=self._timeout,
            precision=self._precision,
        )  # fmt: skip

    def require(self, values: Collection[Value]) -> None:
        """Record values in one run, unless all are recorded already; other values are dropped."""
        if self._holds_all:
            return
        self._held = {one: array for one, array in self._held.items() if one in values or one in self.reference}
        self._record([value for value in values if value.node not in self.inputs])

    def array(self, value: Value) -> np.ndarray:
        """The recorded value, or a random one of the known type and shape.

        Raises:
            InputError: type or rank are unknown.
        """
        given = self.inputs.get(value.node)
        if given is not None:
            return given
        if value not in self._held and value.node not in self._absent:
            self._record([value])
        if value in self._held:
            return self._held[value]
        fact = self.fact(value)
        if fact is None or fact.element is None:
            raise InputError(f"neither the type nor the rank of {value.node.name!r}:{value.index} is known")
        shape = smallest(fact.shape or ())
        port = Port(value.node.name, (), fact.element, shape, value.node)
        return generated_array("random", port, shape, self._seed + max(0, value.node.id))

    def is_recorded(self, value: Value) -> bool:
        """Whether the value comes from a run."""
        return value in self._held or value.node in self.inputs

    def fact(self, value: Value) -> Fact | None:
        """Type and shape of the replacement of a cut value; None if unknown."""
        facts = (self.inference.facts.get(value), value.fact)
        found = next((fact for fact in facts if fact is not None and fact.element is not None), None)
        if found is None:
            return None
        shape = self._shape(value, found.shape)
        return None if shape is None else Fact(found.element, shape)

    def _shape(self, value: Value, inferred: PartialShape) -> PartialShape:
        if self.keep_shapes and inferred is not None:
            # The size without a symbol: files have no symbols.
            return tuple(size if isinstance(size, int) else Dim(size.lo, size.hi) for size in inferred)
        array = self._held.get(value, self.inputs.get(value.node))
        if array is not None:
            return array.shape
        return None if inferred is None else smallest(inferred)

    def boundary(self, value: Value) -> Fact | None:
        """See irexec.analysis.submodel.Boundary: values from Constants alone, or that determine shapes, become
        Constants."""
        if value not in self._boundaries:
            self._boundaries[value] = self._boundary(value)
        return self._boundaries[value]

    def _boundary(self, value: Value) -> Fact | None:
        if value in self.inference.facts and value.node not in self._absent and not self.is_recorded(value):
            self._record([value])
        fact = self.fact(value)
        if fact is None:
            return None
        if not self._is_constant(value):
            return None if self.reference and value not in self.reference else fact
        known = self.inference.facts[value].known if value in self.inference.facts else None
        array = self._held.get(value) if known is None else known
        return fact if array is None else Fact(fact.element, array.shape, array)

    def _is_constant(self, value: Value) -> bool:
        inferred = self.inference.facts.get(value)
        if (inferred is not None and inferred.known is not None) or value.node in self._constant:
            return True
        array = self._held.get(value)
        if array is None or array.size > _DETERMINING or array.dtype.kind not in "iub" or self.keep_shapes:
            return False
        readers = [(node, i) for node in self.model.nodes for i, source in enumerate(node.inputs) if source is value]
        return any(self._determines(node, i, array) for node, i in readers)

    def _determines(self, node: Node, index: int, array: np.ndarray) -> bool:
        """Whether the value of an input adds to the known shapes of a layer's outputs."""
        if node.bodies or node.type in ("Result", "Assign"):
            return False
        facts = [self.inference.facts.get(source) if source is not None else None for source in node.inputs]
        known = [Fact(None, None) if fact is None else Fact(fact.element, fact.shape, fact.value) for fact in facts]
        element = known[index].element
        without = _shapes(node, [*known[:index], Fact(element, array.shape), *known[index + 1 :]])
        given = _shapes(node, [*known[:index], Fact(element, array.shape, array), *known[index + 1 :]])
        return without != given

    def _record(self, values: Iterable[Value]) -> None:
        """Record values in one run; values after a layer that cannot run are absent from then on."""
        for _ in range(_FAILURES):
            wanted = [value for value in values if value.node not in self._absent and value not in self._held]
            if not wanted:
                return
            try:
                compiled = CompiledModel(self.model, precision=self._precision, tolerant=True)
                arrays = {compiled.inputs[i].name: self.inputs[node] for i, node in enumerate(self.model.parameters)}
                self._held.update(zip(wanted, compiled.values(arrays, wanted, timeout=self._timeout), strict=True))
                return
            except RunTimeoutError:
                break
            except NodeError as error:
                if not self._leave_out(error.node):
                    break
            except (IrexecError, MemoryError):
                break
        self._absent.update(value.node for value in values if value not in self._held)

    def _leave_out(self, name: str) -> bool:
        """Mark a layer and its dependents as absent; False without a layer of this name."""
        named = {node.name: node for node in self.model.nodes}
        steps = name.split("/")
        paths = ("/".join(steps[:count]) for count in range(len(steps), 0, -1))
        failed = next((named[path] for path in paths if path in named), None)
        if failed is None or failed in self._absent:
            return False
        self._absent.add(failed)
        for node in topological(self.model)[0]:
            if any(source is not None and source.node in self._absent for source in node.inputs):
                self._absent.add(node)
        return True


def _shapes(node: Node, inputs: Collection[Fact]) -> list[Fact] | None:
    """Types and shapes of the outputs of a layer for facts of its inputs; None if they do not fit."""
    alone = node.detached()
    parameters = [Node(-1 - i, f"input {i}", "Parameter", "opset1") for i in range(len(node.ports))]
    for parameter, port in zip(parameters, alone.ports, strict=True):
        parameter.outputs.append(Value(parameter, 0))
        port.source = parameter.outputs[0]
    alone.ports = [Input(port.source) for port in alone.ports]
    try:
        facts = infer_shapes(Graph(nodes=[*parameters, alone]), dict(zip(parameters, inputs, strict=True))).facts
    except IrexecError:
        return None
    return [Fact(facts[value].element, facts[value].shape) for value in alone.outputs]


def count_layers(graph: Graph) -> int:
    """Number of layers of a graph, layers of bodies included, without Parameters, Constants and Results."""
    return sum(node.type not in BOUNDARY for node in graph.walk())


RUNS = 8
"""Maximum number of runs of a model with variables."""


def after_run(
    model: Model, inputs: Mapping[str, np.ndarray], precision: Precision, timeout: float | None
) -> Model | None:
    """The model with the state after a run as the initial values of its variables; None without variables, or if the
    run fails.

    Args:
        model: the model, which is not changed.
        inputs: the inputs of the run, by name.
        precision: precision of f16 and bf16.
        timeout: maximum time of the run in seconds.
    """
    if not any(node.type == "Assign" for node in model.walk()):
        return None
    try:
        session = CompiledModel(model, precision=precision).session()
        session.run(inputs, timeout=timeout)
    except (IrexecError, MemoryError):
        return None
    return with_state(model, session.variables)
