"""Blocks of an output: where a kernel computes one, and how it gets into the output array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.scratch import Scratch


@dataclass(frozen=True)
class Tiles:
    """Blocks of (outer, ..., inner): ``rows`` of the first axis and ``columns`` of the last one."""

    outer: int
    inner: int
    rows: int
    columns: int

    @staticmethod
    def of(outer: int, inner: int, size: int, cached: int, minimum: int, *, cut: bool = True) -> Tiles:
        """Blocks of at most ``cached`` bytes, where the axes between take ``size``.

        Args:
            minimum: minimum number of columns of a block, if ``inner`` is not smaller.
            cut: whether a block may have a part of the columns.
        """
        columns = inner if not cut or size * inner <= cached else min(inner, max(minimum, cached // size))
        return Tiles(outer, inner, max(1, min(outer, cached // (size * columns))), columns)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.outer // self.rows) * -(-self.inner // self.columns)

    def region(self, index: int) -> tuple[slice, slice]:
        """The rows and columns of a block."""
        row, column = divmod(index, -(-self.inner // self.columns))
        rows = slice(row * self.rows, min(self.outer, (row + 1) * self.rows))
        return rows, slice(column * self.columns, min(self.inner, (column + 1) * self.columns))


def finish_block(
    result: np.ndarray,
    target: np.ndarray,
    epilogue: Epilogue,
    operands: Sequence[np.ndarray],
    region: Sequence[slice],
    scratch: Scratch,
) -> None:
    """Run the chain on ``result``, which was computed for ``target``, and copy it there if it is an array of its own.

    Args:
        region: of the output that the block is, one slice for each group of axes of the epilogue.
    """
    if result.dtype != target.dtype:
        rounded = scratch.take(result.shape, target.dtype)
        scratch.do(np.copyto, rounded, result, casting="same_kind")
        result = rounded
    if epilogue.chain is not None:
        epilogue.run(scratch, result.reshape([part.stop - part.start for part in region]), operands, region)
    if result is not target:
        scratch.do(np.copyto, target, result)
