"""Order and counting: TopK, NonZero, CumSum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import I8, I32, I64, Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Size, at_least, at_most, count, high, low, span
from irexec.ir.facts import Fact
from irexec.ir.integers import integer
from irexec.schema.inputs import SCALAR, IndexElement, IntegerTensor, NumericTensor, Rank, Tensor, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis

IndexType = Literal["i64", "i32"]
Data = Annotated[Tensor, Rank(1, None)]
Count = Annotated[IntegerTensor, SCALAR]
Count1 = Annotated[np.ndarray, element_set("i8, i32 or i64", I8, I32, I64), SCALAR]
"""In version 1. Source: openvino ``topk.cpp``."""


@dataclass(frozen=True, kw_only=True)
class TopKAttributes:
    """Attributes of versions 1 and 3. The specification has no ``index_element_type`` of version 1; OpenVINO writes
    and reads it."""

    axis: int
    mode: Literal["max", "min"]
    sort: Literal["value", "index", "none"]
    index_element_type: IndexType = "i32"

    @property
    def index_element(self) -> Element:
        """The element type of the indices."""
        return element(self.index_element_type)


@dataclass(frozen=True, kw_only=True)
class TopK11Attributes(TopKAttributes):
    """Attributes of version 11."""

    stable: bool = False


def _top(data: np.ndarray, k: np.ndarray, attributes: TopKAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The order of sorting: among equal values the lower index comes first; NaN comes last in both modes."""
    axis = normalize_axis(attributes.axis, data.ndim)
    size, count = data.shape[axis], integer(k, "k")
    check(0 <= count <= size, f"k is {count}, the axis has {size}")
    if attributes.mode == "max" and data.dtype.kind == "f":
        order = np.argsort(-data, axis, kind="stable")
    elif attributes.mode == "max":
        # A stable descending order: sort the reversed axis and read the order backwards.
        order = size - 1 - np.flip(np.argsort(np.flip(data, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(data, axis, kind="stable")
    chosen = np.take(order, np.arange(count), axis)
    if attributes.sort == "index":
        chosen = np.sort(chosen, axis)
    return np.take_along_axis(data, chosen, axis), chosen.astype(attributes.index_element.carrier)


@op("TopK", since=1)
def topk_1(data: Data, k: Count1, *, attributes: TopKAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-1."""
    return _top(data, k, attributes)


@op("TopK", since=3)
def topk_3(data: Data, k: Count, *, attributes: TopKAttributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-3."""
    return _top(data, k, attributes)


@op("TopK", since=11)
def topk_11(data: Data, k: Count, *, attributes: TopK11Attributes) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` largest or smallest values along ``axis`` and their indices; always stable here. Source: TopK-11."""
    return _top(data, k, attributes)


@topk_1.shape_rule
@topk_3.shape_rule
@topk_11.shape_rule
def _topk_shapes(data: Fact, k: Fact, *, attributes: TopKAttributes) -> tuple[Fact, Fact]:
    stable = isinstance(attributes, TopK11Attributes) and attributes.stable
    check(not stable or attributes.sort != "none", "stable needs an order: sort must be value or index")
    if data.shape is None:
        return Fact(data.element, None), Fact(attributes.index_element, None)
    axis = normalize_axis(attributes.axis, len(data.shape))
    values = k.sizes("k")
    size = _count_of(data.shape[axis], values[0] if values else None)
    shape = (*data.shape[:axis], size, *data.shape[axis + 1 :])
    return Fact(data.element, shape), Fact(attributes.index_element, shape)


def _count_of(size: Size, k: Size | None) -> Size:
    """The size of the result's axis: k, which must not be larger than the size of the data's axis."""
    if k is None:
        return span(0, high(size))
    maximum, largest = high(size), high(k)
    check(largest is None or largest >= 0, f"k {k} is negative")
    check(maximum is None or low(k) <= maximum, f"k is {k}, the axis has only {size}")
    return at_least(k if maximum is None else at_most(k, maximum), 0)


@op("NonZero", since=3)
def non_zero_3(data: Tensor, *, output_type: IndexType = "i64") -> np.ndarray:
    """The indices of the values that are not 0, one column each, in row-major order: [rank, n].

    A scalar counts as a vector of one value, but a scalar 0 gives no row either, as in openvino
    ``reference/non_zero.hpp`` (the plugin gives one). Source: NonZero-3.
    """
    carrier = element(output_type).carrier
    if data.ndim == 0 and not data:
        return np.zeros((0, 0), carrier)
    return np.stack(np.nonzero(np.atleast_1d(data))).astype(carrier)


@non_zero_3.shape_rule
def _non_zero_3_shape(data: Fact, *, output_type: IndexType) -> Fact:
    if data.shape is None:
        return Fact(element(output_type), (ANY, ANY))
    total = count(data.shape)
    return Fact(element(output_type), (len(data.shape) or Dim(0, 1), span(0, high(total))))


@op("CumSum", since=3, widen=True, tolerance=4e-6)
def cum_sum_3(
    data: NumericTensor,
    axis: IndexElement | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> np.ndarray:
    """Cumulative sums along ``axis`` (default 0), without the element itself if ``exclusive``, from the last one if
    ``reverse``.

    Source: CumSum-3.
    """
    if data.ndim == 0:
        return np.zeros_like(data) if exclusive else data.copy()
    position = normalize_axis(0 if axis is None else integer(axis, "axis"), data.ndim)
    sums = np.cumsum(np.flip(data, position) if reverse else data, position, dtype=data.dtype)
    if exclusive:
        lead = (slice(None),) * position
        zeros = np.zeros_like(sums[(*lead, slice(0, 1))])
        sums = np.concatenate([zeros, sums[(*lead, slice(0, -1))]], position)[(*lead, slice(0, data.shape[position]))]
    return np.ascontiguousarray(np.flip(sums, position)) if reverse else sums


@cum_sum_3.shape_rule
def _cum_sum_3_shape(data: Fact, axis: Fact | None = None) -> Fact:
    if axis is not None:
        position = axis.scalar("axis")
        if position is not None and data.shape:
            normalize_axis(position, len(data.shape))
    return Fact(data.element, data.shape)
