"""Single layers of a model, run with given tensors in place of the layers in front of them: differences do not add up.

All layers of a batch form one model without connections between them, which compiles and runs in the time of the model
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import element_of
from irexec.errors import IrexecError, NodeError, RunTimeoutError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, ModelGraph, Node, Value
from irexec.ir.shape_text import write_shape
from irexec.runtime.inputs import bind_inputs
from irexec.tools.engines.runtimes import Arrays, Runtime
from irexec.tools.observing.observe import Observed, Tensor, observe
from irexec.tools.observing.sides import Facts, ModelSide

_STATE = ("ReadValue", "Assign")


@dataclass(frozen=True)
class Part:
    """The layers that run together with a layer, itself included, and the tensors that they read from elsewhere.

    A Parameter has no layers, and itself as its input.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Alone:
    """The layers of a model, each to be run by itself.

    Attributes:
        side: the model.
        known: the tensors that are given. Layers without one among their outputs run together with the layer that reads
            them.
        facts: facts of the values of the model.
    """

    side: ModelSide
    known: Container[Value]
    facts: Facts
    _parts: dict[Node, Part] = field(default_factory=dict, init=False, repr=False)

    def part(self, value: Value) -> Part:
        """The part of the layer of a value."""
        node = value.node
        if node not in self._parts:
            self._parts[node] = self._searched(node)
        return self._parts[node]

    def _searched(self, node: Node) -> Part:
        if node.type == "Parameter":
            return Part((), tuple(node.outputs))
        nodes: dict[Node, None] = {node: None}
        inputs: dict[Value, None] = {}
        waiting = [node]
        while waiting:
            for value in waiting.pop().inputs:
                if value is None or value.node in nodes:
                    continue
                if value in self.known or value.node.type == "Parameter":
                    inputs[value] = None
                else:
                    nodes[value.node] = None
                    waiting.append(value.node)
        return Part(tuple(nodes), tuple(inputs))

    def refusal(self, value: Value) -> str:
        """The reason for a layer that cannot be run alone; "" if it can be."""
        part = self.part(value)
        if any(node.type in _STATE for node in part.nodes):
            return "its layer reads or keeps state, and is not run alone"
        if any(one.node.type == "Parameter" and one not in self.known for one in part.inputs):
            return "its layer reads an input that A does not have"
        return ""

    def inputs(self, values: Sequence[Value]) -> list[Value]:
        """The tensors that the layers of some values read from elsewhere."""
        return list(dict.fromkeys(one for value in values for one in self.part(value).inputs))

    def nodes(self, values: Sequence[Value]) -> list[Node]:
        """All layers that some values need, in topological order."""
        needed = {node for value in values for node in self.part(value).nodes}
        return sorted(needed, key=lambda node: self.side.positions[node])

    def model(self, values: Sequence[Value], given: Mapping[Value, np.ndarray]) -> Apart:
        """The layers of some values as a model, with the given tensors as its inputs."""
        made = _Cloning(self, given)
        for node in self.nodes(values):
            made.clone(node)
        return made.apart(values)

    def observed(
        self, values: Sequence[Value], given: Observed, runs: int, opened: Callable[[Model], Runtime]
    ) -> Observed:
        """The values of layers in each run.

        Args:
            values: the values.
            given: the tensors that their layers read, by values of the model.
            runs: number of runs.
            opened: opens a model in a runtime.

        Raises:
            IrexecError: the runtime does not run a layer with these tensors.
        """
        arrays: dict[Tensor, list[np.ndarray]] = {}
        failures: dict[Tensor, str] = {}
        good = []
        for value in values:
            missing = next((one for one in self.part(value).inputs if one not in given.arrays), None)
            if missing is None:
                good.append(value)
            else:
                reason = given.failures.get(missing, "")
                failures[value] = f"its input {missing.name!r} is not known: {reason}"
        for run in range(runs if good else 0):
            made = self.model(good, {one: given.arrays[one][run] for one in self.inputs(good)})
            with opened(made.model) as runtime:
                seen = observe(runtime, [made.feeds(runtime)], [made.values[value] for value in good])
            for value in good:
                own = made.values[value]
                if own in seen.failures:
                    failures[value] = seen.failures[own]
                else:
                    arrays.setdefault(value, []).extend(seen.arrays[own])
        return Observed(arrays, failures)

    def observed_each(
        self, values: Sequence[Value], given: Observed, runs: int, opened: Callable[[Model], Runtime]
    ) -> Observed:
        """The values as ``observed`` returns them, without those of layers that do not run with the given tensors.

        Most of these layers do not accept the shapes, which needs no run to be known.
        """
        arrays: dict[Tensor, Sequence[np.ndarray]] = {}
        failures: dict[Tensor, str] = dict(self._of_shapes(values, given, runs))
        values = [value for value in values if value not in failures]
        waiting = [values] if values else []
        while waiting:
            part = waiting.pop()
            try:
                made = self.observed(part, given, runs, opened)
                arrays |= made.arrays
                failures |= made.failures
            except RunTimeoutError:
                raise
            except IrexecError as error:
                middle = len(part) // 2
                if middle:
                    waiting += [part[:middle], part[middle:]]
                else:
                    failures[part[0]] = str(error)
        return Observed(arrays, failures)

    def _of_shapes(self, values: Sequence[Value], given: Observed, runs: int) -> Iterator[tuple[Value, str]]:
        """The values whose layers do not accept the shapes of the given tensors of a run, with the reasons."""
        good = [value for value in values if all(one in given.arrays for one in self.part(value).inputs)]
        for run in range(runs if good else 0):
            made = self.model(good, {one: given.arrays[one][run] for one in self.inputs(good)})
            failed = infer_shapes(made.model, tolerant=True).failures
            for value in good:
                clones = (made.values[node.outputs[0]].node for node in self.part(value).nodes if node.outputs)
                error = next((failed[node] for node in clones if isinstance(failed.get(node), NodeError)), None)
                if error is not None:
                    yield value, str(error)


@dataclass(frozen=True)
class Apart:
    """Layers as a model of their own.

    Attributes:
        model: the layers, each with Parameters and Constants as inputs.
        arrays: arrays of its Parameters, in order.
        values: values of the model by those of the whole model.
    """

    model: Model
    arrays: Sequence[np.ndarray]
    values: Mapping[Value, Value]

    @property
    def inputs(self) -> Arrays:
        """The arrays by the names of the inputs."""
        return dict(zip((port.name for port in self.model.inputs), self.arrays, strict=True))

    def feeds(self, runtime: Runtime) -> Arrays:
        """The arrays by the names of the inputs of a runtime, in the types of these inputs."""
        ports = runtime.inputs
        named = dict(zip((port.name for port in ports), self.arrays, strict=True))
        bound = bind_inputs(ports, named, allow_cast=True)
        return {port.name: array for port, array in zip(ports, bound, strict=True)}


class _Cloning:
    """Copies layers into a model of their own."""

    def __init__(self, alone: Alone, given: Mapping[Value, np.ndarray]) -> None:
        self._alone, self._given = alone, given
        self._arrays: list[np.ndarray] = []
        self._values: dict[Value, Value] = {}
        self._parameters: dict[Value, Value] = {}
        self._nodes: list[Node] = []

    def clone(self, node: Node) -> None:
        fresh = node.detached()
        for port, value in zip(fresh.ports, node.inputs, strict=True):
            if value is not None:
                port.source = self._parameter(value) if value in self._given else self._values[value]
        for value, own in zip(node.outputs, fresh.outputs, strict=True):
            own.names = []
            self._values[value] = own
        self._nodes.append(fresh)

    def apart(self, values: Sequence[Value]) -> Apart:
        """The model with the values as results; an input may be a result too."""
        found = [self._values[value] if value in self._values else self._parameter(value) for value in values]
        self._values |= zip(values, found, strict=True)
        results = [Node(0, "", "Result", "opset1", [Input(value, value.fact)]) for value in found]
        model = Model.of(ModelGraph("layers", [*self._nodes, *results]))
        for i, node in enumerate(model.nodes):
            node.id, node.name = i, node.name or f"result {i}"
        return Apart(model, self._arrays, self._values)

    def _parameter(self, value: Value) -> Value:
        if value not in self._parameters:
            array = self._given[value]
            fact = self._alone.facts.get(value)
            element = (None if fact is None else fact.element) or element_of(array.dtype)
            attributes = {"shape": write_shape(array.shape), "element_type": element.name}
            node = Node(0, f"input {len(self._arrays)}", "Parameter", "opset1", attributes=attributes)
            node.outputs = [Value(node, 0, Fact(element, array.shape))]
            self._nodes.append(node)
            self._parameters[value] = node.outputs[0]
            self._arrays.append(array)
        return self._parameters[value]


def arranged(array: np.ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
    """An array of A in B's form: with its axes in another order, or in the shape of its partner, since exporters keep,
    merge and split axes. Unchanged for as many axes."""
    if order and array.ndim == len(order):
        return array.transpose(order)
    return array.reshape(shape) if array.ndim != len(shape) and array.size == math.prod(shape) else array
