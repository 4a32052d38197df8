"""Engines in processes of their own, one with one model each, which run when they are asked to, in turns.

A process is given an EngineJob as JSON. It prints a line of JSON when the model is loaded and has run once; for every
number on a line of standard input the milliseconds of that many runs, after one that is not counted; at the end of the
input its peak memory. Where it fails, the line says how.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from irexec.api import compile_model
from irexec.io.files import Closing
from irexec.io.onnx_bytes import text_form
from irexec.io.processes import LineProcess
from irexec.io.reading import open_regular
from irexec.messages import silent
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape

Feeds = Mapping[str, np.ndarray]
Run = Callable[[Feeds], Sequence[np.ndarray]]


@dataclass(frozen=True)
class EngineJob:
    """A model to load and run in a process.

    Attributes:
        engine: of LOADERS.
        model: the .xml or .onnx; for onnxruntime the .onnx.
        inputs: a .npz with an array for each input, by the name that the engine knows it by.
        bin: the weights of an .xml; None for those beside it.
        threads: None is the engine's own default.
        reshape: whether the model is given the shapes of the arrays before it is compiled.
        options: further options of irexec.compile_model, properties of OpenVINO's plugin, or session configuration
            entries of ONNX Runtime.
        preferred: properties that ``options`` overrule, and that an old release may lack.
        device: of OpenVINO, such as CPU, GPU or HETERO:GPU,CPU.
        outputs: a .npz to write the outputs of the first run to.
        results: of ONNX Runtime, names of the outputs that a run returns; all unless given.
    """

    engine: str
    model: str
    inputs: str
    bin: str | None = None
    threads: int | None = None
    reshape: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    preferred: dict[str, Any] = field(default_factory=dict)
    outputs: str | None = None
    device: str = "CPU"
    results: Sequence[str] = ()


def load_irexec(job: EngineJob, feeds: Feeds) -> Run:
    """Named by inputs of the model."""
    shapes: Shapes = {name: array.shape for name, array in feeds.items()} if job.reshape else {}
    model = read_with_shapes(job.model, job.bin, shapes)
    reshape(model, shapes)
    compiled = compile_model(model, threads=job.threads, **job.options)
    return lambda feeds: list(compiled(feeds).values())


def load_openvino(job: EngineJob, feeds: Feeds) -> Run:
    """OpenVINO. Inputs have names of Parameters or tensors; the CPU computes in f32, also where it has bf16."""
    import openvino

    core = openvino.Core()
    model = core.read_model(job.model, job.bin) if job.bin else core.read_model(job.model)
    index = {
        name: i
        for i, port in enumerate(model.inputs)
        for name in (*port.get_names(), port.get_node().get_friendly_name())
    }
    if job.reshape:
        model.reshape({index[name]: array.shape for name, array in feeds.items()})
    precision = {"INFERENCE_PRECISION_HINT": "f32"} if job.device == "CPU" else {}
    properties = {**precision, "PERFORMANCE_HINT": "LATENCY", **job.preferred, **job.options}
    if job.threads:
        properties["INFERENCE_NUM_THREADS"] = job.threads
    return OpenVINORun(core.compile_model(model, job.device, properties), index)


class OpenVINORun:
    """Runs of a compiled model of OpenVINO."""

    def __init__(self, compiled: Any, index: Mapping[str, int]) -> None:
        """``index``: positions of inputs by their names."""
        self._compiled, self._request, self._index = compiled, compiled.create_infer_request(), index
        # With one thread, ``infer`` of the CPU plugin loses all errors of layers, and returns what its memory holds.
        self._loses_errors = self._property("INFERENCE_NUM_THREADS") == 1

    @property
    def precision(self) -> str:
        """The type that the plugin computes floats in; "" where it does not say."""
        said = self._property("INFERENCE_PRECISION_HINT")
        # <Type: 'float16'> of openvino.Type
        return "" if said is None else str(said.to_string())

    def _property(self, name: str) -> Any:
        """The value of a property of the plugin; None where it has none of this name."""
        get = self._compiled.get_property
        return get(name) if name in get("SUPPORTED_PROPERTIES") else None

    def __call__(self, feeds: Feeds) -> Sequence[np.ndarray]:
        given = {self._index[name]: array for name, array in feeds.items()}
        if not self._loses_errors:
            return list(self._request.infer(given, share_inputs=True).to_tuple())
        self._request.start_async(given, share_inputs=True)
        self._request.wait()
        return list(self._request.results.to_tuple())


def load_onnxruntime(job: EngineJob, feeds: Feeds) -> Run:
    """Named by inputs of the ONNX model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if job.threads:
        options.intra_op_num_threads = job.threads
    for entry in {**job.preferred, **job.options}.items():
        options.add_session_config_entry(*entry)
    session = onnxruntime.InferenceSession(_in_binary(job.model), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(list(job.results) or None, dict(feeds))


def _in_binary(path: str) -> str | bytes:
    """An ONNX model in the form that ONNX Runtime reads: a model that is text as bytes, any other by its path."""
    with open_regular(path) as file:
        is_text = text_form(file.read(1 << 16)) is not None
    if not is_text:
        return path
    from converters.onnx.load import parse

    return bytes(parse(path)[0].SerializeToString())


LOADERS: dict[str, Callable[[EngineJob, Feeds], Run]] = {
    "irexec": load_irexec,
    "openvino": load_openvino,
    "onnxruntime": load_onnxruntime,
}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of a call, and what it gave."""
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1000, result


def serve(job: EngineJob, asked: IO[str], answer: Callable[[Any], None]) -> None:
    """Load, run once, and run as often as the lines of ``asked`` say."""
    # Importing the engine is not part of loading a model.
    version = getattr(__import__(job.engine), "__version__", "")
    with np.load(job.inputs) as read:
        feeds = {name: read[name] for name in read.files}
    load_ms, run = timed(lambda: LOADERS[job.engine](job, feeds))
    first_ms, given = timed(lambda: run(feeds))
    if job.outputs:
        np.savez(job.outputs, *given)
    answer({"version": version, "load_ms": load_ms, "first_ms": first_ms})
    for line in asked:
        run(feeds)
        answer([timed(lambda: run(feeds))[0] for _ in range(int(line))])
    answer({"peak_bytes": peak_bytes()})


def answers() -> Callable[[Any], None]:
    """A function that writes a document to standard output; from now on all other output goes to stderr."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(document: Any) -> None:
        output.write(json.dumps(document) + "\n")
        output.flush()

    return answer


def main(text: str) -> None:
    """Serve the job that the text describes."""
    answer = answers()
    try:
        serve(EngineJob(**json.loads(text)), sys.stdin, answer)
    except Exception as error:
        # Engines raise errors of their own, without a common base.
        answer(failure(error))
        sys.exit(1)


def failure(error: Exception) -> dict[str, str]:
    """The document that reports an error."""
    return {"error": type(error).__name__, "message": str(error)}


def peak_bytes() -> int:
    """The largest resident size of this process so far; 0 where the system does not report it."""
    if sys.platform == "win32":
        return _peak_on_windows()
    status = Path("/proc/self/status")
    if status.exists():
        # VmHWM starts anew with every program; ru_maxrss may be that of the process that started this one.
        lines = status.read_text().splitlines()
        peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        # Sandboxes such as gVisor have the file without this line.
        if peaks:
            return peaks[0] * 1024
    try:
        import resource
    except ImportError:
        # Pyodide.
        return 0

    # In bytes on macOS, in kilobytes elsewhere.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _peak_on_windows() -> int:
    """PeakWorkingSetSize of PROCESS_MEMORY_COUNTERS. Source: psapi.h."""
    import ctypes
    from ctypes import wintypes

    # These exist on Windows only.
    windows = {name: getattr(ctypes, name) for name in ("WinDLL", "WinError", "get_last_error")}
    sizes = (
        "peak_working_set", "working_set", "peak_paged_pool", "paged_pool", "peak_other_pool", "other_pool", "pagefile",
        "peak_pagefile",
    )  # fmt: skip

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", wintypes.DWORD),
            ("page_faults", wintypes.DWORD),
            *((name, ctypes.c_size_t) for name in sizes),
        ]

    kernel = windows["WinDLL"]("kernel32", use_last_error=True)
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.K32GetProcessMemoryInfo.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    counters = Counters(cb=ctypes.sizeof(Counters))
    if not kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.cb):
        raise windows["WinError"](windows["get_last_error"]())
    return int(counters.peak_working_set)


TURN = 5
"""Runs before the next engine's turn: other load of the machine changes slowly, and caches are warm after one run."""


@dataclass
class ProcessMeasurement:
    """The measurements of one process.

    Attributes:
        engine, version: the engine that ran, and its version.
        load_ms: milliseconds of reading and compiling the model.
        first_ms: of the first run.
        times_ms: of the other runs.
        peak_bytes: the peak memory of the process; 0 until it ended.
    """

    engine: str
    version: str = ""
    load_ms: float = 0
    first_ms: float = 0
    times_ms: list[float] = field(default_factory=list)
    peak_bytes: int = 0


class EngineProcess(Closing):
    """A process with one engine and one model loaded.

    Args:
        job: the model to load.
        prepare: called in the new process before anything else, where the system can do that.

    Raises:
        IrexecError: irexec refuses the model.
        EngineError: another engine does, or the process ended.
    """

    def __init__(self, job: EngineJob, prepare: Callable[[], None] | None = None) -> None:
        self.job = job
        self._process = LineProcess(
            "irexec.tools.engines.engine", json.dumps(asdict(job)), name=job.engine, prepare=prepare
        )
        try:
            self.measured = ProcessMeasurement(job.engine, **self._process.answer(job.model))
        except BaseException:
            self.close()
            raise

    def run(self, times: int) -> None:
        """Run ``times`` times, after one run that is not counted."""
        self._process.ask(str(times))
        self.measured.times_ms += self._process.answer(self.job.model)

    def finish(self) -> ProcessMeasurement:
        """End the process; what it measured, with its peak memory."""
        self._process.close()
        self.measured.peak_bytes = self._process.answer(self.job.model)["peak_bytes"]
        self._process.wait()
        return self.measured

    def close(self) -> None:
        """End the process at once."""
        self._process.stop()


def take_turns(processes: Iterable[EngineProcess], runs: int, advance: Callable[[int], None] = silent) -> None:
    """Let every process run ``runs`` times, a few at a time; ``advance`` is called with the number of finished runs."""
    processes = list(processes)
    for start in range(0, runs, TURN):
        count = min(TURN, runs - start)
        for process in processes:
            process.run(count)
            advance(count)
