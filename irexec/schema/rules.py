"""What facts rules share: element agreement, axes and broadcasting of partial shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from irexec.dtypes.elements import Element
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Size, at_least, high, join, low, may_equal, meet, shape_text, span
from irexec.ir.facts import Fact

Broadcasting = Literal["numpy", "none", "pdpd"]


def same_element(*facts: Fact) -> Element | None:
    """The element type that all the facts share; None if none of them knows it.

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


def check_integers(fact: Fact, what: str) -> None:
    """Raise OpError if the element type is known and none of integers."""
    if fact.element is not None:
        check(fact.element.is_integer, f"{what} has element type {fact.element}, expected integers")


def check_float(fact: Fact, what: str) -> None:
    """Raise OpError if the element type is known and none of floating-point numbers."""
    if fact.element is not None:
        check(fact.element.is_float, f"{what} has element type {fact.element}, expected floating-point numbers")


def check_floats(**facts: Fact) -> None:
    """The same of several inputs by their names."""
    for what, fact in facts.items():
        check_float(fact, what)


def sizes_of(fact: Fact, rank: int, what: str) -> tuple[Size, ...]:
    """The sizes of a tensor of that rank, all unknown where its shape is; OpError for another rank."""
    check(fact.rank in (None, rank), f"{what} has rank {fact.rank}, expected {rank}")
    return (ANY,) * rank if fact.shape is None else fact.shape


def unify_sizes(what: str, *sizes: Size) -> Size:
    """What is known of a size that several inputs share; ``what`` names it in the OpError."""
    result, *others = sizes
    for size in others:
        check(may_equal(result, size), f"{what} differs between inputs: {result} and {size}")
        result = meet(result, size)
    return result


def not_negative(size: Size, what: str) -> Size:
    """A number that is to be a size, from 0 on; OpError if it cannot be one."""
    top = high(size)
    check(top is None or top >= 0, f"{what} is {size}, expected 0 or more")
    return at_least(size, 0)


def check_scalar(fact: Fact, what: str) -> None:
    """Raise OpError unless the tensor can be a scalar, or a vector of one number as many writers have it."""
    vector = fact.shape is not None and len(fact.shape) == 1 and may_equal(fact.shape[0], 1)
    check(fact.rank in (None, 0) or vector, f"{what} has shape {fact}, expected a scalar")


def size_from(fact: Fact, what: str) -> Size:
    """The size that a scalar input says; OpError if it can be none."""
    check_integers(fact, what)
    check_scalar(fact, what)
    given = fact.sizes()
    check(given is None or len(given) == 1, f"{what} has {0 if given is None else len(given)} elements, expected 1")
    return ANY if given is None else not_negative(given[0], what)


def check_vector(fact: Fact, what: str) -> None:
    """Raise OpError if the rank is known and not 1."""
    check(fact.rank in (None, 1), f"{what} has rank {fact.rank}, expected 1")


# No array has more axes; what asks for more is not worth listing.
MOST_AXES = 64


def length(fact: Fact) -> int | None:
    """How many numbers a scalar or vector has; None if that is not known, or more than there can be axes."""
    if fact.shape is None or len(fact.shape) > 1:
        return None
    count = fact.shape[0] if fact.shape else 1
    return count if isinstance(count, int) and count <= MOST_AXES else None


def open_shape(rank: int | None) -> PartialShape:
    """A shape of unknown sizes; of unknown rank for None."""
    return None if rank is None else (ANY,) * rank


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; OpError if it is out of range."""
    check(-rank <= axis < rank, f"{what} {axis} is out of range for data of rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(axes: Iterable[int], rank: int, what: str = "axis", *, scalar: bool = False) -> tuple[int, ...]:
    """The axes counted from the front, in the order given.

    With ``scalar``, data without axes may be asked for axis 0 or -1, which is none.
    """
    if scalar and rank == 0:
        normalize_axes(axes, 1, what)
        return ()
    return tuple(normalize_axis(axis, rank, what) for axis in axes)


def broadcast(shapes: Sequence[PartialShape], mode: Broadcasting = "numpy", axis: int = -1) -> PartialShape:
    """The shape of an element-wise result.

    numpy: shapes align at the end, sizes 1 stretch. none: shapes are equal. pdpd: the second aligns
    with the first from ``axis`` on (-1: at the end) and stretches to it; the first never does.
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
        return tuple(_stretch(sizes) for sizes in zip(*padded, strict=True))
    except OpError:
        raise OpError(f"shapes {' and '.join(map(shape_text, known))} cannot be broadcast together") from None


def _equal_shapes(shapes: Sequence[PartialShape]) -> PartialShape:
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    result = known[0]
    for other in known[1:]:
        check(len(other) == len(result), f"shapes {shape_text(result)} and {shape_text(other)} differ")
        result = tuple(meet(a, b) for a, b in zip(result, other, strict=True))
    return result


def _pdpd(first: PartialShape, second: PartialShape, axis: int) -> PartialShape:
    if first is None or second is None:
        return first
    start = len(first) - len(second) if axis == -1 else axis
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


def _stretch(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = _stretch_two(result, size)
    return result


def _stretch_two(a: Size, b: Size) -> Size:
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
