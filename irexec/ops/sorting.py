"""Order and counting: TopK, NonZero, CumSum."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.dtypes.elements import I32, Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Size, at_least, at_most, count, high, low, span
from irexec.ir.facts import Fact
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, check_scalar, normalize_axis

Mode = Literal["max", "min"]
Sort = Literal["value", "index", "none"]
IndexType = Literal["i64", "i32"]


def _top(data: np.ndarray, k: np.ndarray, axis: int, mode: str, sort: str, kind: Element) -> tuple[np.ndarray, np.ndarray]:
    """Of equal numbers the one with the lower index counts first; NaN counts last, whichever are wanted."""
    place = normalize_axis(axis, data.ndim)
    size = data.shape[place]
    wanted = int(k.reshape(-1)[0])
    check(0 <= wanted <= size, f"k is {wanted}, the axis has {size}")
    if mode == "max" and data.dtype.kind == "f":
        order = np.argsort(-data, place, kind="stable")
    elif mode == "max":
        # A stable descending order: sort the axis the other way round and read it from behind.
        order = size - 1 - np.flip(np.argsort(np.flip(data, place), place, kind="stable"), place)
    else:
        order = np.argsort(data, place, kind="stable")
    chosen = np.take(order, np.arange(wanted), place)
    if sort == "index":
        chosen = np.sort(chosen, place)
    return np.take_along_axis(data, chosen, place), chosen.astype(kind.carrier)


def _top_facts(data: Fact, k: Fact, axis: int, kind: Element) -> tuple[Fact, Fact]:
    check_scalar(k, "k")
    check_integers(k, "k")
    if data.shape is None:
        return Fact(data.element, None), Fact(kind, None)
    place = normalize_axis(axis, len(data.shape)) if data.shape else 0
    check(len(data.shape) > 0, "data is a scalar")
    known = k.sizes()
    wanted = known[0] if known else None
    size = _fewest(data.shape[place], wanted)
    shape = (*data.shape[:place], size, *data.shape[place + 1 :])
    return Fact(data.element, shape), Fact(kind, shape)


def _fewest(size: Size, wanted: Size | None) -> Size:
    """k of them: a k beyond the axis is an error, so the axis is at least as long."""
    if wanted is None:
        return span(0, high(size))
    most, top = high(size), high(wanted)
    check(top is None or top >= 0, f"k {wanted} is negative")
    check(most is None or low(wanted) <= most, f"k is {wanted}, the axis has only {size}")
    return at_least(wanted if most is None else at_most(wanted, most), 0)


@op("TopK", since=1)
def topk_1(data: np.ndarray, k: np.ndarray, *, axis: int, mode: Mode, sort: Sort) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` greatest or least along ``axis`` and their indices (i32). Source: TopK-1."""
    return _top(data, k, axis, mode, sort, I32)


@topk_1.shape_rule
def _topk_1_facts(data: Fact, k: Fact, *, axis: int, mode: str, sort: str) -> tuple[Fact, Fact]:
    return _top_facts(data, k, axis, I32)


@op("TopK", since=3)
def topk_3(
    data: np.ndarray, k: np.ndarray, *, axis: int, mode: Mode, sort: Sort, index_element_type: IndexType = "i32"
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` greatest or least along ``axis`` and their indices. Source: TopK-3."""
    return _top(data, k, axis, mode, sort, element(index_element_type))


@topk_3.shape_rule
def _topk_3_facts(data: Fact, k: Fact, *, axis: int, mode: str, sort: str, index_element_type: str = "i32") -> tuple[Fact, Fact]:
    return _top_facts(data, k, axis, element(index_element_type))


@op("TopK", since=11)
def topk_11(
    data: np.ndarray, k: np.ndarray, *, axis: int, mode: Mode, sort: Sort, stable: bool = False, index_element_type: IndexType = "i32"
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` greatest or least along ``axis`` and their indices; always stable here. Source: TopK-11."""
    return _top(data, k, axis, mode, sort, element(index_element_type))


@topk_11.shape_rule
def _topk_11_facts(
    data: Fact, k: Fact, *, axis: int, mode: str, sort: str, stable: bool = False, index_element_type: str = "i32"
) -> tuple[Fact, Fact]:
    check(not stable or sort != "none", "stable needs an order: sort must be value or index")
    return _top_facts(data, k, axis, element(index_element_type))


@op("NonZero", since=3)
def non_zero_3(data: np.ndarray, *, output_type: IndexType = "i64") -> np.ndarray:
    """The positions of the numbers that are not 0, one column each, in row-major order.

    A scalar counts as a vector of one, but that of 0 has no row either, as in openvino ``reference/non_zero.hpp``
    (the plugin leaves one). Source: NonZero-3.
    """
    carrier = element(output_type).carrier
    if data.ndim == 0 and not data:
        return np.zeros((0, 0), carrier)
    return np.stack(np.nonzero(np.atleast_1d(data))).astype(carrier)


@non_zero_3.shape_rule
def _non_zero_3_facts(data: Fact, *, output_type: IndexType = "i64") -> Fact:
    check(data.element is None or data.element.kind != "string", "element type string is no number")
    if data.shape is None:
        return Fact(element(output_type), (ANY, ANY))
    total = count(data.shape)
    most = total if isinstance(total, int) else total.hi
    return Fact(element(output_type), (len(data.shape) or Dim(0, 1), Dim(0, most) if most != 0 else 0))


@op("CumSum", since=3, widen=True, tolerance=4e-6)
def cum_sum_3(data: np.ndarray, axis: np.ndarray | None = None, *, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
    """Running sums along ``axis`` (0 unless given), without the number itself if ``exclusive``, from the end if ``reverse``.

    Source: CumSum-3.
    """
    if data.ndim == 0:
        return np.zeros_like(data) if exclusive else data.copy()
    place = normalize_axis(0 if axis is None else int(axis.reshape(-1)[0]), data.ndim)
    turned = np.flip(data, place) if reverse else data
    sums = np.cumsum(turned, place, dtype=data.dtype)
    if exclusive:
        first = (slice(None),) * place
        sums = np.concatenate([np.zeros_like(sums[(*first, slice(0, 1))]), sums[(*first, slice(0, -1))]], place)[
            (*first, slice(0, data.shape[place]))
        ]
    return np.ascontiguousarray(np.flip(sums, place)) if reverse else sums


@cum_sum_3.shape_rule
def _cum_sum_3_facts(data: Fact, axis: Fact | None = None, *, exclusive: bool = False, reverse: bool = False) -> Fact:
    if axis is not None and data.shape:
        place = axis.scalar("axis")
        if place is not None:
            normalize_axis(place, len(data.shape))
    return Fact(data.element, data.shape)
