"""Concatenations whose parts are computed at their position in the output, so that nothing is copied.

The buffer of a part becomes a piece of the buffer of the concatenation, which is then in use as long as any of its
parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from irexec.compile.graph import CompileValue, Operation
from irexec.compile.storage.arena import Buffer
from irexec.compile.storage.planned import PlannedOperation, Storage
from irexec.schema.shape_rules import normalize_axis


def place_parts(
    operations: Sequence[PlannedOperation], storage: Storage, probes: Mapping[CompileValue, np.ndarray]
) -> None:
    """Place the parts of each Concat in its buffer, if they own buffers and are contiguous in the output."""
    producers: dict[Buffer, list[int]] = defaultdict(list)
    for i, planned in enumerate(operations):
        for value in planned.operation.outputs:
            if value in storage.buffers:
                producers[storage.buffers[value]].append(i)
    for i, planned in enumerate(operations):
        whole = (
            storage.buffers.get(planned.operation.output)
            if planned.kernel is not None and planned.kernel.joins
            else None
        )
        if whole is not None and is_outermost(planned.operation):
            storage.in_position[planned] = _place_in(i, planned.operation, whole, storage, probes, producers)


def may_join(operation: Operation) -> bool:
    """True if all parts of a Concat could be computed in its output."""
    return is_outermost(operation) and all(
        value.order == operation.output.order and value.constant is None for value in operation.inputs
    )


def is_outermost(operation: Operation) -> bool:
    """True if each part of a Concat is one piece of the memory of its output, and no chain follows."""
    output = operation.output
    shape = output.fact.shape or ()
    axis = normalize_axis(operation.attributes["axis"], len(shape))
    order = output.order or tuple(range(len(shape)))
    return operation.chain is None and all(shape[before] == 1 for before in order[: order.index(axis)])


def _place_in(
    i: int,
    operation: Operation,
    whole: Buffer,
    storage: Storage,
    probes: Mapping[CompileValue, np.ndarray],
    producers: Mapping[Buffer, Sequence[int]],
) -> frozenset[int]:
    """Replace buffers of parts by pieces of the concatenation's buffer. Returns the indices of these inputs."""
    found: set[int] = set()
    offset = index = 0
    while index < operation.own:
        root, count = _covered(operation, index, storage, probes)
        part = None if root is None else storage.buffers[root]
        if part is not None and _can_be_piece(i, part, whole, producers):
            part.parent, part.inside = whole, offset
            whole.first, whole.last = min(whole.first, part.first), max(whole.last, part.last)
            found.update(range(index, index + count))
        for value in operation.inputs[index : index + count]:
            offset += value.fact.nbytes
        index += count
    return frozenset(found)


def _can_be_piece(i: int, part: Buffer, whole: Buffer, producers: Mapping[Buffer, Sequence[int]]) -> bool:
    """True if the part is complete before the concatenation and not overwritten before its last read."""
    ancestor: Buffer | None = whole
    while ancestor is not None:
        if ancestor is part:
            return False
        ancestor = ancestor.parent
    if part.parent is not None or any(producer >= i for producer in producers[part]):
        return False
    return len(producers[whole]) == 1 or part.last <= i


def _covered(
    operation: Operation, index: int, storage: Storage, probes: Mapping[CompileValue, np.ndarray]
) -> tuple[CompileValue | None, int]:
    """The value whose memory is exactly the inputs from ``index`` on, and their number; else None and 1."""
    value, order = operation.inputs[index], operation.output.order
    if value in storage.buffers:
        return (value if value.order == order else None), 1
    if value not in storage.views:
        return None, 1
    root = _root(value, storage)
    if root not in storage.buffers or root not in probes:
        return None, 1
    start, size, taken = probes[root].ctypes.data, root.fact.nbytes, 0
    for count, view in enumerate(operation.inputs[index : operation.own], 1):
        if view not in storage.views or _root(view, storage) is not root or probes[view].ctypes.data - start != taken:
            return None, 1
        laid = probes[view] if order is None else probes[view].transpose(order)
        if not laid.flags.c_contiguous:
            return None, 1
        taken += view.fact.nbytes
        if taken == size:
            return root, count
    return None, 1


def _root(value: CompileValue, storage: Storage) -> CompileValue:
    while value in storage.views:
        value = storage.views[value][0]
    return value
