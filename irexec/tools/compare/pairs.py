"""Pairs of tensors of A and B."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.matching import Matching, match_graphs, value_pairs
from irexec.analysis.model import Port
from irexec.errors import InputError, OpError
from irexec.ir.dims import meet_shapes
from irexec.ir.find import find_value, values_by_name
from irexec.ir.graph import Node, Value
from irexec.messages import listed
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.constants import same_weights
from irexec.tools.compare.exposed import Inner, Levels
from irexec.tools.compare.parts import inner_inputs
from irexec.tools.compare.sides import ModelSide, RecordedSide, computed, ordered

FOLDED = "folded"
"""Reason of a pair of a computed tensor of B and a Constant of A."""
GUESSES = frozenset({"structure", "contents", "neighbours", "order", "through", "replaced", "value", FOLDED})
"""Reasons of a guessed pair."""
VALUES = ("value", "what follows", FOLDED)
"""Reasons of a pair with values in one order, whatever the axes are."""
RESULT = ("name of the result", "position of the result")
"""Reasons of a certain pair: both models are asked for the same result."""


@dataclass(frozen=True)
class TensorPair:
    """A tensor of B and the same tensor of A.

    Attributes:
        a: the value of A, or the name of a recorded tensor.
        b: the value of B.
        how: the reason.
        order: the order of A's axes that gives those of B; () for equal axes.
    """

    a: Value | str
    b: Value
    how: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class InnerPair:
    """A tensor inside bodies of B and the same tensor of A."""

    a: Inner
    b: Inner
    how: str


@dataclass
class Pairs:
    """The pairs of one comparison.

    Attributes:
        tensors: the pairs to compare, in the order in which B computes them.
        inner: the pairs inside bodies.
        by_b: the values of A by values of B, Parameters and Constants included.
        orders: the orders of A's axes by values of B, for tensors with other axes.
        layers: the layers of A by layers of B, bodies included.
        uncompared: tensors without a partner.
    """

    tensors: list[TensorPair] = field(default_factory=list)
    inner: list[InnerPair] = field(default_factory=list)
    by_b: dict[Value, Value] = field(default_factory=dict)
    orders: dict[Value, tuple[int, ...]] = field(default_factory=dict)
    layers: dict[Node, Node] = field(default_factory=dict)
    uncompared: list[Uncompared] = field(default_factory=list)

    def layer_of_a(self, node: Node) -> Node | None:
        """The partner of a layer of B."""
        if node in self.layers:
            return self.layers[node]
        value = next((self.by_b[value] for value in node.outputs if value in self.by_b), None)
        return None if value is None else value.node


def pair_models(a: ModelSide, b: ModelSide, maps: Sequence[tuple[str, str]], known: Sequence[TensorPair] = ()) -> Pairs:
    """The pairs of two models.

    Args:
        a, b: both models.
        maps: pairs of names of tensors.
        known: pairs of tensors with equal values.

    Raises:
        InputError: a tensor of ``maps`` does not exist, or is given twice.
    """
    if a.model is b.model:
        found = Pairs(by_b={value: value for node in b.model.walk() for value in node.outputs})
        found.layers = {node: node for node in b.model.walk()}
        found.tensors = [TensorPair(value, value, "same model") for value in computed(b.order)]
        found.inner = [InnerPair(inner, inner, "same model") for inner in _inner_tensors(b.order, ())]
        return found
    same = {pair.b: pair.a for pair in known if isinstance(pair.a, Value)}
    reasons = {pair.b: pair.how for pair in known}
    if same:
        _pair_readers(a, b, same, reasons)
    layers = [*_same_inputs(a, b), *((one.node, value.node) for value, one in same.items())]
    if same:
        layers += [*_same_results(a, b), *same_weights(a.model, b.model)]
    matching = match_graphs(a.model, b.model, layers)
    values = set(same.values())
    found_pairs = [pair for pair in value_pairs(matching) if pair.b not in same and pair.a not in values]
    how = {pair.b: pair.reason for pair in found_pairs} | reasons
    by_b = {pair.b: pair.a for pair in found_pairs} | same
    _pair_results(a, b, by_b, how)
    for one, other in maps:
        _map(by_b, how, find_value(a.model, one), find_value(b.model, other))
    found = Pairs(by_b=by_b, layers={pair.b: pair.a for pair in matching.pairs})
    found.orders = {pair.b: pair.order for pair in known if pair.order and by_b.get(pair.b) is pair.a}
    found.tensors = [
        TensorPair(by_b[value], value, how[value], found.orders.get(value, ()))
        for value in computed(b.order)
        if value in by_b
    ]
    matched = set(by_b.values())
    found.uncompared = [
        *_only("A", a, matched),
        *_only("B", b, set(by_b)),
    ]
    _pair_bodies(matching, (), (), found)
    return found


def _pair_readers(a: ModelSide, b: ModelSide, by_b: dict[Value, Value], how: dict[Value, str]) -> None:
    """Pair layers without a partner that have one type and read the same tensors, if A has only one such layer."""
    constant = constant_layers(a.model) | constant_layers(b.model)
    users: dict[Value, dict[Node, None]] = {}
    for node in a.order:
        for value in node.inputs:
            if value is not None:
                users.setdefault(value, {})[node] = None
    partners = set(by_b.values())
    for node in b.order:
        read = [
            (i, value) for i, value in enumerate(node.inputs) if value is not None and not _is_constant(value, constant)
        ]
        if not read or not node.outputs or node.outputs[0] in by_b or any(value not in by_b for _, value in read):
            continue
        found = [
            other
            for other in users.get(by_b[read[0][1]], ())
            if (other.type, len(other.inputs), len(other.outputs)) == (node.type, len(node.inputs), len(node.outputs))
            and all(other.inputs[i] is by_b[value] for i, value in read)
            and partners.isdisjoint(other.outputs)
        ]
        if len(found) == 1:
            for value, partner in zip(node.outputs, found[0].outputs, strict=True):
                by_b[value], how[value] = partner, "neighbours"
                partners.add(partner)


def _is_constant(value: Value, constant: set[Node]) -> bool:
    return value.node.constant is not None or value.node in constant


def _pair_results(a: ModelSide, b: ModelSide, by_b: dict[Value, Value], how: dict[Value, str]) -> None:
    """Pair the tensors of results.

    These pairs overrule structure: if the last layer is missing in B, structure pairs the layer in front of it with its
    own partner.
    """
    for theirs, mine in _same_results(a, b):
        source, other = mine.inputs[0], theirs.inputs[0]
        if source is None or other is None or how.get(source) in (*RESULT, "map"):
            continue
        if by_b.get(source) is not other:
            for value in [value for value, partner in by_b.items() if partner is other and how[value] not in RESULT]:
                del by_b[value], how[value]
            by_b[source] = other
        elif how[source] not in GUESSES:
            continue
        how[source] = RESULT[0] if set(source.names) & set(other.names) else RESULT[1]


def _same_inputs(a: ModelSide, b: ModelSide) -> list[tuple[Node, Node]]:
    """Parameters of the same input: by a common name, the others by position if types and shapes fit.

    Structure does not decide: ``x - y`` and ``y - x`` would have two renamed inputs.
    """
    if inner_inputs(a.model, b.model) or inner_inputs(b.model, a.model):
        return []
    left = {port.node: port for port in a.model.inputs}
    found: dict[Node, Node] = {}
    for port in b.model.inputs:
        same = next((other for other in left.values() if set(other.names) & set(port.names)), None)
        if same is not None:
            found[port.node] = left.pop(same.node).node
    others = [port for port in b.model.inputs if port.node not in found]
    if len(others) == len(left) and all(map(_fit, left.values(), others)):
        found |= {port.node: other for other, port in zip(left, others, strict=True)}
    return [(one, other) for other, one in found.items()]


def _fit(one: Port, other: Port) -> bool:
    """Whether two inputs have one element type and a common shape."""
    try:
        meet_shapes(one.shape, other.shape)
    except OpError:
        return False
    return one.element is other.element


def _same_results(a: ModelSide, b: ModelSide) -> list[tuple[Node, Node]]:
    """Pairs of Results: by their names, or by their positions if both models have as many.

    The results of a part of the other model are inner tensors of it: they have no pair.
    """
    if inner_inputs(a.model, b.model) or inner_inputs(b.model, a.model):
        return []
    results_a, results_b = ([node for node in side.model.results if node.inputs and node.inputs[0]] for side in (a, b))
    by_name = _by_names(results_a, results_b)
    if by_name is None and len(results_a) == len(results_b):
        return list(zip(results_a, results_b, strict=True))
    return by_name or []


def _by_names(results_a: Sequence[Node], results_b: Sequence[Node]) -> list[tuple[Node, Node]] | None:
    """Pairs of Results with a common name; None unless each Result of B has another single one of A."""
    named = {name: node for node in results_a for value in node.inputs if value is not None for name in value.names}
    found = [
        (mine, {named[name] for value in mine.inputs if value for name in value.names if name in named})
        for mine in results_b
    ]
    if any(len(others) != 1 for _, others in found) or len({other for _, others in found for other in others}) != len(
        found
    ):
        return None
    return [(next(iter(others)), mine) for mine, others in found]


def _pair_bodies(matching: Matching, levels_a: Levels, levels_b: Levels, found: Pairs) -> None:
    """Add the pairs of the bodies of paired layers."""
    for (node, name), inner in matching.bodies.items():
        other = matching.in_b(node)
        if other is None:
            continue
        own_a, own_b = (*levels_a, (node, name)), (*levels_b, (other, name))
        pairs = {pair.b: pair for pair in value_pairs(inner)}
        found.by_b |= {pair.b: pair.a for pair in pairs.values()}
        found.layers |= {pair.b: pair.a for pair in inner.pairs}
        for value in computed(ordered(inner.b)):
            if value in pairs:
                found.inner.append(InnerPair(Inner(pairs[value].a, own_a), Inner(value, own_b), pairs[value].reason))
            else:
                found.uncompared.append(
                    Uncompared("B", f"{Inner(value, own_b).path}{value.name}", value.node.type, "only B has it")
                )
        partners = {pair.a for pair in pairs.values()}
        for value in computed(ordered(inner.a)):
            if value not in partners:
                found.uncompared.append(
                    Uncompared("A", f"{Inner(value, own_a).path}{value.name}", value.node.type, "only A has it")
                )
        _pair_bodies(inner, own_a, own_b, found)


def inner_uncompared(side: str, tensor: Inner, reason: str) -> Uncompared:
    """The entry of a tensor inside bodies without a comparison."""
    return Uncompared(side, f"{tensor.path}{tensor.value.name}", tensor.value.node.type, reason)


def _inner_tensors(order: Sequence[Node], levels: Levels) -> Iterator[Inner]:
    """Tensors of all bodies."""
    for node in order:
        for name, body in node.bodies.items():
            inside = (*levels, (node, name))
            nodes = ordered(body.graph)
            for value in computed(nodes):
                yield Inner(value, inside)
            yield from _inner_tensors(nodes, inside)


def _map(by_b: dict[Value, Value], how: dict[Value, str], one: Value, other: Value) -> None:
    """Make a pair of two values, and end other pairs of them."""
    if how.get(other) == "map":
        raise InputError(f"--map gives two tensors for {other.name!r} of B")
    for value in [value for value, partner in by_b.items() if partner is one]:
        if how[value] == "map":
            raise InputError(f"--map gives {one.name!r} of A twice")
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
        names = listed(a.names, 5)
        raise InputError(
            f"no tensor of {a.label} ({names}) has the name of a tensor or layer of {b.label}: --map a=b pairs two"
        )
    found = Pairs()
    found.tensors = [
        TensorPair(chosen[value][0], value, chosen[value][1]) for value in computed(b.order) if value in chosen
    ]
    used = {name for name, _ in chosen.values()} | set(named)
    found.uncompared = [Uncompared("A", name, "", "only A has it") for name in a.names if name not in used]
    found.uncompared += _without(
        "B", (value for value in computed(b.order) if value not in chosen), "it is not recorded"
    )
    return found


def _only(side: str, model: ModelSide, matched: set[Value]) -> Iterator[Uncompared]:
    """Tensors of one side without a partner; tensors from constants alone, such as unpacked weights, come last."""
    constant = constant_layers(model.model) | {node for node in model.order if node.type == "Constant"}
    alone = [value for value in computed(model.order) if value not in matched]
    yield from _without(side, (value for value in alone if value.node not in constant), f"only {side} has it")
    yield from _without(
        side, (value for value in alone if value.node in constant), f"only {side} has it, from constants alone"
    )


def _without(side: str, values: Iterable[Value], reason: str) -> list[Uncompared]:
    return [Uncompared(side, value.name, value.node.type, reason) for value in values]
