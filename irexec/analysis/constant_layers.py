"""Layers that depend on constants alone."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.errors import UnsupportedError
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological, upstream
from irexec.schema.registry import resolve


def constant_layers(graph: Graph) -> set[Node]:
    """The layers of a graph, without those of bodies, whose results are always the same; Constants are not among
    them."""
    found: set[Node] = set()
    for node in topological(graph)[0]:
        sources = [value.node for value in node.inputs if value is not None]
        are_known = bool(sources) and all(one.constant is not None or one in found for one in sources)
        if node.outputs and are_known and gives_the_same(node):
            found.add(node)
    return found


def leaves(value: Value, computed: set[Node]) -> list[Node]:
    """The Constants that a value of ``computed`` layers is made of, each once; the Constant itself where it is one.

    Args:
        value: an output of a Constant or of one of the layers; any other value has none.
        computed: the result of ``constant_layers``.
    """

    def followed(node: Node) -> Iterable[Value | None]:
        return reversed(node.inputs) if node in computed and node.constant is None else ()

    return [node for node in upstream([value.node], followed) if node.constant is not None]


def gives_the_same(node: Node) -> bool:
    """Whether the outputs of a layer depend on its inputs alone; False for layers with bodies and unknown ones."""
    if node.bodies:
        return False
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return False
    return definition.deterministic and not definition.stateful
