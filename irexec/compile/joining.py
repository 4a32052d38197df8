"""Concatenations whose parts are computed where they are to lie, so that nothing is copied.

The buffer of a part becomes a piece of the buffer of the concatenation, which then lives as long as any of its parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from irexec.compile.graph import Operation, Value
from irexec.compile.memory import Buffer
from irexec.compile.storage_types import Draft, Storage
from irexec.schema.axes import normalize_axis


def join_concatenations(drafts: Sequence[Draft], storage: Storage, probes: Mapping[Value, np.ndarray]) -> None:
    """Put the parts of each Concat into its buffer, where they have buffers of their own and lie side by side in memory."""
    producers: dict[Buffer, list[int]] = defaultdict(list)
    for i, draft in enumerate(drafts):
        for value in draft.operation.outputs:
            if value in storage.buffers:
                producers[storage.buffers[value]].append(i)
    for i, draft in enumerate(drafts):
        whole = storage.buffers.get(draft.operation.output) if draft.kernel is not None and draft.kernel.joins else None
        if whole is not None and is_outermost(draft.operation):
            storage.joined[draft] = _joined(i, draft.operation, whole, storage, probes, producers)


def may_join(operation: Operation) -> bool:
    """Whether all parts of a Concat could lie in its output from the start."""
    return is_outermost(operation) and all(
        value.order == operation.output.order and value.constant is None for value in operation.inputs
    )


def is_outermost(operation: Operation) -> bool:
    """Whether the parts of a Concat are whole pieces of memory, and nothing is computed of them."""
    output = operation.output
    shape = output.fact.shape or ()
    axis = normalize_axis(operation.attributes["axis"], len(shape))
    order = output.order or tuple(range(len(shape)))
    return operation.chain is None and all(shape[before] == 1 for before in order[: order.index(axis)])


def _joined(
    i: int,
    operation: Operation,
    whole: Buffer,
    storage: Storage,
    probes: Mapping[Value, np.ndarray],
    producers: Mapping[Buffer, Sequence[int]],
) -> frozenset[int]:
    """The inputs that lie in the buffer of the concatenation from now on."""
    found: set[int] = set()
    offset = index = 0
    while index < operation.own:
        root, count = _covered(operation, index, storage, probes)
        part = None if root is None else storage.buffers[root]
        if part is not None and _can_join(i, part, whole, producers):
            part.parent, part.inside = whole, offset
            whole.first, whole.last = min(whole.first, part.first), max(whole.last, part.last)
            found.update(range(index, index + count))
        for value in operation.inputs[index : index + count]:
            offset += value.fact.nbytes
        index += count
    return frozenset(found)


def _can_join(i: int, part: Buffer, whole: Buffer, producers: Mapping[Buffer, Sequence[int]]) -> bool:
    """Whether the part is complete when the concatenation is computed, and no later step writes over what is still read."""
    ancestor: Buffer | None = whole
    while ancestor is not None:
        if ancestor is part:
            return False
        ancestor = ancestor.parent
    if part.parent is not None or any(producer >= i for producer in producers[part]):
        return False
    return len(producers[whole]) == 1 or part.last <= i


def _covered(
    operation: Operation, index: int, storage: Storage, probes: Mapping[Value, np.ndarray]
) -> tuple[Value | None, int]:
    """The value whose memory the inputs from ``index`` on are, all of it and in order, and how many inputs that are."""
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


def _root(value: Value, storage: Storage) -> Value:
    while value in storage.views:
        value = storage.views[value][0]
    return value
