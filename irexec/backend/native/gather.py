"""Gather by indices that are known at run time; irx_gather in irexec/native/source/movement.c."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator, Sequence
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_run, merged_strides
from irexec.backend.compressed import CompressedSource
from irexec.backend.copies import Copy, array_at, bind_copies
from irexec.backend.eligibility import has_elements, is_row_major
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.movement import offer
from irexec.backend.registry import kernels
from irexec.schema.shape_rules import normalize_axis

# Bytes of a block.
_BLOCK = 1 << 15


class CGather(ctypes.Structure):
    """See movement.c."""

    _fields_ = (
        ("data", c_void_p), ("out", c_void_p), ("indices", c_void_p), ("data_outer", c_int64), ("data_row", c_int64),
        ("out_outer", c_int64), ("out_row", c_int64), ("wide", c_int64), ("size", c_int64), ("count", c_int64),
        ("bytes", c_int64), ("rows_each", c_int64),
    )  # fmt: skip


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def gather_at_run_time(task: Task) -> Iterator[Candidate]:
    """Indices of i32 or i64 that are not constants, and a constant axis; data of any type."""
    axis = task.constants[2]
    if isinstance(task.constants[0], CompressedSource):
        # A table of words is read as it is stored, row by row.
        return
    if task.constants[1] is not None or axis is None or task.attributes.get("batch_dims", 0) or not has_elements(task):
        return
    if task.dtype(1) in (np.dtype(np.int32), np.dtype(np.int64)):
        along = normalize_axis(int(axis.array().reshape(-1)[0]), len(task.shape(0)))
        yield from offer(task, functools.partial(GatherAtRunTime, task, along))


class GatherAtRunTime(NativeKernel):
    """Slices along an axis; an index out of range gives zeros."""

    def __init__(self, task: Task, axis: int) -> None:
        self.algorithm, self.reads = "C, gathered slices", (0, 1)
        data, rank, out = len(task.shape(0)), len(task.shape(1)), len(task.output_shape())
        self.source = tuple(range(axis)), (axis,), tuple(range(axis + 1, data))
        self.target = tuple(range(axis)), tuple(range(axis, axis + rank)), tuple(range(axis + rank, out))
        self.count = math.prod(task.shape(1))
        # Gathered in C order, then copied to another one.
        self.reorders = not is_row_major(task.output_orders[0])
        self.shared_workspace = task.output_bytes if self.reorders else 0

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        data, indices = inputs[0], binding.in_order(inputs[1])
        strides = merged_strides(data, self.source)
        if strides is None or not is_run(data, self.source[2]):
            data = binding.in_order(data)
            strides = merged_strides(data, self.source)
            assert strides is not None, "the copy is in order"
        out = array_at(binding.shared, outputs[0].shape, data.dtype) if self.reorders else outputs[0]
        out, written = binding.written(out, self.target, innermost=self.target[2][-1] if self.target[2] else None)
        sizes = [math.prod(data.shape[axis] for axis in group) for group in self.source]
        item, row = data.itemsize, sizes[2] * data.itemsize
        each = max(1, _BLOCK // row)
        parameters = CGather(
            binding.address(data), binding.address(out), binding.address(indices), strides[0] * item,
            strides[1] * item, written[0] * item, written[1] * item, indices.itemsize == 8, sizes[1], self.count, row,
            each,
        )  # fmt: skip
        binding.call("irx_gather", parameters, sizes[0] * -(-self.count // each))
        if self.reorders:
            bind_copies([Copy(out, outputs[0])], binding)
