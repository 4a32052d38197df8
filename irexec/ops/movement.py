"""Numbers moved about: transposed, joined, split, rearranged in blocks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Shape, Size, at_least, exact_quotient, high, low, may_equal, meet, shape_text
from irexec.ir.facts import Fact
from irexec.schema.attributes import Positive
from irexec.schema.axes import normalize_axes, normalize_axis
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar, check_vector
from irexec.schema.sizes import open_shape, vector_length


@op("Transpose", since=1, symbolic=True, view=True)
def transpose_1(data: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The axes in another order; reversed if ``order`` is empty. Source: Transpose-1."""
    axes = [int(axis) for axis in order.ravel().tolist()]
    return data.transpose(axes) if axes else data.transpose()


@transpose_1.shape_rule
def _transpose_1_facts(data: Fact, order: Fact) -> Fact:
    check_vector(order, "order")
    check_integers(order, "order")
    if data.shape is None:
        return Fact(data.element, open_shape(vector_length(order) or None))
    rank = len(data.shape)
    axes = order.ints()
    if axes is None:
        given = order.shape[0] if order.shape else ANY
        check(may_equal(given, 0) or may_equal(given, rank), f"order has {given} numbers for data {data}")
        return Fact(data.element, (ANY,) * rank)
    axes = axes or tuple(reversed(range(rank)))
    check(sorted(axes) == list(range(rank)), f"order {list(axes)} is no order of the axes of {data}")
    return Fact(data.element, tuple(data.shape[axis] for axis in axes))


@op("Concat", since=1, symbolic=True)
def concat_1(*inputs: np.ndarray, axis: int) -> np.ndarray:
    """The tensors one after the other along ``axis``. Source: Concat-1."""
    return np.concatenate(inputs, axis)


@concat_1.shape_rule
def _concat_1_facts(*inputs: Fact, axis: int) -> Fact:
    check(len(inputs) > 0, "has no inputs")
    kind = unify_elements(*inputs)
    shapes = [fact.shape for fact in inputs if fact.shape is not None]
    if not shapes:
        return Fact(kind, None)
    rank = len(shapes[0])
    check(rank > 0, "scalars cannot be concatenated")
    place = normalize_axis(axis, rank)
    for shape in shapes:
        check(len(shape) == rank, f"shapes {shape_text(shapes[0])} and {shape_text(shape)} have different ranks")
    sizes: list[Size] = []
    for i in range(rank):
        column = [ANY if fact.shape is None else fact.shape[i] for fact in inputs]
        sizes.append(_sum(column) if i == place else _all_same(column, shapes))
    return Fact(kind, tuple(sizes))


def _sum(sizes: list[Size]) -> Size:
    total: Size = 0
    for size in sizes:
        total = total + size
    return total


def _all_same(sizes: list[Size], shapes: list[Shape]) -> Size:
    result = sizes[0]
    for size in sizes[1:]:
        result = meet(result, size)
    return result


@op("Split", since=1, symbolic=True, view=True)
def split_1(data: np.ndarray, axis: np.ndarray, *, num_splits: Positive) -> tuple[np.ndarray, ...]:
    """``num_splits`` equal parts along ``axis``. Source: Split-1."""
    return tuple(np.split(data, num_splits, int(axis.reshape(-1)[0])))


@split_1.shape_rule
def _split_1_facts(data: Fact, axis: Fact, *, num_splits: int) -> tuple[Fact, ...]:
    check_scalar(axis, "axis")
    check_integers(axis, "axis")
    check(num_splits < 1 << 16, f"num_splits {num_splits} is more than a layer can have outputs")
    place = axis.scalar("axis")
    if data.shape is None:
        return (Fact(data.element, None),) * num_splits
    check(len(data.shape) > 0, "a scalar cannot be split")
    if place is None:
        return (Fact(data.element, (ANY,) * len(data.shape)),) * num_splits
    place = normalize_axis(place, len(data.shape))
    size = data.shape[place]
    text = f"axis {place} of {data} cannot be split into {num_splits} equal parts"
    part = _divided(size, num_splits, text)
    return (Fact(data.element, (*data.shape[:place], part, *data.shape[place + 1 :])),) * num_splits


def _divided(size: Size, by: int, text: str) -> Size:
    """The exact quotient; OpError with the text if there is none."""
    try:
        return exact_quotient(size, by)
    except OpError:
        raise OpError(text) from None


@op("VariadicSplit", since=1, symbolic=True, view=True)
def variadic_split_1(data: np.ndarray, axis: np.ndarray, split_lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    """Parts of the given lengths along ``axis``; -1 is what is left. Source: VariadicSplit-1."""
    place = int(axis.reshape(-1)[0])
    lengths = [int(length) for length in split_lengths.ravel().tolist()]
    rest = data.shape[place] - sum(length for length in lengths if length != -1)
    ends = np.cumsum([rest if length == -1 else length for length in lengths])
    return tuple(np.split(data, ends[:-1], place))


@variadic_split_1.shape_rule
def _variadic_split_1_facts(data: Fact, axis: Fact, split_lengths: Fact) -> tuple[Fact, ...]:
    check_vector(split_lengths, "split_lengths")
    check_integers(split_lengths, "split_lengths")
    check_scalar(axis, "axis")
    check_integers(axis, "axis")
    place, lengths = axis.scalar("axis"), split_lengths.sizes()
    count = len(lengths) if lengths is not None else split_lengths.shape[0] if split_lengths.shape else None
    check(isinstance(count, int) and count < 1 << 16, "how many parts there are is not known")
    parts = lengths if lengths is not None else (ANY,) * int(count or 0)
    if data.shape is None:
        return (Fact(data.element, None),) * len(parts)
    if place is None:
        return (Fact(data.element, (ANY,) * len(data.shape)),) * len(parts)
    place = normalize_axis(place, len(data.shape))
    sizes = _part_sizes(data.shape[place], parts, f"axis {place} of {data}")
    return tuple(Fact(data.element, (*data.shape[:place], size, *data.shape[place + 1 :])) for size in sizes)


def _part_sizes(size: Size, parts: tuple[Size, ...], what: str) -> list[Size]:
    text = f"{what} cannot be split into parts of {', '.join(map(str, parts))}"
    check(sum(part == -1 for part in parts) <= 1 and all(part >= -1 for part in parts if isinstance(part, int)), text)
    given = _sum([part for part in parts if part != -1])
    rest: Size = ANY
    if isinstance(given, int) and isinstance(size, int):
        check(given <= size if -1 in parts else given == size, text)
        rest = size - given
    elif isinstance(given, int) and not isinstance(size, int):
        left = size - given
        rest = at_least(left, 0)
    # A length below 0 that is not known may be the rest itself.
    return [rest if part == -1 else part if low(part) >= 0 else ANY for part in parts]


DepthMode = Literal["blocks_first", "depth_first"]


@op("DepthToSpace", since=1, view=True)
def depth_to_space_1(data: np.ndarray, *, mode: DepthMode, block_size: Positive = 1) -> np.ndarray:
    """Blocks of channels laid out as blocks of pixels, over any number of spatial axes.

    Source: DepthToSpace-1.
    """
    n, c, *spatial = data.shape
    k = len(spatial)
    blocks = (block_size,) * k
    depth = c // block_size**k
    if mode == "blocks_first":
        split = data.reshape(n, *blocks, depth, *spatial)
        order = [0, k + 1] + [axis for i in range(k) for axis in (k + 2 + i, 1 + i)]
    else:
        split = data.reshape(n, depth, *blocks, *spatial)
        order = [0, 1] + [axis for i in range(k) for axis in (k + 2 + i, 2 + i)]
    return split.transpose(order).reshape(n, depth, *(size * block_size for size in spatial))


@depth_to_space_1.shape_rule
def _depth_to_space_1_facts(data: Fact, *, mode: str, block_size: int = 1) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 3, f"data {data} has no spatial axes")
    n, c, *spatial = data.shape
    block = block_size ** len(spatial)
    depth = _divided(c, block, f"{c} channels cannot be split into blocks of {block}")
    return Fact(data.element, (n, depth, *(size * block_size for size in spatial)))


@op("SpaceToDepth", since=1, view=True)
def space_to_depth_1(data: np.ndarray, *, mode: DepthMode, block_size: Positive = 1) -> np.ndarray:
    """Blocks of pixels laid out as channels, over any number of spatial axes. Source: SpaceToDepth-1."""
    n, c, *spatial = data.shape
    k = len(spatial)
    split = data.reshape(n, c, *(part for size in spatial for part in (size // block_size, block_size)))
    outer, inner = [2 + 2 * i for i in range(k)], [3 + 2 * i for i in range(k)]
    order = [0, *inner, 1, *outer] if mode == "blocks_first" else [0, 1, *inner, *outer]
    return split.transpose(order).reshape(n, c * block_size**k, *(size // block_size for size in spatial))


@space_to_depth_1.shape_rule
def _space_to_depth_1_facts(data: Fact, *, mode: str, block_size: int = 1) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 3, f"data {data} has no spatial axes")
    n, c, *spatial = data.shape
    parts = [_divided(size, block_size, f"spatial size {size} is no multiple of block_size {block_size}") for size in spatial]
    return Fact(data.element, (n, c * block_size ** len(spatial), *parts))


@op("ShuffleChannels", since=1, view=True)
def shuffle_channels_1(data: np.ndarray, *, axis: int = 1, group: Positive = 1) -> np.ndarray:
    """The axis seen as (group, size / group), transposed. Source: ShuffleChannels-1."""
    place = normalize_axis(axis, data.ndim)
    size = data.shape[place]
    split = data.reshape(*data.shape[:place], group, size // group, *data.shape[place + 1 :])
    return np.swapaxes(split, place, place + 1).reshape(data.shape)


@shuffle_channels_1.shape_rule
def _shuffle_channels_1_facts(data: Fact, *, axis: int = 1, group: int = 1) -> Fact:
    if data.shape is not None:
        size = data.shape[normalize_axis(axis, len(data.shape))]
        _divided(size, group, f"axis {axis} of {data} cannot be split into {group} groups")
    return Fact(data.element, data.shape)


@op("Reverse", since=1, symbolic=True, view=True)
def reverse_1(data: np.ndarray, axes: np.ndarray, *, mode: Literal["index", "mask"]) -> np.ndarray:
    """The named axes the other way round, once each; ``mask`` has one boolean for each axis. Source: Reverse-1."""
    numbers = axes.ravel().tolist()
    chosen = [i for i, on in enumerate(numbers) if on] if mode == "mask" else normalize_axes((int(axis) for axis in numbers), data.ndim)
    return np.flip(data, tuple(set(chosen)))


@reverse_1.shape_rule
def _reverse_1_facts(data: Fact, axes: Fact, *, mode: str) -> Fact:
    known = axes.ints()
    if data.shape is not None and known is not None:
        if mode == "mask":
            check(len(known) == len(data.shape), f"the mask has {len(known)} entries for data {data}")
        else:
            for axis in known:
                normalize_axis(axis, len(data.shape))
    return Fact(data.element, data.shape)


@op("ReverseSequence", since=1)
def reverse_sequence_1(data: np.ndarray, seq_lengths: np.ndarray, *, batch_axis: int = 0, seq_axis: int = 1) -> np.ndarray:
    """For each place along ``batch_axis`` the first numbers along ``seq_axis``, as many as its length says, the other way round.

    Source: ReverseSequence-1.
    """
    batch, along = normalize_axis(batch_axis, data.ndim), normalize_axis(seq_axis, data.ndim)
    grids = np.ogrid[tuple(slice(size) for size in data.shape)]
    lengths = seq_lengths.astype(np.int64).reshape([-1 if i == batch else 1 for i in range(data.ndim)])
    place = grids[along]
    index = tuple(np.where(place < lengths, lengths - 1 - place, place) if i == along else grid for i, grid in enumerate(grids))
    return data[index]


@reverse_sequence_1.shape_rule
def _reverse_sequence_1_facts(data: Fact, seq_lengths: Fact, *, batch_axis: int = 0, seq_axis: int = 1) -> Fact:
    check_vector(seq_lengths, "seq_lengths")
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 2, f"data {data} has fewer than 2 axes")
    batch, along = (normalize_axis(axis, len(data.shape), what) for axis, what in ((batch_axis, "batch_axis"), (seq_axis, "seq_axis")))
    longest, lengths = high(data.shape[along]), seq_lengths.ints()
    if lengths and longest is not None:
        check(max(lengths) <= longest, f"a length of {max(lengths)} is beyond axis {along} of {data}")
    shape = list(data.shape)
    if seq_lengths.shape:
        shape[batch] = meet(shape[batch], seq_lengths.shape[0])
    return Fact(data.element, tuple(shape))


@op("Identity", since=16, symbolic=True, view=True)
def identity_16(data: np.ndarray) -> np.ndarray:
    """``data`` itself. Source: Identity-16."""
    return data


@identity_16.shape_rule
def _identity_16_facts(data: Fact) -> Fact:
    return Fact(data.element, data.shape)


@op("Roll", since=7)
def roll_7(data: np.ndarray, shift: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Turned along the axes; what leaves at the end comes back at the start. Source: Roll-7."""
    places = [int(axis) for axis in axes.ravel().tolist()]
    steps = [int(step) for step in shift.ravel().tolist()]
    steps = steps * len(places) if len(steps) == 1 else steps
    return np.roll(data, steps, places)


@roll_7.shape_rule
def _roll_7_facts(data: Fact, shift: Fact, axes: Fact) -> Fact:
    for what, fact in (("shift", shift), ("axes", axes)):
        check(fact.shape is None or len(fact.shape) <= 1, f"{what} has rank {len(fact.shape or ())}, expected a scalar or one axis")
    places, steps = axes.ints(), shift.shape
    if data.shape is not None and places is not None:
        for axis in places:
            normalize_axis(axis, len(data.shape))
        if steps and isinstance(steps[0], int):
            check(steps[0] in (1, len(places)), f"shift has {steps[0]} numbers for {len(places)} axes")
    return Fact(data.element, data.shape)
