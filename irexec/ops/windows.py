"""Windows reduced and rearranged: pooling, blocks and patches of spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import element, element_of, lowest
from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Shape, Size, at_least, exact_quotient, high, low, may_equal
from irexec.ir.facts import Fact, integers
from irexec.reference.integers import through_float
from irexec.reference.limits import check_memory, check_time
from irexec.reference.windows import (
    SlidingWindows,
    adaptive_max,
    adaptive_mean,
    max_pool,
    max_pool_indices,
    pad,
    tap_slices,
    window_populations,
    window_sums,
    windows,
)
from irexec.schema.attributes import ElementTypes, NonNegatives, Positives
from irexec.schema.opdef import IndexVector, IntegerTensor, IntegerVector, NumericTensor, Rank, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, open_shape
from irexec.schema.windows import (
    AverageAttributes,
    AverageAttributes1,
    AverageAttributes16,
    IndexedAttributes,
    IndexedAttributes8,
    IndexType,
    PoolingAttributes,
    PoolingAttributes1,
    check_lists,
    known_sizes,
    per_axis,
    resolve_pads,
    same_count,
    window_count_or_zero,
)

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
    return max_pool_14.kernel(data, attributes=attributes, elements=elements)


@op("MaxPool", since=14)
def max_pool_14(
    data: Data, *, attributes: IndexedAttributes, elements: ElementTypes = ElementTypes()
) -> tuple[np.ndarray, np.ndarray]:
    """Same as MaxPool-8, with ceil_torch: rounded up, but no window starts after the data. Source: MaxPool-14."""
    axis = normalize_axis(attributes.axis, data.ndim)
    values, indices = max_pool_indices(data, attributes.windows(data.shape[2:]), axis, _lowest(data, elements))
    return values, indices.astype(element(attributes.index_element_type).carrier)


for _definition in (max_pool_8, max_pool_14):
    _definition.shape_rule(_max_with_indices_shape)
    _definition.first_output_only(_max_alone)


@op("AvgPool", since=1, widen=True, tolerance=2e-6)
def avg_pool_1(data: Data, *, attributes: AverageAttributes1) -> np.ndarray:
    """The mean of each window; with exclude-pad the padding does not count.

    Else every point of the window counts, also beyond the padding where rounding up makes it reach so
    far; but without any padding, points beyond the data do not. Integers are rounded to the nearest, halves to even.
    Source: AvgPool-1 and the CPU plugin.
    """
    return avg_pool_16.kernel(data, attributes=attributes)


@op("AvgPool", since=14, widen=True, tolerance=2e-6)
def avg_pool_14(data: Data, *, attributes: AverageAttributes) -> np.ndarray:
    """Same as AvgPool-1, with ceil_torch: rounded up, but no window starts after the data. Source: AvgPool-14."""
    return avg_pool_16.kernel(data, attributes=attributes)


@op("AvgPool", since=16, widen=True, tolerance=2e-6)
def avg_pool_16(data: Data, *, attributes: AverageAttributes16) -> np.ndarray:
    """Same as AvgPool-14, with dilations. Source: AvgPool-16."""
    windows = attributes.windows(data.shape[2:])
    wide = data.astype(np.float64 if data.dtype.kind in "iu" else data.dtype, copy=False)
    sums = window_sums(wide, windows)
    count: np.ndarray | np.int64 = np.int64(math.prod(windows.kernel))
    if attributes.exclude_pad or not any(map(any, windows.pads)):
        count = window_populations(data.shape[2:], windows)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, sums / np.maximum(count, 1).astype(sums.dtype), 0)
    return np.rint(means).astype(data.dtype) if data.dtype.kind in "iu" else means.astype(data.dtype)


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


@op("SpaceToBatch", since=2)
def space_to_batch_2(
    data: Annotated[Tensor, Rank(2, None)],
    block_shape: IntegerVector,
    pads_begin: IntegerVector,
    pads_end: IntegerVector,
) -> np.ndarray:
    """``data``, padded by zeros, with blocks of every axis but the first moved into the batch.

    ``block_shape`` and the pads have one value for each axis; those of the batch are 1 and 0.
    Source: SpaceToBatch-2.
    """
    blocks = integers(block_shape, "block_shape")[1:]
    padded = np.pad(data, list(zip(integers(pads_begin, "pads_begin"), integers(pads_end, "pads_end"), strict=True)))
    batch, *sizes = padded.shape
    outer = [size // block for size, block in zip(sizes, blocks, strict=True)]
    split = padded.reshape(batch, *(part for pair in zip(outer, blocks, strict=True) for part in pair))
    axes = range(len(blocks))
    order = [*(2 + 2 * i for i in axes), 0, *(1 + 2 * i for i in axes)]
    return split.transpose(order).reshape(batch * math.prod(blocks), *outer)


@op("BatchToSpace", since=2, view=True)
def batch_to_space_2(
    data: Annotated[Tensor, Rank(2, None)],
    block_shape: IntegerVector,
    crops_begin: IntegerVector,
    crops_end: IntegerVector,
) -> np.ndarray:
    """Blocks of the batch laid out along every other axis, and cropped: SpaceToBatch undone. Source: BatchToSpace-2."""
    blocks = integers(block_shape, "block_shape")[1:]
    batch, *sizes = data.shape
    split = data.reshape(*blocks, batch // math.prod(blocks), *sizes)
    count = len(blocks)
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i))]
    grown = [size * block for size, block in zip(sizes, blocks, strict=True)]
    whole = split.transpose(order).reshape(batch // math.prod(blocks), *grown)
    crops = zip(whole.shape, integers(crops_begin, "crops_begin"), integers(crops_end, "crops_end"), strict=True)
    return whole[tuple(slice(begin, size - end) for size, begin, end in crops)]


def _block_values(data: Fact, given: Sequence[tuple[Fact, str]]) -> list[tuple[int, ...] | None]:
    """The known values of block_shape and of what is added or cut, checked against the rank of the data."""
    values = []
    for fact, what in given:
        known = fact.ints(what)
        first = 1 if what == "block_shape" else 0
        if known is not None:
            check(len(known) > 0 and known[0] == first, f"{what} {list(known)} must begin with {first}, for the batch")
            check(min(known) >= first, f"{what} {list(known)} has a value below {first}")
        count = fact.shape[0] if fact.shape else ANY
        if data.shape is not None:
            check(may_equal(count, len(data.shape)), f"{what} has {count} values for data {data}")
        values.append(known)
    return values


@space_to_batch_2.shape_rule
def _space_to_batch_2_facts(data: Fact, block_shape: Fact, pads_begin: Fact, pads_end: Fact) -> Fact:
    given = [(block_shape, "block_shape"), (pads_begin, "pads_begin"), (pads_end, "pads_end")]
    blocks, begins, ends = _block_values(data, given)
    if data.shape is None or blocks is None:
        return Fact(data.element, open_shape(data.rank))
    batch = data.shape[0] * math.prod(blocks)
    if begins is None or ends is None:
        return Fact(data.element, (batch, *((ANY,) * (len(data.shape) - 1))))
    grown = [size + (begin + end) for size, begin, end in zip(data.shape, begins, ends, strict=True)]
    return Fact(data.element, (batch, *map(exact_quotient, grown[1:], blocks[1:])))


@batch_to_space_2.shape_rule
def _batch_to_space_2_facts(data: Fact, block_shape: Fact, crops_begin: Fact, crops_end: Fact) -> Fact:
    given = [(block_shape, "block_shape"), (crops_begin, "crops_begin"), (crops_end, "crops_end")]
    blocks, begins, ends = _block_values(data, given)
    _check_one_type(*given)
    if data.shape is None:
        return Fact(data.element, None)
    if blocks is None:
        if begins is None or ends is None:
            return Fact(data.element, (ANY,) * len(data.shape))
        cropped = zip(data.shape[1:], begins[1:], ends[1:], strict=True)
        return Fact(data.element, (ANY, *(Dim(max(low(size) - begin - end, 0)) for size, begin, end in cropped)))
    batch = exact_quotient(data.shape[0], math.prod(blocks))
    if begins is None or ends is None:
        return Fact(data.element, (batch, *((ANY,) * (len(data.shape) - 1))))
    axes = zip(data.shape[1:], blocks[1:], begins[1:], ends[1:], strict=True)
    return Fact(data.element, (batch, *(_cropped(size * block, begin + end) for size, block, begin, end in axes)))


def _check_one_type(*given: tuple[Fact, str]) -> None:
    """Raise OpError if inputs, each with its name, are of different element types, which OpenVINO does not read."""
    types = {fact.element for fact, _ in given} - {None}
    texts = ", ".join(f"{what} is {fact.element}" for fact, what in given if fact.element is not None)
    check(len(types) < 2, f"{texts}, expected one element type")


def _cropped(size: Size, crop: int) -> Size:
    maximum = high(size)
    check(maximum is None or maximum >= crop, f"crops of {crop} leave nothing of {size}")
    return at_least(size - crop, 0)


@dataclass(frozen=True)
class PatchAttributes:
    """ExtractImagePatches-3: two values of each list, for rows and columns."""

    sizes: Positives
    strides: Positives
    rates: Positives
    auto_pad: Literal["valid", "same_upper", "same_lower"]

    def check_lengths(self) -> None:
        """Raise OpError unless there are two values of each list."""
        for values, what in ((self.sizes, "sizes"), (self.strides, "strides"), (self.rates, "rates")):
            check(len(values) == 2, f"{what} has length {len(values)}, expected 2: for rows and columns")

    def counts(self, spatial: Sequence[Size]) -> tuple[Size, ...]:
        """The number of patches along each axis; none fit into less than a patch, which is not an error here."""
        if self.auto_pad == "valid":
            return tuple(map(window_count_or_zero, spatial, self.sizes, self.strides, self.rates))
        return tuple(map(same_count, spatial, self.strides))


@op("ExtractImagePatches", since=3)
def extract_image_patches_3(data: Annotated[Tensor, Rank(4)], *, attributes: PatchAttributes) -> np.ndarray:
    """Patches of images [N, C, Y, X], laid into the channels: [N, rows * columns * C, Y, X], channels fastest.

    Source: ExtractImagePatches-3.
    """
    a, spatial = attributes, data.shape[2:]
    pads = resolve_pads(a.auto_pad, spatial, a.sizes, a.strides, a.rates, (), ())
    patches = unfold(data, SlidingWindows(a.sizes, a.strides, a.rates, *pads, known_sizes(a.counts(spatial))))
    channels_last = patches.transpose(0, 4, 5, 1, 2, 3)
    return channels_last.reshape(data.shape[0], math.prod(a.sizes) * data.shape[1], *channels_last.shape[4:])


@extract_image_patches_3.shape_rule
def _extract_image_patches_3_shape(data: Fact, *, attributes: PatchAttributes) -> Fact:
    attributes.check_lengths()
    batch, channels, *spatial = data.shape or (ANY,) * 4
    return Fact(data.element, (batch, channels * math.prod(attributes.sizes), *attributes.counts(spatial)))


@dataclass(frozen=True)
class Col2ImAttributes:
    """Col2Im-15: two values of each list, for rows and columns; an empty list means the default."""

    strides: Positives = (1, 1)
    dilations: Positives = (1, 1)
    pads_begin: NonNegatives = (0, 0)
    pads_end: NonNegatives = (0, 0)

    def windows(self, sizes: Sequence[int], kernel: Sequence[int]) -> SlidingWindows:
        """The windows that the columns of an image of these sizes were taken from."""
        strides, dilations = per_axis(self.strides, 2, 1), per_axis(self.dilations, 2, 1)
        begins, ends = per_axis(self.pads_begin, 2, 0), per_axis(self.pads_end, 2, 0)
        counts = map(window_count_or_zero, sizes, kernel, strides, dilations, begins, ends)
        return SlidingWindows(tuple(kernel), strides, dilations, begins, ends, known_sizes(tuple(counts)))


@op("Col2Im", since=15, widen=True, tolerance=2e-6)
def col2im_15(
    data: Annotated[Tensor, Rank(2, 3)],
    output_size: IndexVector,
    kernel_size: IndexVector,
    *,
    attributes: Col2ImAttributes,
) -> np.ndarray:
    """Images [N, C, Y, X] in which columns [N, C * kernel, windows] are summed; N may be left out of both.

    Source: Col2Im-15.
    """
    sizes = integers(output_size, "output_size")
    batched = data.reshape(-1 if data.size else 1, *data.shape[-2:]) if data.ndim == 2 else data
    images = fold(batched, sizes, attributes.windows(sizes, integers(kernel_size, "kernel_size")))
    return np.ascontiguousarray(images[0] if data.ndim == 2 else images)


@col2im_15.shape_rule
def _col2im_15_shape(data: Fact, output_size: Fact, kernel_size: Fact, *, attributes: Col2ImAttributes) -> Fact:
    given = (output_size, "output_size"), (kernel_size, "kernel_size")
    _check_one_type(*given)
    for fact, what in given:
        check(not fact.shape or may_equal(fact.shape[0], 2), f"{what} {fact} must have two values")
    check_lists(attributes, 2)
    if data.shape is None:
        return Fact(data.element, None)
    *batch, depth, count = data.shape
    kernel, image = kernel_size.ints("kernel_size"), output_size.sizes("output_size") or (ANY, ANY)
    check(kernel is None or min(kernel) > 0, f"kernel_size {list(kernel or ())} has a value below 1")
    channels = ANY if kernel is None else exact_quotient(depth, math.prod(kernel))
    sizes = [size for size in image if isinstance(size, int)]
    if kernel is not None and len(sizes) == 2:
        expected = math.prod(attributes.windows(sizes, kernel).counts)
        text = f"data {data} has {count} columns, an image of {sizes[0]} x {sizes[1]} gives {expected}"
        check(may_equal(count, expected), text)
    return Fact(data.element, (*batch, channels, *(at_least(size, 0) for size in image)))


def unfold(image: np.ndarray, placed: SlidingWindows) -> np.ndarray:
    """A read-only view (N, C, counts..., kernel...) of the image padded by zeros."""
    if 0 in placed.counts:
        return np.zeros((*image.shape[:2], *placed.counts, *placed.kernel), image.dtype)
    return windows(pad(image, placed.pads), placed.kernel, placed.strides, placed.dilations, placed.counts)


def fold(columns: np.ndarray, sizes: Sequence[int], placed: SlidingWindows) -> np.ndarray:
    """The image (N, C, sizes...) in which every column (N, C * prod(kernel), windows) is added where it was taken.

    What falls into the padding is dropped.
    """
    channels = columns.shape[1] // math.prod(placed.kernel)
    taps = columns.reshape(columns.shape[0], channels, *placed.kernel, *placed.counts)
    padded = [size + begin + end for size, begin, end in zip(sizes, *placed.pads, strict=True)]
    every = (slice(None), slice(None))
    check_memory((columns.shape[0], channels, *padded), columns.dtype, "the padded image")
    image = np.zeros((columns.shape[0], channels, *padded), columns.dtype)
    for tap in np.ndindex(*placed.kernel):
        check_time()
        image[(*every, *tap_slices(tap, placed.counts, placed.strides, placed.dilations))] += taps[(*every, *tap)]
    return image[(*every, *(slice(begin, begin + size) for begin, size in zip(placed.pads_begin, sizes, strict=True)))]
