"""Pooling: MaxPool, AvgPool and the adaptive ones, over one to three spatial axes."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import element, element_of
from irexec.dtypes.limits import lowest
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, may_equal
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.reference.integers import through_float
from irexec.reference.pooling import (
    adaptive_max,
    adaptive_mean,
    max_pool,
    max_pool_indices,
    window_populations,
    window_sums,
)
from irexec.schema.injected import ElementTypes
from irexec.schema.inputs import IntegerTensor, NumericTensor, Rank
from irexec.schema.pooling import (
    AverageAttributes,
    AverageAttributes1,
    AverageAttributes16,
    IndexedAttributes,
    IndexedAttributes8,
    IndexType,
    PoolingAttributes,
    PoolingAttributes1,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis

Data = Annotated[NumericTensor, Rank(3, 5)]


@op("MaxPool", since=1)
def max_pool_1(data: Data, *, attributes: PoolingAttributes1, elements: ElementTypes = ElementTypes()) -> np.ndarray:
    """The maximum of each window; of a window beside the data the lowest finite value of the type.

    The specification says that padding is -inf, and nothing of windows in which there is nothing else. OpenVINO's
    reference (openvino/reference/max_pool.hpp) begins at ``numeric_limits<T>::lowest()``; its CPU plugin gives that of
    f32 and bf16, too. In f16 and f64 the plugin has the lowest f32, and constant folding computes f16 and bf16 in f32:
    cast back, both are -inf (2026.4). Source: MaxPool-1.
    """
    return _max_alone(data, attributes=attributes, elements=elements)


@max_pool_1.shape_rule
def _max_pool_1_shape(data: Fact, *, attributes: PoolingAttributes) -> Fact:
    return Fact(data.element, attributes.output_shape(data))


def _lowest(data: np.ndarray, elements: ElementTypes) -> float | int:
    return lowest((elements[0] if elements else None) or element_of(data.dtype))


def _max_with_indices(
    data: np.ndarray, *, attributes: IndexedAttributes, elements: ElementTypes
) -> tuple[np.ndarray, np.ndarray]:
    axis = normalize_axis(attributes.axis, data.ndim)
    values, indices = max_pool_indices(data, attributes.windows(data.shape[2:]), axis, _lowest(data, elements))
    return values, indices.astype(element(attributes.index_element_type).carrier)


def _max_alone(
    data: np.ndarray, *, attributes: PoolingAttributes1 | IndexedAttributes, elements: ElementTypes = ElementTypes()
) -> np.ndarray:
    return max_pool(data, attributes.windows(data.shape[2:]), _lowest(data, elements))


def _max_with_indices_shape(
    data: Fact, *, attributes: IndexedAttributes, elements: ElementTypes = ElementTypes()
) -> tuple[Fact, Fact]:
    shape = attributes.output_shape(data)
    normalize_axis(attributes.axis, len(shape))
    return Fact(data.element, shape), Fact(element(attributes.index_element_type), shape)


@op("MaxPool", since=8)
def max_pool_8(
    data: Data, *, attributes: IndexedAttributes8, elements: ElementTypes = ElementTypes()
) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window, as of MaxPool-1, and its index in the data flattened from ``axis`` on. Source:
    MaxPool-8."""
    return _max_with_indices(data, attributes=attributes, elements=elements)


@op("MaxPool", since=14)
def max_pool_14(
    data: Data, *, attributes: IndexedAttributes, elements: ElementTypes = ElementTypes()
) -> tuple[np.ndarray, np.ndarray]:
    """Same as MaxPool-8, with ceil_torch: rounded up, but no window starts after the data. Source: MaxPool-14."""
    return _max_with_indices(data, attributes=attributes, elements=elements)


for _definition in (max_pool_8, max_pool_14):
    _definition.shape_rule(_max_with_indices_shape)
    _definition.first_output_only(_max_alone)


def _average(data: np.ndarray, attributes: AverageAttributes) -> np.ndarray:
    windows = attributes.windows(data.shape[2:])
    wide = data.astype(np.float64 if data.dtype.kind in "iu" else data.dtype, copy=False)
    sums = window_sums(wide, windows)
    count: np.ndarray | np.int64 = np.int64(math.prod(windows.kernel))
    if attributes.exclude_pad or not any(map(any, windows.pads)):
        count = window_populations(data.shape[2:], windows)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, sums / np.maximum(count, 1).astype(sums.dtype), 0)
    return np.rint(means).astype(data.dtype) if data.dtype.kind in "iu" else means.astype(data.dtype)


@op("AvgPool", since=1, widen=True, tolerance=2e-6)
def avg_pool_1(data: Data, *, attributes: AverageAttributes1) -> np.ndarray:
    """The mean of each window; with exclude-pad the padding does not count.

    Else every point of the window counts, also beyond the padding where rounding up makes it reach so
    far; but without any padding, points beyond the data do not. Integers are rounded to the nearest, halves to even.
    Source: AvgPool-1 and the CPU plugin.
    """
    return _average(data, attributes)


@op("AvgPool", since=14, widen=True, tolerance=2e-6)
def avg_pool_14(data: Data, *, attributes: AverageAttributes) -> np.ndarray:
    """Same as AvgPool-1, with ceil_torch: rounded up, but no window starts after the data. Source: AvgPool-14."""
    return _average(data, attributes)


@op("AvgPool", since=16, widen=True, tolerance=2e-6)
def avg_pool_16(data: Data, *, attributes: AverageAttributes16) -> np.ndarray:
    """Same as AvgPool-14, with dilations. Source: AvgPool-16."""
    return _average(data, attributes)


for _definition in (avg_pool_1, avg_pool_14, avg_pool_16):
    _definition.shape_rule(_max_pool_1_shape)


def _adaptive_shape(data: Fact, output_shape: Fact) -> Shape | None:
    sizes = output_shape.sizes("output_shape")
    if data.shape is None:
        return None if sizes is None else (ANY, ANY, *sizes)
    rank = len(data.shape) - 2
    length = output_shape.shape[0] if output_shape.shape else None
    check(
        not isinstance(length, int) or length == rank,
        f"output_shape has length {length}, expected {rank}: one value for each spatial axis",
    )
    if sizes is None:
        return (*data.shape[:2], *(ANY,) * rank)
    check(all(size >= 0 for size in sizes if isinstance(size, int)), f"output_shape {list(sizes)} has a negative size")
    for size, count in zip(data.shape[2:], sizes, strict=True):
        check(size != 0 or may_equal(count, 0), f"an axis of size 0 cannot be divided into {count} windows")
    return (*data.shape[:2], *sizes)


@op("AdaptiveAvgPool", since=8, widen=True, tolerance=2e-6)
def adaptive_avg_pool_8(data: Data, output_shape: Annotated[IntegerTensor, Rank(1)]) -> np.ndarray:
    """The means of windows that divide the spatial axes into ``output_shape`` parts; those of integers are rounded.

    Source: AdaptiveAvgPool-8.
    """
    return through_float(lambda x: adaptive_mean(x, integers(output_shape, "output_shape")), data)


@adaptive_avg_pool_8.shape_rule
def _adaptive_avg_pool_8_shape(data: Fact, output_shape: Fact) -> Fact:
    return Fact(data.element, _adaptive_shape(data, output_shape))


@op("AdaptiveMaxPool", since=8)
def adaptive_max_pool_8(
    data: Data, output_shape: Annotated[IntegerTensor, Rank(1)], *, index_element_type: IndexType = "i64"
) -> tuple[np.ndarray, np.ndarray]:
    """The maxima of windows that cut the spatial axes into ``output_shape`` parts, and their indices in the flattened
    spatial axes.

    Source: AdaptiveMaxPool-8.
    """
    values, indices = adaptive_max(data, integers(output_shape, "output_shape"))
    return values, indices.astype(element(index_element_type).carrier)


@adaptive_max_pool_8.shape_rule
def _adaptive_max_pool_8_shape(data: Fact, output_shape: Fact, *, index_element_type: str) -> tuple[Fact, Fact]:
    shape = _adaptive_shape(data, output_shape)
    return Fact(data.element, shape), Fact(element(index_element_type), shape)
