"""How long single operations take here and in OpenVINO's CPU plugin at f32, as ratios, on one thread.

    python -m tests.benchmarks.operations [depthwise ...] [--threads 1] [--seconds 1]

Sizes are those of published networks at batch 1. Both engines run in turns in one process, and the best time of each
counts: what a shared machine adds is never negative. The time includes what a call of the engine costs, and for OpenVINO
a change of layout that it spares inside a network. Needs the extra ``oracle``.

What NumPy's OpenBLAS takes the processor for decides on the products: where it overlooks AVX-512, the environment
variable ``OPENBLAS_CORETYPE=SkylakeX`` halves their time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from math import inf
from statistics import geometric_mean

import numpy as np
import openvino as ov

import irexec
from irexec import io
from irexec.testing import Case, case, model_of, random


def convolution(
    name: str, channels: int, outputs: int, size: int, kernel: int, stride: int = 1, groups: int = 1, across: int = 0
) -> Case:
    """A row of a convolution with as much padding as keeps the size at stride 1; of maps square by default."""
    weights = (groups, outputs // groups, channels // groups, kernel, kernel)
    pads = [kernel // 2] * 2
    attributes = {"strides": [stride] * 2, "pads_begin": pads, "pads_end": pads, "dilations": [1, 1]}
    row = "GroupConvolution" if groups > 1 else "Convolution"
    label = f"{name} {kernel}x{kernel}/{stride} {channels}->{outputs} {size}x{across or size}"
    filter = random("f32", *(weights if groups > 1 else weights[1:]), seed=1)
    return case(row, 1, random("f32", 1, channels, size, across or size), filter, id=label, **attributes)


# Kernel, stride, channels and size of the maps of MobileNetV2, MobileNetV3-Large and EfficientNet-B0.
_DEPTHWISE = [
    (3, 1, 16, 112), (3, 1, 32, 112), (3, 2, 64, 112), (3, 2, 96, 112), (3, 1, 72, 56), (3, 1, 144, 56), (5, 2, 72, 56), (3, 2, 144, 56),
    (5, 1, 120, 28), (3, 1, 192, 28), (5, 1, 240, 28), (3, 2, 240, 28), (3, 1, 184, 14), (3, 1, 384, 14), (5, 1, 480, 14),
    (3, 1, 576, 14), (5, 2, 672, 14), (3, 1, 960, 7), (5, 1, 960, 7), (5, 1, 1152, 7), (7, 1, 96, 56), (7, 1, 384, 14),
]  # fmt: skip
_POINTWISE = [
    (32, 16, 112), (16, 64, 112), (24, 144, 56), (40, 120, 28), (64, 384, 14), (160, 960, 7), (960, 24, 1),
    (320, 1280, 7),
]  # fmt: skip
_GROUPED = [(3, 1, 128, 56, 32), (3, 2, 256, 56, 32), (3, 1, 256, 28, 32), (3, 1, 96, 28, 4), (3, 1, 48, 56, 3)]
_TRANSPOSED = [(100, 512, 4, 1, 1, 0), (1024, 512, 4, 4, 2, 1), (512, 256, 4, 8, 2, 1), (256, 128, 4, 16, 2, 1), (64, 3, 4, 32, 2, 1), (64, 64, 2, 28, 2, 0)]  # fmt: skip
# Batch and heads, rows, columns, size of a head.
_ATTENTION = [
    ((6,), 1500, 1500, 64), ((12,), 197, 197, 64), ((8,), 4096, 77, 40), ((8,), 1024, 1024, 80),
    ((12,), 128, 128, 64), ((12,), 1, 512, 64),
]  # fmt: skip


def transposed(inputs: int, outputs: int, kernel: int, size: int, stride: int, cut: int) -> Case:
    attributes = {"strides": [stride] * 2, "pads_begin": [cut] * 2, "pads_end": [cut] * 2, "dilations": [1, 1]}
    data, filter = random("f32", 1, inputs, size, size), random("f32", inputs, outputs, kernel, kernel, seed=1)
    label = f"transposed {kernel}x{kernel}/{stride} {inputs}->{outputs} {size}x{size}"
    return case("ConvolutionBackpropData", 1, data, filter, id=label, **attributes)


def attention(heads: tuple[int, ...], rows: int, columns: int, size: int, mask: str) -> Case:
    q, k, v = (random("f32", 1, *heads, n, size, seed=i) for i, n in enumerate((rows, columns, columns)))
    given = [random("f32", 1, 1, rows, columns)] if mask == "mask" else []
    label = f"attention {mask} {heads[0]}x{rows}x{columns}x{size}"
    return case("ScaledDotProductAttention", 13, q, k, v, *given, id=label, causal=mask == "causal")


def suppression(count: int, classes: int) -> Case:
    """Boxes of a side of a tenth of the image, a third of them above the threshold."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 640, (1, count, 2))
    boxes = np.concatenate([centres, rng.uniform(20, 100, (1, count, 2))], -1).astype(np.float32)
    scores = rng.uniform(0, 0.375, (1, classes, count)).astype(np.float32)
    label = f"suppression {count} boxes, {classes} classes"
    return case("NonMaxSuppression", 9, boxes, scores, 300, 0.45, 0.25, id=label, box_encoding="center")


def _elementwise() -> Iterator[Case]:
    for shape in ((1, 64, 112, 112), (1, 480, 14, 14)):
        x, text = random("f32", *shape, low=-4, high=4), "x".join(map(str, shape))
        for name, since in (("HSwish", 4), ("Sigmoid", 1), ("Relu", 1), ("HSigmoid", 5), ("Mish", 4)):
            yield case(name, since, x, id=f"elementwise {text}")
        yield case("Swish", 4, x, id=f"elementwise {text}")
        yield case("Elu", 1, x, id=f"elementwise {text}", alpha=1.0)
        yield case("Clamp", 1, x, id=f"elementwise {text}", min=0, max=6)
        yield case("Add", 1, x, random("f32", 1, shape[1], 1, 1, seed=2), id=f"elementwise channels {text}")
        yield case("Multiply", 1, x, random("f32", 1, shape[1], 1, 1, seed=2), id=f"elementwise channels {text}")
    x = random("f32", 1, 1500, 384)
    yield case("Gelu", 7, x, id="elementwise 1500x384")
    yield case("Add", 1, x, random("f32", 384, seed=1), id="elementwise row 1500x384")
    yield case("MVN", 6, x, [-1], id="normal 1500x384", normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")
    image = random("f32", 1, 64, 64, 64)
    yield case("MVN", 6, image, [2, 3], id="normal 64x64x64", normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")
    channels = random("f32", 64, seed=1), random("f32", 64, seed=2)
    yield case("GroupNormalization", 12, image, *channels, id="normal 64x64x64", num_groups=32, epsilon=1e-5)
    for shape in ((1, 12, 197, 197), (1, 8, 1024, 77), (1, 1000)):
        yield case("Softmax", 8, random("f32", *shape), id=f"softmax {'x'.join(map(str, shape))}", axis=-1)
    yield case("Softmax", 8, random("f32", 1, 16, 4, 2100), id="softmax 16 of 4x2100", axis=1)


def rows() -> list[tuple[Case, int]]:
    """Rows, and which input of each is the first constant."""
    found = [(convolution("depthwise", c, c, size, k, stride, c), 1) for k, stride, c, size in _DEPTHWISE]
    found += [(convolution("pointwise", a, b, size, 1), 1) for a, b, size in _POINTWISE]
    found += [(convolution("grouped", c, c, size, k, stride, groups), 1) for k, stride, c, size, groups in _GROUPED]
    found += [(transposed(*sizes), 1) for sizes in _TRANSPOSED]
    found += [(attention(*sizes, mask), 5) for sizes in _ATTENTION for mask in ("free", "mask", "causal")]
    found += [(suppression(8400, 80), 2), (suppression(2100, 4), 2)]
    return found + [(row, 1) for row in _elementwise()]


def best(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """The best milliseconds of each function, called in turns for about this number of seconds, at least five times."""
    times = [inf] * len(runs)
    for run in runs:
        run()
    end = time.perf_counter() + seconds
    turns = 0
    while turns < 5 or time.perf_counter() < end:
        turns += 1
        for i, run in enumerate(runs):
            run()
            start = time.perf_counter()
            run()
            times[i] = min(times[i], time.perf_counter() - start)
    return [1000 * t for t in times]


def engines(row: Case, first_constant: int, threads: int) -> list[Callable[[], object]]:
    """The row in irexec and in OpenVINO, as calls on its inputs."""
    model, fed = model_of(row, first_constant)
    text, blob = io.write_text(model)
    core = ov.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    tensor = ov.Tensor(np.frombuffer(blob or b"\0", np.uint8).copy())
    request = core.compile_model(core.read_model(text, tensor), "CPU", options).create_infer_request()
    inputs = [ov.Tensor(array, shared_memory=True) for array in fed]
    for i, tensor in enumerate(inputs):
        request.set_input_tensor(i, tensor)
    ours = irexec.compile_model(io.read_text(text, blob), threads=threads)
    return [lambda: ours(fed), request.infer]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of labels or names of operations; all rows unless given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    ratios = []
    for row, first_constant in rows():
        if arguments.names and not (row.name.startswith(tuple(arguments.names)) or row.type in arguments.names):
            continue
        ours, theirs = best(engines(row, first_constant, arguments.threads), arguments.seconds)
        ratios.append(ours / theirs)
        print(f"{row.type:26} {row.name:44} {ours:9.3f} ms {theirs:9.3f} ms {ratios[-1]:7.2f}", flush=True)
    print(f"geometric mean of irexec / OpenVINO: {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
