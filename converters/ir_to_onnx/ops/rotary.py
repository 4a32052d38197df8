"""Normalization by the root mean square, and rotary position embeddings."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.registry import composed
from irexec.dtypes.elements import F32, Element
from irexec.errors import check
from irexec.ir.dims import Size
from irexec.schema.family_attributes import RotaryAttributes

INNER = "ie_internal_opset"


@composed("RMS", since=INNER)
def rms(
    ctx: ExportContext, data: Tensor, scale: Tensor | None = None, *, epsilon: float, output_type: Element | None,
    elementwise_affine: bool,
) -> Tensor:  # fmt: skip
    """x / Sqrt(mean of squares + epsilon) * scale in f32; RMSNormalization from opset 23 on if scale is a vector."""
    x = ctx.cast(data, F32)
    factor = None if scale is None else ctx.cast(scale, F32)
    if factor is not None and factor.rank == 1 and factor.shape != (1,) and ctx.has("RMSNormalization"):
        found = ctx.emit("RMSNormalization", x, factor, axis=-1, epsilon=epsilon)
    else:
        mean = ctx.reduce("ReduceMean", ctx.emit("Mul", x, x), [-1], keep=True)
        found = ctx.emit("Div", x, ctx.emit("Sqrt", ctx.emit("Add", mean, ctx.scalar(epsilon, x))))
        found = found if factor is None else ctx.emit("Mul", found, factor)
    return ctx.cast(found, output_type or data.element)


@composed("RoPE", since=INNER)
def rope(
    ctx: ExportContext, data: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *,
    attributes: RotaryAttributes,
) -> Tensor:  # fmt: skip
    """Slices, products and sums, for halves of a head; other pairs are refused."""
    a = attributes
    check(
        not (a.config_is_interleaved or a.config_is_chatglm or a.config_is_qwen or positions is not None),
        "only halves of a head at the positions of the tables are written",
    )
    check(data.shape is not None and cos.shape is not None, "the ranks of data and of the tables are not known")
    assert data.shape is not None and cos.shape is not None
    tokens, is_cut = data.shape[1 if a.config_input_trans0213 else 2], a.config_slice_stop > a.config_slice_start
    size = a.config_slice_stop - a.config_slice_start if is_cut else data.shape[3]
    x = ctx.cast(data, F32)
    x = ctx.slice(x, a.config_slice_start, a.config_slice_stop, 3) if is_cut else x
    x = ctx.transpose(x, (0, 2, 1, 3)) if a.config_input_trans0213 else x
    count, half = a.config_rotary_ndims, a.config_rotary_ndims // 2
    first, second = ctx.slice(x, 0, half, 3), ctx.slice(x, half, count, 3)
    partner = ctx.concat(ctx.emit("Neg", second), first, axis=3)
    cosines, sines = (_of_tokens(ctx, ctx.cast(table, F32), x, tokens) for table in (cos, sin))
    turned = ctx.emit("Mul", ctx.slice(x, 0, count, 3), cosines)
    found = ctx.emit("Add", turned, ctx.emit("Mul", partner, sines))
    whole = found if size == count else ctx.concat(found, ctx.slice(x, count, None, 3), axis=3)
    return ctx.cast(whole, data.element)


def _of_tokens(ctx: ExportContext, table: Tensor, x: Tensor, tokens: Size) -> Tensor:
    """The rows of a table for the tokens of x; a table of one row stays as it is."""
    axis = table.require_rank("the tables") - 2
    if table.shape is not None and isinstance(tokens, int) and table.shape[axis] in (1, tokens):
        return table
    return ctx.emit("Slice", table, ctx.ints(0), ctx.slice(ctx.shape_of(x), 2, 3, 0), ctx.ints(axis))
