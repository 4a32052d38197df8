"""A run that stops at the first layer whose result has NaN or infinities, is too large for f16, or leaves a recorded
range."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from irexec.compile.steps import Step
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import unique_names
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.statistics import Statistics, blocks_of, constant_statistics, statistics
from irexec.tools.trapping.options import Kind, TrapOptions
from irexec.tools.trapping.ranges import Ranges
from irexec.tools.trapping.report import Origin, Trap, TrappedTensor, TrapReport

F16_MAX = 65504.0
"""The largest f16."""


class Trapped(Exception):
    """The trap has stopped the run."""

    def __init__(self, trap: Trap) -> None:
        super().__init__(f"{trap.kind} in {trap.name}")
        self.trap = trap


class TrapWatcher:
    """Looks at every result of a run; see irexec.runtime.execute.Watcher.

    Args:
        compiled: the model that runs.
        options: the conditions to stop at, the most important first, and what is left out.
        ranges: to hold results to, for the kind "range".
        record: takes the ranges of all results.

    Raises:
        InputError: a name of ``ignore`` is of nothing in the model, or no range is of one of its tensors.
    """

    def __init__(
        self, compiled: CompiledModel, options: TrapOptions, ranges: Ranges | None = None, record: Ranges | None = None
    ) -> None:
        self._kinds, self._margin, self._record = options.kinds, options.margin, record
        self._names = _names(compiled.model)
        self._ignored = _matching(compiled.model, options.ignore)
        self._ranges = ranges.tensors if ranges is not None else {}
        if ranges is not None and not self._ranges.keys() & set(self._names.values()):
            raise InputError(f"no tensor of the model has a range in the file, which has those of {ranges.model!r}")
        self._without_range: dict[str, None] = {}
        self._infinite: list[str] = []
        self._iterations: list[tuple[str, str, int]] = []
        self._layers = 0

    def report(self, trap: Trap | None = None) -> TrapReport:
        """The report."""
        ignored = tuple(dict.fromkeys(node.name for node in self._ignored))
        return TrapReport(self._kinds, trap, self._layers, ignored, tuple(self._without_range), tuple(self._infinite))

    def check_inputs(self, inputs: Mapping[Node, np.ndarray]) -> None:
        """Look at the inputs of the model: NaN and what leaves its range stop the run before it begins; infinities are
        noted.

        Raises:
            Trapped: an input is not as it should be.
        """
        for node, array in inputs.items():
            value = node.outputs[0]
            if array.dtype.kind not in "fiu" or not array.size or node in self._ignored:
                continue
            if "nan" in self._kinds and array.dtype.kind == "f" and np.isnan(array).any():
                self._stop("nan", "input", node, value, array, np.isnan(array), (), self._names[value])
            if "inf" in self._kinds and array.dtype.kind == "f" and np.isinf(array).any():
                self._infinite.append(self._names[value])
            if "range" in self._kinds:
                self._check_range(node, value, array, (), (float(array.min()), float(array.max())))
            if self._record is not None:
                self._add_range(value, array, None)

    def step(self, step: Step, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Look at the results of a layer.

        Raises:
            Trapped: one of them is not as it should be.
        """
        node = step.node
        for value, array in zip(node.outputs, outputs, strict=False):
            if isinstance(array, np.ndarray) and array.dtype.kind in "fiu" and array.size and node not in self._ignored:
                self._look_at(node, value, array, inputs)
        self._layers += 1

    def enter(self, node: Node, body: str, iteration: int) -> None:
        """A body begins to run."""
        self._iterations.append((node.name, body, iteration))

    def leave(self) -> None:
        """A body has run."""
        self._iterations.pop()

    def _look_at(self, node: Node, value: Value, array: np.ndarray, inputs: Sequence[Any]) -> None:
        low, high = float(array.min()), float(array.max())
        finite = np.isfinite(low) and np.isfinite(high)
        for kind in self._kinds:
            if kind == "range":
                self._check_range(node, value, array, inputs, (low, high))
            # A value that leaves a body entered it or was made in it, and would have been seen there.
            elif not node.bodies and array.dtype.kind == "f" and not (finite and kind != "f16"):
                self._check(kind, node, value, array, inputs)
        if self._record is not None:
            self._add_range(value, array, (low, high) if finite else None)

    def _add_range(self, value: Value, array: np.ndarray, known: tuple[float, float] | None) -> None:
        found = known if known is not None else _finite_range(array)
        if self._record is not None and found is not None:
            self._record.add(self._names[value], *found)

    def _check(self, kind: Kind, node: Node, value: Value, array: np.ndarray, inputs: Sequence[Any]) -> None:
        wrong = _wrong(kind, array)
        if not wrong.any():
            return
        sources = [source for source in node.inputs if source is not None]
        brought = [source for i, source in enumerate(sources) if _has(kind, source.node, _at(inputs, i))]
        if not brought:
            self._stop(kind, "layer", node, value, array, wrong, inputs)
        constant = next(
            (source for source in brought if source.node.constant is not None and source.node not in self._ignored),
            None,
        )
        # Infinities in a constant are masks, as those in an input are. Finite values beyond f16 are lost when the
        # constant is stored in it.
        if kind != "inf" and constant is not None:
            self._stop(kind, "constant", node, value, array, wrong, inputs, constant.node.name)

    def _check_range(
        self, node: Node, value: Value, array: np.ndarray, inputs: Sequence[Any], extremes: tuple[float, float]
    ) -> None:
        name = self._names[value]
        recorded = self._ranges.get(name)
        if recorded is None:
            self._without_range[name] = None
            return
        margin = self._margin * max(map(abs, recorded))
        low, high = recorded[0] - margin, recorded[1] + margin
        if extremes[0] < low or extremes[1] > high or np.isnan(extremes[0]):
            wrong = ~((array >= low) & (array <= high))
            if wrong.any():
                origin: Origin = "layer" if node.inputs else "input"
                self._stop("range", origin, node, value, array, wrong, inputs, "" if node.inputs else name, (low, high))

    def _stop(
        self,
        kind: Kind,
        origin: Origin,
        node: Node,
        value: Value,
        array: np.ndarray,
        wrong: np.ndarray,
        inputs: Sequence[Any],
        source: str = "",
        limits: tuple[float, float] | None = None,
    ) -> None:
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        sources = [one for one in node.inputs if one is not None]
        read = tuple(self._tensor(one, _at(inputs, i)) for i, one in enumerate(sources)) if origin != "input" else ()
        trap = Trap(
            kind, origin, source, node.id, node.name, node.type, node.version, node.line, tuple(self._iterations),
            self._tensor(value, array), index, float(array[index]), int(np.count_nonzero(wrong)), limits, read,
            self._layers,
        )  # fmt: skip
        raise Trapped(trap)

    def _tensor(self, value: Value, array: np.ndarray | None) -> TrappedTensor:
        node = value.node
        if node.constant is not None:
            fact = Fact(node.constant.element, node.constant.shape)
            return TrappedTensor(self._names[value], node.type, str(fact), constant_statistics(node))
        element = value.fact.element if value.fact is not None else None
        if not isinstance(array, np.ndarray):
            return TrappedTensor(self._names[value], node.type, str(Fact(element, None)), Statistics())
        return TrappedTensor(self._names[value], node.type, str(Fact.of(array, element)), statistics(array))


def _at(inputs: Sequence[Any], index: int) -> Any:
    return inputs[index] if index < len(inputs) else None


def _wrong(kind: Kind, array: np.ndarray) -> np.ndarray:
    """The elements that the kind is about."""
    if kind == "nan":
        return np.isnan(array)
    if kind == "inf":
        return np.isinf(array)
    if array.dtype == np.float16:
        # None of them is beyond the type that it has.
        return np.zeros(array.shape, bool)
    return np.isfinite(array) & (np.abs(array) > F16_MAX)


def _has(kind: Kind, node: Node, array: Any) -> bool:
    """Whether an input has such elements; a constant that no kernel reads is looked at as it is stored."""
    if node.constant is not None:
        return any(block.dtype.kind == "f" and bool(_wrong(kind, block).any()) for block in blocks_of(node))
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and bool(_wrong(kind, array).any())


def _finite_range(array: np.ndarray) -> tuple[float, float] | None:
    finite = array[np.isfinite(array)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def _names(graph: Graph, path: str = "") -> dict[Value, str]:
    """Names for all values of a graph and its bodies, no two of them the same."""
    named = unique_names(value for node in graph.nodes for value in node.outputs)
    found = {value: f"{path}{name}" for name, value in named.items()}
    for node in graph.nodes:
        for body, inside in node.bodies.items():
            found |= _names(inside.graph, f"{path}{node.name}/{body}/")
    return found


def _matching(graph: Graph, patterns: Collection[str]) -> set[Node]:
    """The layers that the patterns name.

    Raises:
        InputError: a pattern names none.
    """
    nodes = [
        (node, {node.name, str(node.id), *(name for value in node.outputs for name in value.names)})
        for node in graph.walk()
    ]
    found: set[Node] = set()
    for pattern in patterns:
        matches = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL).fullmatch
        matching = {node for node, names in nodes if any(map(matches, names))}
        if not matching:
            raise InputError(f"--trap-ignore {pattern}: no layer, tensor or input has this name")
        found |= matching
    return found
