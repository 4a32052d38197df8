"""Order of tensors in memory, and operations whose outputs are views of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.kernel import Order
from irexec.compile.graph import Operation
from irexec.compile.select import is_static
from irexec.errors import OpError

# Elements.
_PROBED = 1 << 28

View = Callable[[np.ndarray], np.ndarray]
"""One output of an operation, given its first input."""

Outputs = Callable[[np.ndarray], tuple[np.ndarray, ...]]
"""The outputs of an operation, given its first input."""


def ordered(shape: Sequence[int], order: Order | None, make: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """An array of that shape and order, a view of the array in C order that ``make`` returns for a shape."""
    if order is None:
        return make(tuple(shape))
    return make(tuple(shape[axis] for axis in order)).transpose(np.argsort(order))


def probe(shape: Sequence[int], order: Order | None) -> np.ndarray | None:
    """An array of that shape and order for examining views; None for one that is too large to be made.

    What is not a view is a copy of it, for which there must be memory, too.
    """
    if math.prod(shape) > _PROBED:
        return None
    try:
        return ordered(shape, order, lambda shape: np.empty(shape, np.int8))
    except MemoryError:
        return None


def order_of(array: np.ndarray) -> Order | None:
    """The axes of an array from outermost to innermost in memory; None for C order.

    Axes of size 1 stay at their positions.
    """
    axes = [axis for axis in range(array.ndim) if array.shape[axis] != 1]
    by_stride = sorted(axes, key=lambda axis: -abs(array.strides[axis]))
    if by_stride == axes:
        return None
    found = list(range(array.ndim))
    for axis, stands in zip(axes, by_stride, strict=True):
        found[axis] = stands
    return tuple(found)


def may_be_views(operation: Operation) -> bool:
    """Whether the outputs of an operation may be views of its first input, and its other inputs are known."""
    definition = operation.definition
    if definition is None or not definition.view or not operation.is_pure or not operation.inputs:
        return False
    if operation.empty_outputs is not None:
        return False
    return (
        is_static(operation)
        and all(value.known is not None for value in operation.inputs[1:])
        and operation.chain is None
    )


def outputs_of(operation: Operation) -> Outputs:
    """The outputs of an operation for which ``may_be_views`` holds.

    Plans store the function, so it does not refer to the operation.
    """
    definition, attributes = operation.definition, operation.attributes
    if definition is None:
        raise AssertionError("a chain gives no views")
    rest = [value.known for value in operation.inputs[1:]]
    return lambda array: as_tuple(definition.kernel(array, *rest, **attributes))


def as_views(outputs: Outputs, array: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """The outputs as views of the array; None if a copy is needed, or the operation refuses the array."""
    try:
        results = outputs(array)
    except (OpError, MemoryError):
        # It is a copy, for which there is not enough memory.
        return None
    return results if all(np.may_share_memory(result, array) for result in results if result.size) else None


def is_view(operation: Operation) -> bool:
    """Whether all outputs can be views of the first input as it lies in memory, so that no kernel has to copy it."""
    if not may_be_views(operation):
        return False
    data = operation.inputs[0]
    array = probe(data.fact.static_shape, data.order)
    return array is not None and as_views(outputs_of(operation), array) is not None


def view_of(outputs: Outputs, index: int, array: np.ndarray, result: np.ndarray) -> View:
    """Output ``index`` alone, which is ``result`` for ``array``.

    A part along one axis is a slice: were each of the parts of a Split cut out by the Split, their time would grow by
    the square of their number.
    """
    part = _part(array, result)
    return (lambda given: outputs(given)[index]) if part is None else lambda given: given[part]


def _part(array: np.ndarray, result: np.ndarray) -> tuple[slice, ...] | None:
    """The slices of a view of an array, if the view is a contiguous range along one axis."""
    if result.strides != array.strides or not result.size or result.dtype != array.dtype:
        return None
    shorter = [axis for axis, (size, whole) in enumerate(zip(result.shape, array.shape, strict=True)) if size != whole]
    if len(shorter) != 1:
        return None
    (axis,) = shorter
    if not array.strides[axis]:
        return None
    start, rest = divmod(_address(result) - _address(array), array.strides[axis])
    stop = start + result.shape[axis]
    return None if rest or start < 0 or stop > array.shape[axis] else (*(slice(None),) * axis, slice(start, stop))


def _address(array: np.ndarray) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
