"""Which tensor of A is which of B."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from irexec.analysis.matching import Matching, match_graphs, value_pairs
from irexec.errors import InputError
from irexec.ir.find import find_value, values_by_name
from irexec.ir.graph import Node, Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.sides import ModelSide, RecordedSide, computed, tensor_name


@dataclass(frozen=True)
class TensorPair:
    """A tensor of B and the same of A: a value, or the name of a recorded tensor."""

    a: Value | str
    b: Value
    how: str


@dataclass
class Pairs:
    """The pairs of one comparison.

    Attributes:
        tensors: those to compare, in the order in which B computes them.
        by_b: for every value of B, Parameters and Constants included, the value of A.
        uncompared: what has no partner.
        matching: of the graphs; None where A is recorded.
    """

    tensors: list[TensorPair] = field(default_factory=list)
    by_b: dict[Value, Value] = field(default_factory=dict)
    uncompared: list[Uncompared] = field(default_factory=list)
    matching: Matching | None = None

    def layer_of_a(self, node: Node) -> Node | None:
        """The layer of A that is this one of B."""
        found = self.matching.in_a(node) if self.matching else None
        if found is not None or not node.outputs:
            return found
        value = next((self.by_b[value] for value in node.outputs if value in self.by_b), None)
        return None if value is None else value.node


def pair_models(a: ModelSide, b: ModelSide, maps: Sequence[tuple[str, str]]) -> Pairs:
    """The pairs of two models.

    Raises:
        InputError: a tensor of ``maps`` does not exist, or is given twice.
    """
    if a.model is b.model:
        values = [value for node in b.order for value in node.outputs]
        found = Pairs(by_b={value: value for value in values}, matching=None)
        found.tensors = [TensorPair(value, value, "same model") for value in computed(b.order)]
        return found
    matching = match_graphs(a.model, b.model)
    how = {pair.b: pair.reason for pair in value_pairs(matching)}
    by_b = {pair.b: pair.a for pair in value_pairs(matching)}
    for one, other in maps:
        _map(by_b, how, find_value(a.model, one), find_value(b.model, other))
    found = Pairs(by_b=by_b, matching=matching)
    found.tensors = [TensorPair(by_b[value], value, how[value]) for value in computed(b.order) if value in by_b]
    matched = set(by_b.values())
    found.uncompared = [
        *_without("A", (value for value in computed(a.order) if value not in matched), "only A has it"),
        *_without("B", (value for value in computed(b.order) if value not in by_b), "only B has it"),
    ]
    return found


def _map(by_b: dict[Value, Value], how: dict[Value, str], one: Value, other: Value) -> None:
    """Make a pair of two values, which end others that they are part of."""
    if how.get(other) == "map":
        raise InputError(f"--map gives two tensors for {tensor_name(other)!r} of B")
    for value in [value for value, partner in by_b.items() if partner is one]:
        if how[value] == "map":
            raise InputError(f"--map gives {tensor_name(one)!r} of A twice")
        del by_b[value], how[value]
    by_b[other], how[other] = one, "map"


def pair_recorded(a: RecordedSide, b: ModelSide, maps: Sequence[tuple[str, str]]) -> Pairs:
    """The pairs of recorded tensors and a model: by the names of tensors and layers.

    Raises:
        InputError: no recorded tensor has the name of one of the model, or ``maps`` names one that does not exist.
    """
    named = values_by_name(b.model)
    chosen: dict[Value, tuple[str, str]] = {}
    for one, other in maps:
        if one not in a.names:
            raise InputError(f"{a.label} has no tensor {one!r}")
        chosen[find_value(b.model, other)] = (one, "map")
    mapped = {name for name, _ in chosen.values()}
    for name in a.names:
        if name in named and name not in mapped:
            chosen.setdefault(named[name], (name, "name"))
    if not chosen:
        names = ", ".join(a.names[:5]) + (f" and {len(a.names) - 5} more" if len(a.names) > 5 else "")
        raise InputError(f"no tensor of {a.label} ({names}) has the name of a tensor or layer of {b.label}: --map a=b pairs two")
    found = Pairs()
    found.tensors = [TensorPair(chosen[value][0], value, chosen[value][1]) for value in computed(b.order) if value in chosen]
    used = {name for name, _ in chosen.values()} | set(named)
    found.uncompared = [Uncompared("A", name, "", "only A has it") for name in a.names if name not in used]
    found.uncompared += _without("B", (value for value in computed(b.order) if value not in chosen), "it is not recorded")
    return found


def _without(side: str, values: Iterable[Value], reason: str) -> list[Uncompared]:
    return [Uncompared(side, tensor_name(value), value.node.type, reason) for value in values]
