"""Operations that move data: shapes, concatenation, splitting, slicing, blocks, broadcasting, padding."""

from __future__ import annotations

import numpy as np

from irexec.ops.slicing import slice_8
from irexec.schema.windows import window_count_or_zero
from irexec.testing import Case, Typed
from irexec.testing.random_cases import MOVED, CaseGenerator, Shape, Table

RANDOM_CASES = Table()


@RANDOM_CASES.row(("Reshape", 1))
def reshape(gen: CaseGenerator) -> Case:
    special = gen.chance()
    shape = gen.shape(empty=0 if special else 0.02)
    left, target = int(np.prod(shape)), []
    for i in range(gen.size(0, 4)):
        copied = shape[i] if special and i < len(shape) and gen.chance(0.3) else 0
        if copied and left % copied == 0:
            target.append(0)
            left //= copied
            continue
        target.append(gen.pick(*[n for n in range(1, max(left, 1) + 1) if left and left % n == 0] or [1]))
        left //= target[-1]
    if left > 1 or not shape:
        target.append(left)
    positions = [i for i, size in enumerate(target) if size]
    if positions and gen.chance(0.6):
        target[gen.pick(*positions)] = -1
    return gen.model(gen.tensor(shape, MOVED), gen.ints(target), special_zero=special)


@RANDOM_CASES.row(("Squeeze", 1), ("Squeeze", 15))
def squeeze(gen: CaseGenerator) -> Case:
    shape = [gen.pick(1, 1, 2, 3) for _ in range(gen.size(1, 4))]
    rank = len(shape)
    ones = [axis for axis, size in enumerate(shape) if size == 1 or gen.chance(0.1)]
    chosen = [gen.signed(axis, rank) for axis in gen.some(ones)]
    axes = gen.pick(None, gen.axis(rank), chosen, chosen)
    skip = {"allow_axis_skip": gen.pick(None, True, False)} if gen.since == 15 else {}
    return gen.model(gen.tensor(shape, MOVED), None if axes is None else gen.ints(axes), **skip)


@RANDOM_CASES.row(("Unsqueeze", 1))
def unsqueeze(gen: CaseGenerator) -> Case:
    shape, count = gen.shape(0, 3), gen.size(1, 2)
    axes = gen.axes(len(shape) + count, count, count)
    return gen.model(gen.tensor(shape, MOVED), gen.ints(axes[0] if count == 1 and gen.chance() else axes))


@RANDOM_CASES.row(("ShapeOf", 1), ("ShapeOf", 3))
def shape_of(gen: CaseGenerator) -> Case:
    kind = {"output_type": gen.pick("i32", "i64")} if gen.since == 3 else {}
    return gen.model(gen.tensor(gen.shape(), MOVED), **kind)


@RANDOM_CASES.row(("Transpose", 1))
def transpose(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    return gen.model(
        gen.tensor(shape, MOVED), gen.ints(gen.some(range(len(shape)), len(shape)) if gen.chance(0.9) else [])
    )


@RANDOM_CASES.row(("Identity", 16))
def identity(gen: CaseGenerator) -> Case:
    return gen.model(gen.tensor(gen.shape(), MOVED))


@RANDOM_CASES.row(("Concat", 1))
def concat(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(1), gen.pick(*MOVED)
    axis = gen.axis(len(shape))
    parts = []
    for _ in range(gen.size(1, 3)):
        part = list(shape)
        part[axis] = gen.size(0 if gen.chance(0.2) else 1, 3)
        parts.append(gen.tensor(part, kind))
    return gen.model(*parts, axis=axis)


@RANDOM_CASES.row(("Split", 1))
def split(gen: CaseGenerator) -> Case:
    shape, count = gen.shape(1), gen.size(1, 3)
    axis = gen.axis(len(shape))
    shape[axis] = count * gen.size(1, 3)
    return gen.model(gen.tensor(shape, MOVED), gen.ints(axis), num_splits=count)


@RANDOM_CASES.row(("VariadicSplit", 1))
def variadic_split(gen: CaseGenerator) -> Case:
    shape, lengths = gen.shape(1), gen.sizes(gen.size(1, 3), 0, 3)
    axis = gen.axis(len(shape))
    shape[axis] = sum(lengths)
    if gen.chance():
        lengths[gen.size(0, len(lengths) - 1)] = -1
    return gen.model(gen.tensor(shape, MOVED), gen.ints(axis), gen.ints(lengths))


@RANDOM_CASES.row(("Reverse", 1))
def reverse(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    if gen.chance():
        return gen.model(gen.tensor(shape, MOVED), gen.ints(gen.some(range(len(shape)))), mode="index")
    return gen.model(gen.tensor(shape, MOVED), gen.tensor([len(shape)], "boolean"), mode="mask")


@RANDOM_CASES.row(("ReverseSequence", 1))
def reverse_sequence(gen: CaseGenerator) -> Case:
    shape = gen.shape(2, 4, 0)
    batch, sequence = gen.some(range(len(shape)), 2, 2)
    lengths = gen.ints(gen.sizes(shape[batch], 1, shape[sequence]))
    return gen.model(
        gen.tensor(shape, MOVED),
        lengths,
        batch_axis=gen.signed(batch, len(shape)),
        seq_axis=gen.signed(sequence, len(shape)),
    )


@RANDOM_CASES.row(("Roll", 7))
def roll(gen: CaseGenerator) -> Case:
    shape, count = gen.shape(1), gen.size(1, 3)
    shift = gen.size(-5, 5) if gen.chance(0.3) else gen.sizes(count, -5, 5)
    return gen.model(gen.tensor(shape, MOVED), gen.ints(shift), gen.ints([gen.axis(len(shape)) for _ in range(count)]))


@RANDOM_CASES.row(("ShuffleChannels", 1))
def shuffle_channels(gen: CaseGenerator) -> Case:
    shape, group = gen.shape(1), gen.size(1, 3)
    axis = gen.axis(len(shape))
    shape[axis] = group * gen.size(1, 3)
    return gen.model(gen.tensor(shape, MOVED), axis=axis, group=group)


@RANDOM_CASES.row(("DepthToSpace", 1), ("SpaceToDepth", 1))
def depth(gen: CaseGenerator) -> Case:
    rank = gen.size(1, 3)
    block = gen.size(1, 3 if rank == 1 else 2)
    if gen.type == "DepthToSpace":
        shape = [gen.size(1, 2), gen.size(1, 2) * block**rank, *gen.sizes(rank, 1, 3)]
    else:
        shape = [*gen.sizes(2, 1, 2), *(block * size for size in gen.sizes(rank, 1, 2))]
    return gen.model(gen.tensor(shape, MOVED), mode=gen.pick("blocks_first", "depth_first"), block_size=block)


@RANDOM_CASES.row(("SpaceToBatch", 2))
def space_to_batch(gen: CaseGenerator) -> Case:
    rank = gen.size(2, 4)
    block = [1, *gen.sizes(rank - 1, 1, 3)]
    begin = [0, *gen.sizes(rank - 1, 0, 2)]
    shape = gen.sizes(rank)
    end = [0, *(-(size + pad) % by for size, pad, by in zip(shape[1:], begin[1:], block[1:], strict=True))]
    kind = gen.pick(("i64",), ("i32",))
    return gen.model(gen.tensor(shape, MOVED), gen.ints(block, kind), gen.ints(begin, kind), gen.ints(end, kind))


@RANDOM_CASES.row(("BatchToSpace", 2))
def batch_to_space(gen: CaseGenerator) -> Case:
    rank = gen.size(2, 4)
    block = [1, *gen.sizes(rank - 1, 1, 3)]
    shape = [gen.size(1, 2) * int(np.prod(block)), *gen.sizes(rank - 1, 1, 3)]
    maximum = [max(0, (size * by - 1) // 2) for size, by in zip(shape[1:], block[1:], strict=True)]
    begin, end = ([0, *(gen.size(0, top) for top in maximum)] for _ in range(2))
    kind = gen.pick(("i64",), ("i32",))
    return gen.model(gen.tensor(shape, MOVED), gen.ints(block, kind), gen.ints(begin, kind), gen.ints(end, kind))


@RANDOM_CASES.row(("ExtractImagePatches", 3))
def extract_image_patches(gen: CaseGenerator) -> Case:
    data = gen.tensor([*gen.sizes(2, 1, 2), *gen.sizes(2, 4, 6)], MOVED)
    sizes, strides, rates = gen.sizes(2, 1, 2), gen.sizes(2, 1, 3), gen.sizes(2, 1, 2)
    return gen.model(
        data, sizes=sizes, strides=strides, rates=rates, auto_pad=gen.pick("valid", "same_upper", "same_lower")
    )


@RANDOM_CASES.row(("Col2Im", 15))
def col_to_im(gen: CaseGenerator) -> Case:
    window = gen.window(2, stride=2)
    kernel = window.pop("kernel")
    out = [
        dilation * (size - 1) + 1 + gen.size(0, 3) for size, dilation in zip(kernel, window["dilations"], strict=True)
    ]
    pads = window["pads_begin"], window["pads_end"]
    counts = list(map(window_count_or_zero, out, kernel, window["strides"], window["dilations"], *pads))
    shape = [gen.size(1, 2) * int(np.prod(kernel)), int(np.prod(np.array(counts)))]
    kind = gen.pick(("i64",), ("i32",))
    return gen.model(
        gen.tensor([2, *shape] if gen.chance(0.7) else shape), gen.ints(out, kind), gen.ints(kernel, kind), **window
    )


@RANDOM_CASES.row(("Broadcast", 1), ("Broadcast", 3))
def broadcast(gen: CaseGenerator) -> Case:
    target = gen.shape(1)
    # OpenVINO takes Broadcast-1 without a mode for explicit, against the specification.
    mode = gen.pick("numpy", "explicit", *([None, "bidirectional"] if gen.since == 3 else ["pdpd"]))
    if mode == "explicit":
        axes = sorted(gen.some(range(len(target)), 1))
        shape = [target[axis] if gen.chance(0.8) else 1 for axis in axes]
        return gen.model(gen.tensor(shape, MOVED), gen.ints(target), gen.ints(axes), mode=mode)
    if mode == "bidirectional":
        return gen.model(gen.tensor(gen.shrunk(target), MOVED), gen.ints(gen.shrunk(target) or [1]), mode=mode)
    if mode == "pdpd":
        axis = gen.pdpd_axis(target)
        data = gen.tensor(gen.aligned(target, axis), MOVED)
        return gen.model(data, gen.ints(target), mode=mode, **{"mode.auto_broadcast_axis": axis})
    return gen.model(gen.tensor(gen.shrunk(target), MOVED), gen.ints(target), mode=mode)


@RANDOM_CASES.row(("Tile", 1))
def tile(gen: CaseGenerator) -> Case:
    return gen.model(
        gen.tensor(gen.shape(0, 3), MOVED), gen.ints(gen.sizes(gen.size(1, 4), 0 if gen.chance(0.05) else 1, 3))
    )


@RANDOM_CASES.row(("Pad", 1), ("Pad", 12))
def pad(gen: CaseGenerator) -> Case:
    shape, mode = gen.shape(1, 4, 0), gen.pick("constant", "edge", "reflect", "symmetric")
    maximum = {"constant": 3, "edge": 3, "reflect": -1, "symmetric": 0}[mode]
    low = -1 if gen.since == 12 and gen.chance() else 0
    begin, end = ([gen.size(low, maximum if maximum > 0 else size + maximum) for size in shape] for _ in range(2))
    data = gen.tensor(shape, MOVED)
    value = gen.tensor([], data.element.name) if gen.chance(0.6) else None
    kind = gen.pick(("i64",), ("i32",))
    return gen.model(data, gen.ints(begin, kind), gen.ints(end, kind), value, pad_mode=mode)


def _sliced(gen: CaseGenerator, shape: Shape) -> list[Typed]:
    """Start, stop, step and perhaps axes."""
    count = gen.size(1, len(shape))
    kind = gen.pick(("i64",), ("i32",))
    stop = [gen.pick(gen.size(-6, 6), gen.size(-6, 6), 2**31 - 1, -(2**31)) for _ in range(count)]
    step = [gen.pick(1, 1, 1, 2, 3, -1, -2) for _ in range(count)]
    inputs = [gen.ints(gen.sizes(count, -6, 6), kind), gen.ints(stop, kind), gen.ints(step, kind)]
    return [*inputs, gen.ints(gen.axes(len(shape), count, count))] if gen.chance(0.7) else inputs


@RANDOM_CASES.row(("Slice", 8))
def slice_(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    return gen.model(gen.tensor(shape, MOVED), *_sliced(gen, shape))


@RANDOM_CASES.row(("SliceScatter", 15))
def slice_scatter(gen: CaseGenerator) -> Case:
    data = gen.tensor(gen.shape(1), MOVED)
    where = _sliced(gen, list(data.array.shape))
    part = slice_8.kernel(data.array, *(x.array for x in where))
    return gen.model(data, gen.tensor(part.shape, data.element.name), *where)


@RANDOM_CASES.row(("StridedSlice", 1))
def strided_slice(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    count = gen.size(1, len(shape) + 1)
    begin, end = (gen.ints(gen.sizes(count, -6, 6), ("i64",)) for _ in range(2))
    step = gen.ints([gen.pick(1, 1, 1, 2, -1, -2) for _ in range(count)], ("i64",)) if gen.chance(0.9) else None
    ellipsis = [0] * count
    if gen.chance(0.4):
        ellipsis[gen.size(0, count - 1)] = 1
    new = [int(not skip and gen.chance(0.2)) for skip in ellipsis]
    shrink = [int(not skip and not one and gen.chance(0.2)) for skip, one in zip(ellipsis, new, strict=True)]
    masks = {f"{name}_mask": [int(gen.chance(0.4)) for _ in range(count)] for name in ("begin", "end")}
    axes = {"new_axis_mask": new, "shrink_axis_mask": shrink, "ellipsis_mask": ellipsis}
    return gen.model(gen.tensor(shape, MOVED), begin, end, step, **masks, **axes)
