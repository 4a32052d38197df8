"""Transposed convolution, fast: one product to a value for each pixel and tap, then the taps added up by stride phase.

Results whose place leaves the same remainder by the stride make a dense image, a phase, to which each tap
adds a contiguous block; the phases are interleaved into the result at the end. Small images of many channels
are turned for that, so that the additions run over channels.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from irexec.backend.convolution import float_weights, narrowed
from irexec.backend.registry import fast_kernel
from irexec.backend.workspace import BLOCK, scratch
from irexec.ir.facts import Fact
from irexec.reference.conv_transpose import add_bias, channels_first, filter_by_group
from irexec.reference.windows import TransposedWindows
from irexec.schema.convolution import BackpropAttributes, ConvTransposeAttributes

Sizes = Sequence[int]
Tap = tuple[int, tuple[int, ...]]
ConvolveTransposed = Callable[[np.ndarray, TransposedWindows], np.ndarray]


def prepare_transposed(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> ConvolveTransposed:
    """The fast way for weights (G, I, O, kernel...) of float type: a function of data, begins and sizes of the result.

    Threads may share it. ``irexec.reference.convolution.convolve_transposed`` is the referee.
    """
    groups, inputs, outputs, *kernel = weights.shape
    points = math.prod(kernel)
    phases = _phases(kernel, strides, dilations)

    @functools.cache
    def matrices(turned: bool) -> np.ndarray:
        by_tap = weights.reshape(groups, inputs, outputs, points)
        if turned:
            return np.ascontiguousarray(by_tap.swapaxes(2, 3)).reshape(groups, inputs, points * outputs)
        return np.ascontiguousarray(by_tap.reshape(groups, inputs, outputs * points).swapaxes(1, 2))

    def straight(pixels: np.ndarray, sizes: Sizes, matrix: np.ndarray, result: np.ndarray, begins: Sizes) -> None:
        spots = pixels.shape[1]
        block = max(1, BLOCK // max(1, points * spots * pixels.itemsize))
        for first in range(0, outputs, block):
            last = min(first + block, outputs)
            parts = scratch("parts", (last - first, points, *sizes), pixels.dtype)
            np.matmul(matrix[first * points : last * points], pixels, out=parts.reshape((last - first) * points, spots))
            for phase, taps in phases.items():
                _place(parts, taps, phase, result[first:last], strides, begins)

    def turned(pixels: np.ndarray, sizes: Sizes, matrix: np.ndarray, result: np.ndarray, begins: Sizes) -> None:
        parts = scratch("parts", (*sizes, points, outputs), pixels.dtype)
        np.matmul(pixels.T, matrix, out=parts.reshape(pixels.shape[1], points * outputs))
        sums = scratch("sums", (*result.shape[1:], outputs), pixels.dtype)
        sums[...] = 0
        into = np.moveaxis(sums, -1, 0)
        for phase, taps in phases.items():
            _place(np.moveaxis(parts, (-1, -2), (0, 1)), taps, phase, into, strides, begins)
        result[...] = into

    def run(x: np.ndarray, placed: TransposedWindows) -> np.ndarray:
        begins, out_sizes = placed.begins, placed.counts
        n, _, *sizes = x.shape
        spots = math.prod(sizes)
        out = np.zeros((n, groups, outputs, *out_sizes), x.dtype)
        turn = spots * _FEW <= outputs
        for image, result in zip(x, out, strict=True):
            pixels = image.reshape(groups, inputs, spots)
            for group, matrix in enumerate(matrices(turn)):
                (turned if turn else straight)(pixels[group], sizes, matrix, result[group], begins)
        return out.reshape(n, groups * outputs, *out_sizes)

    return run


# Channels of the result for each pixel, from which on turning is worth it.
_FEW = 4


def _phases(kernel: Sizes, strides: Sizes, dilations: Sizes) -> dict[tuple[int, ...], list[Tap]]:
    """For each phase its taps: the number of each in the kernel and where it starts in the phase."""
    phases: dict[tuple[int, ...], list[Tap]] = defaultdict(list)
    for number, tap in enumerate(np.ndindex(*kernel)):
        reach = [t * d for t, d in zip(tap, dilations, strict=True)]
        phase = tuple(r % s for r, s in zip(reach, strides, strict=True))
        phases[phase].append((number, tuple(r // s for r, s in zip(reach, strides, strict=True))))
    return dict(phases)


def _place(parts: np.ndarray, taps: list[Tap], phase: Sizes, out: np.ndarray, strides: Sizes, begins: Sizes) -> None:
    """Add up the taps of one phase and put it where it belongs in the result (O, out...)."""
    summed, origin = _sum(parts, taps)
    into, source = [slice(None)], [slice(None)]
    for axis, (p, s, begin) in enumerate(zip(phase, strides, begins, strict=True)):
        first = max(0, -(-(begin - p) // s) - origin[axis])
        start = p + s * (first + origin[axis]) - begin
        room = -(-(out.shape[1 + axis] - start) // s)
        count = max(0, min(summed.shape[1 + axis] - first, room))
        into.append(slice(start, start + s * count, s))
        source.append(slice(first, first + count))
    if all(part.start < part.stop for part in source[1:]):
        out[tuple(into)] = summed[tuple(source)]


def _sum(parts: np.ndarray, taps: list[Tap]) -> tuple[np.ndarray, tuple[int, ...]]:
    """The dense image of a phase, and where in the phase it starts."""
    number, origin = taps[0]
    if len(taps) == 1:
        return parts[:, number], origin
    outputs, _, *sizes = parts.shape
    reach = [size + max(start[axis] for _, start in taps) for axis, size in enumerate(sizes)]
    if parts.strides[0] == parts.itemsize:
        image = np.moveaxis(scratch("phase", (*reach, outputs), parts.dtype), -1, 0)
    else:
        image = scratch("phase", (outputs, *reach), parts.dtype)
    image[...] = 0
    for number, start in taps:
        place = tuple(slice(at, at + size) for at, size in zip(start, sizes, strict=True))
        image[(slice(None), *place)] += parts[:, number]
    return image, (0,) * len(sizes)


@fast_kernel("ConvolutionBackpropData", since=1)
def convolution_backprop_data(
    data: Fact, filter: Fact, output_shape: Fact | None = None, *, attributes: BackpropAttributes
) -> Callable[..., np.ndarray] | None:
    """Known weights of one group."""
    weights = float_weights(data, filter)
    return None if weights is None else _prepared(weights[None], attributes)


@fast_kernel("GroupConvolutionBackpropData", since=1)
def group_convolution_backprop_data(
    data: Fact, filter: Fact, output_shape: Fact | None = None, *, attributes: BackpropAttributes
) -> Callable[..., np.ndarray] | None:
    """Known weights of several groups."""
    weights = float_weights(data, filter)
    return None if weights is None else _prepared(weights, attributes)


def _prepared(weights: np.ndarray, attributes: BackpropAttributes) -> Callable[..., np.ndarray]:
    kernel = weights.shape[3:]
    convolve = prepare_transposed(weights, *attributes.steps(len(kernel)))

    def run(data: np.ndarray, filter: np.ndarray, output_shape: np.ndarray | None = None) -> np.ndarray:
        given = None if output_shape is None else [int(size) for size in output_shape]
        placed = attributes.windows(data.shape[2:], kernel, given)
        with np.errstate(all="ignore"):
            return narrowed(convolve(data.astype(weights.dtype, copy=False), placed), data.dtype)

    return run


@fast_kernel("ConvTranspose", since="onednn")
def conv_transpose(
    input: Fact,
    filter: Fact,
    bias: Fact | None = None,
    *,
    attributes: ConvTransposeAttributes,
    groups: int,
    data_format: str,
    filter_format: str | None,
    weights_format: str | None,
) -> Callable[..., np.ndarray] | None:
    """Known weights, in any layout."""
    known = float_weights(input, filter)
    if known is None:
        return None
    weights = filter_by_group(known, groups, filter_format or weights_format or "XIO")
    kernel = weights.shape[3:]
    convolve = prepare_transposed(weights, *attributes.steps(len(kernel)))

    def run(input: np.ndarray, filter: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        data = channels_first(input.astype(weights.dtype, copy=False), data_format)
        placed = attributes.windows(data.shape[2:], kernel)
        with np.errstate(all="ignore"):
            return narrowed(add_bias(convolve(data, placed), bias, data_format), input.dtype)

    return run
