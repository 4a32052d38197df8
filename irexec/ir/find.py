"""Finding a tensor by what users call it."""

from __future__ import annotations

import difflib

from irexec.errors import InputError
from irexec.ir.graph import Graph, Node, Value


def find_value(graph: Graph, key: str) -> Value:
    """The value that ``key`` means: a tensor name, ``layer:port``, a layer's name, or a layer's id.

    The port counts outputs from 0. A Result stands for what feeds it.

    Raises:
        InputError: nothing is called so; the message offers what is nearest.
    """
    for node in graph.nodes:
        for value in node.outputs:
            if key in value.names:
                return value
    layer, _, port = key.rpartition(":")
    for name, index in ((key, "0"), (layer, port)):
        owner = _node(graph, name)
        if owner is not None and index.isascii() and index.isdigit():
            return _output(owner, int(index), key)
    inside = _inside(graph, key)
    if inside:
        raise InputError(f"{key!r} is in {inside}: only tensors of the graph around its bodies can be given")
    near = difflib.get_close_matches(key, list(dict.fromkeys(all_names(graph))), 3)
    offer = f"; near it are {', '.join(map(repr, near))}" if near else ""
    raise InputError(f"there is no tensor or layer {key!r}{offer}")


def all_names(graph: Graph) -> list[str]:
    """Every name a tensor of the graph answers to."""
    return [name for node in graph.nodes for name in (node.name, *(n for value in node.outputs for n in value.names))]


def _inside(graph: Graph, key: str) -> str:
    """The body that has a layer or tensor of this name, whether alone or behind the path of the body; "" if none has."""
    for node in graph.nodes:
        for name, body in node.bodies.items():
            if key.removeprefix(f"{node.name}/{name}/") in all_names(body.graph):
                return f"{name} of layer {node.name!r}"
            deeper = _inside(body.graph, key.removeprefix(f"{node.name}/{name}/"))
            if deeper:
                return deeper
    return ""


def _node(graph: Graph, name: str) -> Node | None:
    if not name:
        return None
    for node in graph.nodes:
        if node.name == name:
            return node
    return next((node for node in graph.nodes if str(node.id) == name), None)


def _output(node: Node, index: int, key: str) -> Value:
    if node.type == "Result" and node.inputs and node.inputs[0] is not None:
        return node.inputs[0]
    if index >= len(node.outputs):
        raise InputError(f"there is no tensor {key!r}: layer {node.name!r} has {len(node.outputs)} outputs")
    return node.outputs[index]
