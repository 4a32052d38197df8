"""A copy of a model that is the same but for the ids of layers, their order and, where asked for, their names."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import TypeVar

from irexec.ir.graph import Body, Graph, Node

G = TypeVar("G", bound=Graph)


def copied(model: G) -> tuple[G, dict[Node, Node]]:
    """A copy, and for each of its layers, those of bodies included, the layer that it was copied from."""
    other = copy.copy(model)
    return other, dict(zip(other.walk(), model.walk(), strict=True))


def mix(graph: Graph, rng: random.Random) -> None:
    """Give layers other ids and another order, in bodies too; inputs and outputs keep theirs."""
    ids = rng.sample(range(10_000, 10_000 + 3 * len(graph.nodes)), len(graph.nodes))
    kept = [node for node in graph.nodes if node.type in ("Parameter", "Result")]
    others = [node for node in graph.nodes if node.type not in ("Parameter", "Result")]
    rng.shuffle(others)
    indexes = set(rng.sample(range(len(graph.nodes)), len(kept)))
    order = [iter(kept), iter(others)]
    graph.nodes[:] = [next(order[index not in indexes]) for index in range(len(graph.nodes))]
    for node, id in zip(graph.nodes, ids, strict=True):
        node.id = id
        for name, body in node.bodies.items():
            old = {inner: inner.id for inner in body.graph.nodes}
            mix(body.graph, rng)
            node.bodies[name] = _renumbered(body, {id: inner.id for inner, id in old.items()})


def _renumbered(body: Body, ids: dict[int, int]) -> Body:
    maps = [replace(entry, internal=ids.get(entry.internal, entry.internal)) for entry in body.port_maps]
    edges = [
        replace(edge, source=ids.get(edge.source, edge.source), target=ids.get(edge.target, edge.target))
        for edge in body.back_edges
    ]
    return Body(body.graph, maps, edges)


def rename(model: Graph, part: float, rng: random.Random) -> list[Node]:
    """Give that part of all layers names that no other has; the layers."""
    chosen = [node for node in model.walk() if rng.random() < part]
    for number, node in enumerate(chosen):
        node.name = f"renamed {number}"
    return chosen
