"""Move Transposes and changes of shape after element-wise operations, which then join the producer's step.

A product, its Transpose and an activation become the product with the activation, and the Transpose of that. There are
never more Transposes than before.
"""

from __future__ import annotations

from irexec.backend.kernel import KernelOptions
from irexec.backend.registry import is_element_wise
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.moves import Move, emit_move, move_of, sizes_of
from irexec.compile.passes.merge_transposes import merge_transposes
from irexec.compile.rewriting import Rewriting, create
from irexec.compile.select import is_native, is_static, takes_chain

_BY_AXIS = frozenset({"BatchNormInference", "PRelu", "ConvertLike"})
"""Block operations with inputs that do not broadcast as NumPy does it."""


def sink_transposes(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Each element-wise operation in order, so that a move sinks below all of a chain."""
    for operation in graph.order():
        if operation not in graph or not _is_element_wise(operation):
            continue
        for value in operation.inputs:
            if _is_worth_it(graph, value, rewriting.options):
                reason = _sink(graph, rewriting, operation, value)
                if reason is None:
                    break
                rewriting.refused(operation, reason)
    merge_transposes(graph, rewriting)


def _is_element_wise(operation: Operation) -> bool:
    definition = operation.definition
    if (
        definition is None
        or operation.chain is not None
        or operation.bodies
        or definition.injected
        or len(operation.outputs) != 1
    ):
        return False
    if not is_element_wise(definition) or definition.type in _BY_AXIS:
        return False
    return (
        operation.attributes.get("auto_broadcast", "numpy") == "numpy" and is_static(operation) and is_native(operation)
    )


def _is_worth_it(graph: CompileGraph, value: CompileValue, options: KernelOptions) -> bool:
    """True if the value is moved, has one reader, and its producer accepts an element-wise operation."""
    move, moving = move_of(value.producer), value.producer
    if move is None or moving is None or len(value.uses) != 1 or graph.is_target(value):
        return False
    source = moving.inputs[0]
    if source.producer is None or len(source.uses) != 1 or graph.is_target(source):
        return False
    return _is_element_wise(source.producer) or takes_chain(source.producer, options)


def _sink(graph: CompileGraph, rewriting: Rewriting, operation: Operation, value: CompileValue) -> str | None:
    """Compute the operation before the move of ``value``; why it cannot be, or None."""
    moving = value.producer
    move = move_of(moving)
    if moving is None or move is None or operation.definition is None:
        raise AssertionError("the caller looked at the move")
    if operation.output.fact.shape != value.fact.shape or operation.output.fact.element is not value.fact.element:
        return "its result has another shape or type than the tensor that is moved"
    inputs: list[CompileValue] = []
    for operand in operation.inputs:
        before = moving.inputs[0] if operand is value else _moved_back(graph, rewriting, operation, operand, move)
        if before is None:
            return "another operand would have to be moved"
        inputs.append(before)
    attributes = operation.definition.ungrouped(operation.attributes)
    computed = create(graph, operation.type, operation.definition.version, inputs, attributes, [operation])
    graph.replace_all_uses_with(operation.output, emit_move(graph, rewriting, move, computed.output, [moving]))
    graph.remove(operation)
    rewriting.applied()
    return None


def _moved_back(
    graph: CompileGraph, rewriting: Rewriting, operation: Operation, operand: CompileValue, move: Move
) -> CompileValue | None:
    """The operand before the move; None if another Transpose would be necessary."""
    shape, same = sizes_of(operand), move_of(operand.producer)
    if shape is None:
        return None
    if operand.producer is not None and same == move:
        return operand.producer.inputs[0]
    if all(size == 1 for size in shape) and len(shape) <= len(move.before):
        return operand
    before = move.backwards(shape)
    element = operand.fact.element
    if before is None or element is None:
        return None
    if operand.constant is not None:
        order, whole = move.order, (1,) * (len(move.after) - len(shape)) + shape
        if order is None:
            return rewriting.derived(("shape", before), [operand], element, before, lambda array: array.reshape(before))
        inverse = [order.index(axis) for axis in range(len(order))]
        key = ("transposed", whole, tuple(inverse))
        return rewriting.derived(key, [operand], element, before, lambda array: array.reshape(whole).transpose(inverse))
    if move.order is None:
        return emit_move(graph, rewriting, Move(shape, before), operand, [operation])
    return None
