"""Windows of pooling: positions, pads, and the shapes that follow.

Sizes of sliding windows on ``Dim`` arithmetic: one rule for kernels, which know every size, and shape rules, which
know bounds.

Sizes are int | Dim and may be hostile (10**30): there is only arithmetic. With ints in, there are ints out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, at_least, ceil_div, high, low, span
from irexec.ir.facts import Fact
from irexec.reference.windows import SlidingWindows, SpatialPads, effective_kernel_size
from irexec.schema.attributes import NonNegatives, Positives

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]


def spatial_rank(
    data: PartialShape, kernel: PartialShape = None, leading: int = 2, *lists: Sequence[object]
) -> int | None:
    """The number of spatial axes: of the data, else of the kernel (``leading`` axes of it are not spatial), else of a
    list."""
    if data is not None:
        return len(data) - 2
    if kernel is not None:
        return len(kernel) - leading
    return next((len(values) for values in lists if values), None)


def check_list(values: Sequence[object], rank: int, what: str) -> None:
    """Raise OpError unless there is one value for each spatial axis, or none at all.

    An empty list means the default, as OpenVINO reads and writes it.
    """
    if values:
        check_length(values, rank, what)


def check_lists(attributes: Any, rank: int) -> None:
    """Raise OpError unless every list of a dataclass has one value for each spatial axis, or none."""
    for field in fields(attributes):
        values = getattr(attributes, field.name)
        if isinstance(values, tuple):
            check_list(values, rank, field.name)


def check_length(values: Sequence[object], rank: int, what: str) -> None:
    """Raise OpError unless there is one value for each spatial axis."""
    check(len(values) == rank, f"{what} has length {len(values)}, expected {rank}: one value for each spatial axis")


def per_axis(values: Sequence[int], rank: int, default: int) -> tuple[int, ...]:
    """The list, or the default for each axis if it is empty."""
    return tuple(values) or (default,) * rank


def spatial_sizes(shape: PartialShape, rank: int, leading: int = 2) -> tuple[Size, ...]:
    """The spatial sizes of a shape; unknown ones where its rank is."""
    return (ANY,) * rank if shape is None else tuple(shape[leading:])


def known_sizes(sizes: Sequence[Size]) -> tuple[int, ...]:
    """The sizes of which only one is possible each; a kernel's sizes are all known."""
    return tuple(low(size) for size in sizes)


def window_count(
    size: Size, kernel: Size, stride: int, dilation: int, begin: int, end: int, *, ceil: bool = False
) -> Size:
    """The number of windows along one padded axis; rounded up with ``ceil``.

    Raises:
        OpError: not even one can fit.
    """
    check(high(kernel) != 0, "the kernel has a spatial size of 0")
    effective = effective_kernel_size(at_least(kernel, 1), dilation)
    top, widest = high(size), high(effective)
    fits = top is None or top + begin + end >= low(effective)
    check(fits, f"kernel {kernel} with dilation {dilation} does not fit into size {size} padded by {begin} and {end}")
    spare = span(
        0 if widest is None else max(0, low(size) + begin + end - widest),
        None if top is None else max(0, top + begin + end - low(effective)),
    )
    return (ceil_div(spare, stride) if ceil else spare // stride) + 1


def window_count_or_zero(size: Size, kernel: int, stride: int, dilation: int, begin: int = 0, end: int = 0) -> Size:
    """Number of windows as ``window_count`` computes it; 0, not an error, for an axis that no window fits into."""
    smallest = effective_kernel_size(kernel, dilation) - begin - end
    top = high(size)
    if top is not None and top < smallest:
        return 0
    fitting = window_count(at_least(size, smallest), kernel, stride, dilation, begin, end)
    return fitting if low(size) >= smallest else Dim(0, high(fitting))


def same_count(size: Size, stride: int) -> Size:
    """The number of windows that same_upper and same_lower give along one axis: the size by the stride, rounded up."""
    return ceil_div(size, stride)


def same_pads(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Padding (begin, end) that gives ``same_count`` windows; of an odd total the larger half is at the end if
    ``upper``."""
    total = max(0, (-(-size // stride) - 1) * stride + effective_kernel_size(kernel, dilation) - size)
    half = total // 2
    return (half, total - half) if upper else (total - half, half)


def natural_size(size: Size, kernel: Size, stride: int, dilation: int) -> Size:
    """The size of a transposed convolution along one axis before it is cropped: ``stride * (in - 1) + dilation * (K -
    1) + 1``.

    A size of 0 counts as 1, as in OpenVINO's shape inference.
    """
    check(high(kernel) != 0, "the kernel has a spatial size of 0")
    return (at_least(size, 1) - 1) * stride + effective_kernel_size(at_least(kernel, 1), dilation)


def cropped_size(natural: Size, begin: int, end: int, output_padding: int) -> Size:
    """Size after cropping the natural size; OpError if more is cropped than there is."""
    cropped = natural + (output_padding - begin - end)
    top = high(cropped)
    text = f"pads {begin} and {end} crop more than the natural size {natural} with output_padding {output_padding}"
    check(top is None or top >= 0, text)
    return at_least(cropped, 0)


def resolve_pads(
    auto_pad: str,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
) -> SpatialPads:
    """Padding (begins, ends) of a forward window operation.

    "explicit" gives the pads as they are (empty: zeros), "valid" zeros, "same_upper" and "same_lower" those of
    ``same_pads``; the given pads are ignored then.
    """
    rank = len(sizes)
    if auto_pad in ("same_upper", "same_lower"):
        pairs = [
            same_pads(*axis, upper=auto_pad == "same_upper")
            for axis in zip(sizes, kernel, strides, dilations, strict=True)
        ]
        return tuple(begin for begin, _ in pairs), tuple(end for _, end in pairs)
    return explicit_pads(auto_pad, pads_begin, pads_end, rank)


def explicit_pads(auto_pad: str, pads_begin: Sequence[int], pads_end: Sequence[int], rank: int) -> SpatialPads:
    """The given pads where ``auto_pad`` lets them count ("explicit", of ConvTranspose "none"), otherwise zeros."""
    counts = auto_pad in ("explicit", "none")
    return per_axis(pads_begin if counts else (), rank, 0), per_axis(pads_end if counts else (), rank, 0)


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
        rank = len(self.kernel)
        check(data.rank in (None, rank + 2), f"data {data} does not have a batch, channels and {rank} spatial axes")
        check_length(self.strides, rank, "strides")
        check_lists(self, rank)
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

    def _steps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Strides and dilations; versions without dilations have ones."""
        return self.strides, per_axis(getattr(self, "dilations", ()), len(self.kernel), 1)


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
