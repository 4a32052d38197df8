"""Location of each value of a planned graph: in the arena, a view of another value, or memory of its own.

The buffer of a part becomes a piece of the buffer of the concatenation, which is then in use as long as any of its
parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from irexec.backend.kernel import Kernel
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.steps import SlotArray
from irexec.compile.storage.planned import EXTERNAL, Buffer, Owner, PlannedOperation, Storage, assign_offsets
from irexec.compile.storage.views import View, as_views, may_be_views, outputs_of, view_of
from irexec.ir.dims import has_room
from irexec.ir.order import grouped
from irexec.schema.shape_rules import normalize_axis


def place_parts(
    operations: Sequence[PlannedOperation], storage: Storage, probes: Mapping[CompileValue, np.ndarray]
) -> None:
    """Place the parts of each Concat in its buffer, if they own buffers and are contiguous in the output."""
    producers = grouped(
        (storage.buffers[value], i)
        for i, planned in enumerate(operations)
        for value in planned.operation.outputs
        if value in storage.buffers
    )
    for i, planned in enumerate(operations):
        joins = planned.kernel is not None and planned.kernel.joins
        whole = storage.buffers.get(planned.operation.output) if joins else None
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
    if part.parent is not None or any(producer >= i for producer in producers.get(part, ())):
        return False
    return len(producers.get(whole, ())) == 1 or part.last <= i


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


def lay_out(
    graph: CompileGraph,
    operations: Sequence[PlannedOperation],
    threads: int,
    reuse: bool = True,
    overwrite: bool = True,
    stage: int = 0,
) -> Storage:
    """Decide the location of each value, and plan the arena.

    Args:
        reuse: whether outputs may be views, and parts of a Concat may be computed in its output.
        overwrite: whether an output may be written over an input.
        stage: bytes of a Parameter or a target up to which it lies in the arena, copied at the start of a run or at its
            end: then the steps that read and write them have the same arrays in every run. 0 for none. A Parameter
            whose readers take another array in each run is not copied.
    """
    storage = Storage()
    kernels = {planned.operation: planned.kernel for planned in operations}
    staged = [
        value
        for value in graph.inputs
        if value.uses
        and _is_staged(value, stage)
        and not all(_reads_late(kernels.get(r), r, value) for r in value.readers)
    ]
    _find_owners(graph, operations, storage, staged)
    outliving = _outliving(graph, operations, storage)
    returned = {value for value in staged if value in outliving}
    lost = {value for value in returned if not _is_staged(value, stage) or value in _stored(operations, storage)}
    if lost:
        staged = [value for value in staged if value not in lost]
        _find_owners(graph, operations, storage, staged)
        outliving = _outliving(graph, operations, storage)
    last = _last_reads(operations, storage)
    if stage:
        for value in (*(returned - lost), *_small_targets(operations, storage, outliving, stage)):
            outliving.discard(value)
            last[value] = len(operations)
    for value in staged:
        storage.buffers[value] = Buffer(value.fact.nbytes, 0, last.get(value, 0))
    probes: dict[CompileValue, np.ndarray] = {}
    fast = {planned.operation for planned in operations if planned.kernel is not None}
    for i, planned in enumerate(operations):
        if planned.kernel is not None:
            _place_outputs(i, planned, storage, outliving, last, overwrite)
            needed = planned.kernel.needed.size(threads)
            if needed:
                storage.workspaces[planned] = Buffer(needed, i, i)
        elif reuse and planned.kernel is None and may_be_views(planned.operation):
            _find_views(planned, storage, probes)
        elif stage:
            for value in _small_results(planned, fast, storage, outliving, stage):
                storage.buffers[value] = Buffer(value.fact.nbytes, i, last[value])
    if reuse:
        place_parts(operations, storage, probes)
    storage.arena = assign_offsets([*dict.fromkeys(storage.buffers.values()), *storage.workspaces.values()])
    return storage


STAGED, STAGED_IN_BODY = 1 << 20, 1 << 16
"""Bytes of a Parameter or a target that lies in the arena, at most: copying it takes less time than binding the steps
that read or write it. In a body, which may run for ever, they are smaller: its results are collected."""


def _is_staged(value: CompileValue, limit: int) -> bool:
    element = value.fact.element
    if element is None or not element.native or element.carrier.hasobject or not value.fact.is_static:
        return False
    return 0 < value.fact.nbytes <= limit


def _reads_late(kernel: Kernel | None, reader: Operation, value: CompileValue) -> bool:
    """Whether a kernel binds all inputs that are a value in each run."""
    return kernel is not None and all(i in kernel.late for i, read in enumerate(reader.inputs) if read is value)


def _small_targets(
    operations: Sequence[PlannedOperation], storage: Storage, outliving: Set[Owner], stage: int
) -> list[CompileValue]:
    """The small values of kernels that outlive a run only because they, or views of them, are asked for."""
    kept = _stored(operations, storage)
    return [
        value
        for planned in operations
        if planned.kernel is not None
        for value in planned.operation.outputs
        if value in outliving and value not in kept and _is_staged(value, stage)
    ]


def _small_results(
    planned: PlannedOperation, fast: Set[Operation], storage: Storage, outliving: Set[Owner], stage: int
) -> list[CompileValue]:
    """The small results of a reference kernel that fast kernels read: copied to the arena, they are the same arrays in
    every run."""
    return [
        value
        for value, wanted in zip(planned.operation.outputs, planned.wanted, strict=True)
        if wanted and value not in outliving and storage.owners[value] == {value} and _is_staged(value, stage)
        if _is_read_by(value, fast)
    ]


def _is_read_by(value: CompileValue, operations: Set[Operation]) -> bool:
    """Whether one of the operations reads a value or a view of it."""
    return any(
        reader in operations or (may_be_views(reader) and any(_is_read_by(view, operations) for view in reader.outputs))
        for reader in value.readers
    )


def _find_owners(
    graph: CompileGraph,
    operations: Sequence[PlannedOperation],
    storage: Storage,
    staged: Sequence[CompileValue],
) -> None:
    owners = storage.owners
    for value in (*graph.inputs, *graph.constants()):
        owners[value] = frozenset([EXTERNAL])
    for value in staged:
        owners[value] = frozenset([value])
    for planned in operations:
        through = frozenset[Owner]()
        if planned.returns_views:
            through = through.union(*(owners[value] for value in planned.operation.inputs))
            if planned.has_state:
                through |= {EXTERNAL}
        for value in planned.operation.outputs:
            owners[value] = through or frozenset([value])


def _outliving(graph: CompileGraph, operations: Sequence[PlannedOperation], storage: Storage) -> set[Owner]:
    """Owners of the values that outlive a run or may be stored in variables: they cannot lie in the arena."""
    return {owner for value in graph.targets for owner in storage.owners[value]} | _stored(operations, storage)


def _stored(operations: Sequence[PlannedOperation], storage: Storage) -> set[Owner]:
    """Owners of the values that may be stored in variables."""
    return {
        owner
        for planned in operations
        if planned.keeps_inputs
        for value in planned.operation.inputs
        for owner in storage.owners[value]
    }


def _last_reads(operations: Sequence[PlannedOperation], storage: Storage) -> dict[Owner, int]:
    """Index of the last operation that may read the memory of each owner."""
    last: dict[Owner, int] = {}
    for i, planned in enumerate(operations):
        for value in (*planned.operation.outputs, *planned.operation.inputs):
            for owner in storage.owners[value]:
                last[owner] = i
    return last


def slot_array(value: CompileValue, slot: int, offset: int | None) -> SlotArray:
    """The array of a value of known type and shape, in a slot."""
    return SlotArray(slot, value.fact.static_shape, value.fact.dtype, value.order, offset)


def _place_outputs(
    i: int, planned: PlannedOperation, storage: Storage, outliving: set[Owner], last: dict[Owner, int], overwrite: bool
) -> None:
    for index, value in enumerate(planned.operation.outputs):
        if not planned.wanted[index]:
            continue
        if value in outliving:
            storage.fresh.add(value)
            continue
        taken = _overwritten(i, planned, value, storage, last) if index == 0 and overwrite else None
        if taken is None:
            storage.buffers[value] = Buffer(value.fact.nbytes, i, last[value])
        else:
            taken.last = last[value]
            storage.buffers[value] = taken


def _overwritten(
    i: int, planned: PlannedOperation, output: CompileValue, storage: Storage, last: dict[Owner, int]
) -> Buffer | None:
    """The buffer of an input that the first output may be written over."""
    if planned.kernel is None:
        return None
    for index in planned.kernel.overwrites:
        value = planned.operation.inputs[index]
        same = (
            value.fact.shape == output.fact.shape
            and value.fact.element is output.fact.element
            and value.order == output.order
        )
        if same and value in storage.buffers and last[value] == i and _times_read(value, planned, storage) == 1:
            return storage.buffers[value]
    return None


def _times_read(value: CompileValue, planned: PlannedOperation, storage: Storage) -> int:
    """Number of inputs of the operation that may lie in the memory of the value."""
    return sum(bool(storage.owners[value] & storage.owners[other]) for other in planned.operation.inputs)


def _find_views(planned: PlannedOperation, storage: Storage, probes: dict[CompileValue, np.ndarray]) -> None:
    """Make the outputs views of the first input if they can be."""
    operation, data = planned.operation, planned.operation.inputs[0]
    in_arena = data in storage.buffers or data in storage.views
    if not in_arena and data.constant is not None:
        return
    outputs = outputs_of(operation)
    if not has_room(data.fact.static_shape):
        return
    try:
        # An array with the strides that the value will have; nothing reads or writes its memory.
        if data not in probes:
            probes[data] = slot_array(data, 0, None).allocated()
        probe = probes[data]
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
            viewed, before = storage.run_views.get(data, (data, None))
            storage.run_views[value] = (viewed, view if before is None else _composed(before, view))


def _composed(first: View, second: View) -> View:
    return lambda array: second(first(array))
