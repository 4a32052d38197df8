"""The fast kernel: a partition in place of a sort, row by row on all threads, without a temporary array."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.plugins import Candidate, Kernel, KernelContext, Scratch, Task

# Elements of a block, which fits the cache of a core.
_BLOCK = 1 << 14


class ByPartition(Kernel):
    """SoftTopK of blocks of rows."""

    def __init__(self, task: Task) -> None:
        elements = task.shape(0)[-1]
        self._k, self._elements = task.attributes["k"], elements
        self._rows = max(1, _BLOCK // elements)
        count = int(np.prod(task.shape(0)[:-1]))
        self._blocks = -(-count // self._rows)
        # Two arrays of a block: a copy of the rows, and whether each element is kept.
        workspace = self._rows * elements * (4 + 1) + 256
        super().__init__(algorithm="partition of rows", splits=self._blocks > 1, workspace=workspace)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        x, out = inputs[0].reshape(-1, self._elements), outputs[0].reshape(-1, self._elements)

        def block(index: int, scratch: Scratch) -> None:
            rows = slice(index * self._rows, (index + 1) * self._rows)
            self._block(x[rows], out[rows], scratch)

        context.parallel(self._blocks, block)

    def _block(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        ordered = scratch.take(x.shape, x.dtype)
        kept = scratch.take(x.shape, np.dtype(bool))
        np.copyto(ordered, x)
        ordered.partition(-self._k, axis=-1)
        np.greater_equal(x, ordered[:, -self._k, None], out=kept)
        np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.multiply(out, kept, out=out)
        np.divide(out, out.sum(axis=-1, keepdims=True), out=out)


def candidate(task: Task) -> Candidate:
    """The kernel with its cost: about ten nanoseconds for each element."""
    return Candidate(cost=10.0 * float(np.prod(task.shape(0))), make=lambda: ByPartition(task))
