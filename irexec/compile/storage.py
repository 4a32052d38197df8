"""Where each value of a planned graph is held: in the arena, as a view of another value, or in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.compile.graph import Graph, Value
from irexec.compile.joining import join_concatenations
from irexec.compile.memory import Buffer, place
from irexec.compile.steps import Place
from irexec.compile.storage_types import FIXED, Draft, Storage
from irexec.compile.views import View, as_views, may_give_views, outputs_of, view_of
from irexec.ir.dims import has_room


def lay_out(graph: Graph, drafts: Sequence[Draft], threads: int, reuse: bool = True, overwrite: bool = True) -> Storage:
    """Decide where each value is held, and plan the arena.

    Args:
        overwrite: whether an output may be written over an input.
        reuse: whether operations need no step whose outputs are views, or that concatenate inputs which are computed in place.
    """
    storage = Storage()
    _find_roots(graph, drafts, storage)
    escaping = _escaping(graph, drafts, storage)
    last = _last_reads(graph, drafts, storage)
    probes: dict[Value, np.ndarray] = {}
    for i, draft in enumerate(drafts):
        if draft.kernel is not None:
            _place_outputs(i, draft, storage, escaping, last, overwrite)
            if draft.kernel.workspace:
                storage.workspaces[draft] = Buffer(threads * (draft.kernel.workspace + 64), i, i)
        elif reuse and draft.kernel is None and may_give_views(draft.operation):
            _find_views(draft, storage, probes)
    if reuse:
        join_concatenations(drafts, storage, probes)
    storage.arena = place([*dict.fromkeys(storage.buffers.values()), *storage.workspaces.values()])
    return storage


def _find_roots(graph: Graph, drafts: Sequence[Draft], storage: Storage) -> None:
    roots = storage.roots
    for value in (*graph.inputs, *graph.constants()):
        roots[value] = frozenset([FIXED])
    for draft in drafts:
        through = frozenset[Value | str]()
        if draft.gives_views:
            through = through.union(*(roots[value] for value in draft.operation.inputs))
            if draft.has_state:
                through |= {FIXED}
        for value in draft.operation.outputs:
            roots[value] = through or frozenset([value])


def _escaping(graph: Graph, drafts: Sequence[Draft], storage: Storage) -> set[Value | str]:
    """The roots of what outlives a run or is given to a body: they cannot lie in the arena."""
    found = {root for value in graph.targets for root in storage.roots[value]}
    for draft in drafts:
        if draft.has_state:
            found |= {root for value in draft.operation.inputs for root in storage.roots[value]}
    return found


def _last_reads(graph: Graph, drafts: Sequence[Draft], storage: Storage) -> dict[Value | str, int]:
    """The last draft that reads anything that may be the root's memory."""
    last: dict[Value | str, int] = {}
    for i, draft in enumerate(drafts):
        for value in (*draft.operation.outputs, *draft.operation.inputs):
            for root in storage.roots[value]:
                last[root] = i
    return last


def place_of(value: Value, slot: int, offset: int | None) -> Place:
    """The place of a value whose type and shape are known."""
    return Place(slot, value.fact.static_shape, value.fact.dtype, value.order, offset)


def _place_outputs(
    i: int, draft: Draft, storage: Storage, escaping: set[Value | str], last: dict[Value | str, int], overwrite: bool
) -> None:
    for index, value in enumerate(draft.operation.outputs):
        if not draft.wanted[index]:
            continue
        if value in escaping:
            storage.fresh.add(value)
            continue
        taken = _overwritten(i, draft, value, storage, last) if index == 0 and overwrite else None
        if taken is None:
            storage.buffers[value] = Buffer(value.fact.nbytes, i, last[value])
        else:
            taken.last = last[value]
            storage.buffers[value] = taken


def _overwritten(i: int, draft: Draft, output: Value, storage: Storage, last: dict[Value | str, int]) -> Buffer | None:
    """The buffer of an input that the first output may take."""
    if draft.kernel is None:
        return None
    for index in draft.kernel.overwrites:
        value = draft.operation.inputs[index]
        same = (
            value.fact.shape == output.fact.shape
            and value.fact.element is output.fact.element
            and value.order == output.order
        )
        if same and value in storage.buffers and last[value] == i and _times_read(value, draft, storage) == 1:
            return storage.buffers[value]
    return None


def _times_read(value: Value, draft: Draft, storage: Storage) -> int:
    """How many inputs of the operation may be memory of the value; earlier operations may have read it as well."""
    return sum(bool(storage.roots[value] & storage.roots[other]) for other in draft.operation.inputs)


def _find_views(draft: Draft, storage: Storage, probes: dict[Value, np.ndarray]) -> None:
    """Make the outputs views of the first input, where they can be."""
    operation, data = draft.operation, draft.operation.inputs[0]
    in_arena = data in storage.buffers or data in storage.views
    if not in_arena and data.constant is not None:
        return
    outputs = outputs_of(operation)
    if not has_room(data.fact.static_shape):
        return
    try:
        probe = _probe(data, probes)
    except MemoryError:
        # An input of the model, which the caller may have mapped; other tensors of such a size are refused before.
        return
    results = as_views(outputs, probe)
    if results is None:
        return
    for index, (value, result) in enumerate(zip(operation.outputs, results, strict=False)):
        probes[value] = result
        view = view_of(outputs, index, probe, result)
        if in_arena:
            storage.views[value] = (data, view)
        else:
            # Where the array that is viewed is not in C order, the result may be a copy, which is correct too.
            root, before = storage.late.get(data, (data, None))
            storage.late[value] = (root, view if before is None else _composed(before, view))


def _composed(first: View, second: View) -> View:
    return lambda array: second(first(array))


def _probe(value: Value, probes: dict[Value, np.ndarray]) -> np.ndarray:
    """An array with the strides that the value will have; its memory is never touched."""
    if value not in probes:
        probes[value] = place_of(value, 0, None).allocated()
    return probes[value]
