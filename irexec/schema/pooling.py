"""The attributes of pooling, by version: one object for kernel and shape rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, high, low, span
from irexec.ir.facts import Fact
from irexec.reference.windows import SlidingWindows, effective_kernel_size
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.windows import (
    AutoPad,
    check_length,
    check_lists,
    explicit_pads,
    known_sizes,
    per_axis,
    resolve_pads,
    same_count,
    window_count,
)

Rounding = Literal["floor", "ceil"]
Rounding14 = Literal["floor", "ceil", "ceil_torch"]
IndexType = Literal["i64", "i32"]


@dataclass(frozen=True, kw_only=True)
class PoolingAttributes:
    """Attributes of all pooling; an empty list means ones (dilations) or zeros (pads), and strides must be given.

    With "ceil_torch" a last window that would start after the data and its first padding is left out.
    """

    strides: Positives
    pads_begin: NonNegatives
    pads_end: NonNegatives
    kernel: Positives
    rounding_type: Rounding14 = "floor"
    auto_pad: AutoPad = "explicit"

    def output_shape(self, data: Fact) -> Shape:
        """The shape of the result; OpError if data and attributes do not go together."""
        self._check_lengths(data)
        if data.shape is None:
            return (ANY, ANY, *(ANY for _ in self.kernel))
        return (*data.shape[:2], *self.counts(data.shape[2:]))

    def counts(self, spatial: Sequence[Size]) -> tuple[Size, ...]:
        """The number of windows along each axis; OpError if not even one fits."""
        strides, dilations = self._steps()
        begins, ends = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, len(self.kernel))
        if self.auto_pad in ("same_upper", "same_lower"):
            counts = tuple(map(same_count, spatial, strides))
            if self.rounding_type != "floor":
                counts = tuple(map(_rounded_up, counts, spatial, self.kernel, strides, dilations))
        else:
            axes = zip(spatial, self.kernel, strides, dilations, begins, ends, strict=True)
            counts = tuple(window_count(*axis, ceil=self.rounding_type != "floor") for axis in axes)
        return tuple(map(_started, counts, spatial, strides, begins)) if self.rounding_type == "ceil_torch" else counts

    def windows(self, sizes: Sequence[int]) -> SlidingWindows:
        """Where the windows lie on data of these spatial sizes."""
        strides, dilations = self._steps()
        pads = resolve_pads(self.auto_pad, sizes, self.kernel, strides, dilations, self.pads_begin, self.pads_end)
        return SlidingWindows(self.kernel, strides, dilations, *pads, known_sizes(self.counts(sizes)))

    def may_have_windows_beside_data(self) -> bool:
        """Whether a window may lie in the padding alone, for data of some size."""
        strides, dilations = self._steps()
        begins, ends = explicit_pads(self.auto_pad, self.pads_begin, self.pads_end, len(self.kernel))
        rounds_up = self.rounding_type != "floor"
        axes = zip(self.kernel, strides, dilations, begins, ends, strict=False)
        # Rounded up, the last window starts up to stride - 1 further. Between dilated points there is room for small
        # data.
        return any(
            (kernel > 1 and dilation > 1) or begin >= kernel or end + (stride - 1 if rounds_up else 0) >= kernel
            for kernel, stride, dilation, begin, end in axes
        )

    def _check_lengths(self, data: Fact) -> None:
        rank = len(self.kernel)
        check(data.rank in (None, rank + 2), f"data {data} does not have a batch, channels and {rank} spatial axes")
        check_length(self.strides, rank, "strides")
        check_lists(self, rank)

    def _dilations(self) -> tuple[int, ...]:
        """The dilations as given; versions without the attribute have none."""
        return ()

    def _steps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rank = len(self.kernel)
        return self.strides, per_axis(self._dilations(), rank, 1)


@dataclass(frozen=True, kw_only=True)
class PoolingAttributes1(PoolingAttributes):
    """MaxPool-1."""

    rounding_type: Rounding = "floor"


@dataclass(frozen=True, kw_only=True)
class IndexedAttributes(PoolingAttributes):
    """MaxPool-14: also the indices of the maxima, in the data flattened from ``axis`` on."""

    dilations: Positives = ()
    index_element_type: IndexType = "i64"
    axis: int = 0

    def _dilations(self) -> tuple[int, ...]:
        return self.dilations


@dataclass(frozen=True, kw_only=True)
class IndexedAttributes8(IndexedAttributes):
    """MaxPool-8."""

    rounding_type: Rounding = "floor"


@dataclass(frozen=True, kw_only=True)
class AverageAttributes(PoolingAttributes):
    """AvgPool-14."""

    exclude_pad: bool


@dataclass(frozen=True, kw_only=True)
class AverageAttributes1(AverageAttributes):
    """AvgPool-1."""

    rounding_type: Rounding = "floor"


@dataclass(frozen=True, kw_only=True)
class AverageAttributes16(AverageAttributes):
    """AvgPool-16."""

    dilations: Positives = ()

    def _dilations(self) -> tuple[int, ...]:
        return self.dilations


def _rounded_up(count: Size, size: Size, kernel: int, stride: int, dilation: int) -> Size:
    """The number of windows of same_upper and same_lower with ceil: where strides are longer than windows, one more may
    begin.

    Source: openvino ``pooling_shape_inference_util.hpp``.
    """
    span_of_window = effective_kernel_size(kernel, dilation)
    if span_of_window >= stride:
        return count
    if isinstance(count, int) and isinstance(size, int):
        return count + (size > (count - 1) * stride + span_of_window)
    top = high(count)
    return span(low(count), None if top is None else top + 1)


def _started(count: Size, size: Size, stride: int, begin: int) -> Size:
    """The windows that begin on the data or its first padding; both bounds belong to the bounds of the size."""
    minimum = _started_count(low(count), low(size), stride, begin)
    top, maximum = high(size), high(count)
    return span(minimum, None if top is None or maximum is None else _started_count(maximum, top, stride, begin))


def _started_count(count: int, size: int, stride: int, begin: int) -> int:
    return max(count - 1, 1) if (count - 1) * stride >= size + begin else count
