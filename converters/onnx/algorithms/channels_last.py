"""Operators of ai.onnx on channels-last data, as ONNX Runtime's layout optimiser writes them.

Only input 0 and output 0 are (N, spatial..., C); weights, biases, pads and strides keep ONNX's order.
Source: onnxruntime ``internal_nhwc_onnx_schemas.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from converters.onnx.context import TranslationContext
from converters.onnx.registry import NHWC, add
from irexec.ir.graph import Value


def add_channels_last(
    operator: str, since: int, function: Callable[..., Any], *, schema: Callable[..., Any] | None = None,
    more: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Register an operator of com.ms.internal.nhwc as ``function`` between two transpositions; see ``registry.add``."""

    def translate(ctx: TranslationContext, x: Value, *rest: Value | None, **attributes: Any) -> Any:
        result = function(ctx, ctx.channels_first(x), *rest, **attributes)
        first, *others = result if isinstance(result, tuple) else (result,)
        return (ctx.channels_last(first), *others)

    add(operator, since, NHWC, translate, schema=schema or function, more=more)
