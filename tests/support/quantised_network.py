"""Random networks of one or two quantised products, for irexec and in f64 beside it.

    python -m tests.support.quantised_network FIRST COUNT      the digests of some results

A level may be the neighbour of the expected one only where the exact value is next to the threshold between them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from irexec.ir.graph import Value
from irexec.schema.registry import resolve

# The distance from a threshold between levels, in levels, at which f32 arithmetic may choose either.
NEAR = 2e-3


@dataclass
class Network:
    """A random network of quantised layers, built for irexec and computed in f64 beside it.

    Attributes:
        smooth: whether Swish and Tanh may follow a product, whose bits depend on the instruction set.
        multiplied, multiplier: the last product in f64, as a function of data and weights, and its weights.
    """

    seed: int
    smooth: bool = True
    builder: Builder = field(default_factory=lambda: Builder("quantised"))
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    multiplied: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(init=False)
    multiplier: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([41, self.seed])

    def pick(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def grid(self, spread: float, channels: int = 1) -> tuple[int, np.ndarray, np.ndarray]:
        """Levels and the bounds of ranges with a level of 0: unsigned, signed, or with a zero point anywhere."""
        levels = int(self.pick(256, 256, 255, 16, 2))
        high = spread * self.rng.uniform(0.5, 1.5, channels)
        zero = 0 if levels == 2 else self.pick(0, levels // 2, int(self.rng.integers(0, levels - 1)))
        low = -high * zero / (levels - 1 - zero)
        return levels, low.astype(np.float32), high.astype(np.float32)

    def quantise(
        self, x: Value, exact: np.ndarray, spread: float, channels: int = 1
    ) -> tuple[Value, np.ndarray, np.ndarray]:
        """A FakeQuantize; its values, and where f32 may choose another level."""
        levels, low, high = self.grid(spread, channels)
        shape = (1, channels, *(1,) * (exact.ndim - 2)) if channels > 1 else (1,) * exact.ndim
        low, high = low.reshape(shape), high.reshape(shape)
        made = self.builder.emit("FakeQuantize", x, low, high, low, high, levels=levels)
        step = (high.astype(float) - low) / (levels - 1)
        index = (np.clip(exact, low, high) - low) / step
        near = np.abs(np.abs(index - np.floor(index)) - 0.5) < NEAR
        return made, low + np.rint(index) * step, near

    def weights(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Value, np.ndarray]:
        """Integers with a scale for each output channel, as NNCF writes them, or through a FakeQuantize."""
        b, integers = self.builder, self.rng.integers(-127, 128, shape)
        sizes = [shape[axis] if axis in axes else 1 for axis in range(len(shape))]
        scale = (self.rng.uniform(0.5, 1.5, sizes) / 127).astype(np.float32)
        kind = self.pick("i8", "u8", "fake", "i8")
        if kind == "fake":
            made = (integers * scale).astype(np.float32)
            bounds = (-127 * scale, 127 * scale)
            return b.emit("FakeQuantize", b.constant(made), *bounds, *bounds, levels=255), integers * scale.astype(
                float
            )
        if kind == "u8":
            integers = self.rng.integers(0, 256, shape)
            stored = b.emit("Convert", b.constant(integers.astype(np.uint8)), destination_type="f32")
            stored = b.emit("Subtract", stored, np.array(128, np.float32))
            return b.emit("Multiply", stored, scale), (integers - 128) * scale.astype(float)
        stored = b.emit("Convert", b.constant(integers.astype(np.int8)), destination_type="f32")
        return b.emit("Multiply", stored, scale), integers * scale.astype(float)

    def transposed(self, x: Value, exact: np.ndarray) -> tuple[Value, np.ndarray]:
        rank, outputs = exact.ndim - 2, int(self.pick(1, 3, 16, 17))
        kernel = tuple(int(self.pick(1, 2, 3, 4)) for _ in range(rank))
        attributes: dict[str, Any] = {
            "strides": tuple(int(self.pick(1, 2, 3)) for _ in range(rank)),
            "pads_begin": tuple(int(self.rng.integers(0, 2)) * (size > 1) for size in kernel),
            "pads_end": (0,) * rank,
            "dilations": tuple(int(self.pick(1, 1, 2)) for _ in range(rank)),
        }
        made, values = self.weights((exact.shape[1], outputs, *kernel), (1,))
        result = self.builder.emit("ConvolutionBackpropData", x, made, **attributes)
        return result, self._applied("ConvolutionBackpropData", attributes, exact, values)

    def convolution(self, x: Value, exact: np.ndarray) -> tuple[Value, np.ndarray]:
        if self.pick(0, 0, 0, 1):
            return self.transposed(x, exact)
        rank, channels = exact.ndim - 2, exact.shape[1]
        kernel = tuple(int(self.pick(1, 3, 3, 2, 5)) for _ in range(rank))
        attributes: dict[str, Any] = {
            "strides": tuple(int(self.pick(1, 1, 2, 3)) for _ in range(rank)),
            "pads_begin": tuple(int(self.rng.integers(0, size)) for size in kernel),
            "pads_end": tuple(int(self.rng.integers(0, size)) for size in kernel),
            "dilations": tuple(int(self.pick(1, 1, 2, 4)) for _ in range(rank)),
        }
        if rank == 2 and channels % 16 == 0 and self.pick(0, 1):
            # As Winograd's algorithm takes it.
            kernel, attributes["strides"], attributes["dilations"] = (3, 3), (1, 1), (1, 1)
        reach = [d * (k - 1) + 1 for d, k in zip(attributes["dilations"], kernel, strict=True)]
        if any(size < r for size, r in zip(exact.shape[2:], reach, strict=True)):
            kernel = (1,) * rank
            attributes["pads_begin"] = attributes["pads_end"] = (0,) * rank
        groups = int(
            self.pick(1, 1, channels, channels, self.pick(*(g for g in range(1, channels + 1) if channels % g == 0)))
        )
        outputs = int(self.pick(1, 3, 16, 17, 40)) if groups == 1 else int(self.pick(1, 1, 2, 5))
        if groups == 1:
            type, shape, axes = "Convolution", (outputs, channels, *kernel), (0,)
        else:
            type, shape, axes = "GroupConvolution", (groups, outputs, channels // groups, *kernel), (0, 1)
        made, values = self.weights(shape, axes)
        return self.builder.emit(type, x, made, **attributes), self._applied(type, attributes, exact, values)

    def _applied(self, type: str, attributes: Mapping[str, Any], data: np.ndarray, weights: np.ndarray) -> np.ndarray:
        definition = resolve(type, "opset1")
        arguments = definition.arguments(attributes)
        self.multiplied, self.multiplier = lambda x, y: definition.kernel(x, y, **arguments), weights
        return self.multiplied(data, weights)

    def matmul(self, x: Value, exact: np.ndarray) -> tuple[Value, np.ndarray]:
        inner, columns, transposed = exact.shape[-1], int(self.pick(1, 5, 16, 50)), bool(self.pick(0, 1))
        made, values = self.weights((columns, inner) if transposed else (inner, columns), (0,) if transposed else (1,))
        attributes = {"transpose_b": transposed}
        return self.builder.emit("MatMul", x, made, **attributes), self._applied("MatMul", attributes, exact, values)

    def after(self, x: Value, exact: np.ndarray, channel_axis: int) -> tuple[Value, np.ndarray]:
        """A bias and an activation, each or neither."""
        if self.pick(0, 1, 1):
            shape = [exact.shape[axis] if axis == channel_axis else 1 for axis in range(exact.ndim)]
            bias = self.rng.normal(size=shape).astype(np.float32)
            x, exact = self.builder.emit("Add", x, bias), exact + bias
        kind = self.pick("", "Relu", "Clamp", "HSwish", *(("Swish", "Tanh") if self.smooth else ()))
        if kind == "Clamp":
            return self.builder.emit("Clamp", x, min=-0.5, max=2.0), np.clip(exact, -0.5, 2.0)
        if kind:
            since = {"HSwish": "opset4", "Swish": "opset4"}.get(kind, "opset1")
            return self.builder.emit(kind, x, version=since), resolve(kind, since).kernel(exact)
        return x, exact

    def build(self) -> tuple[np.ndarray, np.ndarray]:
        """Add all layers; the exact result, and where it may differ by more than rounding."""
        is_matrix = bool(self.pick(0, 0, 0, 1))
        shape: tuple[int, ...]
        if is_matrix:
            shape = (*self.pick((), (2,)), int(self.pick(1, 3, 9, 50)), int(self.pick(4, 7, 64, 150)))
        else:
            sizes = (int(self.rng.integers(1, 14)) for _ in range(self.pick(2, 2, 2, 2, 1, 3)))
            shape = (int(self.pick(1, 1, 2)), int(self.pick(1, 3, 4, 8, 20, 48, 80, 132)), *sizes)
        data = self.rng.normal(size=shape).astype(np.float32)
        self.feeds["x"] = data
        x, exact, _ = self.quantise(self.builder.parameter(F32, shape, "x"), data.astype(float), 2.5)
        # A value on a threshold would differ in everything behind: all are moved to their levels.
        self.feeds["x"] = exact.astype(np.float32)
        product = self.matmul if is_matrix else self.convolution
        x, exact = product(x, exact)
        axis = exact.ndim - 1 if is_matrix else 1
        x, exact = self.after(x, exact, axis)
        doubtful = np.zeros(exact.shape, bool)
        end = self.pick("floats", "levels", "residual", "residual", "residual", "channels")
        spread = float(np.abs(exact).max()) + 0.1
        if end == "residual":
            if self.pick(0, 1):
                x, exact, doubtful = self.quantise(x, exact, spread)
            other = self.rng.normal(size=exact.shape).astype(np.float32)
            y, added, _ = self.quantise(self.builder.parameter(F32, exact.shape, "y"), other.astype(float), 2.0)
            self.feeds["y"] = added.astype(np.float32)
            x, exact = self.builder.emit("Add", *self.pick((x, y), (y, x))), exact + added
            if self.pick(0, 1):
                x, exact = self.builder.emit("Relu", x), np.maximum(exact, 0)
        if end != "floats":
            channels = exact.shape[1] if end == "channels" and not is_matrix else 1
            x, exact, near = self.quantise(x, exact, spread, channels)
            doubtful = doubtful | near
        if self.pick(0, 1) and end != "floats" and not is_matrix:
            # A reader of levels: the last product is exact, but where its levels are not certain.
            depthwise = exact.shape[1]
            made, values = self.weights((depthwise, 1, 1, *(1,) * (exact.ndim - 2)), (0, 1))
            ones = (1,) * (exact.ndim - 2)
            attributes: dict[str, Any] = dict.fromkeys(("strides", "dilations"), ones)
            attributes |= dict.fromkeys(("pads_begin", "pads_end"), (0,) * len(ones))
            x = self.builder.emit("GroupConvolution", x, made, **attributes)
            exact = exact * values.reshape(1, depthwise, *ones)
        self.builder.result(x)
        return exact, doubtful


def check(seed: int, threads: int = 2, smooth: bool = True) -> str:
    """Compare a network; the digest of its result, if all products are computed in integers.

    Raises:
        AssertionError: a value differs by more than f32 allows.
    """
    network = Network(seed, smooth)
    exact, doubtful = network.build()
    compiled = irexec.compile_model(network.builder.model(), threads=threads)
    (result,) = (np.asarray(value) for value in compiled(network.feeds).values())
    tolerance = 2e-5 * max(1.0, float(np.abs(exact).max()))
    wrong = (np.abs(result - exact) > tolerance) & ~doubtful
    assert not wrong.any(), f"seed {seed}: {wrong.sum()} of {wrong.size}, {result[wrong][:3]} for {exact[wrong][:3]}"
    types = [step.operation.partition("+")[0] for step in compiled.plan.steps]
    if any(
        type.endswith(("Convolution", "BackpropData", "MatMul")) and not type.startswith("Integer") for type in types
    ):
        return "in floats"
    return hashlib.sha256(result.tobytes()).hexdigest()[:12]


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    for number in range(first, first + count):
        print(number, check(number, 1 + number % 4, smooth=False), flush=True)
