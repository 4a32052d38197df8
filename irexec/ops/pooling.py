"""Pooling: MaxPool, AvgPool and the adaptive ones, over one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, high, low, span
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import check_numeric
from irexec.reference.pooling import adaptive_max, adaptive_mean, max_pool, max_pool_indices, window_populations, window_sums
from irexec.reference.windows import Pads, resolve_pads
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.registry import op
from irexec.schema.rules import normalize_axis
from irexec.schema.window_sizes import AutoPad, check_list, filled, window_sizes

Rounding = Literal["floor", "ceil"]
Rounding14 = Literal["floor", "ceil", "ceil_torch"]
IndexType = Literal["i64", "i32"]


class _Pool:
    """The attributes that all pooling shares, with empty lists filled in.

    With ``ceil_torch`` a last window that would start behind the data and its first padding is left out.
    """

    def __init__(
        self, kernel: Sequence[int], strides: Sequence[int], begins: Sequence[int], ends: Sequence[int], rounding: str, auto_pad: str,
        dilations: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.kernel, rank = tuple(kernel), len(kernel)
        self.strides, self.dilations = filled(strides, rank, 1), filled(dilations, rank, 1)
        self.begins, self.ends = filled(begins, rank, 0), filled(ends, rank, 0)
        self.rounding, self.auto_pad = rounding.lower(), auto_pad.lower()

    def check(self, data: Fact) -> None:
        rank = len(self.kernel)
        check(data.rank in (None, rank + 2), f"data {data} does not have a batch, channels and {rank} spatial axes")
        check(data.rank is None or data.rank >= 3, f"data {data} has no spatial axes")
        check_numeric(data)
        for numbers, what in (
            (self.strides, "strides"),
            (self.dilations, "dilations"),
            (self.begins, "pads_begin"),
            (self.ends, "pads_end"),
        ):
            check_list(numbers, rank, what)

    def sizes(self, spatial: Sequence[Size]) -> tuple[Size, ...]:
        sizes = window_sizes(
            spatial, self.kernel, self.strides, self.dilations, self.begins, self.ends, self.auto_pad, ceil=self.rounding != "floor"
        )
        if self.rounding != "floor" and self.auto_pad.startswith("same"):
            axes = zip(sizes, spatial, self.kernel, self.strides, self.dilations, strict=True)
            sizes = tuple(_rounded_up(*axis) for axis in axes)
        if self.rounding != "ceil_torch":
            return sizes
        begins = self.begins if self.auto_pad == "explicit" else (0,) * len(self.kernel)
        return tuple(_torch(n, size, s, b) for n, size, s, b in zip(sizes, spatial, self.strides, begins, strict=True))

    def facts(self, data: Fact) -> Shape:
        self.check(data)
        if data.shape is None:
            return (ANY, ANY, *(ANY for _ in self.kernel))
        return (*data.shape[:2], *self.sizes(data.shape[2:]))

    def place(self, shape: Sequence[int]) -> tuple[Pads, tuple[int, ...]]:
        """The padding and the number of windows for data of a shape."""
        pads = resolve_pads(self.auto_pad, shape[2:], self.kernel, self.strides, self.dilations, self.begins, self.ends)
        # Of sizes that are known the counts are too.
        return pads, tuple(low(size) for size in self.sizes(shape[2:]))


def _rounded_up(count: Size, size: Size, kernel: int, stride: int, dilation: int) -> Size:
    """How many windows same_upper and same_lower give with ceil: where strides are longer than windows, one more may begin.

    Source: openvino ``pooling_shape_inference_util.hpp``.
    """
    reach = dilation * (kernel - 1) + 1
    if reach >= stride:
        return count
    if isinstance(count, int) and isinstance(size, int):
        return count + (size > (count - 1) * stride + reach)
    top = high(count)
    return span(low(count), None if top is None else top + 1)


def _torch(count: Size, size: Size, stride: int, begin: int) -> Size:
    """The windows that begin on the data or its first padding; both bounds belong to the bounds of the size."""
    least = _begun(low(count), low(size), stride, begin)
    top, most = high(size), high(count)
    return span(least, None if top is None or most is None else _begun(most, top, stride, begin))


def _begun(count: int, size: int, stride: int, begin: int) -> int:
    return max(count - 1, 1) if (count - 1) * stride >= size + begin else count


def _max(data: np.ndarray, pool: _Pool) -> np.ndarray:
    pads, counts = pool.place(data.shape)
    return max_pool(data, pool.kernel, pool.strides, pool.dilations, pads, counts)


@op("MaxPool", since=1)
def max_pool_1(
    data: np.ndarray, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: Rounding = "floor", auto_pad: AutoPad = "explicit",
) -> np.ndarray:  # fmt: skip
    """The greatest of each window. Source: MaxPool-1."""
    return _max(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad))


@max_pool_1.shape_rule
def _max_pool_1_facts(
    data: Fact, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: str = "floor", auto_pad: str = "explicit",
) -> Fact:  # fmt: skip
    return Fact(data.element, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad).facts(data))


def _max_with_indices(data: np.ndarray, pool: _Pool, kind: Element, axis: int) -> tuple[np.ndarray, np.ndarray]:
    pads, counts = pool.place(data.shape)
    place = normalize_axis(axis, data.ndim)
    values, places = max_pool_indices(data, pool.kernel, pool.strides, pool.dilations, pads, counts, place)
    return values, places.astype(kind.carrier)


def _max_facts(data: Fact, pool: _Pool, kind: Element, axis: int) -> tuple[Fact, Fact]:
    shape = pool.facts(data)
    normalize_axis(axis, len(shape))
    return Fact(data.element, shape), Fact(kind, shape)


@op("MaxPool", since=8)
def max_pool_8(
    data: np.ndarray, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: Rounding = "floor", auto_pad: AutoPad = "explicit", index_element_type: IndexType = "i64", axis: int = 0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The greatest of each window, and where it stands in the data flattened from ``axis`` on. Source: MaxPool-8."""
    pool = _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations)
    return _max_with_indices(data, pool, element(index_element_type), axis)


@max_pool_8.shape_rule
def _max_pool_8_facts(
    data: Fact, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: str = "floor", auto_pad: str = "explicit", index_element_type: str = "i64", axis: int = 0,
) -> tuple[Fact, Fact]:  # fmt: skip
    pool = _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations)
    return _max_facts(data, pool, element(index_element_type), axis)


@max_pool_8.first_output_only
def _max_pool_8_alone(
    data: np.ndarray, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: str = "floor", auto_pad: str = "explicit", index_element_type: str = "i64", axis: int = 0,
) -> np.ndarray:  # fmt: skip
    return _max(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations))


@op("MaxPool", since=14)
def max_pool_14(
    data: np.ndarray, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: Rounding14 = "floor", auto_pad: AutoPad = "explicit", index_element_type: IndexType = "i64", axis: int = 0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """As MaxPool-8, with ceil_torch: rounded up, but no window starts behind the data. Source: MaxPool-14."""
    pool = _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations)
    return _max_with_indices(data, pool, element(index_element_type), axis)


@max_pool_14.shape_rule
def _max_pool_14_facts(
    data: Fact, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: str = "floor", auto_pad: str = "explicit", index_element_type: str = "i64", axis: int = 0,
) -> tuple[Fact, Fact]:  # fmt: skip
    pool = _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations)
    return _max_facts(data, pool, element(index_element_type), axis)


@max_pool_14.first_output_only
def _max_pool_14_alone(
    data: np.ndarray, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    rounding_type: str = "floor", auto_pad: str = "explicit", index_element_type: str = "i64", axis: int = 0,
) -> np.ndarray:  # fmt: skip
    return _max(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations))


def _average(data: np.ndarray, pool: _Pool, exclude_pad: bool) -> np.ndarray:
    pads, counts = pool.place(data.shape)
    wide = data.astype(np.float64 if data.dtype.kind in "iu" else data.dtype, copy=False)
    sums = window_sums(wide, pool.kernel, pool.strides, pool.dilations, pads, counts)
    number: np.ndarray | np.int64 = np.int64(math.prod(pool.kernel))
    if exclude_pad or not any(map(any, pads)):
        number = window_populations(data.shape[2:], pool.kernel, pool.strides, pool.dilations, pads, counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(number > 0, sums / np.maximum(number, 1).astype(sums.dtype), 0)
    return np.rint(means).astype(data.dtype) if data.dtype.kind in "iu" else means.astype(data.dtype)


@op("AvgPool", since=1, widen=True, tolerance=2e-6)
def avg_pool_1(
    data: np.ndarray, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives, exclude_pad: bool,
    rounding_type: Rounding = "floor", auto_pad: AutoPad = "explicit",
) -> np.ndarray:  # fmt: skip
    """The mean of each window; with exclude-pad the padding does not count.

    Else every point of the window counts, also beyond the padding where rounding up makes it reach so
    far; but without any padding, points beyond the data do not. Integers are rounded to the nearest, halves to even.
    Source: AvgPool-1 and the CPU plugin.
    """
    return _average(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad), exclude_pad)


@avg_pool_1.shape_rule
def _avg_pool_1_facts(
    data: Fact, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives, exclude_pad: bool,
    rounding_type: str = "floor", auto_pad: str = "explicit",
) -> Fact:  # fmt: skip
    return Fact(data.element, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad).facts(data))


@op("AvgPool", since=14, widen=True, tolerance=2e-6)
def avg_pool_14(
    data: np.ndarray, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives, exclude_pad: bool,
    rounding_type: Rounding14 = "floor", auto_pad: AutoPad = "explicit",
) -> np.ndarray:  # fmt: skip
    """As AvgPool-1, with ceil_torch: rounded up, but no window starts behind the data. Source: AvgPool-14."""
    return _average(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad), exclude_pad)


@avg_pool_14.shape_rule
def _avg_pool_14_facts(
    data: Fact, *, strides: Positives, pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives, exclude_pad: bool,
    rounding_type: str = "floor", auto_pad: str = "explicit",
) -> Fact:  # fmt: skip
    return Fact(data.element, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad).facts(data))


@op("AvgPool", since=16, widen=True, tolerance=2e-6)
def avg_pool_16(
    data: np.ndarray, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    exclude_pad: bool, rounding_type: Rounding14 = "floor", auto_pad: AutoPad = "explicit",
) -> np.ndarray:  # fmt: skip
    """As AvgPool-14, with dilations. Source: AvgPool-16."""
    return _average(data, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations), exclude_pad)


@avg_pool_16.shape_rule
def _avg_pool_16_facts(
    data: Fact, *, strides: Positives, dilations: Positives = (), pads_begin: NonNegatives, pads_end: NonNegatives, kernel: Positives,
    exclude_pad: bool, rounding_type: str = "floor", auto_pad: str = "explicit",
) -> Fact:  # fmt: skip
    return Fact(data.element, _Pool(kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations).facts(data))


def _adaptive_shape(data: Fact, output_shape: Fact) -> Shape | None:
    check_numeric(data)
    check(output_shape.rank in (None, 1), f"output_shape has rank {output_shape.rank}, expected 1")
    sizes = output_shape.sizes()
    if data.shape is None:
        return None if sizes is None else (ANY, ANY, *sizes)
    rank = len(data.shape) - 2
    check(1 <= rank <= 3, f"data {data} does not have one to three spatial axes")
    length = output_shape.shape[0] if output_shape.shape else None
    check(not isinstance(length, int) or length == rank, f"output_shape has {length} numbers for {rank} spatial axes")
    if sizes is None:
        return (*data.shape[:2], *(ANY,) * rank)
    check(all(size >= 0 for size in sizes if isinstance(size, int)), f"output_shape {list(sizes)} has a negative size")
    return (*data.shape[:2], *sizes)


def _counts(output_shape: np.ndarray) -> tuple[int, ...]:
    return tuple(int(size) for size in output_shape.ravel().tolist())


@op("AdaptiveAvgPool", since=8, widen=True, tolerance=2e-6)
def adaptive_avg_pool_8(data: np.ndarray, output_shape: np.ndarray) -> np.ndarray:
    """The means of windows that cut the spatial axes into ``output_shape`` parts. Source: AdaptiveAvgPool-8."""
    return adaptive_mean(data, _counts(output_shape))


@adaptive_avg_pool_8.shape_rule
def _adaptive_avg_pool_8_facts(data: Fact, output_shape: Fact) -> Fact:
    return Fact(data.element, _adaptive_shape(data, output_shape))


@op("AdaptiveMaxPool", since=8)
def adaptive_max_pool_8(
    data: np.ndarray, output_shape: np.ndarray, *, index_element_type: IndexType = "i64"
) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of windows that cut the spatial axes into ``output_shape`` parts, and their places in the flattened map.

    Source: AdaptiveMaxPool-8.
    """
    values, places = adaptive_max(data, _counts(output_shape))
    return values, places.astype(element(index_element_type).carrier)


@adaptive_max_pool_8.shape_rule
def _adaptive_max_pool_8_facts(data: Fact, output_shape: Fact, *, index_element_type: str = "i64") -> tuple[Fact, Fact]:
    shape = _adaptive_shape(data, output_shape)
    return Fact(data.element, shape), Fact(element(index_element_type), shape)
