"""Parts of shape rules, and of kernels that follow them: broadcasting, moved axes, sizes of slices.

It registers no operation. Sizes may be as large as a file can write (10**30): no size is allocated or iterated over.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, PartialShape, Size, at_least, high, join, low, may_equal, meet, shape_text, span

if TYPE_CHECKING:
    import numpy as np

    from irexec.dtypes.elements import Element
    from irexec.ir.facts import Fact


def unify_elements(*facts: Fact | None) -> Element | None:
    """The element type that inputs share, of which some may be absent; None if it is not known of any of them.

    Raises:
        OpError: two of them differ.
    """
    found: Element | None = None
    for fact in facts:
        if fact is None or fact.element is None:
            continue
        check(found is None or fact.element is found, f"element types {found} and {fact.element} differ")
        found = fact.element
    return found


# NumPy arrays have at most 64 axes; longer lists of axes are not expanded.
MAX_AXES = 64


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; OpError if it is out of range."""
    check(-rank <= axis < rank, f"{what} {axis} is out of range for data of rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(axes: Iterable[int], rank: int, what: str = "axis", *, scalar: bool = False) -> tuple[int, ...]:
    """The axes counted from the front, in the order given; OpError if one is out of range.

    With ``scalar``, axes 0 and -1 are allowed for data of rank 0, and the result is empty.
    """
    if scalar and rank == 0:
        normalize_axes(axes, 1, what)
        return ()
    return tuple(normalize_axis(axis, rank, what) for axis in axes)


def sizes_of(fact: Fact, rank: int, what: str) -> tuple[Size, ...]:
    """The sizes of a tensor of that rank, all unknown where its shape is; OpError for another rank."""
    check(fact.rank in (None, rank), f"{what} has rank {fact.rank}, expected {rank}")
    return (ANY,) * rank if fact.shape is None else fact.shape


def unify_sizes(what: str, *sizes: Size) -> Size:
    """Knowledge of a size that several inputs share; ``what`` names it in the OpError."""
    result, *others = sizes
    for size in others:
        check(may_equal(result, size), f"{what} differs between inputs: {result} and {size}")
        result = meet(result, size)
    return result


def labelled_sizes(labels: str, **facts: Fact) -> dict[str, Size]:
    """Knowledge of the sizes of tensors by their labels.

    Args:
        labels: of the axes of each tensor, as in "NLK NLV" for two tensors of rank 3 that share their first two sizes.
        facts: the tensors, by name.

    Raises:
        OpError: a tensor has another rank, or a size differs from that of its label in a tensor before.
    """
    known: dict[str, Size] = {}
    for axes, (name, fact) in zip(labels.split(), facts.items(), strict=True):
        expected = tuple(known.get(label, ANY) for label in axes)
        for label, size, other in zip(axes, sizes_of(fact, len(axes), name), expected, strict=True):
            text = f"{name} has shape {shape_text(fact.shape)}, expected {shape_text(expected)}"
            check(may_equal(size, other), text)
            known[label] = meet(size, other)
    return known


def non_negative(size: Size, what: str) -> Size:
    """The value of an input as a size, 0 or more; OpError if it cannot be one."""
    top = high(size)
    check(top is None or top >= 0, f"{what} is {size}, expected 0 or more")
    return at_least(size, 0)


def scalar_size(fact: Fact, what: str) -> Size:
    """The size that an integer scalar holds; OpError if it is negative. ``what`` names the input."""
    given = fact.sizes(what)
    check(given is None or len(given) == 1, f"{what} has {0 if given is None else len(given)} elements, expected 1")
    return ANY if given is None else non_negative(given[0], what)


def vector_length(fact: Fact) -> int | None:
    """The number of elements of a scalar or vector; None if it is not known, or more than an array can have axes."""
    if fact.shape is None or len(fact.shape) > 1:
        return None
    count = fact.shape[0] if fact.shape else 1
    return count if isinstance(count, int) and count <= MAX_AXES else None


def open_shape(rank: int | None) -> PartialShape:
    """A shape of unknown sizes; of unknown rank for None."""
    return None if rank is None else (ANY,) * rank


def held_shape(fact: Fact, what: str) -> PartialShape:
    """The shape whose sizes an integer vector holds; OpError if one is negative. ``what`` names the input."""
    sizes = fact.sizes(what)
    if sizes is None:
        return open_shape(vector_length(fact))
    return tuple(non_negative(size, f"a size of {what}") for size in sizes)


def group_count(data: Fact, groups: Size, inputs: Size) -> Size:
    """The number of groups as far as it follows from the channels of the data, each group taking ``inputs`` of them.

    Raises:
        OpError: the channels do not divide into groups of ``inputs``.
    """
    if data.shape is None or len(data.shape) < 2 or not may_equal(data.shape[1], groups * inputs):
        return groups
    channels = data.shape[1]
    if low(channels) == 0 and low(inputs) == 0:
        return groups
    largest, top = high(inputs), high(channels)
    minimum = min(1, low(channels)) if largest is None else -(-low(channels) // max(1, largest))
    maximum = None if top is None else top // max(1, low(inputs))
    divides = maximum is None or minimum <= maximum
    check(divides, f"{channels} channels of data do not divide into groups of {inputs}")
    return meet(groups, span(minimum, maximum))


def mvn_2_axes(rank: int, across_channels: bool, reduction_axes: Sequence[int] | None) -> range:
    """The axes that MVN-2 normalizes along.

    Of the ``reduction_axes`` that OpenVINO writes it reads only whether axis 1 is among them; they take the place of
    ``across_channels``. Source: openvino ``mvn.cpp``, ``v0::MVN::clone_with_new_inputs``.
    """
    return range(1 if (1 in reduction_axes if reduction_axes else across_channels) else 2, rank)


Broadcasting = Literal["numpy", "none", "pdpd"]


def broadcast(shapes: Sequence[PartialShape], mode: Broadcasting = "numpy", axis: int | None = None) -> PartialShape:
    """The shape of an element-wise result.

    numpy: shapes are aligned at their last axes, sizes 1 are broadcast. none: shapes are equal. pdpd: the second is
    aligned with the first from ``axis`` on and broadcast to it; the first is not broadcast. ``axis`` -1 aligns the last
    axes; None is 0, as OpenVINO reads pdpd that is written without its axis.
    """
    if mode == "none":
        return _equal_shapes(shapes)
    if mode == "pdpd":
        first, second = shapes
        return _pdpd(first, second, axis)
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in known]
    try:
        return tuple(functools.reduce(_broadcast_two, sizes) for sizes in zip(*padded, strict=True))
    except OpError:
        raise OpError(f"shapes {' and '.join(map(shape_text, known))} cannot be broadcast together") from None


def pdpd_start(first: int, second: int, axis: int | None) -> int:
    """The axis of the first input with which pdpd aligns axis 0 of the second.

    Args:
        first, second: ranks of the two inputs.
        axis: ``auto_broadcast_axis`` of the layer; None if it is not written.
    """
    return first - second if axis == -1 else axis or 0


def align(a: np.ndarray, b: np.ndarray, mode: str, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays reshaped so that NumPy's broadcasting does what ``auto_broadcast`` and its axis ask."""
    if mode != "pdpd" or b.ndim == 0:
        return a, b
    start = pdpd_start(a.ndim, b.ndim, axis)
    sizes = b.shape[: a.ndim - start]
    return a, b.reshape(sizes + (1,) * (a.ndim - start - len(sizes)))


def alignment(attributes: Mapping[str, Any]) -> tuple[str, int | None]:
    """``auto_broadcast`` and the axis of pdpd among the attributes of a layer: the last arguments of ``align``."""
    return attributes.get("auto_broadcast", "numpy"), attributes.get("auto_broadcast_axis")


def _equal_shapes(shapes: Sequence[PartialShape]) -> PartialShape:
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    result = known[0]
    for other in known[1:]:
        check(len(other) == len(result), f"shapes {shape_text(result)} and {shape_text(other)} differ")
        result = tuple(meet(a, b) for a, b in zip(result, other, strict=True))
    return result


def _pdpd(first: PartialShape, second: PartialShape, axis: int | None) -> PartialShape:
    if first is None or second is None:
        return first
    start = pdpd_start(len(first), len(second), axis)
    trimmed = tuple(second)
    while trimmed and len(trimmed) + start > len(first) and trimmed[-1] == 1:
        trimmed = trimmed[:-1]
    texts = f"{shape_text(second)} does not align with {shape_text(first)} from axis {start}"
    check(0 <= start <= len(first) and start + len(trimmed) <= len(first), texts)
    result = list(first)
    for i, size in enumerate(trimmed, start):
        if may_equal(size, 1):
            continue
        result[i] = meet(result[i], size)
    return tuple(result)


def _broadcast_two(a: Size, b: Size) -> Size:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    may_be_one = [may_equal(size, 1) for size in (a, b)]
    if not any(may_be_one):
        return meet(a, b)
    if may_be_one == [False, True]:
        return a
    if may_be_one == [True, False]:
        return b
    joined = join(a, b)
    return span(min(low(joined), max(low(a), low(b))), high(joined))


MOVES = frozenset(
    {
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "StridedSlice", "Split", "VariadicSplit", "Concat",
        "Gather", "GatherElements", "GatherND", "Tile", "Broadcast", "Pad", "Reverse", "ReverseSequence", "Roll",
        "ShuffleChannels", "SpaceToDepth", "DepthToSpace", "SpaceToBatch", "BatchToSpace", "ReorgYolo", "GatherTree",
        "ExtractImagePatches", "Result", "Identity", "SliceScatter", "OneHot",
    }
)  # fmt: skip
"""Types whose outputs have the elements of the inputs, or zeros and a value for padding, to the last bit."""


Bound = Size | None

# Stands for an unlimited number; a result of its order is unlimited too.
_VAST = 1 << 256
_UNBOUNDED = 1 << 128
# Exporters write the largest i32 for a stop that is open.
_OPEN_STOP = (1 << 31) - 1

ANYWHERE = Dim(-_VAST, None)
"""A bound of which no limit is known, negative or positive."""


def slice_size(size: Size, begin: Bound, end: Bound, step: int) -> Size:
    """The number of elements that ``[begin:end:step]`` has of an axis; None is an open bound, as in Python.

    Unlike in Python, a begin before the axis means its first element, also for a negative step.
    The result is the tightest interval: in each of size, begin and end the number is monotonic between
    the points where a bound changes sign or equals the size, so that its extremes are among those points.
    """
    begin, end = _without_unreachable(size, begin, end, step)
    if step == 1 and begin in (None, 0):
        if end is None:
            return size
        if isinstance(end, Dim) and end.lo >= 0 and end.hi is not None and end.hi <= low(size):
            return end
    begins, ends = _extreme_points(begin), _extreme_points(end)
    counts = [_count(n, b, e, step) for b, e in product(begins, ends) for n in _sizes(size, b, e)]
    return span(min(counts), None if max(counts) > _UNBOUNDED and high(size) is None else max(counts))


def _without_unreachable(size: Size, begin: Bound, end: Bound, step: int) -> tuple[Bound, Bound]:
    """A bound beyond every possible size of the axis is open."""
    top = high(size)
    top = _OPEN_STOP if top is None else top
    if step > 0:
        return begin, None if end is not None and low(end) >= top else end
    return None if begin is not None and low(begin) >= top - 1 else begin, end


def _extreme_points(bound: Bound) -> list[int | None]:
    """The limits of a bound's interval, and -1 and 0 if it has both: there it changes to count from the front."""
    if not isinstance(bound, Dim):
        return [bound]
    lo, hi = bound.lo, _VAST if bound.hi is None else bound.hi
    return [lo, hi, *([-1, 0] if lo < 0 <= hi else [])]


def _sizes(size: Size, begin: int | None, end: int | None) -> list[int]:
    """The sizes at which the count can be extreme."""
    if isinstance(size, int):
        return [size]
    top = _VAST if size.hi is None else size.hi
    points = {abs(bound) + near for bound in (begin, end) if bound is not None for near in (-1, 0, 1)}
    return [size.lo, top, *(point for point in points if size.lo < point < top)]


def _count(size: int, begin: int | None, end: int | None, step: int) -> int:
    if step > 0:
        length = _position(end, size, 0, size, size) - _position(begin, size, 0, size, 0)
    else:
        length = _position(end, size, -1, size - 1, -1) - _position(begin, size, 0, size - 1, size - 1)
    return max(0, -(-length // step))


def _position(bound: int | None, size: int, first: int, last: int, otherwise: int) -> int:
    """The index that a bound means, clipped to first..last; ``otherwise`` for an open one."""
    return otherwise if bound is None else min(max(bound + size if bound < 0 else bound, first), last)
