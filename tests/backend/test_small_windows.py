"""Windows over axes of size 1 to 4, of which strides, dilations and pads say less than the number of windows does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.analysis.builder import Builder
from irexec.errors import OpError
from irexec.runtime.compiled_model import CompiledModel

_TYPES = (
    "Convolution",
    "GroupConvolution",
    "ConvolutionBackpropData",
    "GroupConvolutionBackpropData",
    "MaxPool",
    "AvgPool",
)
_CASES = 120


def _attributes(rng: np.random.Generator, type: str, rank: int) -> dict[str, Any]:
    given = {name: rng.integers(1, 4, rank).tolist() for name in ("strides", "dilations")}
    given |= {
        name: rng.integers(0, 2, rank).tolist() if rng.random() < 0.4 else [0] * rank
        for name in ("pads_begin", "pads_end")
    }
    if type == "AvgPool" or rng.random() < 0.6:
        given["dilations"] = [1] * rank
    if type == "AvgPool":
        del given["dilations"]
    return given | {"auto_pad": str(rng.choice(["explicit", "explicit", "same_upper", "valid"]))}


def _filter(rng: np.random.Generator, type: str, channels: int, kernel: list[int]) -> np.ndarray:
    outputs = int(rng.integers(1, 4))
    shape = {
        "Convolution": [outputs, channels], "ConvolutionBackpropData": [channels, outputs],
        "GroupConvolution": [channels, outputs, 1], "GroupConvolutionBackpropData": [channels, 1, outputs],
    }[type]  # fmt: skip
    return rng.uniform(-1, 1, [*shape, *kernel]).astype(np.float32)


def _model(rng: np.random.Generator, type: str) -> tuple[Builder, np.ndarray]:
    """One operation, of data that is channels first or last in memory."""
    rank, channels = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 8]))
    sizes, kernel = rng.integers(1, 5, rank).tolist(), rng.choice([1, 1, 2, 3], rank).tolist()
    builder = Builder()
    data = rng.uniform(-1, 1, [int(rng.integers(1, 3)), channels, *sizes]).astype(np.float32)
    last = rng.random() < 0.5
    x = builder.parameter("f32", np.moveaxis(data, 1, -1).shape if last else data.shape, "x")
    if last:
        x = builder.emit("Transpose", builder.emit("Negative", x), [0, rank + 1, *range(1, rank + 1)])
    given = _attributes(rng, type, rank)
    if type.endswith("Pool"):
        extra = {"exclude_pad": bool(rng.integers(2)), "version": 1} if type == "AvgPool" else {"version": 8}
        y = builder.emit(type, x, kernel=kernel, **given, **extra)
        y = y[0] if isinstance(y, tuple) else y
    else:
        y = builder.emit(type, x, _filter(rng, type, channels, kernel), **given)
    y = builder.emit("Relu", builder.emit("Add", y, np.float32(0.25)))
    builder.result(builder.emit("Transpose", y, [0, *range(2, rank + 2), 1]) if last and rng.random() < 0.6 else y)
    return builder, np.ascontiguousarray(np.moveaxis(data, 1, -1)) if last else data


@pytest.mark.parametrize("type", _TYPES)
def test_fast_kernels_agree_with_the_reference(type: str) -> None:
    run = 0
    for seed in range(_CASES):
        try:
            builder, data = _model(np.random.default_rng([seed, len(type)]), type)
        except OpError:
            continue
        run += 1
        model = builder.model()
        (expected,) = CompiledModel(model, optimize=False)([data]).values()
        for threads in (1, 2):
            (actual,) = CompiledModel(model, threads=threads)([data]).values()
            np.testing.assert_allclose(
                actual, expected, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}, {threads} threads"
            )
    assert run > _CASES // 3, "too few cases can be run"
