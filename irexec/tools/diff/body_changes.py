"""How bodies are connected to their layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from irexec.analysis.matching import Matching, Pair
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Node, PortMap, Value
from irexec.tools.diff.result import Change

_Entry = tuple[str, str]
"""Ends of an entry of a port map or of a back edge, and its attributes."""


def body_changes(pair: Pair, name: str, matching: Matching) -> list[Change]:
    """Entries of the port map and back edges that only one of two bodies has, or that differ in their attributes."""
    a, b = pair.a.bodies[name], pair.b.bodies[name]
    ids_a, ids_b = _by_id(matching.a), _by_id(matching.b)
    names_a = {id: node.name for id, node in ids_a.items()}
    # Layers are named as in A; their ids and names in B do not count.
    names_b = {id: (matching.in_a(node) or node).name for id, node in ids_b.items()}
    found = list(_differing(f"{name} port map", _maps(pair.a, a, names_a), _maps(pair.b, b, names_b)))
    return found + list(_differing(f"{name} back edge", _edges(a, names_a), _edges(b, names_b)))


def _by_id(graph: Graph) -> dict[int, Node]:
    return {node.id: node for node in graph.nodes}


def _maps(node: Node, body: Body, names: dict[int, str]) -> list[_Entry]:
    return [(_ends(node, entry, names), _attributes(entry)) for entry in body.port_maps]


def _ends(node: Node, entry: PortMap, names: dict[int, str]) -> str:
    direction = "to" if entry.kind == "input" else "from"
    return f"{_external(node, entry)} {direction} {names.get(entry.internal, entry.internal)}"


def _external(node: Node, entry: PortMap) -> str:
    """The port of the layer by its index; ids of ports depend on the number of ports."""
    if entry.external < 0:
        return "no output" if entry.kind == "output" else "no input"
    index = node.input_index(entry.external) if entry.kind == "input" else node.output_index(entry.external)
    return f"{entry.kind} {'?' if index is None else index}"


def _attributes(entry: PortMap) -> str:
    return " ".join(f'{name}="{text}"' for name, text in sorted(entry.attributes.items())) or "there"


def _edges(body: Body, names: dict[int, str]) -> list[_Entry]:
    return [
        (f"{names.get(edge.source, edge.source)} to {names.get(edge.target, edge.target)}", "there")
        for edge in body.back_edges
    ]


def _differing(what: str, a: list[_Entry], b: list[_Entry]) -> Iterator[Change]:
    mine, theirs = Counter(a), Counter(b)
    only_a, only_b = list((mine - theirs).elements()), list((theirs - mine).elements())
    texts_a, texts_b = dict(only_a), dict(only_b)
    for connects in dict.fromkeys([*texts_a, *texts_b]):
        yield Change("bodies", f"{what}: {connects}", texts_a.get(connects), texts_b.get(connects))


def outer_inputs(
    pair: Pair, name: str, matching: Matching, differ: Callable[[Fact | None, Fact | None], bool]
) -> dict[Node, list[Value]]:
    """The Parameters of a body in B whose outer input has another shape or type than in A, with these inputs of B.

    A Parameter that an iteration sets for the next may follow from any of these inputs.
    """
    body, ids = pair.b.bodies[name], _by_id(matching.b)
    differing: list[Value] = []
    found: dict[Node, list[Value]] = {}
    for entry in body.port_maps:
        index = pair.b.input_index(entry.external) if entry.kind == "input" else None
        if index is None or index >= len(pair.a.inputs) or entry.internal not in ids:
            continue
        one, other = pair.a.inputs[index], pair.b.inputs[index]
        if one is not None and other is not None and differ(one.fact, other.fact):
            found[ids[entry.internal]] = [other]
            differing.append(other)
    if differing:
        for edge in body.back_edges:
            if edge.target in ids:
                found.setdefault(ids[edge.target], differing)
    return found


def carried_parameters(pair: Pair, name: str, matching: Matching) -> set[Node]:
    """The Parameters of a body in B that an iteration sets for the next."""
    ids = _by_id(matching.b)
    return {ids[edge.target] for edge in pair.b.bodies[name].back_edges if edge.target in ids}
