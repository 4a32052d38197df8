"""Where the time of a model goes, also as a trace, which chrome://tracing, Perfetto and Speedscope show.

Source: "Trace Event Format" of the Chromium project: complete events ("X") with times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irexec.analysis.open_sizes import sizes_for
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.messages import silent
from irexec.runtime.observation import RunProgress
from irexec.runtime.profile import (
    Profile,
    ProfileRow,
)
from irexec.tools.images.files import Notify
from irexec.tools.run.input_sources import GivenInputs, InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.shapes import SessionOptions, read_with_shapes, reshape


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(SessionOptions):
    """How a model is run.

    Attributes:
        runs: number of measured runs.
        trace: the file to write every time to.
    """

    runs: int = 20
    trace: str | None = None


def profile(
    path: str,
    sources: Sequence[InputSource] = (),
    options: ProfileOptions | None = None,
    notify: Notify = silent,
    progress: RunProgress | None = None,
) -> Profile:
    """Run a model several times and measure every step.

    Args:
        path: the .xml or .onnx.
        sources: the inputs; random values without any.
        options: options of the run.
        notify: called with notes for the user.
        progress: called after each run with its fraction of all runs.

    Raises:
        InputError: a name, shape, type or file does not fit the model, or a file that is read would be overwritten.
        ModelError, NodeError, UnsupportedError: the model cannot be read or run, or the trace cannot be written.
        RunTimeoutError: the runs take longer than the timeout.
    """
    options = options or ProfileOptions()
    if options.trace is not None:
        check_trace(options.trace, files_read(path, options.weights, sources))
    model = read_with_shapes(path, options.weights, options.shapes or {}, given=GivenInputs(sources), mmap=options.mmap)
    if options.trace is not None:
        check_trace(options.trace, external_files(model))
    reshape(model, options.shapes or {})
    compiled = options.compiled(model)
    inputs = sample_inputs(
        sources, compiled.inputs, options.seed, notify, MemoryLimit(options.max_memory), sizes_for(model, batch=1)
    )
    found = compiled.profile(inputs, options.runs, timeout=options.timeout, progress=progress)
    if options.trace is not None:
        write_trace(options.trace, found, Path(path).name)
    return found


def check_trace(path: str, read: Mapping[str, str]) -> None:
    """Raise InputError before anything is measured if the trace could not be written, or not without overwriting a file
    in ``read``."""
    if not path.lower().endswith(".json"):
        raise InputError(f"--trace {path} does not end in .json")
    check_file("--trace", Path(path), read)


def write_trace(path: str, profile: Profile, name: str) -> None:
    """Write every step of every run.

    Raises:
        ModelError: the file cannot be written; what was there before is as it was.
    """
    text = json.dumps({"displayTimeUnit": "ms", "traceEvents": list(trace_events(profile, name))}, ensure_ascii=False)
    with new_file(path) as file:
        # Bytes of a file's name that are not UTF-8 are surrogates here, which JSON has as escapes of this form.
        file.write(text.encode("utf-8", "backslashreplace"))


def trace_events(profile: Profile, name: str) -> Iterator[dict[str, Any]]:
    """The events: one for each run, and in it one for each step."""
    yield {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
    times = profile.times
    for run in range(profile.runs):
        yield _event(f"run {run + 1}", "run", times.begins[run], times.ends[run] - times.begins[run], {})
        for step, row in enumerate(profile.steps):
            yield _event(
                row.name, row.type, times.step_begins[run, step], times.step_seconds[run, step], _arguments(row)
            )


def _event(name: str, category: str, begin: float, seconds: float, arguments: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": round(float(begin) * 1e6, 3), "dur": round(float(seconds) * 1e6, 3)}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": 1, "tid": 1, "args": arguments}


def _arguments(row: ProfileRow) -> dict[str, Any]:
    return {
        "layers": list(row.layers),
        "operation": row.type,
        "algorithm": row.algorithm,
        "macs": row.macs,
        "bytes": row.bytes,
    }
