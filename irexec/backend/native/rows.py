"""Tensors as images of rows and columns, for kernels of rows; irexec/native/source/rows.h has the other side."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator, Sequence
from ctypes import c_int64, c_void_p

import numpy as np

from irexec.backend.calls import Binding, is_run, merged_strides
from irexec.backend.chain import Groups
from irexec.backend.kernel import Order, Task
from irexec.backend.native.chains import Axes, Operand, fits

TILE = 512
"""Floats of a tile; see chain.h."""


class Target(ctypes.Structure):
    """A tensor that a kernel writes; strides in elements."""

    _fields_ = (("base", c_void_p), ("image", c_int64), ("row", c_int64), ("column", c_int64))


def block_count(sizes: tuple[int, int, int], block: int, *, by_columns: bool) -> int:
    """Number of blocks for images, rows and columns: of rows, or of slabs of columns."""
    images, rows, columns = sizes
    return images * -(-(columns if by_columns else rows) // block)


def source_of(array: np.ndarray, axes: Axes, binding: Binding) -> Operand:
    """A tensor that a kernel reads, whose columns follow each other in memory; copied where they do not."""
    strides = merged_strides(array, axes)
    if strides is None or not is_run(array, axes[2]):
        array = binding.copied(array, [axis for group in axes for axis in group])
        strides = merged_strides(array, axes)
        assert strides is not None, "a group of axes is in order"
    return Operand(binding.address(array), *strides)


def target_of(array: np.ndarray, axes: Axes, binding: Binding) -> Target:
    """The output of a kernel."""
    out, strides = binding.written(array, axes)
    return Target(binding.address(out), *strides)


def groups_of(shape: Sequence[int], order: Order | None, axes: Collection[int]) -> Groups | None:
    """The axes in memory order: (others, normalized) or (others, normalized, others); None for other orders."""
    runs: list[list[int]] = [[]]
    for axis in order or range(len(shape)):
        if shape[axis] == 1:
            runs[0].insert(0, axis)
        elif (axis in axes) == (len(runs) % 2 == 0):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return tuple(map(tuple, runs)) if len(runs) in (2, 3) else None


def axes_for(task: Task, groups: Groups) -> tuple[Axes, bool]:
    """The axes of groups (outer, columns) or (images, rows, columns), and whether the task's chain fits them.

    The outer axes of two groups are split where an operand of the chain is broadcast along some of them.
    """
    splits = list(_splits(groups))
    fitting = next((axes for axes in splits if fits(task, axes)), None)
    return (splits[0], False) if fitting is None else (fitting, True)


def _splits(groups: Groups) -> Iterator[Axes]:
    if len(groups) == 3:
        yield groups[0], groups[1], groups[2]
        return
    outer, columns = groups
    for count in range(max(1, len(outer))):
        yield outer[:count], outer[count:], columns
