"""Inputs, constants, conversions, and layers that change the shape alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from converters.legacy_ir.layer import Layer, computed
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F16, F32, I32, I64
from irexec.errors import check
from irexec.io.xml import named_element
from irexec.ir.dims import HIGHEST_RANK
from irexec.ir.graph import Value
from irexec.schema.attributes import Ints


@translates("Input")
def input(layer: Layer) -> Value:
    """An input of f16 takes f32, as from the engines' callers."""
    return layer.builder.parameter(layer.element() or F32, layer.size(), layer.name)


@translates("Const")
def const(layer: Layer) -> Value:
    """The blob ``custom`` in the type and sizes of the output port.

    Model Optimizer wrote some integers that it declared as I64 in 4 bytes each.
    """
    fact = layer.node.outputs[0].fact if layer.node.outputs else None
    element = None if fact is None else fact.element
    if element is I64 and layer.blob_size("custom") == 4 * math.prod(layer.size()):
        return layer.cast(layer.raw_blob("custom", layer.size(), I32), I64)
    value = layer.raw_blob("custom", layer.size(), element)
    return layer.f32(value) if layer.kind(value) is F16 else value


@translates("Convert")
def convert(layer: Layer, data: Value, *, precision: str = "") -> Value:
    """Floats are truncated towards 0; the type is that of the output port, else ``precision``."""
    element = layer.element() or computed(named_element(precision))
    check(element is not None, f"precision {precision!r} is not an element type")
    return layer.emit("Convert", data, destination_type=element)


Sizes = tuple[int, ...]


@translates("Reshape")
def reshape(layer: Layer, data: Value, pattern: Value | None = None, *, dim: Ints = ()) -> Value:
    """The declared sizes; ``dim``, in which 0 is the size of the input and -1 the rest, where it gives the same."""
    target = dim
    if pattern is not None:
        known = layer.builder.fact(pattern).known
        target = () if known is None else tuple(int(size) for size in known.ravel())
    return _with_pattern(layer, data, target)


@translates("Flatten")
def flatten(layer: Layer, data: Value, *, axis: int = 0, end_axis: int = -1) -> Value:
    """The axes from ``axis`` to ``end_axis`` become one."""
    shape = layer.shape(data)
    first, last = positive(axis, len(shape)), positive(end_axis, len(shape))
    return _with_pattern(layer, data, (*[0] * first, -1, *shape[last + 1 :]))


def _with_pattern(layer: Layer, data: Value, pattern: Sizes) -> Value:
    """The data in the declared sizes: by the pattern, which fits inputs of other sizes too, if it gives them."""
    declared = layer.size()
    if _resolved(pattern, layer.shape(data)) != declared:
        return layer.reshaped(data, declared)
    return layer.emit("Reshape", data, layer.constant(list(pattern), I64), version=1, special_zero=True)


def _resolved(pattern: Sizes, shape: Sizes) -> Sizes | None:
    """The sizes that a pattern gives; None if it gives none."""
    if any(size == 0 and i >= len(shape) for i, size in enumerate(pattern)) or not pattern:
        return None
    sizes = [shape[i] if size == 0 else size for i, size in enumerate(pattern)]
    rest = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or not rest or math.prod(shape) % rest:
        return None
    found = tuple(math.prod(shape) // rest if size == -1 else size for size in sizes)
    return found if math.prod(found) == math.prod(shape) else None


def positive(axis: int, rank: int) -> int:
    """An axis counted from the first; raises OpError if it does not exist."""
    check(-rank <= axis < rank, f"axis {axis} is out of range for rank {rank}")
    return axis % rank


@translates("Permute")
def permute(layer: Layer, data: Value, *, order: Ints) -> Value:
    """The axes in another order."""
    return layer.emit("Transpose", data, layer.constant(list(order), I64), version=1)


@translates("Squeeze")
def squeeze(layer: Layer, data: Value, axes: Value | None = None) -> Value:
    """Without the axes of size 1 that are named, or without all."""
    return layer.emit("Squeeze", data, None if axes is None else layer.i64(axes), version=1)


@translates("Unsqueeze")
def unsqueeze(layer: Layer, data: Value, axes: Value) -> Value:
    """With further axes of size 1."""
    return layer.emit("Unsqueeze", data, layer.i64(axes), version=1)


@translates("Concat")
def concat(layer: Layer, *inputs: Value, axis: int = 1) -> Value:
    """The inputs one after the other."""
    check(len(inputs) > 0, "the layer has no input")
    kinds = {layer.kind(value) for value in inputs}
    values = [layer.f32(value) for value in inputs] if len(kinds) > 1 else inputs
    return layer.emit("Concat", *values, version=1, axis=axis)


@translates("Split", "Slice")
def split(
    layer: Layer, data: Value, sizes: Value | None = None, more: Value | None = None, *, axis: int = 1
) -> tuple[Value, ...]:
    """Parts along an axis, with the declared sizes."""
    shape = layer.shape(data)
    along = positive(axis, len(shape))
    parts = [layer.size(i)[along : along + 1] for i in range(layer.output_count)]
    lengths = [size for part in parts for size in part]
    check(sum(lengths) == shape[along], f"the outputs have {sum(lengths)} along axis {along}, the input {shape[along]}")
    where = layer.constant(along, I64)
    if len(set(lengths)) == 1:
        return layer.outputs("Split", data, where, version=1, num_splits=len(lengths))
    return layer.outputs("VariadicSplit", data, where, layer.constant(lengths, I64), version=1)


@translates("Crop")
def crop(
    layer: Layer, data: Value, reference: Value | None = None, *, axis: Ints, offset: Ints = (), dim: Ints = (),
    crop_begin: Ints = (), crop_end: Ints = (),
) -> Value:  # fmt: skip
    """A part of the input that begins at ``offset`` or ``crop_begin`` and has the declared sizes."""
    shape, declared = layer.shape(data), layer.size()
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    starts = crop_begin or offset
    check(len(starts) == len(axis), f"{len(axis)} axes have {len(starts)} offsets")
    axes = [positive(each, len(shape)) for each in axis]
    begin = [0] * len(shape)
    for each, start in zip(axes, starts, strict=True):
        begin[each] = start
    ends = [first + size for first, size in zip(begin, declared, strict=True)]
    check(
        all(end <= size for end, size in zip(ends, shape, strict=True)),
        f"the part ends at {ends}, the input at {shape}",
    )
    return strided_slice(layer, data, begin, ends)


def strided_slice(layer: Layer, data: Value, begin: Sequence[int], end: Sequence[int]) -> Value:
    """The part of the data between two positions, one for each of the first axes."""
    limits = [layer.constant(list(each), I64) for each in (begin, end)]
    mask = (0,) * len(begin)
    return layer.emit("StridedSlice", data, *limits, version=1, begin_mask=mask, end_mask=mask)


@translates("StridedSlice")
def strided_slice_layer(
    layer: Layer, data: Value, begin: Value, end: Value, strides: Value | None = None, *, begin_mask: Ints = (),
    end_mask: Ints = (), new_axis_mask: Ints = (), shrink_axis_mask: Ints = (), ellipsis_mask: Ints = (),
) -> Value:  # fmt: skip
    """StridedSlice of version 11 with inverted masks of begin and end: 1 means that the number counts."""
    count = layer.shape(begin)[0]
    check(count <= HIGHEST_RANK, f"the begin has {count} numbers, at most {HIGHEST_RANK} axes are possible")
    masks = {
        "begin_mask": _ignored(begin_mask, count), "end_mask": _ignored(end_mask, count),
        "new_axis_mask": new_axis_mask, "shrink_axis_mask": shrink_axis_mask, "ellipsis_mask": ellipsis_mask,
    }  # fmt: skip
    limits = [layer.i64(begin), layer.i64(end)]
    step = None if strides is None else layer.i64(strides)
    if len({layer.kind(value) for value in (*limits, *([] if step is None else [step]))}) > 1:
        limits = [layer.cast(value, I64) for value in limits]
        step = None if step is None else layer.cast(step, I64)
    return layer.emit("StridedSlice", data, *limits, step, version=1, **masks)


def _ignored(used: Ints, count: int) -> Ints:
    """1 for each number that does not count; numbers without an entry do."""
    return tuple(0 if i >= len(used) or used[i] else 1 for i in range(count))


@translates("Tile")
def tile(layer: Layer, data: Value, *, axis: int, tiles: int) -> Value:
    """The input repeated along an axis."""
    repeats = [1] * layer.rank(data)
    repeats[positive(axis, len(repeats))] = tiles
    return layer.emit("Tile", data, layer.constant(repeats, I64), version=1)


@translates("Pad")
def pad(
    layer: Layer, data: Value, *, pads_begin: Ints, pads_end: Ints, pad_mode: str = "constant", pad_value: float = 0.0
) -> Value:
    """The input with a border."""
    widths = [layer.constant(list(each), I64) for each in (pads_begin, pads_end)]
    value = (
        layer.constant(np.asarray(pad_value, layer.kind(data).carrier), layer.kind(data))
        if pad_mode == "constant"
        else None
    )
    return layer.emit("Pad", data, *widths, value, version=1, pad_mode=pad_mode)


@translates("Broadcast")
def broadcast(layer: Layer, data: Value, shape: Value) -> Value:
    """The input repeated to the declared sizes, by NumPy's rules."""
    return layer.emit("Broadcast", data, layer.constant(list(layer.size()), I64), version=3, mode="numpy")


@translates("Fill")
def fill(layer: Layer, shape: Value, value: Value) -> Value:
    """One value in the declared sizes."""
    return layer.emit("Broadcast", value, layer.constant(list(layer.size()), I64), version=3, mode="numpy")


@translates("Shape", "ShapeOf")
def shape_of(layer: Layer, data: Value) -> Value:
    """The sizes of the input."""
    return layer.emit("ShapeOf", data, version=3, output_type=I32)


@translates("ShuffleChannels")
def shuffle_channels(layer: Layer, data: Value, *, axis: int = 1, group: int = 1) -> Value:
    """The groups of an axis interleaved."""
    return layer.emit("ShuffleChannels", data, version=1, axis=axis, group=group)


@translates("DepthToSpace")
def depth_to_space(layer: Layer, data: Value, *, block_size: int, mode: str = "blocks_first") -> Value:
    """Channels become blocks of pixels."""
    return layer.emit("DepthToSpace", data, version=1, mode=mode, block_size=block_size)


@translates("SpaceToDepth")
def space_to_depth(layer: Layer, data: Value, *, block_size: int, mode: str = "blocks_first") -> Value:
    """Blocks of pixels become channels."""
    return layer.emit("SpaceToDepth", data, version=1, mode=mode, block_size=block_size)


@translates("ReverseSequence")
def reverse_sequence(layer: Layer, data: Value, lengths: Value, *, batch_axis: int = 0, seq_axis: int = 1) -> Value:
    """The first elements along ``seq_axis`` reversed, as many as ``lengths`` has for each of ``batch_axis``."""
    return layer.emit("ReverseSequence", data, layer.i64(lengths), version=1, batch_axis=batch_axis, seq_axis=seq_axis)
