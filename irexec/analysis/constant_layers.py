"""Layers that depend on constants alone."""

from __future__ import annotations

from irexec.errors import UnsupportedError
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological
from irexec.schema.registry import resolve


def constant_layers(graph: Graph) -> set[Node]:
    """The layers of a graph, without those of bodies, whose results are always the same; Constants are not among
    them."""
    found: set[Node] = set()
    for node in topological(graph)[0]:
        sources = [value.node for value in node.inputs if value is not None]
        if (
            node.outputs
            and sources
            and all(s.constant is not None or s in found for s in sources)
            and gives_the_same(node)
        ):
            found.add(node)
    return found


def leaves(value: Value, computed: set[Node]) -> list[Node]:
    """The Constants that a value of ``computed`` layers is made of, each once; the Constant itself where it is one.

    Args:
        value: an output of a Constant or of one of the layers; any other value has none.
        computed: the result of ``constant_layers``.
    """
    found, seen, waiting = dict[Node, None](), set[Node](), [value.node]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.constant is not None:
            found[node] = None
        elif node in computed:
            waiting += [source.node for source in reversed(node.inputs) if source is not None]
    return list(found)


def gives_the_same(node: Node) -> bool:
    """Whether the outputs of a layer depend on its inputs alone; False for layers with bodies and unknown ones."""
    if node.bodies:
        return False
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return False
    return definition.deterministic and not definition.stateful
