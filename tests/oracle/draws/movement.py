"""Operations that move data: shapes, concatenation, splitting, slicing, blocks, broadcasting, padding."""

from __future__ import annotations

import numpy as np

from irexec.ops.slicing import slice_8
from irexec.schema.windows import window_count_or_zero
from tests.oracle.draw import MOVED, Draw, Shape, Table, model
from tests.support.cases import Case, Typed

DRAWS = Table()


@DRAWS.row(("Reshape", 1))
def reshape(d: Draw, type: str, since: int) -> Case:
    special = d.chance()
    shape = d.shape(empty=0 if special else 0.02)
    left, target = int(np.prod(shape)), []
    for i in range(d.size(0, 4)):
        copied = shape[i] if special and i < len(shape) and d.chance(0.3) else 0
        if copied and left % copied == 0:
            target.append(0)
            left //= copied
            continue
        target.append(d.pick(*[n for n in range(1, max(left, 1) + 1) if left and left % n == 0] or [1]))
        left //= target[-1]
    if left > 1 or not shape:
        target.append(left)
    places = [i for i, size in enumerate(target) if size]
    if places and d.chance(0.6):
        target[d.pick(*places)] = -1
    return model(type, since, d.tensor(shape, MOVED), d.ints(target), special_zero=special)


@DRAWS.row(("Squeeze", 1), ("Squeeze", 15))
def squeeze(d: Draw, type: str, since: int) -> Case:
    shape = [d.pick(1, 1, 2, 3) for _ in range(d.size(1, 4))]
    rank = len(shape)
    ones = [axis for axis, size in enumerate(shape) if size == 1 or d.chance(0.1)]
    chosen = [d.signed(axis, rank) for axis in d.some(ones)]
    axes = d.pick(None, d.axis(rank), chosen, chosen)
    skip = {"allow_axis_skip": d.pick(None, True, False)} if since == 15 else {}
    return model(type, since, d.tensor(shape, MOVED), None if axes is None else d.ints(axes), **skip)


@DRAWS.row(("Unsqueeze", 1))
def unsqueeze(d: Draw, type: str, since: int) -> Case:
    shape, count = d.shape(0, 3), d.size(1, 2)
    axes = d.axes(len(shape) + count, count, count)
    return model(type, since, d.tensor(shape, MOVED), d.ints(axes[0] if count == 1 and d.chance() else axes))


@DRAWS.row(("ShapeOf", 1), ("ShapeOf", 3))
def shape_of(d: Draw, type: str, since: int) -> Case:
    kind = {"output_type": d.pick("i32", "i64")} if since == 3 else {}
    return model(type, since, d.tensor(d.shape(), MOVED), **kind)


@DRAWS.row(("Transpose", 1))
def transpose(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    return model(type, since, d.tensor(shape, MOVED), d.ints(d.some(range(len(shape)), len(shape)) if d.chance(0.9) else []))


@DRAWS.row(("Identity", 16))
def identity(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(), MOVED))


@DRAWS.row(("Concat", 1))
def concat(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(1), d.pick(*MOVED)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.size(1, 3)):
        part = list(shape)
        part[axis] = d.size(0 if d.chance(0.2) else 1, 3)
        parts.append(d.tensor(part, kind))
    return model(type, since, *parts, axis=axis)


@DRAWS.row(("Split", 1))
def split(d: Draw, type: str, since: int) -> Case:
    shape, count = d.shape(1), d.size(1, 3)
    axis = d.axis(len(shape))
    shape[axis] = count * d.size(1, 3)
    return model(type, since, d.tensor(shape, MOVED), d.ints(axis), num_splits=count)


@DRAWS.row(("VariadicSplit", 1))
def variadic_split(d: Draw, type: str, since: int) -> Case:
    shape, lengths = d.shape(1), d.sizes(d.size(1, 3), 0, 3)
    axis = d.axis(len(shape))
    shape[axis] = sum(lengths)
    if d.chance():
        lengths[d.size(0, len(lengths) - 1)] = -1
    return model(type, since, d.tensor(shape, MOVED), d.ints(axis), d.ints(lengths))


@DRAWS.row(("Reverse", 1))
def reverse(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    if d.chance():
        return model(type, since, d.tensor(shape, MOVED), d.ints(d.some(range(len(shape)))), mode="index")
    return model(type, since, d.tensor(shape, MOVED), d.tensor([len(shape)], "boolean"), mode="mask")


@DRAWS.row(("ReverseSequence", 1))
def reverse_sequence(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(2, 4, 0)
    batch, sequence = d.some(range(len(shape)), 2, 2)
    lengths = d.ints(d.sizes(shape[batch], 1, shape[sequence]))
    return model(
        type, since, d.tensor(shape, MOVED), lengths, batch_axis=d.signed(batch, len(shape)), seq_axis=d.signed(sequence, len(shape))
    )


@DRAWS.row(("Roll", 7))
def roll(d: Draw, type: str, since: int) -> Case:
    shape, count = d.shape(1), d.size(1, 3)
    shift = d.size(-5, 5) if d.chance(0.3) else d.sizes(count, -5, 5)
    return model(type, since, d.tensor(shape, MOVED), d.ints(shift), d.ints([d.axis(len(shape)) for _ in range(count)]))


@DRAWS.row(("ShuffleChannels", 1))
def shuffle_channels(d: Draw, type: str, since: int) -> Case:
    shape, group = d.shape(1), d.size(1, 3)
    axis = d.axis(len(shape))
    shape[axis] = group * d.size(1, 3)
    return model(type, since, d.tensor(shape, MOVED), axis=axis, group=group)


@DRAWS.row(("DepthToSpace", 1), ("SpaceToDepth", 1))
def depth(d: Draw, type: str, since: int) -> Case:
    rank = d.size(1, 3)
    block = d.size(1, 3 if rank == 1 else 2)
    if type == "DepthToSpace":
        shape = [d.size(1, 2), d.size(1, 2) * block**rank, *d.sizes(rank, 1, 3)]
    else:
        shape = [*d.sizes(2, 1, 2), *(block * size for size in d.sizes(rank, 1, 2))]
    return model(type, since, d.tensor(shape, MOVED), mode=d.pick("blocks_first", "depth_first"), block_size=block)


@DRAWS.row(("SpaceToBatch", 2))
def space_to_batch(d: Draw, type: str, since: int) -> Case:
    rank = d.size(2, 4)
    block = [1, *d.sizes(rank - 1, 1, 3)]
    begin = [0, *d.sizes(rank - 1, 0, 2)]
    shape = d.sizes(rank)
    end = [0, *(-(size + pad) % by for size, pad, by in zip(shape[1:], begin[1:], block[1:], strict=True))]
    kind = d.pick(("i64",), ("i32",))
    return model(type, since, d.tensor(shape, MOVED), d.ints(block, kind), d.ints(begin, kind), d.ints(end, kind))


@DRAWS.row(("BatchToSpace", 2))
def batch_to_space(d: Draw, type: str, since: int) -> Case:
    rank = d.size(2, 4)
    block = [1, *d.sizes(rank - 1, 1, 3)]
    shape = [d.size(1, 2) * int(np.prod(block)), *d.sizes(rank - 1, 1, 3)]
    most = [max(0, (size * by - 1) // 2) for size, by in zip(shape[1:], block[1:], strict=True)]
    begin, end = ([0, *(d.size(0, top) for top in most)] for _ in range(2))
    kind = d.pick(("i64",), ("i32",))
    return model(type, since, d.tensor(shape, MOVED), d.ints(block, kind), d.ints(begin, kind), d.ints(end, kind))


@DRAWS.row(("ExtractImagePatches", 3))
def extract_image_patches(d: Draw, type: str, since: int) -> Case:
    data = d.tensor([*d.sizes(2, 1, 2), *d.sizes(2, 4, 6)], MOVED)
    sizes, strides, rates = d.sizes(2, 1, 2), d.sizes(2, 1, 3), d.sizes(2, 1, 2)
    return model(type, since, data, sizes=sizes, strides=strides, rates=rates, auto_pad=d.pick("valid", "same_upper", "same_lower"))


@DRAWS.row(("Col2Im", 15))
def col_to_im(d: Draw, type: str, since: int) -> Case:
    window = d.window(2, stride=2)
    kernel = window.pop("kernel")
    out = [dilation * (size - 1) + 1 + d.size(0, 3) for size, dilation in zip(kernel, window["dilations"], strict=True)]
    pads = window["pads_begin"], window["pads_end"]
    counts = list(map(window_count_or_zero, out, kernel, window["strides"], window["dilations"], *pads))
    shape = [d.size(1, 2) * int(np.prod(kernel)), int(np.prod(counts))]
    kind = d.pick(("i64",), ("i32",))
    return model(type, since, d.tensor([2, *shape] if d.chance(0.7) else shape), d.ints(out, kind), d.ints(kernel, kind), **window)


@DRAWS.row(("Broadcast", 1), ("Broadcast", 3))
def broadcast(d: Draw, type: str, since: int) -> Case:
    target = d.shape(1)
    # OpenVINO takes Broadcast-1 without a mode for explicit, against the specification.
    mode = d.pick("numpy", "explicit", *([None, "bidirectional"] if since == 3 else ["pdpd"]))
    if mode == "explicit":
        axes = sorted(d.some(range(len(target)), 1))
        shape = [target[axis] if d.chance(0.8) else 1 for axis in axes]
        return model(type, since, d.tensor(shape, MOVED), d.ints(target), d.ints(axes), mode=mode)
    if mode == "bidirectional":
        return model(type, since, d.tensor(d.shrunk(target), MOVED), d.ints(d.shrunk(target) or [1]), mode=mode)
    return model(type, since, d.tensor(d.shrunk(target), MOVED), d.ints(target), mode=mode)


@DRAWS.row(("Tile", 1))
def tile(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(0, 3), MOVED), d.ints(d.sizes(d.size(1, 4), 0 if d.chance(0.05) else 1, 3)))


@DRAWS.row(("Pad", 1), ("Pad", 12))
def pad(d: Draw, type: str, since: int) -> Case:
    shape, mode = d.shape(1, 4, 0), d.pick("constant", "edge", "reflect", "symmetric")
    most = {"constant": 3, "edge": 3, "reflect": -1, "symmetric": 0}[mode]
    low = -1 if since == 12 and d.chance() else 0
    begin, end = ([d.size(low, most if most > 0 else size + most) for size in shape] for _ in range(2))
    data = d.tensor(shape, MOVED)
    value = d.tensor([], data.element.name) if d.chance(0.6) else None
    kind = d.pick(("i64",), ("i32",))
    return model(type, since, data, d.ints(begin, kind), d.ints(end, kind), value, pad_mode=mode)


def _sliced(d: Draw, shape: Shape) -> list[Typed]:
    """Start, stop, step and perhaps axes."""
    count = d.size(1, len(shape))
    kind = d.pick(("i64",), ("i32",))
    stop = [d.pick(d.size(-6, 6), d.size(-6, 6), 2**31 - 1, -(2**31)) for _ in range(count)]
    step = [d.pick(1, 1, 1, 2, 3, -1, -2) for _ in range(count)]
    inputs = [d.ints(d.sizes(count, -6, 6), kind), d.ints(stop, kind), d.ints(step, kind)]
    return [*inputs, d.ints(d.axes(len(shape), count, count))] if d.chance(0.7) else inputs


@DRAWS.row(("Slice", 8))
def slice_(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    return model(type, since, d.tensor(shape, MOVED), *_sliced(d, shape))


@DRAWS.row(("SliceScatter", 15))
def slice_scatter(d: Draw, type: str, since: int) -> Case:
    data = d.tensor(d.shape(1), MOVED)
    where = _sliced(d, list(data.array.shape))
    part = slice_8.kernel(data.array, *(x.array for x in where))
    return model(type, since, data, d.tensor(part.shape, data.element.name), *where)


@DRAWS.row(("StridedSlice", 1))
def strided_slice(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    count = d.size(1, len(shape) + 1)
    begin, end = (d.ints(d.sizes(count, -6, 6), ("i64",)) for _ in range(2))
    step = d.ints([d.pick(1, 1, 1, 2, -1, -2) for _ in range(count)], ("i64",)) if d.chance(0.9) else None
    ellipsis = [0] * count
    if d.chance(0.4):
        ellipsis[d.size(0, count - 1)] = 1
    new = [int(not skip and d.chance(0.2)) for skip in ellipsis]
    shrink = [int(not skip and not one and d.chance(0.2)) for skip, one in zip(ellipsis, new, strict=True)]
    masks = {f"{name}_mask": [int(d.chance(0.4)) for _ in range(count)] for name in ("begin", "end")}
    axes = {"new_axis_mask": new, "shrink_axis_mask": shrink, "ellipsis_mask": ellipsis}
    return model(type, since, d.tensor(shape, MOVED), begin, end, step, **masks, **axes)
