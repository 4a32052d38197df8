"""Gather of rows of compressed weights, which decompresses only the rows that are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.compressed import CompressedSource
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch

# Rows of a block on which a thread works: each takes some 20 microseconds.
_BLOCK = 16


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def _gather_rows(task: Task) -> Iterator[Candidate]:
    """For rows of a matrix, by indices of any values."""
    source, axis = task.constants[0], task.inputs[2].known
    if (
        not isinstance(source, CompressedSource)
        or not source.has_rows
        or axis is None
        or task.attributes.get("batch_dims", 0)
    ):
        return
    if int(axis.reshape(-1)[0]) in (0, -2) and task.outputs[0].element is source.element:
        # No other kernel is worth holding the whole table unpacked.
        yield Candidate(0.0, partial(GatherRows, task, source), runs_chain=False)


class GatherRows(Kernel):
    """Rows of compressed weights; those of indices out of range are zeros."""

    def __init__(self, task: Task, source: CompressedSource) -> None:
        self._source = source
        self._count = math.prod(task.shape(1))
        super().__init__("decompressed rows", reads=(1,), splits=self._count > 2 * _BLOCK)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        source, result = self._source, outputs[0]
        indices = np.asarray(inputs[1]).reshape(-1).astype(np.intp)
        indices = np.where(indices < 0, indices + source.count, indices)
        whole = self._count, source.row
        out = result.reshape(whole) if result.flags.c_contiguous else np.empty(whole, np.float32)

        def rows(block: int, scratch: Scratch) -> None:
            for position in range(block * _BLOCK, min((block + 1) * _BLOCK, self._count)):
                index = int(indices[position])
                if 0 <= index < source.count:
                    source.rows(index, index + 1, out[position : position + 1])
                else:
                    out[position] = 0

        context.parallel(-(-self._count // _BLOCK), rows)
        if not result.flags.c_contiguous:
            result[...] = out.reshape(result.shape)
