"""How long whole networks take here and in the C++ engines, as ratios.

    python -m tests.benchmarks.networks [light_resnet50 ...] [--threads 2] [--rounds 5]

The networks are those inside the onnx package, with random weights. Every engine runs in a process of
its own, in turns (irexec, OpenVINO, ONNX Runtime, irexec, ...): threads of two engines in one process
wait for each other. Needs the extra ``oracle``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
ENGINES = ("irexec", "openvino", "onnxruntime")
RUNS = 10


def with_random_weights(path: Path) -> onnx.ModelProto:
    """The network with weights of its own: the package's are all equal, which would be an unfair gift."""
    model = onnx.load(path)
    rng = np.random.default_rng(0)
    shapes = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "ConstantOfShape"}
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for source, name in shapes.items():
        if source in sizes:
            weights = rng.standard_normal(sizes[source].tolist(), np.float32) * np.float32(0.02)
            model.graph.initializer.append(numpy_helper.from_array(np.abs(weights), name))
    kept = [node for node in model.graph.node if not (node.op_type == "ConstantOfShape" and node.input[0] in sizes)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def measure(engine: str, network: str, threads: int) -> float:
    """Milliseconds of one run: the median of ten, after three."""
    model = with_random_weights(FOLDER / f"{network}.onnx")
    x = np.random.default_rng(1).random((1, 3, 224, 224), np.float32)
    run = {"irexec": _irexec, "openvino": _openvino, "onnxruntime": _onnxruntime}[engine](model, threads)
    for _ in range(3):
        run(x)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - start)
    return median(times) * 1000


def _irexec(model, threads):
    import converters
    import irexec

    compiled = irexec.compile_model(converters.convert(model), threads=threads)
    return lambda x: compiled([x])


def _openvino(model, threads):
    import openvino as ov

    core = ov.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(model.SerializeToString()), "CPU", options).create_infer_request()
    return lambda x: request.infer([x])


def _onnxruntime(model, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=["light_resnet50", "light_densenet121", "light_squeezenet", "light_shufflenet"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", metavar="ENGINE", help="measure one engine and print the milliseconds (what the turns call)")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.networks[0], arguments.threads)))
        return
    ratios = []
    print(f"{'network':20}" + "".join(f"{engine:>14}" for engine in ENGINES) + f"{'openvino/irexec':>18}")
    for network in arguments.networks:
        times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for _ in range(arguments.rounds):
            for engine in ENGINES:
                command = [sys.executable, "-m", "tests.benchmarks.networks", network, "--threads", str(arguments.threads), "--one", engine]
                times[engine].append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        ratios.append(median(times["openvino"]) / median(times["irexec"]))
        print(f"{network:20}" + "".join(f"{median(times[engine]):11.1f} ms" for engine in ENGINES) + f"{ratios[-1]:18.2f}")
    print(f"geometric mean of the ratios: {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
