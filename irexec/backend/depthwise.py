"""Fast depthwise convolution: a fused multiply and add for each point of the kernel.

NumPy has it in ``einsum``, whose inner loop is fast where it is long and runs along memory that is contiguous in data
and result. Small images of many channels are laid out channels last, so that it runs over channels. In large ones it runs
over whole images: they are copied once for each column of the kernel, shifted by it, with zeros where a row ends; then the
points of a column are views of the same memory, and rows follow each other without a gap. With strides there is such a
copy for each remainder of the row index by the stride.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irexec.backend.workspace import padded, thread_buffer
from irexec.reference.windows import Pads, SlidingWindows, windows

Sizes = Sequence[int]

# Bytes of copied channels that are worked on at once.
_CACHED = 2 << 20
# Results per channel, relative to the number of channels, up to which channels last is faster.
_FEW = 3


def prepare_depthwise(weights: np.ndarray, strides: Sizes, dilations: Sizes) -> Callable[[np.ndarray, SlidingWindows], np.ndarray]:
    """A convolution with weights (G, 1, 1, kernel...), one channel in each group: a function of data and windows.

    Threads may share it. ``irexec.reference.convolution.convolve`` is the reference.
    """
    channels, _, _, *kernel = weights.shape
    matrix = weights.reshape(channels, *kernel)
    channels_last = np.moveaxis(np.ascontiguousarray(np.moveaxis(matrix, 0, -1)), -1, 0)

    def run(x: np.ndarray, placed: SlidingWindows) -> np.ndarray:
        counts, pads = placed.counts, placed.pads
        out = np.empty((len(x), channels, *counts), x.dtype)
        if not out.size:
            return out
        if math.prod(counts) <= _FEW * channels:
            for image, result in zip(x, out, strict=True):
                _convolve_channels_last(image, channels_last, strides, dilations, pads, result)
            return out
        layout = _Layout.of(x.shape[2:], kernel, strides, dilations, pads[0], counts)
        block = max(1, _CACHED // (layout.size * x.itemsize))
        for image, result in zip(x, out, strict=True):
            for first in range(0, channels, block):
                some = slice(first, first + block)
                layout.convolve(image[some], matrix[some], result[some])
        return out

    return run


def _convolve_channels_last(image: np.ndarray, weights: np.ndarray, strides: Sizes, dilations: Sizes, pads: Pads, out: np.ndarray) -> None:
    """(C, spatial...) and (C, kernel...) to (C, counts...), all with the channels last in memory."""
    channels_last = padded(np.moveaxis(image, 0, -1), *((*sizes, 0) for sizes in pads))
    if not channels_last.flags.c_contiguous:
        channels_last = thread_buffer("padded", channels_last.shape, channels_last.dtype)
        channels_last[...] = np.moveaxis(image, 0, -1)
    view = windows(np.moveaxis(channels_last, -1, 0), weights.shape[1:], strides, dilations, out.shape[1:])
    sums = thread_buffer("sums", (*out.shape[1:], len(out)), out.dtype)
    axes = list(range(view.ndim))
    kept = axes[: out.ndim]
    np.einsum(view, axes, weights, [0, *axes[out.ndim :]], [*kept[1:], 0], out=sums)
    out[...] = np.moveaxis(sums, -1, 0)


@dataclass(frozen=True)
class _Group:
    """Points of the kernel along one axis that meet positions with the same remainder by the stride.

    Attributes:
        taps: the points.
        phase: the remainder.
        start, gap: the first point's index among the positions of the remainder, and the distance between points.
    """

    taps: slice
    phase: int
    start: int
    gap: int


def _groups(kernel: int, stride: int, dilation: int) -> list[_Group]:
    common = math.gcd(stride, dilation)
    step = stride // common
    return [
        _Group(slice(i, None, step), i * dilation % stride, i * dilation // stride, dilation // common) for i in range(min(kernel, step))
    ]


@dataclass(frozen=True)
class _Layout:
    """How channels lie in memory: (columns of the kernel, channels, positions along the other axes..., width).

    Attributes:
        counts: the sizes of the result.
        sizes: along the other axes, the positions that the points of a group meet.
        width: of a row: as many as the result or the data has.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    width: int

    @classmethod
    def of(cls, data: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, begins: Sizes, counts: Sizes) -> _Layout:
        covered = [n + d * (k - 1) // s for n, k, s, d in zip(counts, kernel, strides, dilations, strict=True)]
        width = max(counts[-1], -(-data[-1] // strides[-1]))
        return cls(tuple(kernel), tuple(strides), tuple(dilations), tuple(begins), tuple(counts), tuple(covered[:-1]), width)

    @property
    def size(self) -> int:
        """Elements for each channel."""
        return self.kernel[-1] * math.prod(self.sizes) * self.width

    def convolve(self, image: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """(C, spatial...) and (C, kernel...) to (C, counts...)."""
        whole = self.width == self.counts[-1]
        sums = out if whole else thread_buffer("sums", (*out.shape[:-1], self.width), out.dtype)
        axes = zip(self.kernel[:-1], self.strides[:-1], self.dilations[:-1], strict=True)
        for number, groups in enumerate(product(*(_groups(*axis) for axis in axes))):
            columns = self._columns(image, [group.phase for group in groups])
            part = weights[(slice(None), *(group.taps for group in groups))]
            if number == 0:
                self._multiply(columns, part, groups, sums)
            else:
                more = thread_buffer("more", sums.shape, sums.dtype)
                self._multiply(columns, part, groups, more)
                sums += more
        if not whole:
            out[...] = sums[..., : self.counts[-1]]

    def _columns(self, image: np.ndarray, phases: Sizes) -> np.ndarray:
        """The image for each column of the kernel, of the positions of one remainder along each other axis."""
        columns = thread_buffer("columns", (self.kernel[-1], len(image), *self.sizes, self.width), image.dtype)
        stride, (size, begin) = self.strides[-1], (image.shape[-1], self.begins[-1])
        shifts: dict[int, list[tuple[int, int]]] = {}
        for tap in range(self.kernel[-1]):
            shift, phase = divmod(tap * self.dilations[-1] - begin, stride)
            shifts.setdefault(phase, []).append((tap, shift))
        for phase, shifted in shifts.items():
            base = next((columns[tap] for tap, shift in shifted if shift == 0), None)
            if base is None:
                base = thread_buffer("base", columns.shape[1:], columns.dtype)
            self._copy_phase(image[..., phase::stride], phases, base)
            for tap, shift in shifted:
                if shift:
                    _shift(base, shift, -(-(size - phase) // stride), columns[tap])
        return columns

    def _copy_phase(self, image: np.ndarray, phases: Sizes, base: np.ndarray) -> None:
        """Copy the positions of the remainders, as they are padded, with zeros around them."""
        into, source = [slice(None)], [slice(None)]
        for size, covered, phase, begin, stride in zip(image.shape[1:-1], self.sizes, phases, self.begins, self.strides, strict=False):
            first = max(0, -(-(begin - phase) // stride))
            start = first * stride + phase - begin
            count = min(len(range(start, size, stride)), covered - first)
            into.append(slice(first, first + max(0, count)))
            source.append(slice(start, start + stride * max(0, count), stride))
        into.append(slice(0, image.shape[-1]))
        for axis, part in enumerate(into):
            before = tuple(into[:axis])
            base[(*before, slice(0, part.start))] = 0
            base[(*before, slice(part.stop, None))] = 0
        base[tuple(into)] = image[tuple(source)]

    def _multiply(self, columns: np.ndarray, weights: np.ndarray, groups: Sequence[_Group], out: np.ndarray) -> None:
        """The sums of one group of points: each row of ``out`` and the next one are taken as one."""
        steps = columns.strides[1:-1]
        offset = sum(group.start * step for group, step in zip(groups, steps[1:], strict=True))
        counts = self.counts[:-1]
        run = (counts[-1] if counts else 1) * self.width
        outer = counts[:-1]
        shape = (len(out), *outer, run, *weights.shape[1:])
        taps = [group.gap * step for group, step in zip(groups, steps[1:], strict=True)]
        begun = columns.reshape(-1)[offset // columns.itemsize :]
        view = as_strided(begun, shape, (*steps[: 1 + len(outer)], columns.itemsize, *taps, columns.strides[0]), writeable=False)
        axes = list(range(len(shape)))
        kept = axes[: 2 + len(outer)]
        np.einsum(view, axes, weights, [0, *axes[len(kept) :]], kept, out=out.reshape(len(out), *outer, run))


def _shift(base: np.ndarray, shift: int, size: int, out: np.ndarray) -> None:
    """Rows of ``base`` whose first ``size`` positions count, moved by ``shift`` to the start, with zeros on both sides."""
    flat, moved, count = base.reshape(-1), out.reshape(-1), base.size
    if shift > 0:
        moved[: max(0, count - shift)] = flat[shift:]
    else:
        moved[-shift:] = flat[: max(0, count + shift)]
    out[..., max(0, size - shift) :] = 0
    out[..., : max(0, -shift)] = 0
