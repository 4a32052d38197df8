"""Merge consecutive Transposes and consecutive changes of shape, and fold Transposes into MatMul."""

from __future__ import annotations

from irexec.compile.graph import CompileGraph, Operation
from irexec.compile.moves import emit_move, move_of
from irexec.compile.rewriting import Rewriting, create


def merge_transposes(graph: CompileGraph, rewriting: Rewriting) -> None:
    """In the order of the graph, so that several in succession become one."""
    for operation in graph.order():
        if operation.type == "MatMul" and operation.chain is None:
            _merge_into_matmul(graph, rewriting, operation)
        else:
            _merge(graph, rewriting, operation)
    graph.remove_unused()


def _merge(graph: CompileGraph, rewriting: Rewriting, operation: Operation) -> None:
    move = move_of(operation)
    if move is None:
        return
    before = operation.inputs[0].producer
    first, source, origins = move_of(before), operation.inputs[0], [operation]
    both = None if first is None else first.then(move)
    if before is not None and both is not None:
        move, source, origins = both, before.inputs[0], [before, operation]
    elif first is not None:
        rewriting.refused(operation, f"{'a change of shape' if move.order else 'a Transpose'} stands before it")
    becomes_reshape = operation.type == "Transpose" and move.order is None
    if both is None and not becomes_reshape and not move.changes_nothing:
        return
    graph.replace_all_uses_with(operation.output, emit_move(graph, rewriting, move, source, origins))
    graph.remove(operation)
    rewriting.applied()


def _merge_into_matmul(graph: CompileGraph, rewriting: Rewriting, operation: Operation) -> None:
    """A Transpose of the last two axes is a flag of MatMul."""
    attributes, inputs, merged = dict(operation.attributes), list(operation.inputs), [operation]
    for index, flag in enumerate(("transpose_a", "transpose_b")):
        before = inputs[index].producer
        move = move_of(before)
        if before is None or move is None or move.order is None:
            continue
        rank = len(move.before)
        if move.order != (*range(rank - 2), rank - 1, rank - 2):
            rewriting.refused(before, "it moves other axes than those of a matrix")
            continue
        attributes[flag] = not attributes[flag]
        inputs[index] = before.inputs[0]
        merged.insert(0, before)
    if len(merged) > 1 and operation.definition is not None:
        product = create(graph, "MatMul", operation.definition.version, inputs, attributes, merged)
        graph.replace_all_uses_with(operation.output, product.output)
        graph.remove(operation)
        rewriting.applied(len(merged) - 1)
