"""Layers whose values are random, and what depends on them: two runs do not give the same."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.ir.graph import Node

_SEEDS = {"RandomUniform": ("global_seed", "op_seed"), "Multinomial": ("global_seed", "op_seed")}


def is_random(node: Node) -> bool:
    """Whether a layer gives other values in each run: its seeds are 0. A body counts as its layer."""
    names = _SEEDS.get(node.type)
    if names is not None:
        return all(node.attributes.get(name, "0").strip() == "0" for name in names)
    return any(is_random(inner) for body in node.bodies.values() for inner in body.graph.walk())


def is_generator(node: Node) -> bool:
    """Whether a layer gives random values, with seeds or not: runtimes of ONNX have generators of their own."""
    return node.type in _SEEDS or any(
        is_generator(inner) for body in node.bodies.values() for inner in body.graph.walk()
    )


def random_layers(order: Sequence[Node], *, seeded: bool) -> dict[Node, Node]:
    """The layers whose values are random, each with the layer that makes them so.

    Args:
        order: the graph in topological order.
        seeded: whether generators with seeds count too.
    """
    found: dict[Node, Node] = {}
    for node in order:
        if is_generator(node) if seeded else is_random(node):
            found[node] = node
            continue
        # A shape is what it is, whatever the values.
        if node.type == "ShapeOf":
            continue
        source = next((found[value.node] for value in node.inputs if value is not None and value.node in found), None)
        if source is not None:
            found[node] = source
    return found
