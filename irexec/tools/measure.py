"""How fast a model runs, and where its time goes: the timings of ``bench``, the steps of ``profile``.

Source: "Trace Event Format" of the Chromium project: complete events ("X") with times in microseconds.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.analysis.open_sizes import sizes_for
from irexec.compile.memory_limit import MemoryLimit
from irexec.display import Column, Content, Table
from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.ir.dims import shape_text
from irexec.messages import amount, counted, silent
from irexec.native.library import description
from irexec.records import Record, Report
from irexec.runtime.profile import Profile
from irexec.runtime.session import RunProgress
from irexec.tools.arrays.files import write_npz
from irexec.tools.engines.engine import EngineJob, EngineProcess, ProcessMeasurement, take_turns
from irexec.tools.engines.runtimes import DYNAMIC_QUANTIZATION
from irexec.tools.images import Notify
from irexec.tools.run.input_sources import GivenInputs, InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.shapes import RunOptions, SessionOptions, read_with_shapes, reshape

OTHERS = ("openvino", "onnxruntime")
"""The runtimes to compare with."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions(RunOptions):
    """How a model is measured: with ``threads`` of each engine, and ``max_memory`` of the process of irexec.

    Attributes:
        runs: number of measured runs of each engine.
        against: other runtimes, of OTHERS.
        native: as for compile_model.
        onnx: the model that ONNX Runtime runs; None is the file of the model's name that ends in .onnx.
    """

    runs: int = 50
    against: tuple[str, ...] = ()
    native: bool = True
    onnx: str | None = None


@dataclass(frozen=True)
class EngineResult(Record):
    """The figures of one engine, times in milliseconds.

    Attributes:
        engine, version: the engine that ran, and its version.
        load: reading and compiling the model.
        first: the first run.
        minimum, p50, p90, p99: of the runs after it.
        throughput: runs per second, one after the other.
        peak_bytes: peak memory of the process.
        ratio: its median over that of irexec: above 1, irexec is faster.
    """

    engine: str
    version: str
    load: float
    first: float
    minimum: float
    p50: float
    p90: float
    p99: float
    throughput: float
    peak_bytes: int
    ratio: float


@dataclass(frozen=True, repr=False)
class BenchReport(Report):
    """The measurements.

    Attributes:
        shapes: of the inputs, by name.
        runs: of each engine.
        threads: as asked for; None is each engine's own default.
        kernels: the kernels of irexec; see PlanReport.
        engines: irexec, then the others.
    """

    shapes: dict[str, tuple[int, ...]]
    runs: int
    threads: int | None
    kernels: str
    engines: tuple[EngineResult, ...]

    def __repr__(self) -> str:
        return f"<BenchReport {', '.join(f'{one.engine} {one.p50:.3f} ms' for one in self.engines)}>"

    def sections(self) -> list[Content]:
        """A column of figures for each engine, the inputs, and the ratios of medians."""
        engines = [Column(f"{one.engine} {one.version.split('-')[0]}", kind="number") for one in self.engines]
        rows = [(title, *map(cell, self.engines)) for title, cell in _FIGURES]
        inputs = " ".join(f"{name}{shape_text(shape)}" for name, shape in self.shapes.items())
        threads = "the default number of threads" if self.threads is None else counted(self.threads, "thread")
        ratios = [
            f"{one.engine} / irexec: {one.ratio:.2f} (median; above 1, irexec is faster)" for one in self.engines[1:]
        ]
        runs = f"{counted(self.runs, 'run')} with {threads}{f', inputs {inputs}' if inputs else ''}"
        return [Table(["", *engines], rows), runs, f"irexec computes with {self.kernels}", ratios]


_FIGURES: tuple[tuple[str, Callable[[EngineResult], str]], ...] = (
    ("median", lambda one: f"{one.p50:.3f} ms"),
    ("minimum", lambda one: f"{one.minimum:.3f} ms"),
    ("90 % within", lambda one: f"{one.p90:.3f} ms"),
    ("99 % within", lambda one: f"{one.p99:.3f} ms"),
    ("runs per second", lambda one: f"{one.throughput:.1f}"),
    ("load and compile", lambda one: f"{one.load:.1f} ms"),
    ("first run", lambda one: f"{one.first:.1f} ms"),
    ("peak memory", lambda one: amount(one.peak_bytes)),
)


def bench(
    path: str,
    sources: Sequence[InputSource] = (),
    options: BenchOptions | None = None,
    notify: Notify = silent,
    advance: Callable[[int], None] = silent,
) -> BenchReport:
    """Measure a model.

    Args:
        path: the .xml or .onnx.
        sources: where the inputs come from; all are random without any.
        options: how it is measured.
        notify: called with what the user might not expect.
        advance: called with the number of runs that are done.

    Raises:
        UnsupportedError: another runtime is not installed, or cannot be given inputs of such a type.
        InputError: the model does not take the inputs or shapes.
        ModelError, NodeError: the model cannot be read, or an engine cannot run it.
    """
    options = options or BenchOptions()
    for engine in options.against:
        # Raise UnsupportedError unless the package is installed.
        if importlib.util.find_spec(engine) is None:
            raise UnsupportedError(
                f"--against {engine} needs the package {engine} (pip install {engine}), which is not installed"
            )
    model = read_with_shapes(path, options.weights, options.shapes or {})
    reshape(model, options.shapes or {})
    ports = model.inputs
    arrays = sample_inputs(
        sources, ports, options.seed, notify, MemoryLimit(options.max_memory), sizes_for(model, batch=1)
    )
    with tempfile.TemporaryDirectory(prefix="irexec-bench-") as folder, ExitStack() as stack:
        jobs = [_job(engine, path, ports, arrays, options, Path(folder)) for engine in ("irexec", *options.against)]
        processes = [stack.enter_context(EngineProcess(job)) for job in jobs]
        take_turns(processes, options.runs, advance)
        measured = [process.finish() for process in processes]
    median = float(np.median(measured[0].times_ms))
    shapes = {name: array.shape for name, array in arrays.items()}
    kernels = description(native=options.native)
    return BenchReport(shapes, options.runs, options.threads, kernels, tuple(_result(one, median) for one in measured))


def _job(
    engine: str, path: str, ports: Sequence[Port], arrays: Mapping[str, np.ndarray], options: BenchOptions, folder: Path
) -> EngineJob:
    if engine != "irexec":
        # Raise UnsupportedError for an input of a type that NumPy lacks, whose arrays another runtime would not
        # understand.
        for port in ports:
            if port.element is not None and not port.element.native:
                raise UnsupportedError(
                    f"--against {engine}: input {port} is of a type that NumPy lacks, of which {engine} takes no arrays"
                )
    inputs = folder / f"{engine}.npz"
    with open(inputs, "xb") as file:
        write_npz(file, arrays)
    if engine == "onnxruntime":
        return EngineJob(engine, _onnx_model(path, options.onnx), str(inputs), threads=options.threads)
    group = options.dynamic_quantization
    own = {"max_memory": options.max_memory, "precision": options.precision, "native": options.native}
    own |= {"dynamic_quantization": group}
    others = {} if group is None else {DYNAMIC_QUANTIZATION: str(group)}
    special = own if engine == "irexec" else others
    return EngineJob(engine, str(path), str(inputs), options.weights, options.threads, bool(options.shapes), special)


def _onnx_model(path: str, given: str | None) -> str:
    file = Path(path).with_suffix(".onnx") if given is None else Path(given)
    if file.is_file():
        return str(file)
    if given is not None:
        raise ModelError(f"{given}: no such file")
    raise InputError(f"--against onnxruntime runs an ONNX model, and {file} does not exist: --onnx names another file")


def _result(measured: ProcessMeasurement, median: float) -> EngineResult:
    times = np.array(measured.times_ms)
    p50, p90, p99 = (float(value) for value in np.percentile(times, (50, 90, 99)))
    return EngineResult(
        engine=measured.engine,
        version=measured.version,
        load=measured.load_ms,
        first=measured.first_ms,
        minimum=float(times.min()),
        p50=p50,
        p90=p90,
        p99=p99,
        throughput=1000 * len(times) / float(times.sum()),
        peak_bytes=measured.peak_bytes,
        ratio=p50 / median,
    )


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
        events = {"displayTimeUnit": "ms", "traceEvents": list(trace_events(found, Path(path).name))}
        # Bytes of a file's name that are not UTF-8 are surrogates here, which JSON has as escapes of this form.
        data = json.dumps(events, ensure_ascii=False).encode("utf-8", "backslashreplace")
        with new_file(options.trace) as file:
            file.write(data)
    return found


def check_trace(path: str, read: Mapping[str, str]) -> None:
    """Raise InputError before anything is measured if the trace could not be written, or not without overwriting a file
    in ``read``."""
    if not path.lower().endswith(".json"):
        raise InputError(f"--trace {path} does not end in .json")
    check_file("--trace", Path(path), read)


def trace_events(profile: Profile, name: str) -> Iterator[dict[str, Any]]:
    """The events: one for each run, and in it one for each step."""
    yield {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
    times = profile.times
    for run in range(profile.runs):
        yield _event(f"run {run + 1}", "run", times.begins[run], times.ends[run] - times.begins[run], {})
        for step, row in enumerate(profile.steps):
            own: dict[str, Any] = {"layers": list(row.layers), "operation": row.type, "algorithm": row.algorithm}
            own |= {"macs": row.macs, "bytes": row.bytes}
            yield _event(row.name, row.type, times.step_begins[run, step], times.step_seconds[run, step], own)


def _event(name: str, category: str, begin: float, seconds: float, arguments: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": round(float(begin) * 1e6, 3), "dur": round(float(seconds) * 1e6, 3)}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": 1, "tid": 1, "args": arguments}
