"""Broadcasting of partial shapes by the rules of ``auto_broadcast``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from irexec.errors import OpError, check
from irexec.ir.dims import PartialShape, Size, high, join, low, may_equal, meet, shape_text, span

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
        return tuple(_broadcast_sizes(sizes) for sizes in zip(*padded, strict=True))
    except OpError:
        raise OpError(f"shapes {' and '.join(map(shape_text, known))} cannot be broadcast together") from None


def pdpd_start(first: int, second: int, axis: int | None) -> int:
    """The axis of the first input with which pdpd aligns axis 0 of the second.

    Args:
        first, second: ranks of the two inputs.
        axis: ``auto_broadcast_axis`` of the layer; None if it is not written.
    """
    return first - second if axis == -1 else axis or 0


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


def _broadcast_sizes(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = _broadcast_two(result, size)
    return result


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
