"""Elements picked by index."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.dims import Size
from irexec.ir.graph import Value


@translates("Gather")
def gather(ctx: TranslationContext, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return ctx.emit("Gather", x, indices, ctx.constant(axis))


@translates("GatherElements", since=11)
def gather_elements(ctx: TranslationContext, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """The data is sliced to the indices along other axes, where IR requires equal sizes."""
    normal_axis, sizes, index_sizes = ctx.axis(axis, x), ctx.sizes(x), ctx.sizes(indices, "the indices")
    if len(sizes) != len(index_sizes):
        raise OpError(f"the indices {ctx.fact(indices)} do not have the rank of the data {ctx.fact(x)}")
    sliced = [
        i
        for i, (have, want) in enumerate(zip(sizes, index_sizes, strict=True))
        if i != normal_axis and not _are_equal(have, want)
    ]
    if sliced:
        stops = ctx.emit("Gather", ctx.shape_of(indices), ctx.constant(sliced), ctx.constant(0))
        x = ctx.emit("Slice", x, [0] * len(sliced), stops, [1] * len(sliced), sliced)
    return ctx.emit("GatherElements", x, indices, axis=normal_axis)


def _are_equal(left: Size, right: Size) -> bool:
    """Whether two sizes are certainly equal: the same int, or the same symbol."""
    return left == right and (isinstance(left, int) or left.name is not None)


@translates("GatherND", since=11)
def gather_nd(ctx: TranslationContext, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return ctx.emit("GatherND", x, indices, batch_dims=batch_dims)
