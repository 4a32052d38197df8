"""Elements picked by index."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.dims import Size
from irexec.ir.graph import Value


@translates("Gather")
def gather(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.emit("Gather", x, indices, b.constant(axis))


@translates("GatherElements", since=11)
def gather_elements(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """The indices may be smaller than the data along other axes; IR needs equal sizes there."""
    normal_axis, sizes, index_sizes = b.axis(axis, x), b.sizes(x), b.sizes(indices, "the indices")
    if len(sizes) != len(index_sizes):
        raise OpError(f"the indices {b.fact(indices)} do not have the rank of the data {b.fact(x)}")
    sliced = [
        i
        for i, (have, want) in enumerate(zip(sizes, index_sizes, strict=True))
        if i != normal_axis and not _are_equal(have, want)
    ]
    if sliced:
        stops = b.emit("Gather", b.shape_of(indices), b.constant(sliced), b.constant(0))
        x = b.emit("Slice", x, [0] * len(sliced), stops, [1] * len(sliced), sliced)
    return b.emit("GatherElements", x, indices, axis=normal_axis)


def _are_equal(left: Size, right: Size) -> bool:
    """Whether two sizes are certainly equal: the same int, or the same symbol."""
    return left == right and (isinstance(left, int) or left.name is not None)


@translates("GatherND", since=11)
def gather_nd(b: Context, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return b.emit("GatherND", x, indices, batch_dims=batch_dims)
