"""Depthwise convolution of images in C order as products with banded matrices.

For a tile of output rows of one channel, the weighted sums over the kernel's rows are computed for each of the kernel's
columns: with X the input rows below the tile, they are one product B X, where B (kernel columns * output rows, input
rows) holds each weight once for every output row. Then the sums of the columns are added, each shifted by its distance
from the central one. The elements that a shift would carry over from a neighbouring row are set to zero first, so that
rows are added as one long row. A multiplication and an addition for each weight, in NumPy, would be two passes over
memory for each; this is one product, and one pass for each column.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irexec.backend.blocks import finish_block
from irexec.backend.chain import Epilogue
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import sliding_windows
from irexec.backend.convolution.windows import DepthwiseWindows
from irexec.backend.kernel import (
    Candidate,
    Kernel,
    KernelContext,
    Task,
    chain_keeps_type,
    has_elements,
    is_row_major,
    working_type,
)
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows

# Bytes of column sums that a block works on; they stay in the L2 cache.
_CACHED = 768 << 10
_LONGEST_TILE = 16
# Nanoseconds: of a call of a NumPy function, of one product in a batch, of one inner loop of an addition, of an added,
# copied, transposed element.
_CALL, _PRODUCT, _LOOP, _ADD, _COPY, _TRANSPOSE = 1900.0, 70.0, 50.0, 0.25, 0.3, 1.0
# Nanoseconds of work that a thread takes at once.
_WORTH = 60_000
# Multiplications and additions for each nanosecond in products this small.
_FLOPS = 40.0


def candidates(task: Task) -> Iterator[Candidate]:
    """Kernels of a GroupConvolution by constant weights (G, O, 1, kernel...), by windows where O is 1."""
    dtype = working_type(task)
    if dtype is None or task.constants[1] is None or not chain_keeps_type(task) or not has_elements(task):
        return
    groups, outputs, inputs, *kernel = task.shape(1)
    if inputs != 1 or groups == 1:
        return
    windows = sliding_windows(task.attributes["attributes"], task.shape(0)[2:], tuple(kernel))
    tiling = DepthwiseTiling.of(dtype, task.shape(0), task.shape(1), windows) if len(kernel) == 2 else None
    if tiling is not None:
        yield Candidate(tiling.cost(task), functools.partial(DepthwiseProducts, task, tiling))
    if outputs == 1:
        arguments = task, windows, dtype
        yield Candidate(DepthwiseWindows.estimate(*arguments), functools.partial(DepthwiseWindows, *arguments))


@dataclass(frozen=True)
class _Tiles:
    """Neighbouring tiles of output rows that need the same columns of the banded matrix.

    Attributes:
        start, count: the first tile and the number of tiles.
        first: the first input row that the first tile reads.
        taken: the columns of the banded matrix whose input rows exist.
    """

    start: int
    count: int
    first: int
    taken: slice


@dataclass(frozen=True)
class _Chunk:
    """Output rows in tiles of equal height.

    Attributes:
        start: the first output row.
        rows: the output rows of a tile.
        count: the number of tiles.
        parts: the tiles; their ``start`` counts from the first one of the chunk.
    """

    start: int
    rows: int
    count: int
    parts: tuple[_Tiles, ...]

    @property
    def stop(self) -> int:
        return self.start + self.rows * self.count


@dataclass(frozen=True)
class _Axis:
    """The windows along one axis of the data; ``count`` is the size of the result."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    count: int

    @staticmethod
    def of(sizes: Sequence[int], windows: SlidingWindows) -> list[_Axis]:
        """One for each spatial axis."""
        w = windows
        values = zip(sizes, w.kernel, w.strides, w.dilations, w.pads_begin, w.counts, strict=True)
        return [_Axis(*axis) for axis in values]

    def covered(self, rows: int) -> int:
        """Number of input rows that ``rows`` output rows read."""
        return (rows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1

    def chunks(self, rows: int, maximum: int) -> list[_Chunk]:
        """All output rows in tiles of ``rows``, at most ``maximum`` in a chunk; the remaining rows are one tile."""
        starts = range(0, self.count // rows * rows, rows * maximum)
        found = [self._chunk(start, rows, min(maximum, (self.count - start) // rows)) for start in starts]
        left = self.count % rows
        return [*found, self._chunk(self.count - left, left, 1)] if left else found

    def _chunk(self, start: int, rows: int, count: int) -> _Chunk:
        parts: list[_Tiles] = []
        for tile in range(count):
            first, covered = (start + tile * rows) * self.stride - self.begin, self.covered(rows)
            begin = min(max(0, -first), covered)
            taken = slice(begin, max(begin, min(covered, self.size - first)))
            last = parts[-1] if parts else None
            if last is not None and last.taken == taken == slice(0, covered):
                parts[-1] = _Tiles(last.start, last.count + 1, last.first, taken)
            else:
                parts.append(_Tiles(tile, 1, max(0, first), taken))
        return _Chunk(start, rows, count, tuple(parts))

    def shift(self, tap: int) -> int:
        """The distance from an output position, times the stride, to the input that a point of the kernel reads."""
        return tap * self.dilation - self.begin

    @property
    def center(self) -> int | None:
        """The point of the kernel nearest to shift 0 of those that read inside the data for every output position."""
        last = self.size - 1 - (self.count - 1) * self.stride
        return min((tap for tap in range(self.kernel) if 0 <= self.shift(tap) <= last), key=self.shift, default=None)


def banded(weights: np.ndarray, stride: int, dilation: int, rows: int) -> np.ndarray:
    """Weights (G, O, 1, kernel rows, kernel columns) to (G, 1, O * kernel columns * rows, input rows below a tile)."""
    groups, outputs, _, height, width = weights.shape
    span = (height - 1) * dilation + 1
    matrix = np.zeros((groups, outputs, width, rows, (rows - 1) * stride + span), weights.dtype)
    for row in range(rows):
        matrix[:, :, :, row, row * stride : row * stride + span : dilation] = weights[:, :, 0].swapaxes(-1, -2)
    return matrix.reshape(groups, 1, outputs * width * rows, -1)


@dataclass(frozen=True)
class DepthwiseTiling:
    """The sizes of a depthwise convolution of images, and the rows of a tile.

    Attributes:
        dtype: the type to compute in.
    """

    dtype: np.dtype
    images: int
    groups: int
    outputs: int
    vertical: _Axis
    horizontal: _Axis

    @staticmethod
    @functools.lru_cache(maxsize=1 << 10)
    def of(
        dtype: np.dtype, data: tuple[int, ...], filter: tuple[int, ...], windows: SlidingWindows
    ) -> DepthwiseTiling | None:
        """The tiling, computed once; None unless a column of the kernel is inside the data at every output position."""
        vertical, horizontal = _Axis.of(data[2:], windows)
        if horizontal.center is None:
            return None
        return DepthwiseTiling(dtype, data[0], filter[0], filter[1], vertical, horizontal)

    @functools.cached_property
    def rows(self) -> int:
        """Rows of a tile."""
        return min(range(1, min(self.vertical.count, _LONGEST_TILE) + 1), key=self._tile_cost)

    @functools.cached_property
    def group_cost(self) -> float:
        """Nanoseconds for one group."""
        return self._tile_cost(self.rows)

    def _tile_cost(self, rows: int) -> float:
        """Nanoseconds for one group in tiles of ``rows``: products (more of them in longer tiles) and additions."""
        axis = self.vertical
        length = rows * self.horizontal.size
        flops = 2 * self.outputs * self.horizontal.kernel * length * axis.covered(rows)
        added = (self.horizontal.kernel - 1) * self.outputs * (_LOOP + length * _ADD)
        return -(-axis.count // rows) * (_PRODUCT + flops / _FLOPS + added) + (8 * _CALL / self.groups) * (
            axis.count % rows > 0
        )

    def cost(self, task: Task) -> float:
        """Nanoseconds of the kernel for the orders of the task."""
        axis = self.horizontal
        rows = self.images * self.groups * self.outputs * self.vertical.count
        cost = self.images * self.groups * self.group_cost + rows * axis.count * _COPY * (axis.stride > 1)
        blocks = -(-rows * axis.kernel * axis.size * self.dtype.itemsize // _CACHED)
        cost += blocks * _CALL * (8 + 2 * axis.kernel)
        pixels = self.images * self.groups * self.vertical.size * axis.size
        moved = pixels * (not is_row_major(task.input_orders[0]))
        return cost + _TRANSPOSE * (moved + rows * axis.count * (not is_row_major(task.output_orders[0])))


class DepthwiseProducts(Kernel):
    """Depthwise convolution by products over rows and shifted additions of columns.

    A group may have several output channels.
    """

    def __init__(self, task: Task, tiling: DepthwiseTiling) -> None:
        super().__init__(reads=(0,), records=True)
        self._dtype, self._rows = tiling.dtype, tiling.rows
        self._images, self._groups, self._outputs = tiling.images, tiling.groups, tiling.outputs
        self._vertical, self._horizontal = tiling.vertical, tiling.horizontal
        self._center = self._horizontal.center or 0
        self._source = task.constants[1]
        self._epilogue = Epilogue(task.chain, task.output_shape(), ((0,), (1,), (2, 3)))
        self._split(self._images * self._groups * tiling.group_cost, task.shares)
        self.algorithm = f"depthwise by products of {self._rows} rows"
        self.splits = self._blocks > 1
        self.workspace = self._bytes()

    def _split(self, cost: float, shares: int) -> None:
        """Blocks of several groups, or of chunks of one large group. The products of each group are its own."""
        row = self._outputs * self._horizontal.kernel * self._horizontal.size * self._dtype.itemsize
        size = row * self._vertical.count
        self._chunks = self._vertical.chunks(self._rows, max(1, _CACHED // (row * self._rows)))
        self._together = size <= _CACHED
        shared = max(1, min(shares, int(cost / _WORTH)) // self._images)
        self._step = max(1, min(-(-self._groups // shared), _CACHED // size))
        self._slices = -(-self._groups // self._step)
        self._blocks = self._images * self._slices * (1 if self._together else len(self._chunks))

    def _bytes(self) -> int:
        axis = self._horizontal
        heights = [chunk.count * chunk.rows for chunk in self._chunks]
        rows = sum(heights) if self._together else max(heights)
        result = self._step * self._outputs * rows * axis.count
        image = self._step * self._vertical.size * axis.size
        sums = self._step * self._outputs * (axis.kernel + 1) * max(heights) * axis.size
        return (result + image + sums) * self._dtype.itemsize + 512 + self._epilogue.workspace(result)

    def pack(self, store: ConstantStore) -> None:
        axis, source = self._vertical, self._source
        assert source is not None
        self._matrices = {}
        for rows in {chunk.rows for chunk in self._chunks}:
            self._matrices[rows] = store.get(
                [source],
                ("banded", rows, axis.stride, axis.dilation, self._dtype.str),
                lambda weights, rows=rows: banded(
                    weights.astype(self._dtype, copy=False), axis.stride, axis.dilation, rows
                ),
            )

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x, out = inputs[0], outputs[0]
        operands = context.bind(self._epilogue, inputs[2:])
        groups_of_chunks = [self._chunks] if self._together else [[chunk] for chunk in self._chunks]
        # Views of the whole data are made once, where rows lie in memory as BLAS takes them.
        direct = x.dtype == self._dtype and x.strides[3] == x.itemsize and x.strides[2] >= x.shape[3] * x.itemsize
        views = [[self._below(x, chunk) for chunk in chunks] for chunks in groups_of_chunks] if direct else []

        def block(index: int, scratch: Scratch) -> None:
            index, number = divmod(index, len(groups_of_chunks))
            image, part = divmod(index, self._slices)
            groups = slice(part * self._step, min(self._groups, (part + 1) * self._step))
            channels = slice(groups.start * self._outputs, groups.stop * self._outputs)
            chunks = groups_of_chunks[number]
            start, stop = chunks[0].start, chunks[-1].stop
            target = out[image, channels, start:stop]
            is_direct = target.dtype == self._dtype and target[0].flags.c_contiguous
            result = target if is_direct else scratch.take(target.shape, self._dtype)
            copy = None if direct else self._copied(x[image : image + 1, groups], scratch)
            for i, chunk in enumerate(chunks):
                mark = scratch.mark()
                if copy is None:
                    below = [view[image, groups] for view in views[number][i]]
                else:
                    below = [view[0] for view in self._below(copy, chunk)]
                self._convolve(below, groups, chunk, result[:, chunk.start - start : chunk.stop - start], scratch)
                scratch.release(mark)
            pixels = slice(start * out.shape[3], stop * out.shape[3])
            finish_block(result, target, self._epilogue, operands, (slice(image, image + 1), channels, pixels), scratch)

        context.parallel(self._blocks, block)

    def _copied(self, x: np.ndarray, scratch: Scratch) -> np.ndarray:
        copy = scratch.take(x.shape, self._dtype)
        scratch.do(np.copyto, copy, x)
        return copy

    def _below(self, x: np.ndarray, chunk: _Chunk) -> list[np.ndarray]:
        """The input rows (N, G, tiles, rows, W) below each tile, for each part of the chunk."""
        step = chunk.rows * self._vertical.stride * x.strides[2]
        views = []
        for part in chunk.parts:
            shape = (*x.shape[:2], part.count, part.taken.stop - part.taken.start, x.shape[3])
            strides = (*x.strides[:2], step, *x.strides[2:])
            views.append(as_strided(x[:, :, part.first :], shape, strides, writeable=False))
        return views

    def _convolve(
        self, below: Sequence[np.ndarray], groups: slice, chunk: _Chunk, out: np.ndarray, scratch: Scratch
    ) -> None:
        """The input rows (groups, tiles, rows, W) below each tile to ``out`` (groups * O, tiles * rows, W')."""
        axis, count = self._horizontal, len(below[0])
        matrix = self._matrices[chunk.rows][groups]
        sums = scratch.take((count, chunk.count, self._outputs, axis.kernel, chunk.rows, axis.size), self._dtype)
        products = sums.reshape(count, chunk.count, -1, axis.size)
        for part, rows in zip(chunk.parts, below, strict=True):
            scratch.do(np.matmul, matrix[..., part.taken], rows, out=products[:, part.start : part.start + part.count])
        self._add_columns(sums, out.reshape(count, self._outputs, chunk.count, -1).swapaxes(1, 2), scratch)

    def _add_columns(self, sums: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """The sums (groups, tiles, O, kernel columns, rows, W) of each column, shifted and added, into ``out``.

        Its shape is (groups, tiles, O, rows * W'). The target is never in the memory of the sums, or else NumPy would
        copy them first.
        """
        axis, center = self._horizontal, self._center
        base, shift = sums[:, :, :, center], axis.shift(center)
        others = [tap for tap in range(axis.kernel) if tap != center and abs(axis.shift(tap) - shift) < axis.size]
        whole = axis.stride == 1 and axis.count == axis.size
        if others:
            total = out if whole else scratch.take((*sums.shape[:3], base.shape[3] * axis.size), self._dtype)
            start = base.reshape(total.shape)
            for tap in others:
                _add_shifted(scratch, start, sums[:, :, :, tap], axis.shift(tap) - shift, total)
                start = total
            base = total.reshape(base.shape) if not whole else base
        if not (whole and others):
            used = slice(shift, shift + (axis.count - 1) * axis.stride + 1, axis.stride)
            scratch.do(np.copyto, out.reshape(*out.shape[:3], -1, axis.count), base[..., used])


def _add_shifted(scratch: Scratch, base: np.ndarray, rows: np.ndarray, shift: int, out: np.ndarray) -> None:
    """Write ``base`` (..., rows * W) plus ``rows`` (..., rows, W), shifted left by ``shift`` within each row."""
    moved = rows.reshape(base.shape)
    size = base.shape[-1]
    if shift > 0:
        scratch.do(rows[..., :shift].fill, 0)
        kept, added, rest = slice(0, size - shift), slice(shift, None), slice(size - shift, None)
    else:
        scratch.do(rows[..., rows.shape[-1] + shift :].fill, 0)
        kept, added, rest = slice(-shift, None), slice(0, size + shift), slice(0, -shift)
    scratch.do(np.add, base[..., kept], moved[..., added], out=out[..., kept])
    if out is not base:
        scratch.do(np.copyto, out[..., rest], base[..., rest])
