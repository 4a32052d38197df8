"""Numbers moved about, taken, repeated and ordered."""

from __future__ import annotations

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.elements import I64
from irexec.ir.graph import Value

_END = int(np.iinfo(np.int64).max)


@translates("Transpose")
def transpose(b: Context, x: Value, *, perm: list[int] | None = None) -> Value:
    return b.emit("Transpose", x, b.constant(np.asarray([] if perm is None else perm, np.int64)))


@translates("Concat")
def concat(b: Context, *inputs: Value, axis: int = 1) -> Value:
    return b.emit("Concat", *inputs, axis=axis)


@translates("Split")
def split_1(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, split: list[int] | None = None) -> tuple[Value, ...]:
    return _split(b, x, axis, b.constant(split) if split else lengths, len(b.outputs), uneven=False)


@translates("Split", since=13)
def split_13(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, num_outputs: int | None = None) -> tuple[Value, ...]:
    return _split(b, x, axis, lengths, num_outputs or len(b.outputs), uneven=num_outputs is not None)


def _split(b: Context, x: Value, axis: int, lengths: Value | None, parts: int, *, uneven: bool) -> tuple[Value, ...]:
    if lengths is not None:
        return tuple(b.emit("VariadicSplit", x, axis, lengths))
    size = b.sizes(x)[axis]
    if uneven and isinstance(size, int) and size % parts:
        part = -(-size // parts)
        sizes = [part] * (parts - 1)
        return tuple(b.emit("VariadicSplit", x, axis, [*sizes, size - sum(sizes)]))
    return tuple(b.emit("Split", x, axis, num_splits=parts))


@translates("Slice")
def slice_1(b: Context, x: Value, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Value:
    places = list(range(len(starts))) if axes is None else list(axes)
    return b.emit("Slice", x, list(starts), list(ends), [1] * len(places), places)


@translates("Slice", since=10)
def slice_10(b: Context, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    if steps is None:
        count = b.sizes(starts)[0]
        if not isinstance(count, int):
            raise OpError("how many axes are cut is not known")
        steps = b.constant(np.ones(count, np.int64), starts)
    return b.emit("Slice", x, starts, ends, steps, axes)


@translates("Gather")
def gather(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.emit("Gather", x, indices, axis)


@translates("GatherElements", since=11)
def gather_elements(b: Context, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.emit("GatherElements", x, indices, axis=axis + b.rank(x) if axis < 0 else axis)


@translates("GatherND", since=11)
def gather_nd(b: Context, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return b.emit("GatherND", x, indices, batch_dims=batch_dims)


@translates("Tile")
def tile_1(b: Context, x: Value, tiles: Value, axis: Value) -> Value:
    place = b.ints(axis, "axis")[0]
    repeats = np.ones(b.rank(x), np.int64)
    repeats[place] = b.ints(tiles, "tiles")[0]
    return b.emit("Tile", x, b.constant(repeats))


@translates("Tile", since=6)
def tile_6(b: Context, x: Value, repeats: Value) -> Value:
    return b.emit("Tile", x, repeats)


def _pad(b: Context, x: Value, pads: list[int], mode: str, value: Value | None, axes: list[int] | None = None) -> Value:
    rank = b.rank(x)
    places = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    if len(pads) != 2 * len(places):
        raise OpError(f"pads have {len(pads)} numbers for {len(places)} axes")
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(places):
        begins[axis], ends[axis] = pads[i], pads[len(places) + i]
    if mode == "wrap":
        return _wrapped(b, x, begins, ends)
    names = {"constant": "constant", "edge": "edge", "reflect": "reflect"}
    if mode not in names:
        raise OpError(f"mode is {mode!r}, expected constant, edge, reflect or wrap")
    fill = value if mode == "constant" and value is not None else b.constant(0, x) if mode == "constant" else None
    if fill is not None and b.rank(fill) != 0:
        fill = b.emit("Squeeze", fill, [0], version=1)
    return b.emit("Pad", x, begins, ends, fill, pad_mode=names[mode])


def _wrapped(b: Context, x: Value, begins: list[int], ends: list[int]) -> Value:
    """The axis goes round: its places are gathered modulo its size."""
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin or end:
            size = b.static(x)[axis]
            x = b.emit("Gather", x, b.constant(np.arange(-begin, size + end) % size), axis)
    return x


@translates("Pad")
def pad_1(
    b: Context, x: Value, *, paddings: list[int] | None = None, pads: list[int] | None = None, mode: str = "constant", value: float = 0.0
) -> Value:
    """``paddings`` became ``pads`` in opset 2."""
    return _pad(b, x, list(pads if pads is not None else paddings or []), mode, b.constant(value, x))


@translates("Pad", since=11)
def pad_11(b: Context, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *, mode: str = "constant") -> Value:
    if b.known(pads) is None and axes is None and mode in ("constant", "edge", "reflect"):
        begins, ends = b.emit("Split", pads, 0, num_splits=2)
        fill = value if value is not None else b.constant(0, x)
        return b.emit("Pad", x, begins, ends, fill if mode == "constant" else None, pad_mode=mode)
    places = None if axes is None else list(b.ints(axes, "axes"))
    return _pad(b, x, list(b.ints(pads, "pads")), mode, value, places)


@translates("Range", since=11)
def range_(b: Context, start: Value, limit: Value, delta: Value) -> Value:
    scalars = [b.emit("Squeeze", v, [0], version=1) if b.rank(v) else v for v in (start, limit, delta)]
    return b.emit("Range", *scalars, output_type=b.element(start))


@translates("OneHot", since=9)
def one_hot(b: Context, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """Indices of any number type; negative ones count from the end."""
    if not b.element(indices).is_integer:
        indices = b.emit("Convert", indices, destination_type=I64)
    if not b.element(depth).is_integer:
        depth = b.emit("Convert", depth, destination_type=I64)
    if b.rank(depth):
        depth = b.emit("Squeeze", depth, [0], version=1)
    off, on = (b.emit("Gather", values, i, 0) for i in (0, 1))
    return b.emit("OneHot", indices, depth, on, off, axis=axis, negative_indices_mode="normalize")


@translates("NonZero", since=9)
def non_zero(b: Context, x: Value) -> Value:
    return b.emit("NonZero", x, output_type="i64")


@translates("TopK")
def topk_1(b: Context, x: Value, *, k: int, axis: int = -1) -> tuple[Value, ...]:
    return _topk(b, x, b.constant(k), axis, "max", "value")


@translates("TopK", since=10)
def topk_10(b: Context, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Value, ...]:
    if b.rank(k):
        k = b.emit("Squeeze", k, [0], version=1)
    return _topk(b, x, k, axis, "max" if largest else "min", "value" if sorted else "none")


def _topk(b: Context, x: Value, k: Value, axis: int, mode: str, sort: str) -> tuple[Value, ...]:
    place = axis + b.rank(x) if axis < 0 else axis
    return tuple(b.emit("TopK", x, k, axis=place, mode=mode, sort=sort, stable=sort != "none", index_element_type="i64"))


@translates("ArgMax")
def arg_max(b: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return _arg(b, x, "max", axis, keepdims, select_last_index)


@translates("ArgMin")
def arg_min(b: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return _arg(b, x, "min", axis, keepdims, select_last_index)


def _arg(b: Context, x: Value, mode: str, axis: int, keepdims: int, last: int) -> Value:
    """The index of the first extreme; the last one is the first of the axis read backwards."""
    place = axis + b.rank(x) if axis < 0 else axis
    if last:
        x = b.emit("Slice", x, [-1], [-_END], [-1], [place])
    index: Value = b.emit("TopK", x, 1, axis=place, mode=mode, sort="value", stable=True, index_element_type="i64")[1]
    if last:
        size = b.emit("Gather", b.emit("ShapeOf", x, output_type="i64"), place, 0)
        index = b.emit("Subtract", b.emit("Subtract", size, b.constant(1)), index)
    return index if keepdims else b.emit("Squeeze", index, [place], version=1)


@translates("CumSum", since=11)
def cum_sum(b: Context, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    if b.rank(axis):
        axis = b.emit("Squeeze", axis, [0], version=1)
    return b.emit("CumSum", x, axis, exclusive=bool(exclusive), reverse=bool(reverse))


@translates("DepthToSpace")
def depth_to_space(b: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    return b.emit("DepthToSpace", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


@translates("SpaceToDepth")
def space_to_depth(b: Context, x: Value, *, blocksize: int) -> Value:
    return b.emit("SpaceToDepth", x, mode="blocks_first", block_size=blocksize)
