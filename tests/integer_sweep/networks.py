"""Random networks of several quantised layers, computed in f64 beside irexec, with what f32 arithmetic may change.

Each tensor has a slack: how far a correct result may lie from the exact one. Where an exact value is next to the threshold between two levels,
it is the distance of these, and products carry it on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.dtypes.elements import F32
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import resolve
from tests.support.quantised_network import NEAR, Network

_PRODUCTS = ("Convolution", "BackpropData", "MatMul")


@dataclass(frozen=True)
class Tensor:
    """A value, its exact contents, and how far from them a result may be; f64."""

    value: Value
    exact: np.ndarray
    slack: np.ndarray

    @property
    def spread(self) -> float:
        """The largest magnitude, and a bit more."""
        return float(np.abs(self.exact).max()) + 0.1


@dataclass
class Layers(Network):
    """A network of up to five quantised layers, with residuals, shared weights, pools, joins and moves between them.

    Attributes:
        rounding: how far f32 may move a level of the last range, whose bounds may be far larger than the level.
        flat: decides which sums are computed in another shape.
    """

    smooth: bool = False
    rounding: float = 0.0
    flat: np.random.Generator = field(init=False)
    tensors: list[Tensor] = field(default_factory=list)
    stored: dict[tuple[Any, ...], tuple[Value, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.flat = np.random.default_rng([42, self.seed])

    def grid(self, spread: float, channels: int = 1) -> tuple[int, np.ndarray, np.ndarray]:
        """Sometimes without a level of 0, or with more levels than a byte tells apart."""
        kind = int(self.rng.integers(40))
        if kind > 1:
            return super().grid(spread, channels)
        high = (spread * self.rng.uniform(0.5, 1.5, channels)).astype(np.float32)
        return (65536, 256)[kind], -high, high

    def weights(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Value, np.ndarray]:
        """Sometimes those of another layer."""
        key = shape, axes
        if key not in self.stored or self.pick(0, 0, 1):
            self.stored[key] = super().weights(shape, axes)
        return self.stored[key]

    def levels(self, x: Tensor, spread: float, channels: int = 1) -> Tensor:
        """A FakeQuantize, or the primitives of QuantizeLinear and DequantizeLinear."""
        if channels == 1 and self.pick(0, 0, 1):
            return self.primitives(x, spread)
        levels, low, high = self.grid(spread, channels)
        shape = (1, channels, *(1,) * (x.exact.ndim - 2)) if channels > 1 else (1,) * x.exact.ndim
        low, high = low.reshape(shape), high.reshape(shape)
        made = self.builder.emit("FakeQuantize", x.value, low, high, low, high, levels=levels)
        first = low.astype(float)
        step = (high - first) / (levels - 1)

        def nearest(data: np.ndarray) -> np.ndarray:
            moved: np.ndarray = first + np.rint((np.clip(data, low, high) - first) / step) * step
            return moved

        self.rounding = 1e-6 * float(np.abs([low, high]).max())
        wide, exact = x.slack + NEAR * step, nearest(x.exact)
        slack = np.maximum(np.abs(nearest(x.exact + wide) - exact), np.abs(nearest(x.exact - wide) - exact))
        return self.keep(made, exact, slack + self.rounding)

    def primitives(self, x: Tensor, spread: float) -> Tensor:
        """Integers of u8 or i8 with a step and a zero point."""
        b, pick = self.builder, self.pick
        element, first = pick(("u8", 0), ("i8", -128))
        zero = int(pick(0, first, first + 255, int(self.rng.integers(first, first + 256))))
        step = np.float32(spread * self.rng.uniform(0.5, 1.5) / max(zero - first, first + 255 - zero))
        y = b.emit("Round", b.emit("Divide", x.value, step), mode="half_to_even")
        y = b.emit("Clamp", b.emit("Add", y, np.float32(zero)), min=float(first), max=float(first + 255))
        y = b.emit("Convert", b.emit("Convert", y, destination_type=element), destination_type="f32")
        made = b.emit("Multiply", b.emit("Subtract", y, np.float32(zero)), step)

        def nearest(data: np.ndarray) -> np.ndarray:
            moved: np.ndarray = np.clip(np.rint(data / float(step)), first - zero, first + 255 - zero) * float(step)
            return moved

        self.rounding = 1e-6 * x.spread
        wide, exact = x.slack + NEAR * float(step), nearest(x.exact)
        slack = np.maximum(np.abs(nearest(x.exact + wide) - exact), np.abs(nearest(x.exact - wide) - exact))
        return self.keep(made, exact, slack)

    def keep(self, value: Value, exact: np.ndarray, slack: np.ndarray) -> Tensor:
        """A tensor that a run may be asked for."""
        self.tensors.append(Tensor(value, exact, slack))
        return self.tensors[-1]

    def product(self, x: Tensor, is_matrix: bool) -> Tensor:
        """A product with its bias and activation."""
        made, exact = (self.matmul if is_matrix else self.convolution)(x.value, x.exact)
        slack = self.multiplied(x.slack, np.abs(self.multiplier))
        y = self.keep(made, exact, slack + 2e-5 * max(1.0, float(np.abs(exact).max())))
        made, exact = self.after(y.value, y.exact, y.exact.ndim - 1 if is_matrix else 1)
        return y if made is y.value else self.keep(made, exact, 1.5 * y.slack)

    def residual(self, x: Tensor) -> Tensor:
        """A sum with another tensor of the same shape, or with an input that is quantised."""
        others = [one for one in self.tensors if one.exact.shape == x.exact.shape and one is not x]
        other = self.pick(*others) if others and self.pick(0, 1) else self.input(x.exact.shape)
        first, second = (one.value for one in self.pick((x, other), (other, x)))
        if is_flat := self.flat.random() < 0.25:
            first, second = (self.reshaped(value, (*x.exact.shape[:2], -1)) for value in (first, second))
        made = self.builder.emit("Add", first, second)
        if is_flat:
            made = self.reshaped(made, x.exact.shape)
        y = self.keep(made, x.exact + other.exact, x.slack + other.slack + 1e-6 * (x.spread + other.spread))
        if self.pick(0, 1):
            y = self.keep(self.builder.emit("Relu", y.value), np.maximum(y.exact, 0), y.slack)
        return y

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The same values in another shape."""
        return self.builder.emit("Reshape", value, np.array(shape), special_zero=False)

    def input(self, shape: Sequence[int]) -> Tensor:
        """A quantised input whose values are levels, so that none lies on a threshold."""
        name = f"x{len(self.feeds)}"
        parameter = self.builder.parameter(F32, tuple(shape), name)
        drawn = self.rng.normal(size=shape)
        x = self.levels(Tensor(parameter, drawn, np.zeros(drawn.shape)), 2.5)
        self.feeds[name] = x.exact.astype(np.float32)
        self.tensors[-1] = Tensor(x.value, x.exact, np.full(x.exact.shape, self.rounding))
        return self.tensors[-1]

    def moved(self, x: Tensor) -> Tensor:
        """What passes levels through."""
        rank, b = x.exact.ndim, self.builder
        kind = self.pick("pool", "join", "split", "transposed") if rank > 3 else "split"
        if kind == "pool":
            ones = (1,) * (rank - 2)
            attributes = {"kernel": (2,) * (rank - 2), "strides": ones, "pads_begin": ones, "pads_end": ones}
            pool = resolve("MaxPool", "opset1")

            def pooled(data: np.ndarray) -> np.ndarray:
                return np.asarray(pool.kernel(data, **pool.arguments(attributes)))

            made = b.emit("MaxPool", x.value, version="opset1", **attributes)
            exact = pooled(x.exact)
            slack = np.maximum(pooled(x.exact + x.slack) - exact, exact - pooled(x.exact - x.slack))
            return self.keep(made, exact, slack)
        if kind == "join":
            made = b.emit("Concat", x.value, x.value, axis=1)
            return self.keep(made, *(np.concatenate([each, each], 1) for each in (x.exact, x.slack)))
        if kind == "transposed":
            axes = [0, 1, *reversed(range(2, rank))]
            return self.keep(
                b.emit("Transpose", x.value, np.array(axes)), x.exact.transpose(axes), x.slack.transpose(axes)
            )
        size = x.exact.shape[1]
        if size < 2:
            return x
        first = int(self.rng.integers(1, size))
        made, _ = b.emit("VariadicSplit", x.value, np.array(1), np.array([first, size - first]))
        return self.keep(made, x.exact[:, :first], x.slack[:, :first])

    def build_layers(self) -> list[Tensor]:
        """All tensors; the last one is the model's output."""
        is_matrix = bool(self.pick(0, 0, 0, 1))
        shape: tuple[int, ...]
        if is_matrix:
            shape = (int(self.pick(1, 2)), int(self.pick(1, 3, 9)), int(self.pick(4, 7, 64)))
        else:
            sizes = (int(self.rng.integers(1, 11)) for _ in range(self.pick(2, 2, 2, 2, 1, 3)))
            shape = (int(self.pick(1, 1, 2)), int(self.pick(1, 3, 4, 8, 20, 48)), *sizes)
        x = self.input(shape)
        for _ in range(int(self.rng.integers(1, 5))):
            if self.pick(0, 0, 1):
                x = self.moved(x)
            if x.exact.size > 40_000:
                break
            x = self.product(x, is_matrix)
            for _ in range(int(self.pick(0, 1, 1, 2))):
                if self.pick(0, 1):
                    x = self.levels(x, x.spread)
                x = self.residual(x)
            per_channel = self.pick(0, 0, 0, 1) and not is_matrix
            x = self.levels(x, x.spread, x.exact.shape[1] if per_channel else 1)
        self.builder.result(x.value)
        return self.tensors


def check(seed: int, threads: int) -> str:
    """Compare a network, observed wholly, in part or not at all, with f64.

    Returns:
        The digest of what is observed, or "in floats" if a product is not computed in integers.

    Raises:
        AssertionError: a value differs by more than its slack.
    """
    network = Layers(seed)
    tensors = network.build_layers()
    chosen = tensors[-1:]
    if seed % 3:
        count = len(tensors) if seed % 3 == 2 else int(network.pick(1, 2, 3))
        chosen = [tensors[i] for i in network.rng.permutation(len(tensors))[:count]] + chosen
    # Tolerant: without a plan for the outputs alone, which takes as long as the one that is used.
    compiled = CompiledModel(network.builder.model(), threads=threads, tolerant=True)
    values = [one.value for one in chosen]
    session = compiled.session()
    found = list(session(network.feeds).values()) if seed % 3 == 0 else session.values(network.feeds, values)
    digest = hashlib.sha256()
    for one, array in zip(chosen, found, strict=True):
        result = np.asarray(array)
        wrong = ~(np.abs(result - one.exact) <= one.slack + 2e-6 * one.spread)
        assert not wrong.any(), (
            f"{one.value.node.name}: {wrong.sum()} of {wrong.size}, {result[wrong][:3]} for {one.exact[wrong][:3]}"
        )
        digest.update(result.tobytes())
    targets = None if seed % 3 == 0 else tuple(map(compiled.program.own, values))
    plan = compiled.program.plan(tuple(array.shape for array in network.feeds.values()), targets)
    types = [step.report.type for step in plan.steps]
    are_levels = all(type.startswith("Integer") for type in types if type.endswith(_PRODUCTS))
    return digest.hexdigest()[:12] if are_levels else "in floats"
