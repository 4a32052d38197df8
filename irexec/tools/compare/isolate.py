"""Single layers of B with the tensors of A as inputs: differences do not add up.

All layers of a batch form one model without connections between them, which compiles and runs in the time of B itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import Element, element_of
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, ModelGraph, Node, Value
from irexec.ir.shape_text import write_shape
from irexec.runtime.inputs import bind_inputs
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.observe import Observed, observe
from irexec.tools.compare.options import CompareOptions, opened_runtime
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import arranged
from irexec.tools.compare.sides import ModelSide
from irexec.tools.engines.runtimes import Arrays, Runtime

Sources = Mapping[Value, Value | str]
"""Replacements of values of B as inputs of layers: a value, or the name of a recorded tensor."""

_STATE = ("ReadValue", "Assign")


class Isolated:
    """The layers of B, each to be run with the tensors of A.

    Args:
        b: the side.
        sources: replacements of values of B, such as values of A. Layers without a replacement of their outputs run
            together with the layer that reads them.
        options: threads, memory and time of the runtimes.
        shapes: shapes of B's tensors; replacements have as many elements.
        orders: orders of axes that turn replacements into B's tensors; see Pairs.

    Attributes:
        facts: facts of the values of B.
    """

    def __init__(
        self,
        b: ModelSide,
        sources: Sources,
        options: CompareOptions,
        shapes: Mapping[Value, tuple[int, ...]] | None = None,
        orders: Mapping[Value, tuple[int, ...]] | None = None,
    ) -> None:
        self._b, self._options, self._by_b = b, options, sources
        self._shapes, self._orders = shapes or {}, orders or {}
        self.facts = infer_shapes(b.model, tolerant=True).facts

    def chosen(self, tensors: Sequence[TensorPair], uncompared: list[Uncompared]) -> list[TensorPair]:
        """The tensors of layers that can be run alone; the others are added to ``uncompared`` with the reason."""
        found = []
        for pair in tensors:
            nodes, cuts = self._part(pair.b.node)
            if any(node.type in _STATE for node in nodes):
                reason = "its layer reads or keeps state, and is not run alone"
            elif any(value.node.type == "Parameter" and value not in self._by_b for value in cuts):
                reason = "its layer reads an input that A does not have"
            else:
                found.append(pair)
                continue
            uncompared.append(Uncompared("B", pair.b.name, pair.b.node.type, reason))
        return found

    def needed(self, batch: Sequence[TensorPair]) -> list[Value | str]:
        """Tensors of A that the layers of a batch read."""
        return list(dict.fromkeys(self._by_b[value] for value in self.inputs(batch)))

    def observed(self, batch: Sequence[TensorPair], of_a: Observed, runtime: str, runs: int) -> Observed:
        """The results of the layers in each run."""
        found = Observed()
        good = []
        for pair in batch:
            missing = next((value for value in self._part(pair.b.node)[1] if self._by_b[value] in of_a.failures), None)
            if missing is None:
                good.append(pair)
            else:
                found.failures[pair.b] = (
                    f"its input {missing.name!r} is not known: {of_a.failures[self._by_b[missing]]}"
                )
        for run in range(runs):
            self._run(good, self.apart(good, of_a, run), runtime, found)
        return found

    def observed_each(self, batch: Sequence[TensorPair], of_a: Observed, runtime: str, runs: int) -> Observed:
        """Results of the layers as ``observed`` returns them, without layers that do not run with the tensors of A."""
        found = Observed()
        waiting = [batch] if batch else []
        while waiting:
            part = waiting.pop()
            try:
                made = self.observed(part, of_a, runtime, runs)
                found.arrays |= made.arrays
                found.failures |= made.failures
            except RunTimeoutError:
                raise
            except IrexecError as error:
                middle = len(part) // 2
                if middle:
                    waiting += [part[:middle], part[middle:]]
                else:
                    found.failures[part[0].b] = str(error)
        return found

    def apart(self, batch: Sequence[TensorPair], of_a: Observed, run: int) -> Apart:
        """The layers of a batch as a model, with the tensors of A in one run as its inputs."""
        return Apart(batch, {value: self.given(value, of_a, run) for value in self.inputs(batch)}, self)

    def inputs(self, batch: Sequence[TensorPair]) -> list[Value]:
        """Tensors of B that are inputs of the layers of a batch, in place of layers in front of them."""
        return list(dict.fromkeys(value for pair in batch for value in self._part(pair.b.node)[1]))

    def given(self, value: Value, of_a: Observed, run: int) -> np.ndarray:
        """The array of A for an input of a layer, in B's shape."""
        return self.shaped(value, of_a.arrays[self._by_b[value]][run])

    def shaped(self, value: Value, array: np.ndarray) -> np.ndarray:
        """An array in B's shape: two exporters may differ in axes of size 1 and in the order of axes."""
        return arranged(array, self._shapes.get(value, array.shape), self._orders.get(value, ()))

    def _run(self, batch: Sequence[TensorPair], made: Apart, runtime: str, found: Observed) -> None:
        with opened_runtime(self._options, runtime, made.model) as opened:
            seen = observe(opened, [made.feeds(opened)], [made.values[pair.b] for pair in batch])
        for pair in batch:
            value = made.values[pair.b]
            if value in seen.failures:
                found.failures[pair.b] = seen.failures[value]
            else:
                found.arrays.setdefault(pair.b, []).extend(seen.arrays[value])

    def _part(self, node: Node) -> tuple[list[Node], list[Value]]:
        """The layers that run with a layer, itself included, and their inputs; only the value for a Parameter."""
        if node.type == "Parameter":
            return [], list(node.outputs)
        nodes: dict[Node, None] = {node: None}
        cuts: dict[Value, None] = {}
        waiting = [node]
        while waiting:
            for value in waiting.pop().inputs:
                if value is None or value.node in nodes:
                    continue
                if value in self._by_b or value.node.type == "Parameter":
                    cuts[value] = None
                else:
                    nodes[value.node] = None
                    waiting.append(value.node)
        return list(nodes), list(cuts)

    def element(self, value: Value) -> Element | None:
        """The element type of a value of B."""
        return self.facts[value].element if value in self.facts else None

    def nodes(self, batch: Sequence[TensorPair]) -> Iterator[Node]:
        """All layers that a batch needs, in topological order."""
        needed = {node for pair in batch for node in self._part(pair.b.node)[0]}
        return (node for node in self._b.order if node in needed)


class Apart:
    """The model of a batch.

    Attributes:
        model: the layers, each with Parameters and Constants as inputs.
        arrays: arrays of its Parameters, in order.
        values: values of the model by values of B.
    """

    def __init__(self, batch: Sequence[TensorPair], given: Mapping[Value, np.ndarray], isolated: Isolated) -> None:
        self.arrays: list[np.ndarray] = []
        self.values: dict[Value, Value] = {}
        self._given, self._isolated = given, isolated
        self._parameters: dict[Value, Value] = {}
        self._nodes: list[Node] = []
        for node in isolated.nodes(batch):
            self._clone(node)
        results = [Node(0, "", "Result", "opset1") for _ in batch]
        for node, pair in zip(results, batch, strict=True):
            if pair.b not in self.values:
                # An input may be a result too.
                self.values[pair.b] = self._parameter(pair.b)
            node.ports = [_input(self.values[pair.b])]
        self.model = Model.of(ModelGraph("layers", [*self._nodes, *results]))
        for i, node in enumerate(self.model.nodes):
            node.id = i
            node.name = node.name or f"result {i}"

    def feeds(self, runtime: Runtime) -> Arrays:
        """The arrays by the names of the inputs of a runtime, in the types of these inputs."""
        ports = runtime.inputs
        named = dict(zip((port.name for port in ports), self.arrays, strict=True))
        bound = bind_inputs(ports, named, allow_cast=True)
        return {port.name: array for port, array in zip(ports, bound, strict=True)}

    def _clone(self, node: Node) -> None:
        fresh = node.detached()
        for port, value in zip(fresh.ports, node.inputs, strict=True):
            if value is not None:
                port.source = self._parameter(value) if value in self._given else self.values[value]
        for value, own in zip(node.outputs, fresh.outputs, strict=True):
            own.names = []
            self.values[value] = own
        self._nodes.append(fresh)

    def _parameter(self, value: Value) -> Value:
        if value not in self._parameters:
            array = self._given[value]
            element = self._isolated.element(value) or element_of(array.dtype)
            attributes = {"shape": write_shape(array.shape), "element_type": element.name}
            node = Node(0, f"input {len(self.arrays)}", "Parameter", "opset1", attributes=attributes)
            node.outputs = [Value(node, 0, Fact(element, array.shape))]
            self._nodes.append(node)
            self._parameters[value] = node.outputs[0]
            self.arrays.append(array)
        return self._parameters[value]


def _input(value: Value) -> Input:
    return Input(value, value.fact)
