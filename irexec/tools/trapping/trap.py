"""Runs with a callback after every tensor, bodies included; and a run that stops at the first layer with NaN,
infinities, a value beyond f16, or outside of a recorded range.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.api import ModelLike, as_model
from irexec.backend.threads import one_blas_thread
from irexec.compile.plan import Compilation, plan
from irexec.compile.steps import Step
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import unique_names
from irexec.reference.limits import limited
from irexec.runtime.arenas import Arenas
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.execute import RunLimits, Watcher, run
from irexec.runtime.inputs import Inputs, bind_inputs
from irexec.runtime.session import RunProgress, progress_observer
from irexec.runtime.variables import State
from irexec.tools.arrays.statistics import Statistics, blocks_of, constant_statistics, statistics
from irexec.tools.trapping import KINDS, MARGIN, Kind, TrapOptions
from irexec.tools.trapping.report import (
    Origin,
    Ranges,
    Recorded,
    Trap,
    TrappedTensor,
    TrapReport,
    check_ranges_file,
    read_ranges,
    write_ranges,
)


def watched_values(
    compiled: CompiledModel,
    inputs: Inputs,
    values: Sequence[Value],
    watcher: Watcher,
    *,
    timeout: float | None = None,
    progress: RunProgress | None = None,
) -> list[np.ndarray]:
    """Run with every layer as a step of its own, and return the arrays of values of the graph.

    No layers are fused and nothing is folded, but fast kernels run unless the model was compiled with
    ``optimize=False``. Tensors are released when they are no longer needed, as in any run. The state of variables is
    that before the first run, and is not kept.

    Args:
        compiled: the model.
        inputs, timeout: as for ``CompiledModel.run``.
        values: of the graph itself.
        progress: as for ``CompiledModel.values``.
        watcher: called after every layer; ``step.node`` is one of ``compiled.model``. An exception ends the run.

    Raises:
        InputError: a value is not of this graph, or the inputs are wrong.
        NodeError: a kernel refuses its inputs.
        RunTimeoutError: the run takes longer than ``timeout``.
    """
    arrays = bind_inputs(compiled.inputs, inputs)
    targets = tuple(map(compiled.program.own, values))
    memory = compiled.program.memory
    kernels = False if compiled.program.optimize is False else ()
    declared = compiled.program.compilation.declared
    options = replace(compiled.program.compilation.options, holding="packed", integers=False)
    group = compiled.program.compilation.dynamic_quantization
    compilation = Compilation(
        memory, optimize=kernels, options=options, dynamic_quantization=group, declared=declared, observed=True
    )
    inference = compiled.program.infer(tuple(array.shape for array in arrays))
    with one_blas_thread(), limited(memory):
        planned = plan(compiled.model, inference, targets, compilation)
    with one_blas_thread():
        observer = None if progress is None else progress_observer(planned, progress)
        return run(
            planned,
            arrays,
            State(compiled.program.variables),
            Arenas(memory),
            observer,
            RunLimits(memory, timeout),
            watcher,
        )


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
        self._add_range(value, array, (low, high) if finite else None)

    def _add_range(self, value: Value, array: np.ndarray, known: tuple[float, float] | None) -> None:
        if self._record is None:
            return
        if known is None and (finite := array[np.isfinite(array)]).size:
            known = float(finite.min()), float(finite.max())
        if known is not None:
            self._record.add(self._names[value], *known)

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


def _names(graph: Graph, path: str = "") -> dict[Value, str]:
    """Names for all values of a graph and its bodies, no two of them the same."""
    named = unique_names(value for node in graph.nodes for value in node.outputs)
    found = {value: f"{path}{name}" for name, value in named.items()}
    for node in graph.nodes:
        for body, inside in node.bodies.items():
            found |= _names(inside.graph, f"{path}{node.name}/{body}/")
    return found


def _matching(graph: Graph, patterns: Collection[str]) -> set[Node]:
    """The layers that the patterns name; raises InputError if a pattern names none."""
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


def trap(
    model: ModelLike,
    inputs: Inputs = None,
    kinds: Collection[Kind] = ("nan", "inf"),
    *,
    ignore: Collection[str] = (),
    ranges: str | None = None,
    margin: float = MARGIN,
    precision: Precision = DEFAULT_PRECISION,
    threads: int | None = None,
    timeout: float | None = None,
) -> TrapReport:
    """Run a model once, layer by layer, up to the first whose result is not as it should be.

    Args:
        model: any model, or what read_model takes.
        inputs: as for a call of a compiled model.
        kinds: the conditions to stop at. "nan", "inf" and "f16" exclude layers with such elements in an input; see
            Trap.
        ignore: see TrapOptions.
        ranges: a file that ``record_ranges`` or ``infer --record-range`` wrote; the kind "range" goes without saying
            then.
        margin: see TrapOptions.
        precision, threads, timeout: as for compile_model and a run. Arithmetic of f16 in f32 does not overflow where
            f16 does: "f16" finds what would.

    Raises:
        InputError: an argument is wrong.
        ModelError, NodeError, UnsupportedError: the model cannot be run, or the file not read.
        RunTimeoutError: the run takes longer than ``timeout``.
    """
    wanted = tuple(dict.fromkeys([*kinds, *(("range",) if ranges else ())]))
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown or not wanted:
        raise InputError(f"kinds is {tuple(kinds)!r}, expected some of {', '.join(KINDS)}")
    if "range" in wanted and ranges is None:
        raise InputError("the kind 'range' needs a file of ranges")
    compiled = CompiledModel(as_model(model), precision=precision, threads=threads, tolerant=True)
    options = TrapOptions(kinds=wanted, ranges=ranges, margin=margin, ignore=tuple(ignore))
    return run_with_trap(compiled, inputs, _results(compiled), options, timeout=timeout)[0]


def record_ranges(
    model: ModelLike,
    runs: Sequence[Inputs],
    path: str,
    *,
    precision: Precision = DEFAULT_PRECISION,
    threads: int | None = None,
) -> Ranges:
    """Record the range of every tensor over several runs, and add them to those in a file, which need not exist.

    Args:
        model: any model, or what read_model takes.
        runs: the inputs of each run.
        path: the .json.
        precision, threads: as for compile_model.

    Raises:
        InputError: the file is not one of ranges, or inputs are wrong.
        ModelError, NodeError, UnsupportedError: the model cannot be run, or the file not written.
    """
    ranges = check_ranges_file(path, {})
    compiled = CompiledModel(as_model(model), precision=precision, threads=threads, tolerant=True)
    for inputs in runs:
        _run(compiled, inputs, _results(compiled), TrapWatcher(compiled, TrapOptions(), record=ranges))
        ranges.runs += 1
    ranges.model = compiled.model.name
    write_ranges(path, ranges)
    return ranges


def _results(compiled: CompiledModel) -> list[Value]:
    values = [node.inputs[0] for node in compiled.model.results if node.inputs and node.inputs[0] is not None]
    compiled.require(values)
    return values


def _run(
    compiled: CompiledModel,
    inputs: Inputs,
    values: Sequence[Value],
    watcher: TrapWatcher,
    timeout: float | None = None,
    progress: RunProgress | None = None,
) -> list[np.ndarray]:
    arrays = bind_inputs(compiled.inputs, inputs)
    watcher.check_inputs({port.node: array for port, array in zip(compiled.inputs, arrays, strict=True)})
    return watched_values(compiled, arrays, values, watcher, timeout=timeout, progress=progress)


def run_with_trap(
    compiled: CompiledModel,
    inputs: Inputs,
    values: Sequence[Value],
    options: TrapOptions,
    *,
    read: Mapping[str, str] | None = None,
    timeout: float | None = None,
    progress: RunProgress | None = None,
) -> tuple[TrapReport, list[np.ndarray]]:
    """Run a compiled model with a trap, and record ranges unless it stops.

    Args:
        compiled: the model.
        inputs: as for ``CompiledModel.run``.
        values: the requested values of the graph.
        options: the conditions that stop the run, and the recording.
        read: the files that the run reads, with what they are: none of them may be overwritten.
        timeout: as for ``CompiledModel.run``.
        progress: as for ``CompiledModel.values``.

    Returns:
        What was found, and the arrays of the values; none if the run was stopped.
    """
    taken = {**(read or {}), **options.files_read()}
    record = None if options.record is None else check_ranges_file(options.record, taken)
    ranges = None if options.ranges is None else read_ranges(options.ranges)
    watcher = TrapWatcher(compiled, options, ranges, record)
    try:
        found = _run(compiled, inputs, values, watcher, timeout, progress)
    except Trapped as trapped:
        return watcher.report(trapped.trap), []
    if record is not None and options.record is not None:
        record.model, record.runs = compiled.model.name, record.runs + 1
        write_ranges(options.record, record)
        recorded = Recorded(options.record, len(record.tensors), record.runs)
        return replace(watcher.report(), recorded=recorded), found
    return watcher.report(), found
