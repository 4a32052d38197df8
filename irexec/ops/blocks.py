"""Blocks and patches of spatial axes: SpaceToBatch, BatchToSpace, ExtractImagePatches, Col2Im."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, Size, at_least, exact_quotient, high, low, may_equal
from irexec.ir.facts import Fact
from irexec.reference.patches import fold, unfold
from irexec.reference.windows import resolve_pads, window_counts
from irexec.schema.attributes import NonNegatives, Positives
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, check_vector
from irexec.schema.window_sizes import filled, known_rank, same_size, window_size


def _ints(array: np.ndarray) -> list[int]:
    return [int(number) for number in array.ravel().tolist()]


@op("SpaceToBatch", since=2)
def space_to_batch_2(data: np.ndarray, block_shape: np.ndarray, pads_begin: np.ndarray, pads_end: np.ndarray) -> np.ndarray:
    """``data``, padded by zeros, with blocks of every axis but the first moved into the batch.

    There is one number of ``block_shape`` and of the pads for each axis; those of the batch are 1 and 0.
    Source: SpaceToBatch-2.
    """
    blocks = _ints(block_shape)[1:]
    padded = np.pad(data, list(zip(_ints(pads_begin), _ints(pads_end), strict=True)))
    batch, *sizes = padded.shape
    outer = [size // block for size, block in zip(sizes, blocks, strict=True)]
    split = padded.reshape(batch, *(part for pair in zip(outer, blocks, strict=True) for part in pair))
    places = range(len(blocks))
    order = [*(2 + 2 * i for i in places), 0, *(1 + 2 * i for i in places)]
    return split.transpose(order).reshape(batch * math.prod(blocks), *outer)


@op("BatchToSpace", since=2, view=True)
def batch_to_space_2(data: np.ndarray, block_shape: np.ndarray, crops_begin: np.ndarray, crops_end: np.ndarray) -> np.ndarray:
    """Blocks of the batch laid out along every other axis, and cropped: SpaceToBatch undone. Source: BatchToSpace-2."""
    blocks = _ints(block_shape)[1:]
    batch, *sizes = data.shape
    split = data.reshape(*blocks, batch // math.prod(blocks), *sizes)
    count = len(blocks)
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i))]
    grown = [size * block for size, block in zip(sizes, blocks, strict=True)]
    whole = split.transpose(order).reshape(batch // math.prod(blocks), *grown)
    crops = zip(whole.shape, _ints(crops_begin), _ints(crops_end), strict=True)
    return whole[tuple(slice(begin, size - end) for size, begin, end in crops)]


def _block_numbers(data: Fact, given: Sequence[tuple[Fact, str]]) -> list[tuple[int, ...] | None]:
    """The known values of block_shape and of what is added or cut, checked against the rank of the data."""
    numbers = []
    for fact, what in given:
        check_integers(fact, what)
        check_vector(fact, what)
        known = fact.ints()
        first = 1 if what == "block_shape" else 0
        if known is not None:
            check(len(known) > 0 and known[0] == first, f"{what} {list(known)} must begin with {first}, for the batch")
            check(min(known) >= first, f"{what} {list(known)} has a number below {first}")
        lone = fact.shape[0] if fact.shape else ANY
        if data.shape is not None:
            check(may_equal(lone, len(data.shape)), f"{what} has {lone} numbers for data {data}")
        numbers.append(known)
    return numbers


@space_to_batch_2.shape_rule
def _space_to_batch_2_facts(data: Fact, block_shape: Fact, pads_begin: Fact, pads_end: Fact) -> Fact:
    blocks, begins, ends = _block_numbers(data, [(block_shape, "block_shape"), (pads_begin, "pads_begin"), (pads_end, "pads_end")])
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 2, f"data {data} has no axis besides the batch")
    if blocks is None:
        return Fact(data.element, (ANY,) * len(data.shape))
    batch = data.shape[0] * math.prod(blocks)
    if begins is None or ends is None:
        return Fact(data.element, (batch, *((ANY,) * (len(data.shape) - 1))))
    grown = [size + (begin + end) for size, begin, end in zip(data.shape, begins, ends, strict=True)]
    return Fact(data.element, (batch, *map(exact_quotient, grown[1:], blocks[1:])))


@batch_to_space_2.shape_rule
def _batch_to_space_2_facts(data: Fact, block_shape: Fact, crops_begin: Fact, crops_end: Fact) -> Fact:
    given = [(block_shape, "block_shape"), (crops_begin, "crops_begin"), (crops_end, "crops_end")]
    blocks, begins, ends = _block_numbers(data, given)
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) >= 2, f"data {data} has no axis besides the batch")
    if blocks is None:
        if begins is None or ends is None:
            return Fact(data.element, (ANY,) * len(data.shape))
        cuts = map(sum, zip(begins[1:], ends[1:], strict=True))
        return Fact(data.element, (ANY, *(Dim(max(low(size) - cut, 0)) for size, cut in zip(data.shape[1:], cuts, strict=True))))
    batch = exact_quotient(data.shape[0], math.prod(blocks))
    if begins is None or ends is None:
        return Fact(data.element, (batch, *((ANY,) * (len(data.shape) - 1))))
    axes = zip(data.shape[1:], blocks[1:], begins[1:], ends[1:], strict=True)
    return Fact(data.element, (batch, *(_cropped(size * block, begin + end) for size, block, begin, end in axes)))


def _cropped(size: Size, crop: int) -> Size:
    most = high(size)
    check(most is None or most >= crop, f"crops of {crop} leave nothing of {size}")
    return at_least(size - crop, 0)


@op("ExtractImagePatches", since=3)
def extract_image_patches_3(
    data: np.ndarray,
    *,
    sizes: Positives,
    strides: Positives,
    rates: Positives,
    auto_pad: Literal["valid", "same_upper", "same_lower"],
) -> np.ndarray:
    """Patches of images [N, C, Y, X], laid into the channels: [N, rows * columns * C, Y, X], channels fastest.

    Source: ExtractImagePatches-3.
    """
    pads = resolve_pads(auto_pad, data.shape[2:], sizes, strides, rates, (), ())
    patches = unfold(data, sizes, strides, rates, pads)
    moved = patches.transpose(0, 4, 5, 1, 2, 3)
    return moved.reshape(data.shape[0], math.prod(sizes) * data.shape[1], *moved.shape[4:])


@extract_image_patches_3.shape_rule
def _extract_image_patches_3_facts(data: Fact, *, sizes: Positives, strides: Positives, rates: Positives, auto_pad: str) -> Fact:
    known_rank(data, [4], "data")
    for numbers, what in ((sizes, "sizes"), (strides, "strides"), (rates, "rates")):
        check(len(numbers) == 2, f"{what} {list(numbers)} must be two numbers")
    batch, channels, *spatial = data.shape or (ANY,) * 4
    axes = zip(spatial, sizes, strides, rates, strict=True)
    counts = [same_size(n, s) if auto_pad != "valid" else _patches(n, k, s, r) for n, k, s, r in axes]
    return Fact(data.element, (batch, channels * math.prod(sizes), *counts))


def _patches(size: Size, kernel: int, stride: int, rate: int) -> Size:
    """None fit into less than a patch, which is no error here."""
    reach = rate * (kernel - 1) + 1
    most = high(size)
    if most is not None and most < reach:
        return 0
    fits = window_size(at_least(size, reach), kernel, stride, rate, 0, 0)
    return fits if low(size) >= reach else Dim(0, high(fits))


@op("Col2Im", since=15, widen=True, tolerance=2e-6)
def col2im_15(
    data: np.ndarray,
    output_size: np.ndarray,
    kernel_size: np.ndarray,
    *,
    strides: Positives = (1, 1),
    dilations: Positives = (1, 1),
    pads_begin: NonNegatives = (0, 0),
    pads_end: NonNegatives = (0, 0),
) -> np.ndarray:
    """Images [N, C, Y, X] in which columns [N, C * kernel, windows] are summed; N may be left out of both.

    Source: Col2Im-15.
    """
    sizes, kernel = _ints(output_size), _ints(kernel_size)
    pads = filled(pads_begin, 2, 0), filled(pads_end, 2, 0)
    batched = data.reshape(-1 if data.size else 1, *data.shape[-2:]) if data.ndim == 2 else data
    images = fold(batched, sizes, kernel, filled(strides, 2, 1), filled(dilations, 2, 1), pads)
    return np.ascontiguousarray(images[0] if data.ndim == 2 else images)


@col2im_15.shape_rule
def _col2im_15_facts(
    data: Fact,
    output_size: Fact,
    kernel_size: Fact,
    *,
    strides: Positives = (1, 1),
    dilations: Positives = (1, 1),
    pads_begin: NonNegatives = (0, 0),
    pads_end: NonNegatives = (0, 0),
) -> Fact:
    known_rank(data, [2, 3], "data")
    for fact, what in ((output_size, "output_size"), (kernel_size, "kernel_size")):
        check_integers(fact, what)
        check_vector(fact, what)
        check(not fact.shape or may_equal(fact.shape[0], 2), f"{what} {fact} must be two numbers")
    for numbers, what in ((strides, "strides"), (dilations, "dilations"), (pads_begin, "pads_begin"), (pads_end, "pads_end")):
        check(len(numbers) in (0, 2), f"{what} {list(numbers)} must be two numbers")
    if data.shape is None:
        return Fact(data.element, None)
    *batch, depth, count = data.shape
    kernel, image = kernel_size.ints(), output_size.sizes() or (ANY, ANY)
    check(kernel is None or min(kernel) > 0, f"kernel_size {list(kernel or ())} has a number below 1")
    channels = ANY if kernel is None else exact_quotient(depth, math.prod(kernel))
    sizes = [size for size in image if isinstance(size, int)]
    if kernel is not None and len(sizes) == 2:
        pads = filled(pads_begin, 2, 0), filled(pads_end, 2, 0)
        expected = math.prod(window_counts(sizes, kernel, filled(strides, 2, 1), filled(dilations, 2, 1), pads))
        check(may_equal(count, expected), f"data {data} has {count} columns, an image of {sizes[0]} x {sizes[1]} gives {expected}")
    return Fact(data.element, (*batch, channels, *(at_least(size, 0) for size in image)))
