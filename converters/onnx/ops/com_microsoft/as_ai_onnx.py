"""com.microsoft: operators of ai.onnx or IR with other inputs or attributes."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.broadcasting import PadMode, pad_11
from converters.onnx.ops.ai_onnx.generation import range_11
from converters.onnx.ops.ai_onnx.grid_sample import grid_sample
from converters.onnx.ops.ai_onnx.indexing import gather_nd, trilu, unique
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value

translates("GatherND", domain=COM_MICROSOFT, without=["batch_dims"])(gather_nd)
translates("Trilu", domain=COM_MICROSOFT)(trilu)
translates("GridSample", domain=COM_MICROSOFT)(grid_sample)


@translates("ExpandDims", domain=COM_MICROSOFT)
def expand_dims(ctx: TranslationContext, x: Value, axis: Value) -> Value:
    return ctx.unsqueeze(x, list(ctx.ints(axis, "axis")))


@translates("Unique", domain=COM_MICROSOFT)
def contrib_unique(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """Distinct values in the order of first occurrence, the index of each element in them, and the counts."""
    values, _, which, counts = unique(ctx, x, sorted=0)
    return values, which, counts


@translates("Range", domain=COM_MICROSOFT)
def contrib_range(ctx: TranslationContext, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(ctx, start, limit, ctx.constant(1, start) if delta is None else delta)


@translates("Pad", domain=COM_MICROSOFT)
def contrib_pad(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, *, mode: PadMode = "constant"
) -> Value:
    """The pads may have a leading axis of size 1."""
    return pad_11(ctx, x, ctx.emit("Reshape", pads, [-1], special_zero=False), value, mode=mode)


@translates("Inverse", domain=COM_MICROSOFT)
def inverse(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Inverse", x, adjoint=False)
