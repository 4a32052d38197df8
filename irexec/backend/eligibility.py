"""Conditions of the fast kernels of floating-point operations, and the type in which they compute."""

from __future__ import annotations

import numpy as np

from irexec.backend.kernel import Order, Task
from irexec.dtypes.elements import F16, F32, F64, Element

_WORKING: dict[Element, np.dtype] = {F32: np.dtype(np.float32), F64: np.dtype(np.float64), F16: np.dtype(np.float32)}


def working_type(task: Task) -> np.dtype | None:
    """The type in which a floating-point operation is computed; f16 is widened if the operation asks for it.

    None where the reference kernel has to run: for other element types, and for types that NumPy does not have.
    """
    element = task.inputs[0].element if task.has_input(0) else None
    if element is None or element not in _WORKING:
        return None
    return np.dtype(np.float16) if element is F16 and not task.definition.widen else _WORKING[element]


def chain_keeps_type(task: Task) -> bool:
    """Whether the chain, if there is one, can be computed in place on the first output."""
    return task.chain is None or task.chain.result == task.chain.dtype


def has_elements(task: Task) -> bool:
    """Whether the inputs and the first output have any elements; empty ones are left to the reference kernels."""
    shapes = [fact.shape for fact in task.inputs if fact.element is not None] + [task.outputs[0].shape]
    return all(shape is not None and 0 not in shape for shape in shapes)


def is_row_major(order: Order | None) -> bool:
    """Whether the order is C order, or not known."""
    return order is None or list(order) == sorted(order)
