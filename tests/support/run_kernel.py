"""A fast kernel alone, on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Order, Task
from irexec.testing.tasks import run_recorded


def run_kernel(
    kernel: Kernel, task: Task, inputs: Sequence[np.ndarray | None], operands: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """The outputs of a kernel for the task's arrays, written into arrays that were filled with NaN or 77."""
    kernel.pack(ConstantStore())
    outputs = []
    for i, fact in enumerate(task.outputs):
        dtype = np.dtype(fact.element.carrier) if fact.element is not None else np.dtype(np.float32)
        outputs.append(_filled(task.output_shape(i), dtype, task.output_orders[i]))
    given = [x if kernel.reads is None or i in kernel.reads else None for i, x in enumerate(inputs)]
    context = KernelContext.of(kernel, task.threads)
    with np.errstate(all="ignore"):
        kernel.run([*given, *operands], outputs, context)
        if kernel.records:
            run_recorded(kernel, task.threads, [*given, *operands], outputs)
    return outputs


def _filled(shape: Sequence[int], dtype: np.dtype, order: Order | None) -> np.ndarray:
    order = tuple(range(len(shape))) if order is None else order
    lying = np.full([shape[axis] for axis in order], np.nan if dtype.kind == "f" else 77, dtype)
    return lying.transpose(np.argsort(order))
