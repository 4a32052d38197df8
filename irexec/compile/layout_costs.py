"""What an operation costs for given orders of its inputs and outputs, and what a view of an ordered tensor looks like."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.kernel import Order
from irexec.compile.graph import Operation, Value
from irexec.compile.joining import may_join
from irexec.compile.select import is_static, select_kernel
from irexec.errors import OpError

# Nanoseconds for an element that is copied, and for one whose neighbour in the copy is none in the original.
COPIED, REORDERED = 0.3, 1.0
# Nanoseconds of a step that copies, whatever it copies.
STEP = 3000.0


def sizes(value: Value) -> tuple[int, ...]:
    """The shape of a value of known shape."""
    return value.fact.static_shape


@dataclass
class Costs:
    """Estimated nanoseconds, remembered: networks are made of blocks that repeat.

    Attributes:
        threads, unpack: see Task.
    """

    threads: int
    unpack: bool
    _known: dict[Hashable, float] = field(default_factory=dict)
    _views: dict[Hashable, tuple[Order | None, ...] | None] = field(default_factory=dict)
    _names: dict[Operation, Hashable] = field(default_factory=dict)

    def of(self, operation: Operation) -> float:
        """What the cheapest kernel takes with the orders that the values have now; 0 where only the reference kernel can."""
        if not is_static(operation) or (operation.definition is not None and (operation.bodies or operation.definition.stateful)):
            return 0.0
        key = (
            self._name(operation),
            tuple(value.order for value in operation.inputs),
            tuple(value.order for value in operation.outputs),
        )
        if key not in self._known:
            kernel = select_kernel(operation, (True,) * len(operation.outputs), self.threads, self.unpack)
            joined = kernel is not None and kernel.joins and may_join(operation)
            self._known[key] = 0.0 if kernel is None or joined else kernel.cost
        return self._known[key]

    def _name(self, operation: Operation) -> Hashable:
        """The same for operations that cost the same."""
        if operation not in self._names:
            values = (*operation.inputs, *operation.outputs)
            shapes = tuple((sizes(value), value.fact.element, value.constant is not None) for value in values)
            self._names[operation] = (operation.type, str(operation.attributes), str(operation.chain), operation.own, shapes)
        return self._names[operation]

    def view(self, operation: Operation) -> tuple[Order | None, ...] | None:
        """The orders of the outputs of an operation that only looks at its first input in another form; None if it copies."""
        data = operation.inputs[0]
        key = (self._name(operation), tuple(v.known.tobytes() for v in operation.inputs[1:] if v.known is not None), data.order)
        if key not in self._views:
            self._views[key] = _view(operation, data)
        return self._views[key]


def looks_only(operation: Operation) -> bool:
    """Whether an operation may give views of its first input."""
    definition = operation.definition
    if definition is None or not definition.view or operation.bodies or definition.stateful or not operation.inputs:
        return False
    return is_static(operation) and all(value.known is not None for value in operation.inputs[1:]) and operation.chain is None


def _view(operation: Operation, data: Value) -> tuple[Order | None, ...] | None:
    if operation.definition is None:
        return None
    probe = ordered(sizes(data), data.order)
    rest = [value.known for value in operation.inputs[1:]]
    try:
        results = as_tuple(operation.definition.kernel(probe, *rest, **operation.attributes))
    except OpError:
        return None
    if not all(np.may_share_memory(result, probe) for result in results):
        return None
    return tuple(map(order_of, results))


def ordered(shape: Sequence[int], order: Order | None) -> np.ndarray:
    """Bytes of that shape and order, to look at their strides."""
    if order is None:
        return np.empty(shape, np.int8)
    return np.empty([shape[axis] for axis in order], np.int8).transpose(np.argsort(order))


def order_of(array: np.ndarray) -> Order | None:
    """How the array lies in memory; None for C order."""
    axes = [axis for axis in range(array.ndim) if array.shape[axis] != 1]
    by_stride = sorted(axes, key=lambda axis: -abs(array.strides[axis]))
    if by_stride == axes:
        return None
    found = list(range(array.ndim))
    for axis, stands in zip(axes, by_stride, strict=True):
        found[axis] = stands
    return tuple(found)
