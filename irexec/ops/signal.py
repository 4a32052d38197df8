"""Fourier transforms: DFT, IDFT, RDFT, IRDFT, STFT, ISTFT. Complex numbers are pairs along a last axis of 2."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, Dim, PartialShape, Size, at_least, high, low, may_equal, meet, span
from irexec.ir.facts import Fact
from irexec.reference import fourier
from irexec.schema.axes import normalize_axes
from irexec.schema.element_checks import check_float, check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar, check_vector
from irexec.schema.sizes import non_negative, open_shape, scalar_size, vector_length


@op("DFT", since=7, widen=True, tolerance=1e-5)
def dft_7(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None = None) -> np.ndarray:
    """The discrete Fourier transform of complex numbers along ``axes``.

    The data are first cut or filled with zeros to ``signal_size``, where -1 leaves an axis as it is.
    Negative axes count from the one before the last, which holds the pairs. Source: DFT-7.
    """
    return _complex(data, axes, signal_size, inverse=False)


@op("IDFT", since=7, widen=True, tolerance=1e-5)
def idft_7(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None = None) -> np.ndarray:
    """The inverse of DFT: conjugate and divided by the number of points. Source: IDFT-7."""
    return _complex(data, axes, signal_size, inverse=True)


def _complex(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None, inverse: bool) -> np.ndarray:
    places = normalize_axes(axes.ravel().tolist(), data.ndim - 1)
    numbers = fourier.fitted(fourier.joined(data), places, _sizes(data.shape, places, signal_size))
    result = fourier.parted(fourier.transform(numbers, places, inverse), data.dtype)
    return result.copy() if np.may_share_memory(result, data) else result


@op("RDFT", since=9, widen=True, tolerance=1e-5)
def rdft_9(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None = None) -> np.ndarray:
    """The transform of real numbers: along the last of ``axes`` only its first half and one. Source: RDFT-9."""
    places = normalize_axes(axes.ravel().tolist(), data.ndim)
    numbers = fourier.fitted(data, places, _sizes(data.shape, places, signal_size))
    return fourier.parted(fourier.from_real(numbers, places), data.dtype)


@op("IRDFT", since=9, widen=True, tolerance=1e-5)
def irdft_9(data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None = None) -> np.ndarray:
    """The inverse of RDFT.

    Along the last of ``axes`` it gives twice the numbers but one, or as ``signal_size`` says, of which
    the data then needs its half and one. Source: IRDFT-9.
    """
    places = normalize_axes(axes.ravel().tolist(), data.ndim - 1)
    sizes = _sizes(data.shape, places, signal_size)
    if signal_size is None or int(signal_size.ravel()[-1]) == -1:
        sizes[-1] = max(2 * (data.shape[places[-1]] - 1), 0)
    halves = [*sizes[:-1], sizes[-1] // 2 + 1]
    numbers = fourier.fitted(fourier.joined(data), places, halves)
    return fourier.to_real(numbers, places, sizes[-1]).astype(data.dtype, copy=False)


def _sizes(shape: Sequence[int], places: Sequence[int], signal_size: np.ndarray | None) -> list[int]:
    asked = [-1] * len(places) if signal_size is None else signal_size.ravel().tolist()
    return [shape[place] if size == -1 else size for place, size in zip(places, asked, strict=True)]


@dft_7.shape_rule
@idft_7.shape_rule
def _complex_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    check_float(data, "data")
    _check_vectors(axes, signal_size)
    _check_pairs(data.shape)
    if data.shape is None:
        return Fact(data.element, None)
    places = _places(axes, len(data.shape) - 1)
    shape = (*data.shape[:-1], 2)
    if signal_size is None:
        return Fact(data.element, shape)
    return Fact(data.element, (*_asked(shape[:-1], places, signal_size), 2))


@rdft_9.shape_rule
def _rdft_9_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    check_float(data, "data")
    _check_vectors(axes, signal_size)
    check(vector_length(axes) != 0, "axes is empty")
    if data.shape is None:
        return Fact(data.element, None)
    check(len(data.shape) > 0, "data is a scalar")
    places = _places(axes, len(data.shape))
    shape = list(data.shape if signal_size is None else _asked(data.shape, places, signal_size))
    if places is None:
        return Fact(data.element, (*(ANY for _ in shape), 2))
    shape[places[-1]] = _half(shape[places[-1]])
    return Fact(data.element, (*shape, 2))


def _half(size: Size) -> Size:
    """The half and one; of nothing, nothing."""
    top = high(size)
    return span(low(size) // 2 + 1 if low(size) else 0, None if top is None else top // 2 + 1 if top else 0)


@irdft_9.shape_rule
def _irdft_9_facts(data: Fact, axes: Fact, signal_size: Fact | None = None) -> Fact:
    check_float(data, "data")
    _check_vectors(axes, signal_size)
    check(vector_length(axes) != 0, "axes is empty")
    _check_pairs(data.shape)
    if data.shape is None:
        return Fact(data.element, None)
    shape = list(data.shape[:-1])
    places = _places(axes, len(shape))
    if places is None:
        return Fact(data.element, open_shape(len(shape)))
    result = shape if signal_size is None else list(_asked(shape, places, signal_size))
    last, default = places[-1], at_least(shape[places[-1]] * 2, 2) - 2
    asked = None if signal_size is None else signal_size.sizes()
    if signal_size is None or (asked is not None and asked[-1] == -1):
        result[last] = default
    elif asked is None or may_equal(asked[-1], -1):
        result[last] = ANY
    return Fact(data.element, tuple(result))


def _check_vectors(axes: Fact, signal_size: Fact | None) -> None:
    check_integers(axes, "axes")
    check_vector(axes, "axes")
    if signal_size is not None:
        check_integers(signal_size, "signal_size")
        check_vector(signal_size, "signal_size")
        if axes.shape is not None and signal_size.shape is not None:
            many = f"axes has {axes.shape[0]} numbers, signal_size {signal_size.shape[0]}"
            check(may_equal(axes.shape[0], signal_size.shape[0]), many)


def _check_pairs(shape: PartialShape) -> None:
    if shape is not None:
        check(len(shape) >= 2, f"data has rank {len(shape)}, expected 2 or more")
        check(may_equal(shape[-1], 2), f"the last axis of data has size {shape[-1]}, expected 2")


def _places(axes: Fact, rank: int) -> tuple[int, ...] | None:
    many = vector_length(axes)
    check(many is None or many <= rank, f"axes has {many} numbers, data has {rank} axes to transform")
    values = axes.ints()
    if values is None:
        return None
    places = normalize_axes(values, rank)
    check(len(set(places)) == len(places), f"axes {list(values)} has an axis twice")
    return places


def _asked(shape: Sequence[Size], places: Sequence[int] | None, signal_size: Fact) -> tuple[Size, ...]:
    """The sizes after cutting or filling."""
    if places is None:
        return (ANY,) * len(shape)
    result, asked = list(shape), signal_size.sizes()
    for i, place in enumerate(places):
        size: Size = Dim(-1) if asked is None else asked[i]
        if not may_equal(size, -1):
            result[place] = non_negative(size, "signal_size")
        elif size != -1:
            result[place] = ANY
    return tuple(result)


@op("STFT", since=15, widen=True, tolerance=1e-5)
def stft_15(
    signal: np.ndarray, window: np.ndarray, frame_size: np.ndarray, frame_step: np.ndarray, *, transpose_frames: bool
) -> np.ndarray:
    """The transforms of frames of the signal, ``frame_step`` apart, each multiplied with the window.

    A window shorter than a frame lies in its middle. Shapes: (N) or (batch, N) to (..., frames, frame_size // 2 + 1, 2),
    with these two axes swapped by ``transpose_frames``. Source: STFT-15.
    """
    size, step = int(frame_size), int(frame_step)
    frames = fourier.frames_of(signal, size, step) * fourier.centred(window, size)
    numbers = fourier.from_real(frames, (frames.ndim - 1,))
    return fourier.parted(numbers.swapaxes(-1, -2) if transpose_frames else numbers, signal.dtype)


@stft_15.shape_rule
def _stft_15_facts(signal: Fact, window: Fact, frame_size: Fact, frame_step: Fact, *, transpose_frames: bool) -> Fact:
    kind = unify_elements(signal, window)
    check_float(signal, "signal")
    size, step = _check_frames(window, frame_size, frame_step)
    if signal.shape is None:
        return Fact(kind, None)
    check(len(signal.shape) in (1, 2), f"signal has rank {len(signal.shape)}, expected 1 or 2")
    long = signal.shape[-1]
    bins: Size = ANY
    frames: Size = ANY
    if size is not None:
        most = high(long)
        check(most is None or most >= size, f"frame_size {size} is larger than the signal of {long}")
        bins = size // 2 + 1
    if size is not None and step is not None:
        frames = (at_least(long, size) - size) // step + 1
    pair = (bins, frames) if transpose_frames else (frames, bins)
    return Fact(kind, (*signal.shape[:-1], *pair, 2))


def _check_frames(window: Fact, frame_size: Fact, frame_step: Fact) -> tuple[int | None, int | None]:
    check_vector(window, "window")
    for fact, what in ((frame_size, "frame_size"), (frame_step, "frame_step")):
        check_integers(fact, what)
        check_scalar(fact, what)
    size, step = frame_size.scalar("frame_size"), frame_step.scalar("frame_step")
    check(size is None or size > 0, f"frame_size is {size}, expected 1 or more")
    check(step is None or step > 0, f"frame_step is {step}, expected 1 or more")
    if window.shape is not None and size is not None:
        within = (high(window.shape[0]) is None or (high(window.shape[0]) or 0) > 0) and low(window.shape[0]) <= size
        check(within, f"window has {window.shape[0]} numbers, expected 1 to frame_size {size}")
    return size, step


@op("ISTFT", since=16, widen=True, tolerance=1e-5)
def istft_16(
    data: np.ndarray,
    window: np.ndarray,
    frame_size: np.ndarray,
    frame_step: np.ndarray,
    signal_length: np.ndarray | None = None,
    *,
    center: bool,
    normalized: bool,
) -> np.ndarray:
    """The signal of which the data are the transforms of frames: frames times the window, added where they lie.

    The sum is divided by the sum of the squares of the windows, and 0 where that is 0. ``center`` cuts half a frame,
    rounded down, off either end, so that an odd ``frame_size`` leaves one number more than the specification says;
    ``normalized`` multiplies with the root of ``frame_size``. A longer ``signal_length`` is filled with zeros.
    Source: ISTFT-16, and OpenVINO 2026.4 for what it leaves open.
    """
    size, step = int(frame_size.reshape(())), int(frame_step.reshape(()))
    numbers = fourier.joined(data).swapaxes(-1, -2)
    frames = fourier.to_real(numbers, (numbers.ndim - 1,), size)
    whole = fourier.centred(window, size)
    total = fourier.overlapped((frames * whole).reshape(math.prod(data.shape[:-3]), *frames.shape[-2:]), step)
    weight = fourier.overlapped(np.broadcast_to(whole * whole, (1, frames.shape[-2], size)), step)[0]
    scale = np.sqrt(total.dtype.type(size)) if normalized else total.dtype.type(1)
    signal = np.where(weight == 0, 0, total * scale / np.where(weight == 0, 1, weight)).astype(data.dtype, copy=False)
    margin = size // 2 if center else 0
    wanted = signal.shape[1] - 2 * margin if signal_length is None else int(signal_length.reshape(()))
    fitted = fourier.fitted(signal[:, margin:], (1,), (max(wanted, 0),))
    return fitted.reshape(*data.shape[:-3], fitted.shape[1]).copy()


@istft_16.shape_rule
def _istft_16_facts(
    data: Fact, window: Fact, frame_size: Fact, frame_step: Fact, signal_length: Fact | None = None, *, center: bool, normalized: bool
) -> Fact:
    kind = unify_elements(data, window)
    check_float(data, "data")
    size, step = _check_frames(window, frame_size, frame_step)
    long = _signal_length(data.shape, size, step, signal_length, center)
    if data.shape is None:
        return Fact(kind, None)
    check(len(data.shape) in (3, 4), f"data has rank {len(data.shape)}, expected 3 or 4")
    meet(data.shape[-1], 2)
    if size is not None:
        bins = data.shape[-3]
        check(may_equal(bins, size // 2 + 1), f"data has {bins} transform results, frame_size {size} gives {size // 2 + 1}")
    return Fact(kind, (*data.shape[:-3], long))


def _signal_length(shape: PartialShape, size: int | None, step: int | None, signal_length: Fact | None, center: bool) -> Size:
    if signal_length is not None:
        return scalar_size(signal_length, "signal_length")
    if shape is None or len(shape) < 2 or step is None:
        return ANY
    hops = (at_least(shape[-2], 1) - 1) * step
    if size is None:
        return Dim(low(hops))
    return hops + (size % 2 if center else size)
