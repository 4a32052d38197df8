"""Running a model with a trap, and recording the ranges of its tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.api import ModelLike, as_model
from irexec.errors import InputError
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.inputs import Inputs, bind_inputs
from irexec.runtime.observation import RunProgress
from irexec.runtime.watched import watched_values
from irexec.tools.trapping.options import KINDS, MARGIN, Kind, TrapOptions
from irexec.tools.trapping.ranges import Ranges, check_ranges_file, read_ranges, write_ranges
from irexec.tools.trapping.report import Recorded, TrapReport
from irexec.tools.trapping.trap import Trapped, TrapWatcher


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
