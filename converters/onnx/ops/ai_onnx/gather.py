"""Numbers taken by their indices."""

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
    """The indices may reach less far than the data along other axes, where IR has them equal."""
    place, sizes, wanted = b.axis(axis, x), b.sizes(x), b.sizes(indices, "the indices")
    if len(sizes) != len(wanted):
        raise OpError(f"the indices {b.fact(indices)} have not the rank of the data {b.fact(x)}")
    cut = [i for i, (have, want) in enumerate(zip(sizes, wanted, strict=True)) if i != place and not _are_one(have, want)]
    if cut:
        ends = b.emit("Gather", b.shape_of(indices), b.constant(cut), b.constant(0))
        x = b.emit("Slice", x, [0] * len(cut), ends, [1] * len(cut), cut)
    return b.emit("GatherElements", x, indices, axis=place)


def _are_one(left: Size, right: Size) -> bool:
    """Whether two sizes are surely equal: the same number, or unknown and of the same name."""
    return left == right and (isinstance(left, int) or left.name is not None)


@translates("GatherND", since=11)
def gather_nd(b: Context, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return b.emit("GatherND", x, indices, batch_dims=batch_dims)
