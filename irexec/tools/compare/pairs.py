"""Pairs of tensors of A and B: from names, from structure, and from the positions of inputs and results."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irexec.analysis.matching import Matching, match_graphs, value_pairs
from irexec.errors import InputError
from irexec.ir.dims import contradict
from irexec.ir.graph import Node, Value
from irexec.ir.order import find_value, values_by_name
from irexec.messages import listed
from irexec.tools.compare.comparison import ONLY_B, Uncompared
from irexec.tools.compare.inputs import facts_of, inner_inputs, recorded_inputs
from irexec.tools.compare.scopes import input_names, pairs_by_module
from irexec.tools.observing.exposed import Inner, Levels
from irexec.tools.observing.observe import Tensor
from irexec.tools.observing.sides import AnySide, ModelSide, RecordedSide, computed, ordered

VALUE = "value"
"""Reason of a pair of equal values in one order, whatever the axes are."""
GUESSES = frozenset({"structure", "contents", "neighbours", "order", "through", "replaced", VALUE})
"""Reasons of a guessed pair."""
RESULT = ("name of the result", "position of the result")
"""Reasons of a certain pair: both models are asked for the same result."""


def differ_in_ones(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes differ, and only in axes of size 1."""
    return one != other and [size for size in one if size != 1] == [size for size in other if size != 1]


@dataclass(frozen=True)
class TensorPair:
    """A tensor of B and the same tensor of A.

    Attributes:
        a: the value of A, or the name of a recorded tensor.
        b: the value of B.
        how: the reason.
        order: the order of A's axes that gives those of B; () for equal axes.
    """

    a: Tensor
    b: Value
    how: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class InnerPair:
    """A tensor inside bodies of B and the same tensor of A."""

    a: Inner
    b: Inner
    how: str


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a comparison.

    Attributes:
        tensors: the pairs to compare, in the order in which B computes them.
        by_b: the values of A by values of B, Parameters and Constants included.
        inner: the pairs inside bodies.
        layers: the layers of A by layers of B, bodies included.
        uncompared: tensors that are not compared.
    """

    tensors: tuple[TensorPair, ...] = ()
    by_b: Mapping[Value, Value] = field(default_factory=dict)
    inner: tuple[InnerPair, ...] = ()
    layers: Mapping[Node, Node] = field(default_factory=dict)
    uncompared: tuple[Uncompared, ...] = ()

    @functools.cached_property
    def orders(self) -> dict[Value, tuple[int, ...]]:
        """The orders of A's axes by values of B, for tensors with other axes."""
        return {pair.b: pair.order for pair in self.tensors if pair.order}

    def layer_of_a(self, node: Node) -> Node | None:
        """The partner of a layer of B."""
        if node in self.layers:
            return self.layers[node]
        value = next((self.by_b[value] for value in node.outputs if value in self.by_b), None)
        return None if value is None else value.node

    def without(self, values: Collection[Value], uncompared: Iterable[Uncompared] = ()) -> Pairs:
        """The pairs without those of some values of B."""
        nodes = {value.node for value in values}
        return replace(
            self,
            tensors=tuple(pair for pair in self.tensors if pair.b not in values),
            by_b={value: one for value, one in self.by_b.items() if value not in values},
            layers={node: one for node, one in self.layers.items() if node not in nodes},
            uncompared=(*self.uncompared, *uncompared),
        )

    def with_others(self, added: Sequence[TensorPair], position: Mapping[Node, int]) -> Pairs:
        """The pairs with others in place of those of the same tensors; ``position``: of the layers of B in topological
        order."""
        new = {pair.b: pair.a for pair in added if isinstance(pair.a, Value)}
        partners = set(new.values())
        left = self.without({value for value, one in self.by_b.items() if value in new or one in partners})
        named = {("A", pair.a.name) for pair in added if isinstance(pair.a, Value)} | {("B", one.name) for one in new}
        return replace(
            left,
            tensors=tuple(
                sorted([*left.tensors, *added], key=lambda pair: (position.get(pair.b.node, 0), pair.b.index))
            ),
            by_b={**left.by_b, **new},
            uncompared=tuple(one for one in left.uncompared if (one.side, one.name) not in named),
        )


def first_pairs(a: AnySide, b: ModelSide, maps: Sequence[tuple[str, str]]) -> Pairs:
    """The pairs that follow from the sides alone.

    Args:
        a, b: the sides.
        maps: pairs of names of tensors, which overrule all others.

    Raises:
        InputError: a tensor of ``maps`` does not exist or is given twice, or no recorded tensor has the name of one of
            the model.
    """
    if isinstance(a, RecordedSide):
        return _recorded(a, b, maps)
    if a.model is b.model:
        return Pairs(
            tuple(TensorPair(value, value, "same model") for value in computed(b.order)),
            {value: value for node in b.model.walk() for value in node.outputs},
            tuple(InnerPair(inner, inner, "same model") for inner in _inner_tensors(b.order, ())),
            {node: node for node in b.model.walk()},
        )
    return matched(a, b, maps)


def matched(a: ModelSide, b: ModelSide, maps: Sequence[tuple[str, str]], known: Sequence[TensorPair] = ()) -> Pairs:
    """The pairs of two models from names and structure; ``known`` are pairs of tensors with equal values."""
    same = {pair.b: pair.a for pair in known if isinstance(pair.a, Value)}
    layers = [*_same_inputs(a, b), *((one.node, value.node) for value, one in same.items())]
    matching = match_graphs(a.model, b.model, [*layers, *(_same_results(a, b) if same else [])])
    partners = set(same.values())
    pairs = [pair for pair in value_pairs(matching) if pair.b not in same and pair.a not in partners]
    by_b = {pair.b: pair.a for pair in pairs} | same
    how = {pair.b: pair.reason for pair in pairs} | {pair.b: pair.how for pair in known}
    orders = {pair.b: pair.order for pair in known}
    _pair_results(a, b, by_b, how)
    for one, other in maps:
        _map(by_b, how, find_value(a.model, one), find_value(b.model, other))
    inner = list(_of_bodies(matching, (), ()))
    return Pairs(
        tuple(
            TensorPair(by_b[value], value, how[value], orders.get(value, ()) if by_b[value] is same.get(value) else ())
            for value in computed(b.order)
            if value in by_b
        ),
        by_b | {pair.b: pair.a for of_body, _, _ in inner for pair in value_pairs(of_body)},
        tuple(pair for _, of_body, _ in inner for pair in of_body),
        {pair.b: pair.a for of in (matching, *(of_body for of_body, _, _ in inner)) for pair in of.pairs},
        (
            *_only("A", a, set(by_b.values())),
            *_only("B", b, by_b),
            *(one for _, _, alone in inner for one in alone),
        ),
    )


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
    both = list(zip(left.values(), others, strict=False))
    if len(others) == len(left) and all(
        one.element is other.element and not contradict(one.shape, other.shape) for one, other in both
    ):
        found |= {other.node: one.node for one, other in both}
    return [(one, other) for other, one in found.items()]


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
    partners = [
        {named[name] for value in mine.inputs if value is not None for name in value.names if name in named}
        for mine in results_b
    ]
    if any(len(one) != 1 for one in partners) or len(set[Node]().union(*partners)) != len(partners):
        return None
    return [(one.pop(), mine) for one, mine in zip(partners, results_b, strict=True)]


def _of_bodies(
    matching: Matching, levels_a: Levels, levels_b: Levels
) -> Iterator[tuple[Matching, list[InnerPair], list[Uncompared]]]:
    """The bodies of paired layers, at all levels: matchings, pairs of tensors, and tensors without a partner."""
    for (node, name), inner in matching.bodies.items():
        other = matching.in_b(node)
        if other is None:
            continue
        own_a, own_b = (*levels_a, (node, name)), (*levels_b, (other, name))
        of_b = {pair.b: pair for pair in value_pairs(inner)}
        partners = {pair.a for pair in of_b.values()}
        tensors = [Inner(value, own_b) for value in computed(ordered(inner.b))]
        paired = [(of_b[one.value], one) for one in tensors if one.value in of_b]
        lone = [inner_uncompared("B", one, ONLY_B) for one in tensors if one.value not in of_b]
        of_a = [Inner(value, own_a) for value in computed(ordered(inner.a)) if value not in partners]
        lone += [inner_uncompared("A", one, "only A has it") for one in of_a]
        yield inner, [InnerPair(Inner(pair.a, own_a), one, pair.reason) for pair, one in paired], lone
        yield from _of_bodies(inner, own_a, own_b)


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


def _recorded(a: RecordedSide, b: ModelSide, maps: Sequence[tuple[str, str]]) -> Pairs:
    """The pairs of recorded tensors and a model: by the names of tensors and layers."""
    named = values_by_name(b.model)
    chosen: dict[Value, TensorPair] = {}
    for one, other in maps:
        if one not in a.names:
            raise InputError(f"{a.label} has no tensor {one!r}")
        value = find_value(b.model, other)
        chosen[value] = TensorPair(one, value, "map")
    mapped = {pair.a for pair in chosen.values()}
    of_modules, same = pairs_by_module(a.names, a.read, b, facts_of(b.model, [recorded_inputs(a, b.model)]))
    by_name = [TensorPair(name, named[name], "name") for name in a.names if name in named]
    for pair in (*by_name, *(TensorPair(name, value, "module") for value, name in of_modules.items())):
        if pair.a not in mapped:
            chosen.setdefault(pair.b, pair)
    if not chosen:
        names = listed(a.names, 5)
        raise InputError(
            f"no tensor of {a.label} ({names}) has the name of a tensor or layer of {b.label}: --map a=b pairs two"
        )
    used = {pair.a for pair in chosen.values()} | set(named) | same | {key for _, key in input_names(a.names)}
    return Pairs(
        tuple(chosen[value] for value in computed(b.order) if value in chosen),
        uncompared=(
            *(
                Uncompared("A", name, "", "only A has it")
                for name in a.names
                if name not in used and not name.startswith("source:")
            ),
            *(
                Uncompared("B", value.name, value.node.type, "it is not recorded")
                for value in computed(b.order)
                if value not in chosen
            ),
        ),
    )


def _only(side: str, model: ModelSide, matched: Collection[Value]) -> list[Uncompared]:
    """Tensors of one side without a partner; tensors from constants alone, such as unpacked weights, come last."""
    constant = model.constant | {node for node in model.order if node.type == "Constant"}
    alone = sorted((one for one in computed(model.order) if one not in matched), key=lambda one: one.node in constant)
    reasons = (f"only {side} has it", f"only {side} has it, from constants alone")
    return [Uncompared(side, one.name, one.node.type, reasons[one.node in constant]) for one in alone]
