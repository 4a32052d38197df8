"""Choose the order of the axes of tensors in memory, such as channels last, or so that a Transpose is a view.

Costs of operations for given orders, and the orders of outputs that are views, come first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.backend.kernel import KernelOptions, Order
from irexec.backend.registry import has_candidates
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.passes.move_transposes import move_of
from irexec.compile.rewriting import Rewriting
from irexec.compile.select import cheapest, is_static
from irexec.compile.storage.layout import may_join
from irexec.compile.storage.views import as_views, may_be_views, order_of, outputs_of, probe

# Nanoseconds to copy an element, and to copy one whose neighbours in the copy are not neighbours in the original.
COPIED, REORDERED = 0.3, 1.0
# Nanoseconds of a step that copies, whatever it copies.
STEP = 3000.0
ROUNDS = 3
"""Maximum number of rounds over all tensors."""
GAIN = 0.02
"""Fraction of the affected cost that a change must save: estimates are not better than that."""

_OTHER: dict[int, Order] = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


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


def choose_layouts(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Set the order of every value that a fast kernel writes, and of the views of it."""
    layout = _Layouts(graph, rewriting)
    layout.start()
    for _ in range(ROUNDS):
        if not sum(layout.improve(value) for value in layout.free):
            break
    rewriting.applied(sum(value.order is not None for value in layout.free))


class _Layouts:
    """Values whose order is free, with what they affect."""

    def __init__(self, graph: CompileGraph, rewriting: Rewriting) -> None:
        self.operations = graph.order()
        self.costs = Costs(rewriting.options)
        self.viewing = {operation for operation in self.operations if may_be_views(operation)}
        self.free = [
            value
            for operation in self.operations
            if operation not in self.viewing and _writes_any_order(operation, native=rewriting.options.native)
            for value in operation.outputs
            if not graph.is_target(value)
            and len(value.fact.static_shape) in _OTHER
            and sum(size > 1 for size in value.fact.static_shape) > 1
        ]

    def start(self) -> None:
        """Take the better one of the two extremes."""
        totals = []
        for other in (False, True):
            self._set_all(other)
            totals.append(sum(map(self._cost, self.operations)))
        if totals[0] <= totals[1]:
            self._set_all(False)

    def _set_all(self, other: bool) -> None:
        for value in self.free:
            value.order = _OTHER.get(len(value.fact.static_shape)) if other else None
        for operation in self.operations:
            self._follow(operation)

    def improve(self, value: CompileValue) -> bool:
        """Give the value its cheapest order; whether that changed it."""
        affected = [operation for operation in (value.producer, *self._reached(value)) if operation is not None]
        before = chosen = value.order
        kernels, copies = self._costs(affected)
        current = best = kernels + copies
        for order in dict.fromkeys(self._options(value)):
            if order == before:
                continue
            self._set(value, order)
            new_kernels, new_copies = self._costs(affected)
            cost = new_kernels + new_copies
            # That a copy vanishes is certain, what a kernel takes is estimated.
            if cost < best and (cost < current * (1 - GAIN) or new_kernels <= kernels):
                best, chosen = cost, order
        self._set(value, chosen)
        return chosen != before

    def _options(self, value: CompileValue) -> Iterator[Order | None]:
        rank = len(value.fact.static_shape)
        yield None
        if rank in _OTHER:
            yield _OTHER[rank]
        yield from _orders_for_views(value)

    def _set(self, value: CompileValue, order: Order | None) -> None:
        value.order = order
        for reader in value.readers:
            if reader.inputs and reader.inputs[0] is value:
                self._follow(reader)

    def _follow(self, operation: Operation) -> None:
        """The order of a view follows from that of the tensor that it is a view of."""
        if operation not in self.viewing:
            return
        orders = self.costs.view(operation) or (None,) * len(operation.outputs)
        for output, order in zip(operation.outputs, orders, strict=False):
            if output.order != order:
                self._set(output, order)

    def _reached(self, value: CompileValue) -> Iterator[Operation]:
        """The operations that read the value or a view of it, views included."""
        for reader in value.readers:
            yield reader
            if reader in self.viewing and reader.inputs[0] is value:
                for output in reader.outputs:
                    yield from self._reached(output)

    def _costs(self, operations: Sequence[Operation]) -> tuple[float, float]:
        """The estimated cost of kernels, and that of copies where a view is not possible."""
        kernels = sum(self._cost(operation) for operation in operations if operation not in self.viewing)
        return kernels, sum(self._cost(operation) for operation in operations if operation in self.viewing)

    def _cost(self, operation: Operation) -> float:
        if operation not in self.viewing:
            return self.costs.of(operation)
        if self.costs.view(operation) is not None:
            return 0.0
        elements = math.prod(operation.inputs[0].fact.static_shape)
        return STEP + elements * (COPIED if operation.inputs[0].order is None else REORDERED)


def _orders_for_views(value: CompileValue) -> Iterator[Order | None]:
    """The orders in which a view of the value, or a view of that, lies in C order or in the other one of its rank."""
    for reader in value.readers:
        move = move_of(reader)
        if move is not None and reader.inputs[0] is value:
            ends = (None, _OTHER.get(len(move.after)), *_orders_for_views(reader.output))
            for end in dict.fromkeys(ends):
                moved = probe(move.after, end)
                if moved is None:
                    return
                array = moved.reshape(move.before) if move.order is None else moved.transpose(np.argsort(move.order))
                if np.may_share_memory(moved, array):
                    yield order_of(array)


def _writes_any_order(operation: Operation, *, native: bool) -> bool:
    """True if a fast kernel writes the outputs, in any order of axes."""
    if not is_static(operation):
        return False
    definition = operation.definition
    if definition is None:
        return True
    return has_candidates(definition, native=native) and not operation.bodies and not definition.plugin
