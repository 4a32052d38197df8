"""Merge and move Transposes and changes of shape: Reshape, Squeeze and Unsqueeze.

Consecutive ones are merged, and Transposes folded into MatMul. Others move after element-wise operations, which then
join the producer's step: a product, its Transpose and an activation become the product with the activation, and the
Transpose of that. There are never more Transposes than before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.kernel import KernelOptions
from irexec.backend.registry import is_element_wise
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, create, created
from irexec.compile.select import is_native, is_static, takes_chain
from irexec.dtypes.elements import I64
from irexec.ir import dims

Shape = tuple[int, ...]
RESHAPES = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
_BY_AXIS = frozenset({"BatchNormInference", "PRelu", "ConvertLike"})
"""Block operations with inputs that do not broadcast as NumPy does it."""


@dataclass(frozen=True)
class Move:
    """The effect of a Transpose (with an order of axes) or of a change of shape (without one) on a tensor.

    Attributes:
        before, after: the shapes.
        order: as of Transpose; None where the elements keep their order.
    """

    before: Shape
    after: Shape
    order: tuple[int, ...] | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether the result is the tensor itself."""
        return self.before == self.after and self.order is None

    def then(self, second: Move) -> Move | None:
        """Both in one; None if two moves are needed."""
        if self.order is None and second.order is None:
            return Move(self.before, second.after)
        if self.order is None or second.order is None:
            return None
        return permutation(self.before, tuple(self.order[axis] for axis in second.order))

    def backwards(self, shape: Sequence[int]) -> Shape | None:
        """The shape before the move of a tensor that broadcasts to ``after``; None for a partly broadcast axis."""
        whole = (1,) * (len(self.after) - len(shape)) + tuple(shape)
        if len(whole) > len(self.after):
            return None
        if self.order is not None:
            return tuple(whole[axis] for axis in np.argsort(self.order))
        sizes: list[int] = []
        for old, new in _groups(self.before, self.after):
            part = whole[new]
            if part == self.after[new]:
                sizes += self.before[old]
            elif all(size == 1 for size in part):
                sizes += [1] * len(self.before[old])
            else:
                return None
        return tuple(sizes)


def permutation(before: Shape, order: Sequence[int]) -> Move:
    """The move of a Transpose; a change of shape where only axes of size 1 are moved."""
    after = tuple(before[axis] for axis in order)
    kept = [axis for axis in order if before[axis] != 1]
    return Move(before, after, None if kept == sorted(kept) else tuple(order))


def _groups(before: Shape, after: Shape) -> list[tuple[slice, slice]]:
    """The smallest runs of axes of both shapes that hold the same elements, in order."""
    groups, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        first, second = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while math.prod(before[first:i]) != math.prod(after[second:j]):
            if math.prod(before[first:i]) < math.prod(after[second:j]):
                i += 1
            else:
                j += 1
        groups.append((slice(first, i), slice(second, j)))
    return groups


def sizes_of(value: CompileValue) -> Shape | None:
    """The shape, if it is known and holds elements."""
    shape = value.fact.shape
    return shape if dims.is_static(shape) and 0 not in shape else None


def move_of(operation: Operation | None) -> Move | None:
    """The move of an operation; None if it is not a move, or if shapes, axes or the order are not known."""
    if operation is None or operation.chain is not None or any(value.known is None for value in operation.inputs[1:]):
        return None
    if operation.type != "Transpose" and operation.type not in RESHAPES:
        return None
    before, after = sizes_of(operation.inputs[0]), sizes_of(operation.output)
    if before is None or after is None:
        return None
    if operation.type in RESHAPES:
        return Move(before, after)
    order = operation.inputs[1].fact.ints()
    return None if order is None else permutation(before, order or tuple(reversed(range(len(before)))))


def emit_move(
    graph: CompileGraph, rewriting: Rewriting, move: Move, value: CompileValue, origins: Sequence[Operation]
) -> CompileValue:
    """The value moved."""
    if move.changes_nothing:
        return value
    if move.order is not None:
        order = rewriting.literal(np.array(move.order, np.int64), I64)
        return create(graph, "Transpose", "opset1", [value, order], {}, origins).output
    shape = rewriting.literal(np.array(move.after, np.int64), I64)
    return create(graph, "Reshape", "opset1", [value, shape], {"special_zero": False}, origins).output


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
    rewriting.replace(graph, operation, emit_move(graph, rewriting, move, source, origins))


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
    computed = created(graph, operation.definition, inputs, attributes, [operation])
    rewriting.replace(graph, operation, emit_move(graph, rewriting, move, computed.output, [moving]))
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
