"""com.ms.internal.nhwc: ONNX Runtime's operators on channels-last data.

Only input 0 and output 0 are (N, spatial..., C); weights, biases, pads and strides keep ONNX's
order. Source: onnxruntime ``internal_nhwc_onnx_schemas.cc``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.context import Context
from converters.onnx.ops.activation import activated
from converters.onnx.ops.convolution import conv, conv_transpose
from converters.onnx.ops.normalization import batch_normalization, instance_normalization
from converters.onnx.ops.pooling import average_pool, global_average_pool, max_pool
from converters.onnx.registry import translates
from irexec.ir.graph import Value

_DOMAIN = "com.ms.internal.nhwc"


def _first(b: Context, x: Value) -> Value:
    """Channels brought to the front."""
    rank = b.rank(x)
    return b.emit("Transpose", x, [0, rank - 1, *range(1, rank - 1)])


def _last(b: Context, x: Value) -> Value:
    """Channels brought to the end."""
    rank = b.rank(x)
    return b.emit("Transpose", x, [0, *range(2, rank), 1])


def _around(b: Context, x: Value, function: Callable[..., Any], *rest: Value | None, **attributes: Any) -> Any:
    """The operator on channels-first data between two transpositions."""
    result = function(b, _first(b, x), *rest, **attributes)
    if isinstance(result, tuple):
        return (_last(b, result[0]), *result[1:])
    return _last(b, result)


@translates("Conv", domain=_DOMAIN)
def nhwc_conv(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, activation: str = "", activation_params: list[float] | None = None,
    auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    texts = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    return activated(b, _around(b, x, conv, w, bias, **texts), activation, activation_params)


@translates("ConvTranspose", domain=_DOMAIN)
def nhwc_conv_transpose(
    b: Context, x: Value, w: Value, bias: Value | None = None, *, activation: str = "", activation_params: list[float] | None = None,
    auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None, output_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Any:  # fmt: skip
    texts = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    result = _around(b, x, conv_transpose, w, bias, output_padding=output_padding, output_shape=output_shape, **texts)
    return activated(b, result, activation, activation_params)


@translates("AveragePool", domain=_DOMAIN)
def nhwc_average_pool(
    b: Context, x: Value, *, kernel_shape: list[int], auto_pad: str = "NOTSET", pads: list[int] | None = None,
    strides: list[int] | None = None, dilations: list[int] | None = None, ceil_mode: int = 0, count_include_pad: int = 0,
) -> Any:  # fmt: skip
    texts = {"auto_pad": auto_pad, "pads": pads, "strides": strides, "dilations": dilations, "ceil_mode": ceil_mode}
    return _around(b, x, average_pool, kernel_shape=kernel_shape, count_include_pad=count_include_pad, **texts)


@translates("MaxPool", domain=_DOMAIN)
def nhwc_max_pool(
    b: Context, x: Value, *, kernel_shape: list[int], auto_pad: str = "NOTSET", pads: list[int] | None = None,
    strides: list[int] | None = None, dilations: list[int] | None = None, ceil_mode: int = 0, storage_order: int = 0,
) -> Any:  # fmt: skip
    texts = {"auto_pad": auto_pad, "pads": pads, "strides": strides, "dilations": dilations, "ceil_mode": ceil_mode}
    return _around(b, x, max_pool, kernel_shape=kernel_shape, storage_order=storage_order, **texts)[:1]


@translates("GlobalAveragePool", domain=_DOMAIN)
def nhwc_global_average_pool(b: Context, x: Value) -> Any:
    return _around(b, x, global_average_pool)


@translates("BatchNormalization", domain=_DOMAIN)
def nhwc_batch_normalization(
    b: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, spatial: int = 1,
) -> Any:  # fmt: skip
    texts = {"epsilon": epsilon, "momentum": momentum, "training_mode": training_mode, "spatial": spatial}
    return _around(b, x, batch_normalization, scale, bias, mean, variance, **texts)


@translates("InstanceNormalization", domain=_DOMAIN)
def nhwc_instance_normalization(b: Context, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5) -> Any:
    return _around(b, x, instance_normalization, scale, bias, epsilon=epsilon)
