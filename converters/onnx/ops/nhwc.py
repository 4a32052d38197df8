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
from converters.onnx.ops.normalization import batch_normalization_9, batch_normalization_14, instance_normalization
from converters.onnx.ops.pooling import average_pool, global_average_pool, global_max_pool, max_pool
from converters.onnx.registry import add
from irexec.errors import ConversionError
from irexec.ir.graph import Value

_DOMAIN = "com.ms.internal.nhwc"


def _transposed(b: Context, function: Callable[..., Any], x: Value, rest: tuple[Value | None, ...], attributes: dict[str, Any]) -> Any:
    """The operator on channels-first data between two transpositions."""
    result = function(b, b.channels_first(x), *rest, **attributes)
    first, *others = result if isinstance(result, tuple) else (result,)
    return (b.channels_last(first), *others)


def _row(operator: str, since: int, function: Callable[..., Any], *, activates: bool = False, schema: Any = None) -> None:
    """The translation of ai.onnx, and perhaps an activation after it."""

    def translate(b: Context, x: Value, *rest: Value | None, **attributes: Any) -> Any:
        name, parameters = attributes.pop("activation", ""), attributes.pop("activation_params", None)
        first, *others = _transposed(b, function, x, rest, attributes)
        return (activated(b, first, name, parameters), *others)

    more: dict[str, tuple[str, ...]] = {"activation": ("STRING",), "activation_params": ("FLOATS",)} if activates else {}
    add(operator, since, _DOMAIN, translate, schema=schema or function, more=more)


def _max_pool(b: Context, x: Value, **attributes: Any) -> Any:
    """The places of the greatest would be those in the channels-first data."""
    if b.wants(1):
        raise ConversionError("the indices of a channels-last MaxPool are not supported", unsupported=True)
    return max_pool(b, x, **attributes)[:1]


_row("Conv", 1, conv, activates=True)
_row("ConvTranspose", 1, conv_transpose, activates=True)
_row("AveragePool", 1, average_pool)
_row("MaxPool", 1, _max_pool, schema=max_pool)
_row("GlobalAveragePool", 1, global_average_pool)
_row("GlobalMaxPool", 1, global_max_pool)
_row("BatchNormalization", 1, batch_normalization_9)
_row("BatchNormalization", 14, batch_normalization_14)
_row("InstanceNormalization", 1, instance_normalization)
