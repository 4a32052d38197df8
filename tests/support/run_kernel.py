"""A fast kernel alone, on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.testing.kernels import read_by, result_of, run_recorded


def run_kernel(
    kernel: Kernel, task: Task, inputs: Sequence[np.ndarray | None], operands: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """The outputs of a kernel for the task's arrays; of one that records, those of its record."""
    kernel.pack(ConstantStore())
    arrays = [*inputs, *operands]
    outputs = result_of(kernel, task, KernelContext.of(kernel, task.threads), arrays)
    if kernel.records:
        with np.errstate(all="ignore"):
            run_recorded(kernel, task.threads, read_by(kernel, task, arrays), outputs)
    return [output for output in outputs if output is not None]
