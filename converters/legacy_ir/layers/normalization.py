"""Normalisation layers and SoftMax."""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.elementwise import by_channel
from converters.legacy_ir.layers.shapes import positive
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I64
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.schema.attributes import Positive

# From this eps on, the two forms of Normalize differ by more than rounding.
_LARGE_EPS = 1e-4


@translates("BatchNormalization")
def batch_normalization(layer: Layer, data: Value, *, epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) by channel: the biases are the mean, the weights the variance."""
    data = layer.f32(data)
    variance, mean = (by_channel(layer, tag, None, data) for tag in ("weights", "biases"))
    centred = layer.emit("Subtract", data, mean, version=1)
    deviation = layer.emit("Sqrt", layer.emit("Add", variance, layer.constant(epsilon, F32), version=1), version=1)
    return layer.emit("Divide", centred, deviation, version=1)


@translates("Norm", "LRN")
def norm(
    layer: Layer, data: Value, *, alpha: float, beta: float, local_size: Positive = 1,
    region: Literal["across", "same"], k: float = 1.0,
) -> Value:  # fmt: skip
    """x / (k + alpha * mean of the squares in a window) ** beta; over channels, or over the last two axes."""
    axes = [1] if region == "across" else [2, 3]
    return layer.emit(
        "LRN", layer.f32(data), layer.constant(axes, I64), version=1, alpha=alpha, beta=beta, bias=k, size=local_size
    )


@translates("Normalize")
def normalize(
    layer: Layer, data: Value, *, across_spatial: bool = False, channel_shared: bool = False, eps: float = 1e-10
) -> Value:
    """x * weights / sqrt(sum of squares + eps), over channels or over all axes but the first.

    With ``channel_shared`` the first weight counts.
    """
    data = layer.f32(data)
    if eps >= _LARGE_EPS:
        layer.note(
            legacy_codes.ENGINES_DIFFER,
            f"release 2020.4 adds eps {eps:g} to the root, release 2020.1 to the sum of squares; here it is the sum",
        )
    axes = list(range(1, layer.rank(data))) if across_spatial else [1]
    scaled = layer.emit("NormalizeL2", data, layer.constant(axes, I64), version=1, eps=eps, eps_mode="add")
    weights = None
    if channel_shared and layer.blob_count("weights") > 1:
        ends = [layer.constant([end], I64) for end in (0, 1)]
        weights = layer.emit(
            "StridedSlice", layer.blob("weights"), *ends, version=1, begin_mask=(0,), end_mask=(0,)
        )  # fmt: skip
    return layer.emit("Multiply", scaled, by_channel(layer, "weights", weights, data), version=1)


@translates("MVN")
def mvn(
    layer: Layer, data: Value, *, across_channels: bool = False, normalize_variance: bool | None = None,
    eps: float = 1e-9,
) -> Value:  # fmt: skip
    """(x - mean) / sqrt(variance + eps), over the spatial axes and perhaps the channels."""
    if normalize_variance is None:
        layer.note(
            legacy_codes.ENGINES_DIFFER,
            "without normalize_variance the engines divide by the deviation, the description of the layer does not; "
            "here as the engines",
        )
    return layer.emit(
        "MVN", layer.f32(data), version=2, across_channels=across_channels,
        normalize_variance=normalize_variance is not False, eps=max(eps, float(np.finfo(np.float32).tiny)),
    )  # fmt: skip


@translates("GRN")
def grn(layer: Layer, data: Value, *, bias: float) -> Value:
    """x / sqrt(sum of squares over channels + bias)."""
    return layer.emit("GRN", layer.f32(data), version=1, bias=bias)


@translates("SoftMax")
def softmax(layer: Layer, data: Value, *, axis: int = 1) -> Value:
    """exp(x), divided by its sum along an axis."""
    data = layer.f32(data)
    return layer.emit("Softmax", data, version=1, axis=positive(axis, layer.rank(data)))


@translates("LogSoftmax")
def log_softmax(layer: Layer, data: Value, *, axis: int = -1) -> Value:
    """The logarithm of SoftMax; both releases take the last axis unless one is given."""
    data = layer.f32(data)
    return layer.emit("LogSoftmax", data, version=5, axis=positive(axis, layer.rank(data)))
