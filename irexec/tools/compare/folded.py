"""Tensors that B computes and A has as Constants: one exporter writes positions and masks as layers, the other their
values."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from irexec.analysis.constant_layers import constant_layers
from irexec.ir.graph import Node, Value
from irexec.tools.compare.observe import Facts
from irexec.tools.compare.pairs import FOLDED, Pairs, TensorPair
from irexec.tools.compare.sides import ModelSide

_GIVEN = ("Parameter", "Constant")
COMMUTATIVE = ("Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor")


def pair_with_constants(
    a: ModelSide, b: ModelSide, pairs: Pairs, facts: tuple[Facts, Facts], agree: Set[Value]
) -> list[TensorPair]:
    """Pairs of tensors of B with Constants of A, or with tensors from constants, found from the layers that read them.

    Args:
        a, b: both sides.
        pairs: the pairs so far.
        facts: facts of the values of A, and of the values of B.
        agree: values of B that agree with their partners, and keep them.
    """
    of_a, of_b = constant_layers(a.model), constant_layers(b.model)
    found: dict[Value, Value] = {}
    for value, partner in pairs.by_b.items():
        if value.node.type == "Reshape" or value.node.type != partner.node.type:
            # A Reshape may infer a size, -1, that the other exporter writes out.
            continue
        mine, theirs = _operands(value.node, partner.node, pairs) or (None, None)
        if mine is None or theirs is None or mine in agree or mine.node in of_b or mine.node.type in _GIVEN:
            continue
        if (theirs.node.constant is not None or theirs.node in of_a) and _fit(theirs, mine, facts):
            found.setdefault(mine, theirs)
    return [TensorPair(theirs, mine, FOLDED) for mine, theirs in found.items() if pairs.by_b.get(mine) is not theirs]


def _operands(node: Node, of_a: Node, pairs: Pairs) -> tuple[Value, Value] | None:
    """The only input of a layer of B that is not paired with the input of A's layer, and this input of A."""
    if len(node.inputs) != len(of_a.inputs):
        return None
    if node.type in COMMUTATIVE:
        return _left_over(node.inputs, of_a.inputs, pairs)
    left = [
        (mine, theirs)
        for mine, theirs in zip(node.inputs, of_a.inputs, strict=True)
        if not _is_pair(mine, theirs, pairs)
    ]
    mine, theirs = left[0] if len(left) == 1 else (None, None)
    return None if mine is None or theirs is None else (mine, theirs)


def _left_over(
    inputs: Sequence[Value | None], of_a: Sequence[Value | None], pairs: Pairs
) -> tuple[Value, Value] | None:
    partners = [None if value is None else pairs.by_b.get(value) for value in inputs]
    mine = [value for value, partner in zip(inputs, partners, strict=True) if partner is None or partner not in of_a]
    theirs = [value for value in of_a if value not in partners]
    if len(mine) != 1 or len(theirs) != 1 or mine[0] is None or theirs[0] is None:
        return None
    return mine[0], theirs[0]


def _is_pair(mine: Value | None, theirs: Value | None, pairs: Pairs) -> bool:
    """Whether two inputs are a pair; two Constants count as one."""
    if mine is None or theirs is None:
        return mine is theirs
    return pairs.by_b.get(mine) is theirs or (mine.node.constant is not None and theirs.node.constant is not None)


def _fit(theirs: Value, mine: Value, facts: tuple[Facts, Facts]) -> bool:
    """Whether two tensors are both floating-point or both not, and have as many elements, or shapes that broadcast."""
    one, other = facts[0].get(theirs), facts[1].get(mine)
    if one is None or other is None or not one.is_static or not other.is_static:
        return False
    if one.element is None or other.element is None or one.element.is_float is not other.element.is_float:
        return False
    if math.prod(one.static_shape) == math.prod(other.static_shape):
        return True
    sizes = zip(reversed(one.static_shape), reversed(other.static_shape), strict=False)
    return all(size == theirs or 1 in (size, theirs) for size, theirs in sizes)
