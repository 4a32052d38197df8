"""Moves: Reshape, Squeeze, Unsqueeze and Transpose, which keep the order of the elements or permute axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, create
from irexec.dtypes.elements import I64
from irexec.ir.dims import is_static

Shape = tuple[int, ...]
RESHAPES = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


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
    return shape if is_static(shape) and 0 not in shape else None


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
