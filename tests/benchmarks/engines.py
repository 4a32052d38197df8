"""One engine on one model in this process: load and compile, first run, further runs when asked to, peak memory.

    python -m tests.benchmarks.engines ENGINE MODEL.xml [--threads 1] [--outputs FILE.npz]

Prints a line of JSON after the first run; for every number on a line of standard input, the milliseconds of that many runs after
one that is not counted; at the end of the input, the peak memory. tests/benchmarks/workers.py is the other side.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.memory import peak_kilobytes

Feeds = Mapping[str, np.ndarray]
Run = Callable[[Feeds], Sequence[np.ndarray]]


def peak_megabytes() -> float:
    """The largest resident size so far.

    VmHWM starts anew with every program; ru_maxrss, where there is no /proc, may be that of the process that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_kilobytes() / 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024


def resident_megabytes() -> float:
    """The resident size now; only where there is /proc."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def random_feeds(path: Path, seed: int = 7) -> dict[str, np.ndarray]:
    """Inputs by name, as the .json beside the .xml says: integers where the model has them."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for spec in json.loads(path.with_suffix(".json").read_text())["runs"][0]:
        if spec["values"] is not None:
            feeds[spec["name"]] = np.array(spec["values"], np.int64)
        elif spec["integer"]:
            feeds[spec["name"]] = rng.integers(spec["low"], spec["high"], spec["shape"])
        else:
            feeds[spec["name"]] = rng.uniform(spec["low"], spec["high"], spec["shape"]).astype(np.float32)
    return feeds


def load_irexec(path: Path, threads: int | None, **options: Any) -> Run:
    """Further options are those of irexec.compile_model."""
    import irexec

    compiled = irexec.compile_model(irexec.read_model(path), threads=threads, **options)
    return lambda feeds: list(compiled(feeds).values())


def load_openvino(path: Path, threads: int | None, **options: Any) -> Run:
    """Further options are properties of its CPU plugin."""
    import openvino as ov

    core = ov.Core()
    properties = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", **options}
    if threads:
        properties["INFERENCE_NUM_THREADS"] = threads
    request = core.compile_model(core.read_model(path), "CPU", properties).create_infer_request()
    return lambda feeds: list(request.infer(dict(feeds), share_inputs=True).to_tuple())


def load_onnxruntime(path: Path, threads: int | None) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path.with_suffix(".onnx")), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, dict(feeds))


LOADERS: dict[str, Callable[..., Run]] = {
    "irexec": load_irexec,
    "openvino": load_openvino,
    "onnxruntime": load_onnxruntime,
}


def prepare(engine: str) -> None:
    """Import the engine: that is not part of loading a model."""
    __import__(engine)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of a call, and what it gave."""
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1000, result


def serve(engine: str, path: Path, threads: int | None, outputs: Path | None) -> None:
    """Load, run once, and run as often as standard input says."""
    prepare(engine)
    feeds = random_feeds(path)
    load_ms, run = timed(lambda: LOADERS[engine](path, threads))
    first_ms, given = timed(lambda: run(feeds))
    if outputs:
        np.savez(outputs, *given)
    print(json.dumps({"load_ms": load_ms, "first_ms": first_ms}), flush=True)
    for line in sys.stdin:
        run(feeds)
        print(json.dumps([timed(lambda: run(feeds))[0] for _ in range(int(line))]), flush=True)
    print(json.dumps({"peak_mb": peak_megabytes()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=LOADERS)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, help="the engine's own default unless given")
    parser.add_argument("--outputs", type=Path, help="write the outputs of the first run")
    arguments = parser.parse_args()
    serve(arguments.engine, arguments.model, arguments.threads, arguments.outputs)


if __name__ == "__main__":
    main()
