"""Numbers moved about: transposed, joined, cut apart, repeated, padded."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.expression import Expression, counting
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Transpose")
def transpose(b: Context, x: Value, *, perm: list[int] | None = None) -> Value:
    """Without perm the axes are turned round."""
    return b.emit("Transpose", x, list(perm) if perm else list(reversed(range(b.rank(x)))))


@translates("Concat")
def concat(b: Context, *inputs: Value, axis: int = 1) -> Value:
    return b.emit("Concat", *inputs, axis=axis)


@translates("Concat", since=4)
def concat_4(b: Context, *inputs: Value, axis: int) -> Value:
    return b.emit("Concat", *inputs, axis=axis)


@translates("Split")
def split_1(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, split: list[int] | None = None) -> tuple[Value, ...]:
    return _split(b, x, axis, b.constant(list(split)) if split else lengths, len(b.outputs))


@translates("Split", since=13)
def split_13(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0) -> tuple[Value, ...]:
    return _split(b, x, axis, lengths, len(b.outputs))


@translates("Split", since=18)
def split_18(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, num_outputs: int | None = None) -> tuple[Value, ...]:
    """Into num_outputs parts, of which the last may be smaller."""
    parts = num_outputs or len(b.outputs)
    shape = b.fact(x).shape
    size = None if shape is None else shape[b.axis(axis, x)]
    if lengths is None and (not isinstance(size, int) or size % parts):
        part = Expression(b, b.emit("Divide", b.emit("Add", b.size(x, axis), b.constant(parts - 1)), b.constant(parts)))
        repeated = b.full(part.value, b.constant([parts - 1]))
        lengths = b.emit("Concat", repeated, b.constant([-1]), axis=0)
    return _split(b, x, axis, lengths, parts)


def _split(b: Context, x: Value, axis: int, lengths: Value | None, parts: int) -> tuple[Value, ...]:
    if lengths is not None:
        return tuple(b.emit("VariadicSplit", x, b.constant(axis), lengths))
    return tuple(b.emit("Split", x, b.constant(axis), num_splits=parts))


@translates("Tile")
def tile_1(b: Context, x: Value, tiles: Value, axis: Value) -> Value:
    """Repeated along one axis."""
    place = b.axis(b.ints(axis, "axis")[0], x)
    ones, count = b.constant([1] * b.rank(x)), b.reshape(b.convert(tiles, I64), [1])
    return b.emit("Tile", x, b.emit("ScatterElementsUpdate", ones, b.constant([place]), count, b.constant(0), version=3))


@translates("Tile", since=6)
def tile_6(b: Context, x: Value, repeats: Value) -> Value:
    return b.emit("Tile", x, repeats)


@translates("Pad")
def pad_1(
    b: Context, x: Value, *, paddings: list[int] | None = None, pads: list[int] | None = None, mode: str = "constant", value: float = 0.0
) -> Value:
    """``paddings`` became ``pads`` in opset 2."""
    given = pads if pads is not None else paddings
    if given is None:
        raise OpError("required attribute pads is missing")
    return _pad(b, x, b.constant(list(given)), mode, b.constant(value, x), None)


@translates("Pad", since=11)
def pad_11(b: Context, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *, mode: str = "constant") -> Value:
    """Negative pads cut off."""
    return _pad(b, x, b.convert(pads, I64), mode, value, axes)


def _pad(b: Context, x: Value, pads: Value, mode: str, value: Value | None, axes: Value | None) -> Value:
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise OpError(f"mode is {mode!r}, expected constant, edge, reflect or wrap")
    rank = b.rank(x)
    begins, ends = b.emit("Split", pads, b.constant(0), num_splits=2)
    if axes is not None:
        begins, ends = (_by_axis(b, amounts, axes, rank) for amounts in (begins, ends))
    known = [b.ints_if_known(amounts) for amounts in (begins, ends)]
    if all(amounts is not None and len(amounts) != rank for amounts in known):
        raise OpError(f"pads are {known[0]} and {known[1]} for {rank} axes")
    if mode == "wrap" or (mode == "reflect" and _is_far(b, x, known)):
        return _indexed(b, x, begins, ends, mode)
    fill = None
    if mode == "constant":
        fill = b.constant(0, x) if value is None else b.scalar(value)
    lists = [amounts if numbers is None else list(numbers) for amounts, numbers in zip((begins, ends), known, strict=True)]
    return b.emit("Pad", x, *lists, fill, pad_mode=mode)


def _by_axis(b: Context, amounts: Value, axes: Value, rank: int) -> Value:
    """Amounts for some axes as amounts for all axes, 0 for the others; the axes need not be known."""
    wide, one, none = b.convert(axes, I64), b.constant(1), b.constant(0)
    places = b.emit("OneHot", wide, b.constant(rank), one, none, axis=-1, negative_indices_mode="normalize")
    return b.emit("ReduceSum", b.emit("Multiply", places, b.unsqueeze(amounts, [1])), [0], keep_dims=False)


def _is_far(b: Context, x: Value, pads: list[tuple[int, ...] | None]) -> bool:
    """Whether a reflection goes over the data more than once, which IR's Pad does not do."""
    shape = b.shape_if_known(x)
    if shape is None:
        return False
    return any(amounts is not None and any(n >= size for n, size in zip(amounts, shape, strict=True)) for amounts in pads)


def _indexed(b: Context, x: Value, begins: Value, ends: Value, mode: str) -> Value:
    """Padded by taking, along each axis, the places that an endless data would have."""
    for axis in range(b.rank(x)):
        begin, end = (Expression(b, b.emit("Gather", amounts, b.constant(axis), b.constant(0))) for amounts in (begins, ends))
        if b.ints_if_known(begin.value) == b.ints_if_known(end.value) == (0,):
            continue
        size = Expression(b, b.size(x, axis))
        period = size if mode == "wrap" else ((size - 1) * 2).most(1)
        place = counting(b, -begin, size + end, I64).modulo(period)
        if mode == "reflect":
            place = place.least(period - place)
        x = b.emit("Gather", x, place.value, b.constant(axis))
    return x


@translates("DepthToSpace")
def depth_to_space(b: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    _check_mode(mode)
    return b.emit("DepthToSpace", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


@translates("SpaceToDepth")
def space_to_depth(b: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """CRD came in opset 28."""
    _check_mode(mode)
    return b.emit("SpaceToDepth", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


def _check_mode(mode: str) -> None:
    if mode not in ("DCR", "CRD"):
        raise OpError(f"mode is {mode!r}, expected DCR or CRD")


@translates("ReverseSequence", since=10)
def reverse_sequence(b: Context, x: Value, sequence_lens: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Value:
    return b.emit("ReverseSequence", x, sequence_lens, batch_axis=batch_axis, seq_axis=time_axis)
