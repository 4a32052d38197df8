"""Shape rules: what several inputs share in element type and channels, axes that may be negative, and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, at_least, high, low, may_equal, meet, span
from irexec.ir.facts import Fact


def unify_elements(*facts: Fact) -> Element | None:
    """The element type that inputs share; None if it is not known of any of them.

    Raises:
        OpError: two of them differ.
    """
    found: Element | None = None
    for fact in facts:
        if fact.element is None:
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
    smallest, largest = max(1, low(inputs)), high(inputs)
    minimum = min(1, low(channels)) if largest is None else -(-low(channels) // max(1, largest))
    top = high(channels)
    check(
        top is None or minimum <= top // smallest, f"{channels} channels of data do not divide into groups of {inputs}"
    )
    return meet(groups, span(minimum, None if top is None else top // smallest))


def mvn_2_axes(rank: int, across_channels: bool, reduction_axes: Sequence[int] | None) -> range:
    """The axes that MVN-2 normalizes along.

    Of the ``reduction_axes`` that OpenVINO writes it reads only whether axis 1 is among them; they take the place of
    ``across_channels``. Source: openvino ``mvn.cpp``, ``v0::MVN::clone_with_new_inputs``.
    """
    return range(1 if (1 in reduction_axes if reduction_axes else across_channels) else 2, rank)
