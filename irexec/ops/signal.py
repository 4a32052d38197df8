"""Fourier transforms: DFT, IDFT, RDFT, IRDFT, STFT, ISTFT. Complex numbers are pairs (real, imaginary) along a last
axis of size 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Size, at_least, high, low, may_equal, meet, span
from irexec.ir.facts import Fact, integer, integers
from irexec.reference import special
from irexec.schema.opdef import FloatTensor, FloatVector, IndexElement, IndexScalar, IndexVector, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import (
    non_negative,
    normalize_axes,
    open_shape,
    scalar_size,
    unify_elements,
    vector_length,
)

Reals = Annotated[FloatTensor, Rank(1, None)]
Pairs = Annotated[FloatTensor, Rank(2, None)]


@op("DFT", since=7, widen=True, tolerance=1e-5)
def dft_7(data: Pairs, axes: IndexVector, signal_size: IndexVector | None = None) -> np.ndarray:
    """The discrete Fourier transform of complex numbers along ``axes``.

    The data are first truncated or padded with zeros to ``signal_size``, where -1 keeps the size of an axis.
    Negative axes are counted without the last axis, that of the pairs. Source: DFT-7.
    """
    return _complex(data, axes, signal_size, inverse=False)


@op("IDFT", since=7, widen=True, tolerance=1e-5)
def idft_7(data: Pairs, axes: IndexVector, signal_size: IndexVector | None = None) -> np.ndarray:
    """The inverse of DFT, divided by the number of points. Source: IDFT-7."""
    return _complex(data, axes, signal_size, inverse=True)


def _complex(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None, inverse: bool) -> np.ndarray:
    transformed = normalize_axes(integers(axes, "axes"), data.ndim - 1)
    points = special.resized(special.to_complex(data), transformed, _sizes(data.shape, transformed, signal_size))
    result = special.to_pairs(special.transform(points, transformed, inverse), data.dtype)
    return result.copy() if np.may_share_memory(result, data) else result


@op("RDFT", since=9, widen=True, tolerance=1e-5)
def rdft_9(data: Reals, axes: IndexVector, signal_size: IndexVector | None = None) -> np.ndarray:
    """The transform of real numbers: n // 2 + 1 points along the last of ``axes``, the rest is redundant. Source:
    RDFT-9."""
    transformed = normalize_axes(integers(axes, "axes"), data.ndim)
    points = special.resized(data, transformed, _sizes(data.shape, transformed, signal_size))
    return special.to_pairs(special.from_real(points, transformed), data.dtype)


@op("IRDFT", since=9, widen=True, tolerance=1e-5)
def irdft_9(data: Pairs, axes: IndexVector, signal_size: IndexVector | None = None) -> np.ndarray:
    """The inverse of RDFT.

    Along the last of ``axes`` the result has size 2 * (n - 1), or the ``signal_size`` s, for which s // 2 + 1 points
    of the data are used. Source: IRDFT-9.
    """
    transformed = normalize_axes(integers(axes, "axes"), data.ndim - 1)
    sizes = _sizes(data.shape, transformed, signal_size)
    if signal_size is None or integers(signal_size, "signal_size")[-1] == -1:
        sizes[-1] = max(2 * (data.shape[transformed[-1]] - 1), 0)
    halves = [*sizes[:-1], sizes[-1] // 2 + 1]
    points = special.resized(special.to_complex(data), transformed, halves)
    return special.to_real(points, transformed, sizes[-1]).astype(data.dtype, copy=False)


def _sizes(shape: Sequence[int], axes: Sequence[int], signal_size: np.ndarray | None) -> list[int]:
    given = [-1] * len(axes) if signal_size is None else integers(signal_size, "signal_size")
    return [shape[axis] if size == -1 else size for axis, size in zip(axes, given, strict=True)]


@dft_7.shape_rule
@idft_7.shape_rule
def _complex_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    _check_lengths(axes, signal_size)
    _check_pairs(data.shape)
    if data.shape is None:
        return Fact(data.element, None)
    transformed, shape = _transformed_axes(axes, len(data.shape) - 1), data.shape[:-1]
    return Fact(data.element, (*(shape if signal_size is None else _resized(shape, transformed, signal_size)), 2))


@rdft_9.shape_rule
def _rdft_9_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    _check_lengths(axes, signal_size)
    check(vector_length(axes) != 0, "axes is empty")
    if data.shape is None:
        return Fact(data.element, None)
    transformed = _transformed_axes(axes, len(data.shape))
    shape = list(data.shape if signal_size is None else _resized(data.shape, transformed, signal_size))
    if transformed is None:
        return Fact(data.element, (*(ANY,) * len(shape), 2))
    shape[transformed[-1]] = _half_spectrum(shape[transformed[-1]])
    return Fact(data.element, (*shape, 2))


def _half_spectrum(size: Size) -> Size:
    """size // 2 + 1, or 0 for size 0."""
    top = high(size)
    return span(low(size) // 2 + 1 if low(size) else 0, None if top is None else top // 2 + 1 if top else 0)


@irdft_9.shape_rule
def _irdft_9_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    _check_lengths(axes, signal_size)
    check(vector_length(axes) != 0, "axes is empty")
    _check_pairs(data.shape)
    if data.shape is None:
        return Fact(data.element, None)
    shape = list(data.shape[:-1])
    transformed = _transformed_axes(axes, len(shape))
    if transformed is None:
        return Fact(data.element, open_shape(len(shape)))
    result = shape if signal_size is None else list(_resized(shape, transformed, signal_size))
    last, default = transformed[-1], at_least(shape[transformed[-1]] * 2, 2) - 2
    given = None if signal_size is None else signal_size.sizes("signal_size")
    if signal_size is None or (given is not None and given[-1] == -1):
        result[last] = default
    elif given is None or may_equal(given[-1], -1):
        result[last] = ANY
    return Fact(data.element, tuple(result))


def _check_lengths(axes: Fact, signal_size: Fact | None) -> None:
    if signal_size is not None and axes.shape is not None and signal_size.shape is not None:
        message = f"axes has {axes.shape[0]} elements, signal_size has {signal_size.shape[0]}"
        check(may_equal(axes.shape[0], signal_size.shape[0]), message)


def _check_pairs(shape: PartialShape) -> None:
    if shape is not None:
        check(may_equal(shape[-1], 2), f"the last axis of data has size {shape[-1]}, expected 2")


def _transformed_axes(axes: Fact, rank: int) -> tuple[int, ...] | None:
    count = vector_length(axes)
    check(count is None or count <= rank, f"axes has {count} elements, data has {rank} axes to transform")
    values = axes.ints("axes")
    if values is None:
        return None
    known = normalize_axes(values, rank)
    check(len(set(known)) == len(known), f"axes {list(values)} has an axis twice")
    return known


def _resized(shape: Sequence[Size], axes: Sequence[int] | None, signal_size: Fact) -> tuple[Size, ...]:
    """The sizes after truncating or padding to ``signal_size``."""
    if axes is None:
        return (ANY,) * len(shape)
    result, given = list(shape), signal_size.sizes("signal_size")
    for i, axis in enumerate(axes):
        size: Size = Dim(-1) if given is None else given[i]
        if not may_equal(size, -1):
            result[axis] = non_negative(size, "signal_size")
        elif size != -1:
            result[axis] = ANY
    return tuple(result)


@op("STFT", since=15, widen=True, tolerance=1e-5)
def stft_15(
    signal: Annotated[FloatTensor, Rank(1, 2)],
    window: FloatVector,
    frame_size: IndexScalar,
    frame_step: IndexScalar,
    *,
    transpose_frames: bool,
) -> np.ndarray:
    """The transforms of frames of the signal, at a stride of ``frame_step``, each multiplied with the window.

    A window shorter than a frame is centered in it. Shapes: (N) or (batch, N) to (..., frames, frame_size // 2 + 1, 2),
    with these two axes swapped by ``transpose_frames``. Source: STFT-15.
    """
    size, step = integer(frame_size, "frame_size"), integer(frame_step, "frame_step")
    frames = special.frames_of(signal, size, step) * special.centered(window, size)
    points = special.from_real(frames, (frames.ndim - 1,))
    return special.to_pairs(points.swapaxes(-1, -2) if transpose_frames else points, signal.dtype)


@stft_15.shape_rule
def _stft_15_facts(signal: Fact, window: Fact, frame_size: Fact, frame_step: Fact, *, transpose_frames: bool) -> Fact:
    kind = unify_elements(signal, window)
    size, step = _check_frames(window, frame_size, frame_step)
    if signal.shape is None:
        return Fact(kind, None)
    length = signal.shape[-1]
    bins: Size = ANY
    frames: Size = ANY
    if size is not None:
        longest = high(length)
        check(longest is None or longest >= size, f"frame_size {size} is larger than the signal of {length}")
        bins = size // 2 + 1
    if size is not None and step is not None:
        frames = (at_least(length, size) - size) // step + 1
    pair = (bins, frames) if transpose_frames else (frames, bins)
    return Fact(kind, (*signal.shape[:-1], *pair, 2))


def _check_frames(window: Fact, frame_size: Fact, frame_step: Fact) -> tuple[int | None, int | None]:
    size, step = frame_size.scalar("frame_size"), frame_step.scalar("frame_step")
    check(size is None or size > 0, f"frame_size is {size}, expected 1 or more")
    check(step is None or step > 0, f"frame_step is {step}, expected 1 or more")
    if window.shape is not None and size is not None:
        within = (high(window.shape[0]) is None or (high(window.shape[0]) or 0) > 0) and low(window.shape[0]) <= size
        check(within, f"window has {window.shape[0]} elements, expected 1 to frame_size {size}")
    return size, step


@op("ISTFT", since=16, widen=True, tolerance=1e-5)
def istft_16(
    data: Annotated[FloatTensor, Rank(3, 4)],
    window: FloatVector,
    frame_size: IndexScalar,
    frame_step: IndexScalar,
    signal_length: IndexElement | None = None,
    *,
    center: bool,
    normalized: bool,
) -> np.ndarray:
    """The inverse of STFT: frames times the window, added at their positions in the signal.

    The sum is divided by the sum of the squares of the windows, and 0 where that is 0. ``center`` removes half a frame,
    rounded down, at both ends, so that an odd ``frame_size`` leaves one element more than the specification says;
    ``normalized`` multiplies by the square root of ``frame_size``. The result is padded with zeros to a longer
    ``signal_length``. Source: ISTFT-16, and OpenVINO 2026.4 for what is not specified.
    """
    size, step = integer(frame_size, "frame_size"), integer(frame_step, "frame_step")
    points = special.to_complex(data).swapaxes(-1, -2)
    frames = special.to_real(points, (points.ndim - 1,), size)
    padded_window = special.centered(window, size)
    total = special.overlap_add((frames * padded_window).reshape(math.prod(data.shape[:-3]), *frames.shape[-2:]), step)
    weight = special.overlap_add(np.broadcast_to(padded_window * padded_window, (1, frames.shape[-2], size)), step)[0]
    scale = np.sqrt(total.dtype.type(size)) if normalized else total.dtype.type(1)
    signal = np.where(weight == 0, 0, total * scale / np.where(weight == 0, 1, weight)).astype(data.dtype, copy=False)
    margin = size // 2 if center else 0
    length = signal.shape[1] - 2 * margin if signal_length is None else integer(signal_length, "signal_length")
    result = special.resized(signal[:, margin:], (1,), (max(length, 0),))
    return result.reshape(*data.shape[:-3], result.shape[1]).copy()


@istft_16.shape_rule
def _istft_16_facts(
    data: Fact, window: Fact, frame_size: Fact, frame_step: Fact, signal_length: Fact | None = None, *, center: bool
) -> Fact:
    kind = unify_elements(data, window)
    size, step = _check_frames(window, frame_size, frame_step)
    length = _signal_length(data.shape, size, step, signal_length, center)
    if data.shape is None:
        return Fact(kind, None)
    meet(data.shape[-1], 2)
    if size is not None:
        bins, expected = data.shape[-3], size // 2 + 1
        check(may_equal(bins, expected), f"data has {bins} points per frame, expected {expected} for frame_size {size}")
    return Fact(kind, (*data.shape[:-3], length))


def _signal_length(
    shape: PartialShape, size: int | None, step: int | None, signal_length: Fact | None, center: bool
) -> Size:
    if signal_length is not None:
        return scalar_size(signal_length, "signal_length")
    if shape is None or len(shape) < 2 or step is None:
        return ANY
    hops = (at_least(shape[-2], 1) - 1) * step
    if size is None:
        return Dim(low(hops))
    return hops + (size % 2 if center else size)
