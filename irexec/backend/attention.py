"""Fast kernels of attention: by blocks of rows whose scores stay in cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.linear import contiguous
from irexec.backend.products import TRANSPOSED_COPY, UNPACKED_LIMIT, product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.reference.products import score_scale

# Bytes of scores that a block computes at once.
_SCORES = 1 << 19

# Rows and columns of a tile at most.
_LONGEST = 144

# Nanoseconds of work that are worth a block of their own.
_WORTH_A_BLOCK = 400_000

# Nanoseconds of Python and of NumPy's dispatch for one group of scores.
_OVERHEAD = 15_000

# Sums of exponentials within these bounds have neither lost accuracy nor come near an overflow, so that nothing needs
# to be subtracted before the exponential function.
_SAFE_TOTALS = 1e-20, 1e20

_F32 = np.dtype(np.float32)


@kernels("ScaledDotProductAttention", since=13)
def _attention_kernels(task: Task) -> list[Candidate]:
    """Attention in f32 where the scores have the rows of the query and the columns of the key."""
    if task.dtype(0) != _F32:
        return []
    sizes = AttentionSizes.of(task)
    if sizes is None:
        return []
    rows, tiles = _Rows.of(sizes), _Tiles.of(task, sizes)
    return [
        Candidate(rows.cost, partial(RowAttention, task, rows), runs_chain=False),
        Candidate(tiles.cost, partial(TiledAttention, task, tiles), runs_chain=False),
    ]


@dataclass(frozen=True)
class AttentionSizes:
    """Shapes (leading..., rows, width) of query, (..., columns, width) of key, (..., columns, values) of value."""

    leading: tuple[int, ...]
    rows: int
    columns: int
    width: int
    values: int

    @staticmethod
    def of(task: Task) -> AttentionSizes | None:
        """None where a size is 0, no axis leads, or mask or sink have more rows or columns than query and key."""
        query, key, value = (task.shape(i) for i in range(3))
        rows, columns = query[-2], key[-2]
        used = [i for i in (3, 5) if task.has_input(i) and not (i == 3 and task.attributes["causal"])]
        scores = [np.broadcast_shapes((rows, columns), task.shape(i)[-2:]) for i in used]
        leading = np.broadcast_shapes(*(task.shape(i)[:-2] for i in (0, 1, 2, *used)))
        if (
            not leading
            or 0 in (*leading, rows, columns, query[-1], value[-1])
            or any(shape != (rows, columns) for shape in scores)
        ):
            return None
        return AttentionSizes(leading, rows, columns, query[-1], value[-1])

    @property
    def matrices(self) -> int:
        """Numbers of queries, keys and values."""
        return math.prod(self.leading)


@dataclass(frozen=True, eq=False)
class _Operands:
    """Arrays with all leading axes. A mask is (leading..., rows, columns), a sink (leading..., rows, 1)."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    mask: np.ndarray | None
    sink: np.ndarray | None
    factor: np.floating
    causal: bool

    @staticmethod
    def of(task: Task, sizes: AttentionSizes, inputs: Sequence[Any]) -> _Operands:
        query, key, value, mask, scale, sink = (*inputs, None, None, None)[:6]
        causal = task.attributes["causal"]
        if causal and not _is_finite(value):
            # A hidden score has the weight 0, which with an infinite value gives NaN: no column may be left out.
            causal, mask = False, np.tri(sizes.rows, sizes.columns, dtype=np.bool_)
        q, k, v = (np.broadcast_to(x, (*sizes.leading, *x.shape[-2:])) for x in (query, key, value))
        if causal or _hides_nothing(mask):
            mask = None
        if mask is not None:
            mask = np.broadcast_to(mask, (*sizes.leading, sizes.rows, sizes.columns))
        if sink is not None:
            sink = np.broadcast_to(sink, (*sizes.leading, sizes.rows, 1))
        return _Operands(q, k, v, mask, sink, score_scale(query, scale), causal)


def _is_finite(x: np.ndarray) -> bool:
    """Whether all elements are finite; False also where they are so large that their sum of squares is not."""
    return bool(np.isfinite(np.vdot(x, x) if x.flags.c_contiguous else np.einsum("...i,...i", x, x).sum()))


def _hides_nothing(mask: np.ndarray | None) -> bool:
    """Whether it is left out, or the single value that stands for that where a scale follows."""
    return mask is None or (mask.size == 1 and bool(mask.reshape(()) == (mask.dtype == np.bool_)))


@dataclass(frozen=True)
class _Block:
    """Some matrices along the last leading axis, and some of their rows."""

    matrices: tuple[slice, ...]
    rows: slice

    @property
    def part(self) -> tuple[slice, ...]:
        """The index of the block's rows in the query and in the result."""
        return (*self.matrices, self.rows)


def _count(sizes: AttentionSizes, together: int, rows: int) -> int:
    """Number of blocks of ``together`` matrices and ``rows`` rows."""
    *outer, last = sizes.leading
    return math.prod(outer) * -(-last // together) * -(-sizes.rows // rows)


def _cut(sizes: AttentionSizes, together: int, rows: int) -> list[_Block]:
    """Blocks of ``together`` matrices and ``rows`` rows."""
    *outer, last = sizes.leading
    singles = [[slice(i, i + 1) for i in range(length)] for length in outer]
    stacks = [slice(i, min(i + together, last)) for i in range(0, last, together)]
    parts = [slice(i, min(i + rows, sizes.rows)) for i in range(0, sizes.rows, rows)]
    return [_Block(index, part) for *index_, part in product(*singles, stacks, parts) for index in [tuple(index_)]]


@dataclass(frozen=True)
class _Rows:
    """Blocks of ``rows`` whole rows of scores of ``together`` matrices."""

    sizes: AttentionSizes
    together: int
    rows: int

    @staticmethod
    def of(sizes: AttentionSizes) -> _Rows:
        row = 4 * sizes.columns
        rows = max(1, min(sizes.rows, _SCORES // row))
        together = max(1, min(sizes.leading[-1], _SCORES // (row * rows))) if rows == sizes.rows else 1
        return _Rows(sizes, together, rows)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        s, rows = self.sizes, self.rows
        scores = product_cost(rows, s.columns, s.width) + product_cost(rows, s.values, s.columns)
        each = scores - 2000 + 1.5 * rows * s.columns + 500
        return s.matrices * each * s.rows / rows + _count(s, self.together, rows) * _OVERHEAD

    @property
    def workspace(self) -> int:
        """Bytes of scratch."""
        s, row = self.sizes, 4 * self.sizes.columns
        return self.together * (self.rows * (row + 4 * s.width + 8) + row * (s.width + s.values)) + 1024


class RowAttention(Kernel):
    """Whole rows of scores, of which the maximum is subtracted: for any values, and for few rows."""

    def __init__(self, task: Task, rows: _Rows) -> None:
        self.task, self.sizes = task, rows.sizes
        self.blocks = _cut(rows.sizes, rows.together, rows.rows)
        super().__init__("attention by rows", workspace=rows.workspace, splits=len(self.blocks) > 1)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        operands, out = _Operands.of(self.task, self.sizes, inputs), outputs[0]
        context.parallel(
            len(self.blocks), lambda index, scratch: attend_rows(scratch, operands, self.blocks[index], out)
        )


def attend_rows(scratch: Scratch, operands: _Operands, block: _Block, out: np.ndarray) -> None:
    """Write the result for a block: softmax(query * factor @ key.T + mask) @ value."""
    query = operands.query[block.part]
    # A causal block keeps no column after its last row.
    columns = operands.key.shape[-2]
    kept = slice(0, min(columns, block.rows.stop) if operands.causal else columns)
    scaled = np.multiply(query, operands.factor, out=scratch.take(query.shape, _F32))
    key, value = (contiguous(scratch, x[(*block.matrices, kept)]) for x in (operands.key, operands.value))
    scores = np.matmul(scaled, key.swapaxes(-1, -2), out=scratch.take((*query.shape[:-1], kept.stop), _F32))
    if operands.causal:
        # Row i keeps the columns up to i.
        later = scores[..., block.rows.start :]
        _hide(later, np.tri(*later.shape[-2:], dtype=np.bool_))
    elif operands.mask is not None:
        _hide(scores, operands.mask[block.part])
    total = _exponentiate(scores, None if operands.sink is None else operands.sink[block.part])
    result = np.matmul(scores, value, out=scratch.take((*query.shape[:-1], value.shape[-1]), _F32))
    np.divide(result, total, out=out[block.part])


@dataclass(frozen=True)
class _Tiles:
    """Tiles of transposed scores.

    Attributes:
        rows, tile: rows and columns of a tile.
        tiles: number of tiles of a row of scores.
        together, per_block: matrices and rows of a block.
        group: tiles whose scores are computed at once.
        one: estimated nanoseconds of a matrix.
    """

    sizes: AttentionSizes
    rows: int
    tile: int
    tiles: int
    together: int
    per_block: int
    group: int
    one: float

    @staticmethod
    def of(task: Task, sizes: AttentionSizes) -> _Tiles:
        limit = UNPACKED_LIMIT // max(sizes.width, sizes.values)
        row_tiles = -(-sizes.rows // max(16, min(_LONGEST, 2 * math.isqrt(limit // 2))))
        rows = -(-sizes.rows // row_tiles)
        tiles = -(-sizes.columns // max(16, min(_LONGEST, limit // rows)))
        tile = -(-sizes.columns // tiles)
        one = _cost_of_a_matrix(task, sizes, rows)
        blocks = max(1, min(int(one * sizes.leading[-1] / _WORTH_A_BLOCK), sizes.leading[-1]))
        together = max(1, min(-(-sizes.leading[-1] // blocks), _SCORES // (4 * rows * tile)))
        parts = max(1, min(int(one / (10 * _WORTH_A_BLOCK)), row_tiles)) if together == 1 else 1
        group = max(1, min(tiles, _SCORES // (4 * rows * tile * together)))
        return _Tiles(sizes, rows, tile, tiles, together, -(-row_tiles // parts) * rows, group, one)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        groups = -(-self.tiles // self.group) * (self.per_block // self.rows)
        blocks = _count(self.sizes, self.together, self.per_block)
        return self.one * self.sizes.matrices + _OVERHEAD * blocks * groups

    @property
    def workspace(self) -> int:
        """Bytes of scratch."""
        s = self.sizes
        packed = self.tiles * self.tile * (s.width + s.values)
        scores = self.group * self.rows * (2 * self.tile + s.values + 1)
        by_rows = self.rows * (s.columns + s.width + s.values) + s.columns * (s.width + s.values)
        return 4 * self.together * (packed + scores + self.rows * (s.width + s.values + 2) + by_rows) + 2048


def _cost_of_a_matrix(task: Task, sizes: AttentionSizes, rows: int) -> float:
    elements = sizes.rows * sizes.columns
    cost = elements * (2 * (sizes.width + sizes.values) / 105 + 0.85) * (1 + 16 / rows)
    cost += TRANSPOSED_COPY * (sizes.rows * sizes.width + sizes.columns * (sizes.width + sizes.values) / 2)
    if task.has_input(3) and not task.attributes["causal"] and math.prod(task.shape(3)) != 1:
        cost += elements * (0.2 if task.shape(3)[-2:-1] in ((), (1,)) else 1.2)
    return cost


class TiledAttention(Kernel):
    """Tiles of transposed scores, small enough for OpenBLAS to multiply without packing; no maximum is subtracted.

    A block whose sums of exponentials show that something should have been subtracted is computed again by rows.
    """

    def __init__(self, task: Task, tiles: _Tiles) -> None:
        self.task, self.sizes = task, tiles.sizes
        self._rows, self._tile, self._tiles, self._group = tiles.rows, tiles.tile, tiles.tiles, tiles.group
        self.blocks = _cut(tiles.sizes, tiles.together, tiles.per_block)
        self._counted = np.zeros((self._tiles, 1, self._tile), np.float32)
        self._counted.reshape(-1)[: tiles.sizes.columns] = 1
        super().__init__("attention by tiles", workspace=tiles.workspace, splits=len(self.blocks) > 1)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        operands, out = _Operands.of(self.task, self.sizes, inputs), outputs[0]

        def compute(index: int, scratch: Scratch) -> None:
            block = self.blocks[index]
            key, value = (self._packed(scratch, x[block.matrices]) for x in (operands.key, operands.value))
            mark = scratch.mark()
            for start in range(block.rows.start, block.rows.stop, self._rows):
                part = _Block(block.matrices, slice(start, min(start + self._rows, block.rows.stop)))
                if not self._attend(scratch, operands, part, key, value, out):
                    scratch.release(mark)
                    attend_rows(scratch, operands, part, out)
                scratch.release(mark)

        context.parallel(len(self.blocks), compute)

    def _packed(self, scratch: Scratch, matrices: np.ndarray) -> np.ndarray:
        """(..., columns, width) as (..., tiles, tile, width), followed by zeros."""
        *leading, columns, width = matrices.shape
        packed = scratch.take((*leading, self._tiles * self._tile, width), _F32)
        packed[..., :columns, :] = matrices
        packed[..., columns:, :] = 0
        return packed.reshape(*leading, self._tiles, self._tile, width)

    def _attend(
        self, scratch: Scratch, operands: _Operands, block: _Block, key: np.ndarray, value: np.ndarray, out: np.ndarray
    ) -> bool:
        """Write the result for some rows from the tiles of key and value; False if a maximum must be subtracted."""
        query = operands.query[block.part]
        *leading, rows, width = query.shape
        scaled = scratch.take((*leading, 1, width, rows), _F32)
        np.multiply(query.swapaxes(-1, -2)[..., None, :, :], operands.factor, out=scaled)
        result = scratch.take((*leading, rows, value.shape[-1]), _F32)
        total = scratch.take((*leading, 1, rows), _F32)
        total[...] = 0 if operands.sink is None else np.exp(operands.sink[block.part]).swapaxes(-1, -2)
        for tiles in self._groups(operands, block):
            mark = scratch.mark()
            scores = np.matmul(
                key[..., tiles, :, :],
                scaled,
                out=scratch.take((*leading, tiles.stop - tiles.start, self._tile, rows), _F32),
            )
            self._exponentiate(scratch, operands, block, tiles, scores)
            total += np.matmul(self._counted[tiles], scores).sum(-3)
            parts = scratch.take((*scores.shape[:-2], rows, value.shape[-1]), _F32)
            np.matmul(scores.swapaxes(-1, -2), value[..., tiles, :, :], out=parts)
            if tiles.start == 0:
                np.add.reduce(parts, -3, out=result)
            else:
                result += np.add.reduce(parts, -3)
            scratch.release(mark)
        low, high = _SAFE_TOTALS
        values = result.reshape(-1)
        if not (total.min() > low and total.max() < high and np.isfinite(np.dot(values, values))):
            return False
        np.divide(result, total.swapaxes(-1, -2), out=out[block.part])
        return True

    def _groups(self, operands: _Operands, block: _Block) -> Iterator[slice]:
        """Tiles whose scores are computed at once; a causal block needs none after its last row."""
        count = min(self._tiles, -(-block.rows.stop // self._tile)) if operands.causal else self._tiles
        for first in range(0, count, self._group):
            yield slice(first, min(first + self._group, count))

    def _exponentiate(
        self, scratch: Scratch, operands: _Operands, block: _Block, tiles: slice, scores: np.ndarray
    ) -> None:
        """exp of masked scores (..., tiles, tile, rows) in place."""
        mask = None if operands.mask is None else self._mask_tiles(scratch, operands.mask[block.part], tiles)
        boolean = operands.mask is not None and operands.mask.dtype == np.bool_
        if mask is not None and not boolean:
            scores += mask
        np.exp(scores, out=scores)
        if mask is not None and boolean:
            scores *= mask
        if operands.causal and tiles.stop * self._tile > block.rows.start + 1:
            columns = np.arange(tiles.start * self._tile, tiles.stop * self._tile).reshape(-1, self._tile, 1)
            scores *= columns <= np.arange(block.rows.start, block.rows.stop)

    def _mask_tiles(self, scratch: Scratch, mask: np.ndarray, tiles: slice) -> np.ndarray:
        """The mask (..., rows, columns) as f32 in the layout of scores, with axes of size 1 where it is broadcast."""
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.strides[:-1])
        columns = slice(tiles.start * self._tile, min(tiles.stop * self._tile, self.sizes.columns))
        source = mask[once][..., columns].swapaxes(-1, -2)
        *leading, known, rows = source.shape
        copy = scratch.take((*leading, (tiles.stop - tiles.start) * self._tile, rows), _F32)
        copy[..., :known, :] = source
        copy[..., known:, :] = 0
        return copy.reshape(*leading, -1, self._tile, rows)


def _hide(scores: np.ndarray, mask: np.ndarray) -> None:
    if mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    else:
        scores += mask


def _exponentiate(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """exp(scores - maximum of the row), in place; the sums of the rows."""
    maximum = scores.max(-1, keepdims=True)
    if sink is not None:
        maximum = np.maximum(maximum, sink)
    scores -= maximum
    np.exp(scores, out=scores)
    total = np.matmul(scores, np.ones((scores.shape[-1], 1), scores.dtype))
    if sink is not None:
        total += np.exp(sink - maximum)
    return total
