"""Layers at fault, if a model has other values than another version of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from irexec.ir.graph import Node, Value
from irexec.records import Record
from irexec.tools.compare.comparison import ComparedLayer, Suspect
from irexec.tools.compare.layers import layer
from irexec.tools.compare.rows import Found
from irexec.tools.compare.run import ComparedModels
from irexec.tools.compare.summary import suspect
from irexec.tools.observing.sides import ModelSide


@dataclass(frozen=True)
class Blame(Record):
    """Layers at fault.

    Attributes:
        other: name of the other version.
        suspects: layers that may be at fault, with their differences; one layer if it is certain.
        inner: the first differing layers in the bodies of a suspect.
        absent: layers of the other version alone, between the inputs and the results of the smallest model.
    """

    other: str
    suspects: tuple[Suspect, ...]
    inner: tuple[ComparedLayer, ...]
    absent: tuple[ComparedLayer, ...]


def blame(
    kept: Sequence[Node], results: Sequence[Value], agreeing: Collection[Value], first: Found, made: ComparedModels
) -> Blame:
    """The layers at fault in the smallest model.

    Args:
        kept: the layers of B in it.
        results: the values of B of its results.
        agreeing: values of B at which it may be cut.
        first: the tensor that differs.
        made: the comparison.
    """
    found = [suspect(node.outputs[0], first, made.evidence, made.rows) for node in kept]
    own = [
        one for one, node in zip(found, kept, strict=True) if one.differs or made.rows.pairs.layer_of_a(node) is None
    ]
    # The layer of the model itself around a tensor of a body is the first one of its path.
    order = made.evidence.b.order
    inner = [one for one in made.independent if one.path and order[one.positions[0]] in kept]
    return Blame(
        made.evidence.a.label,
        tuple(own if own and len(own) < len(kept) else found),
        tuple({one.value.node: layer(one.value, one.path) for one in inner}.values()),
        tuple(_absent(kept, results, agreeing, made)),
    )


def _absent(
    kept: Sequence[Node], results: Sequence[Value], agreeing: Collection[Value], made: ComparedModels
) -> list[ComparedLayer]:
    """Layers of A without a partner, in front of the partners of the results."""
    by_b = made.rows.pairs.by_b
    known = {by_b[value] for value in agreeing if value in by_b}
    partners = {made.rows.pairs.layer_of_a(node) for node in kept} | set(made.rows.pairs.layers.values())
    waiting = [by_b[value] for value in results if value in by_b]
    start, seen, found = set(waiting), set(waiting), dict[Node, Value]()
    while waiting:
        value = waiting.pop()
        if value in known and value not in start:
            continue
        if value.node not in partners and value.node.type not in ("Parameter", "Constant"):
            found[value.node] = value
        fresh = [source for source in value.node.inputs if source is not None and source not in seen]
        seen.update(fresh)
        waiting += fresh
    order = made.evidence.a.positions if isinstance(made.evidence.a, ModelSide) else {}
    return [layer(found[node]) for node in sorted(found, key=lambda node: order.get(node, 0))]
