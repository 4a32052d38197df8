"""Operators that ONNX had on trial up to opset 9, and removed; files of CoreML and Caffe2 from 2017 and 2018 have them.

Source: ONNX 1.3 ``defs/experiments``, and ONNX Runtime, which runs them up to opset 9.
"""

from __future__ import annotations

from typing import Annotated

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.indexing import slice_10
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank

Maps = Annotated[Value, Rank(4)]


@translates("Affine")
def affine(ctx: TranslationContext, x: Value, *, alpha: float = 1.0, beta: float = 0.0) -> Value:
    return (Expression(ctx, x) * alpha + beta).value


@translates("Scale")
def scale(ctx: TranslationContext, x: Value, *, scale: float = 1.0) -> Value:
    return (Expression(ctx, x) * scale).value


@translates("ScaledTanh")
def scaled_tanh(ctx: TranslationContext, x: Value, *, alpha: float, beta: float) -> Value:
    """alpha * tanh(beta * x)."""
    return ((Expression(ctx, x) * beta).tanh() * alpha).value


@translates("ParametricSoftplus")
def parametric_softplus(ctx: TranslationContext, x: Value, *, alpha: float, beta: float) -> Value:
    """alpha * log(1 + exp(beta * x))."""
    return (Expression(ctx, ctx.emit("SoftPlus", (Expression(ctx, x) * beta).value)) * alpha).value


@translates("ImageScaler")
def image_scaler(ctx: TranslationContext, x: Maps, *, bias: list[float] | None = None, scale: float = 1.0) -> Value:
    """x * scale plus a bias per channel."""
    scaled = Expression(ctx, x) * scale
    channels = ctx.sizes(x)[1]
    if isinstance(channels, int) and len(bias or ()) != channels:
        raise OpError(f"bias has {len(bias or ())} values for {channels} channels")
    return (scaled + Expression(ctx, ctx.along_channels(ctx.constant(list(bias or ()), x), 4))).value


@translates("Crop")
def crop(ctx: TranslationContext, x: Maps, *, border: list[int], scale: list[int] | None = None) -> Value:
    """The image without its border (left, top, right, bottom), or with ``scale`` (height, width) of it from there."""
    if len(border) != 4 or len(scale or (0, 0)) != 2:
        raise OpError(f"border is {list(border)} and scale {list(scale or ())}, expected 4 sizes and 2 or none")
    left, top, right, bottom = border
    sizes = [Expression(ctx, ctx.size(x, axis)).unsqueeze(0) for axis in (2, 3)]
    ends = [size - cut for size, cut in zip(sizes, (bottom, right), strict=True)]
    stops = ctx.emit("Concat", *(end.value for end in ends), axis=0)
    if scale:
        stops = ctx.constant([top + scale[0], left + scale[1]])
        _check_inside(ctx, x, (top + scale[0], left + scale[1]))
    return ctx.emit("Slice", x, [top, left], stops, [1, 1], [2, 3])


def _check_inside(ctx: TranslationContext, x: Value, ends: tuple[int, int]) -> None:
    """Raise OpError for an end beyond a known size of the image."""
    for size, end in zip(ctx.sizes(x)[2:], ends, strict=True):
        if isinstance(size, int) and end > size:
            raise OpError(f"the border and scale reach {end} along an axis of size {size}")


@translates("DynamicSlice")
def dynamic_slice(ctx: TranslationContext, x: Value, starts: Value, ends: Value, axes: Value | None = None) -> Value:
    """Slice of opset 10 without steps."""
    return slice_10(ctx, x, starts, ends, axes)
