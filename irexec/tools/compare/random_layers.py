"""Layers with random values, and the layers that depend on them: two runs differ."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.ir.graph import Node

_SEEDS = {"RandomUniform": ("global_seed", "op_seed"), "Multinomial": ("global_seed", "op_seed")}


def is_random(node: Node) -> bool:
    """Whether a layer has other values in each run: its seeds are 0. A body counts as its layer."""
    names = _SEEDS.get(node.type)
    if names is not None:
        return all(node.attributes.get(name, "0").strip() == "0" for name in names)
    return any(is_random(inner) for body in node.bodies.values() for inner in body.graph.walk())


def is_generator(node: Node) -> bool:
    """Whether a layer has random values, with or without seeds: runtimes of ONNX have their own generators."""
    return node.type in _SEEDS or any(
        is_generator(inner) for body in node.bodies.values() for inner in body.graph.walk()
    )


def random_layers(order: Sequence[Node], *, seeded: bool) -> dict[Node, Node]:
    """The layers with random values, each with the layer that generates them.

    Args:
        order: the graph in topological order.
        seeded: whether generators with seeds count too.
    """
    found: dict[Node, Node] = {}
    for node in order:
        if is_generator(node) if seeded else is_random(node):
            found[node] = node
            continue
        # A shape does not depend on values.
        if node.type == "ShapeOf":
            continue
        source = next((found[value.node] for value in node.inputs if value is not None and value.node in found), None)
        if source is not None:
            found[node] = source
    return found
