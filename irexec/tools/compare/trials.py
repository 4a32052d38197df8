"""Trials with the layers that may be at fault: changes with which their tensor becomes A's, and the elements that they
reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from irexec.ir.graph import Node
from irexec.tools.compare.comparison import Divergence, Suspect
from irexec.tools.compare.corrections import corrections
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.part_of_b import PartOfB
from irexec.tools.compare.reach import reaches
from irexec.tools.compare.reordering import MOVES
from irexec.tools.compare.rows import Found, Rows, paths_of
from irexec.tools.compare.sides import ModelSide

_LATER = 6
"""Number of tensors after the first divergence among which one that shows an order of axes is searched."""


def with_trials(
    described: Divergence, first: Found, rows: Rows, context: OpenSides, suspect: Callable[[Node], Suspect]
) -> Divergence:
    """A divergence with the results of trials, and with the layers that only the trials have found.

    Args:
        described: the divergence without trials.
        first: its row.
        rows: all rows.
        context: the comparison.
        suspect: describes a layer of B.
    """
    names = {f"{path}{node.name}": node for node, path in paths_of(context.b.model).items()}
    nodes = [names[one.layer.name] for one in described.between]
    part = _part(first, nodes, rows, context)
    if part is None or not isinstance(context.a, ModelSide) or part.is_one_layer:
        return described
    corrected = corrections(part, context.a.model, context.b.model)
    reached = reaches(part) if not corrected and len(described.likely) > 1 else {}
    between = dict(zip(nodes, described.between, strict=True))
    for node in [*corrected, *reached]:
        if node not in between and node is not first.value.node:
            between[node] = suspect(node)
    told = {
        node: replace(one, correction=corrected.get(node, ""), reach=reached.get(node))
        for node, one in {first.value.node: described.suspect, **between}.items()
    }
    return replace(described, suspect=told.pop(first.value.node), between=tuple(told.values()))


def _part(first: Found, nodes: Sequence[Node], rows: Rows, context: OpenSides) -> PartOfB | None:
    """The part of B in front of the first tensor that differs.

    If the tensor has A's values with axes in another order, the part ends in a later tensor, which shows the order.
    """
    part = PartOfB.of(first, set(nodes), rows, context)
    if part is not None or first.value not in context.pairs.orders:
        return part
    candidates = {first.value.node, *nodes, *_moving(first.value.node)}
    later = sorted((one for one in rows.found if one.order > first.order), key=lambda one: one.order)
    for one in later[:_LATER]:
        candidates.add(one.value.node)
        part = None if one.row.agreement.agrees else PartOfB.of(one, candidates, rows, context)
        if part is not None:
            return part
    return None


def _moving(node: Node) -> Iterator[Node]:
    """The layers directly in front of a layer that move elements, or none."""
    for value in node.inputs:
        while value is not None and value.node.type in MOVES:
            yield value.node
            value = value.node.inputs[0]
