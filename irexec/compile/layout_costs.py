"""Costs of operations for given orders of their inputs and outputs, and the orders of outputs that are views."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from irexec.backend.kernel import KernelOptions, Order
from irexec.compile.graph import CompileValue, Operation
from irexec.compile.select import cheapest, is_static
from irexec.compile.storage.layout import may_join
from irexec.compile.storage.views import as_views, order_of, outputs_of, probe

# Nanoseconds to copy an element, and to copy one whose neighbours in the copy are not neighbours in the original.
COPIED, REORDERED = 0.3, 1.0
# Nanoseconds of a step that copies, whatever it copies.
STEP = 3000.0


@dataclass
class Costs:
    """Estimated nanoseconds, cached: networks are made of blocks that repeat.

    Attributes:
        options: of the kernels.
    """

    options: KernelOptions
    _known: dict[Hashable, float] = field(default_factory=dict)
    _views: dict[Hashable, tuple[Order | None, ...] | None] = field(default_factory=dict)
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    _kind_of: dict[Operation, int | None] = field(default_factory=dict)

    def of(self, operation: Operation) -> float:
        """The cost of the cheapest kernel for the current orders; 0 if only the reference kernel can run."""
        kind = self._kind(operation)
        if kind is None:
            return 0.0
        key = (
            kind,
            tuple(value.order for value in operation.inputs),
            tuple(value.order for value in operation.outputs),
        )
        if key not in self._known:
            best = cheapest(operation, (True,) * len(operation.outputs), self.options)
            joined = best is not None and best.joins and may_join(operation)
            self._known[key] = 0.0 if best is None or joined else best.cost
        return self._known[key]

    def _kind(self, operation: Operation) -> int | None:
        """A number shared by operations of equal costs; None for operations without a fast kernel."""
        if operation not in self._kind_of:
            self._kind_of[operation] = self._find_kind(operation)
        return self._kind_of[operation]

    def _find_kind(self, operation: Operation) -> int | None:
        definition = operation.definition
        if not is_static(operation) or (definition is not None and (operation.bodies or definition.stateful)):
            return None
        values = (*operation.inputs, *operation.outputs)
        shapes = tuple((value.fact.static_shape, value.fact.element, value.constant is not None) for value in values)
        name = operation.type, str(operation.attributes), str(operation.chain), operation.own, shapes
        return self._kinds.setdefault(name, len(self._kinds))

    def view(self, operation: Operation) -> tuple[Order | None, ...] | None:
        """The orders of the outputs of an operation for which ``may_be_views`` holds; None if it copies."""
        data = operation.inputs[0]
        key = (
            self._kind(operation),
            tuple(v.known.tobytes() for v in operation.inputs[1:] if v.known is not None),
            data.order,
        )
        if key not in self._views:
            self._views[key] = _orders_of_views(operation, data)
        return self._views[key]


def _orders_of_views(operation: Operation, data: CompileValue) -> tuple[Order | None, ...] | None:
    array = probe(data.fact.static_shape, data.order)
    if array is None:
        return None
    results = as_views(outputs_of(operation), array)
    return None if results is None else tuple(map(order_of, results))
