"""Fast transposed convolution: one product gives a value for each pixel and tap, then the taps are summed by stride phase.

Results whose position has the same remainder by the stride make a dense image, a phase, to which each tap
adds a contiguous block; the phases are interleaved into the result at the end. Small images of many channels
are laid out channels last for that, so that the additions run over channels.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from irexec.backend.convolution import float_weights, narrowed
from irexec.backend.registry import fast_kernel
from irexec.backend.workspace import BLOCK, thread_buffer
from irexec.ir.facts import Fact
from irexec.reference.conv_transpose import add_bias, channels_first, filter_by_group
from irexec.reference.windows import TransposedWindows
from irexec.schema.convolution import BackpropAttributes, ConvTransposeAttributes

Sizes = Sequence[int]
Tap = tuple[int, tuple[int, ...]]
ConvolveTransposed = Callable[[np.ndarray, TransposedWindows], np.ndarray]


def prepare_transposed(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> ConvolveTransposed:
    """A transposed convolution with weights (G, I, O, kernel...) of float type: a function of data and windows.

    Threads may share it. ``irexec.reference.convolution.convolve_transposed`` is the reference.
    """
    groups, inputs, outputs, *kernel = weights.shape
    points = math.prod(kernel)
    phases = _phases(kernel, strides, dilations)

    @functools.cache
    def matrices(channels_last: bool) -> np.ndarray:
        by_tap = weights.reshape(groups, inputs, outputs, points)
        if channels_last:
            return np.ascontiguousarray(by_tap.swapaxes(2, 3)).reshape(groups, inputs, points * outputs)
        return np.ascontiguousarray(by_tap.reshape(groups, inputs, outputs * points).swapaxes(1, 2))

    def multiply_channels_first(pixels: np.ndarray, sizes: Sizes, matrix: np.ndarray, result: np.ndarray, begins: Sizes) -> None:
        pixel_count = pixels.shape[1]
        block = max(1, BLOCK // max(1, points * pixel_count * pixels.itemsize))
        for begin in range(0, outputs, block):
            end = min(begin + block, outputs)
            parts = thread_buffer("parts", (end - begin, points, *sizes), pixels.dtype)
            np.matmul(matrix[begin * points : end * points], pixels, out=parts.reshape((end - begin) * points, pixel_count))
            for phase, taps in phases.items():
                _write_phase(parts, taps, phase, result[begin:end], strides, begins)

    def multiply_channels_last(pixels: np.ndarray, sizes: Sizes, matrix: np.ndarray, result: np.ndarray, begins: Sizes) -> None:
        parts = thread_buffer("parts", (*sizes, points, outputs), pixels.dtype)
        np.matmul(pixels.T, matrix, out=parts.reshape(pixels.shape[1], points * outputs))
        sums = thread_buffer("sums", (*result.shape[1:], outputs), pixels.dtype)
        sums[...] = 0
        into = np.moveaxis(sums, -1, 0)
        for phase, taps in phases.items():
            _write_phase(np.moveaxis(parts, (-1, -2), (0, 1)), taps, phase, into, strides, begins)
        result[...] = into

    def run(x: np.ndarray, placed: TransposedWindows) -> np.ndarray:
        begins, out_sizes = placed.begins, placed.counts
        n, _, *sizes = x.shape
        pixel_count = math.prod(sizes)
        out = np.zeros((n, groups, outputs, *out_sizes), x.dtype)
        use_channels_last = pixel_count * _FEW <= outputs
        multiply = multiply_channels_last if use_channels_last else multiply_channels_first
        for image, result in zip(x, out, strict=True):
            pixels = image.reshape(groups, inputs, pixel_count)
            for group, matrix in enumerate(matrices(use_channels_last)):
                multiply(pixels[group], sizes, matrix, result[group], begins)
        return out.reshape(n, groups * outputs, *out_sizes)

    return run


# Channels of the result per pixel from which on channels last is faster.
_FEW = 4


def _phases(kernel: Sizes, strides: Sizes, dilations: Sizes) -> dict[tuple[int, ...], list[Tap]]:
    """For each phase its taps: the index of each in the kernel and its offset in the phase."""
    phases: dict[tuple[int, ...], list[Tap]] = defaultdict(list)
    for index, tap in enumerate(np.ndindex(*kernel)):
        covered = [t * d for t, d in zip(tap, dilations, strict=True)]
        phase = tuple(r % s for r, s in zip(covered, strides, strict=True))
        phases[phase].append((index, tuple(r // s for r, s in zip(covered, strides, strict=True))))
    return dict(phases)


def _write_phase(parts: np.ndarray, taps: list[Tap], phase: Sizes, out: np.ndarray, strides: Sizes, begins: Sizes) -> None:
    """Sum the taps of one phase and write them to their positions in the result (O, out...)."""
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
    """The dense image of a phase, and its offset in the phase."""
    index, origin = taps[0]
    if len(taps) == 1:
        return parts[:, index], origin
    outputs, _, *sizes = parts.shape
    covered = [size + max(start[axis] for _, start in taps) for axis, size in enumerate(sizes)]
    if parts.strides[0] == parts.itemsize:
        image = np.moveaxis(thread_buffer("phase", (*covered, outputs), parts.dtype), -1, 0)
    else:
        image = thread_buffer("phase", (outputs, *covered), parts.dtype)
    image[...] = 0
    for index, start in taps:
        region = tuple(slice(at, at + size) for at, size in zip(start, sizes, strict=True))
        image[(slice(None), *region)] += parts[:, index]
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
