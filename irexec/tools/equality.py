"""Whether two graphs say the same, and where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from irexec.ir.graph import Body, Graph, Input, Model, Node, Value


def differences(a: Graph, b: Graph, *, ports: bool = False) -> list[str]:
    """One sentence for each difference; empty for graphs that are equal.

    Lines, paths and places in the .bin do not count; nor does what a writer fills in (the numbers and
    further attributes of ports, the spelling of types), unless ``ports``. Constants are compared by
    their bytes, rt_info by what its elements say.
    """
    return list(_graphs(a, b, "", ports))


def _graphs(a: Graph, b: Graph, path: str, ports: bool) -> Iterator[str]:
    if a.name != b.name:
        yield f"{path}the name is {a.name!r} and {b.name!r}"
    if isinstance(a, Model) and isinstance(b, Model) and a.attributes != b.attributes:
        yield f"the attributes are {a.attributes} and {b.attributes}"
    if isinstance(a, Model) and isinstance(b, Model) and _elements(a.rt_info) != _elements(b.rt_info):
        yield f"the rt_info is {_elements(a.rt_info)} and {_elements(b.rt_info)}"
    if _elements(a.extras.get("rest")) != _elements(b.extras.get("rest")):
        yield f"{path}the rt_info is {_elements(a.extras.get('rest'))} and {_elements(b.extras.get('rest'))}"
    if a.parts != b.parts:
        yield f"{path}the attributes of its parts are {a.parts} and {b.parts}"
    found = [[(p.code, p.layer_id, p.port) for p in graph.problems] for graph in (a, b)]
    if found[0] != found[1]:
        yield f"{path}the problems are {found[0]} and {found[1]}"
    if len(a.nodes) != len(b.nodes):
        yield f"{path}there are {len(a.nodes)} and {len(b.nodes)} layers"
        return
    place = {node: i for i, node in enumerate(a.nodes)} | {node: i for i, node in enumerate(b.nodes)}
    for one, other in zip(a.nodes, b.nodes, strict=True):
        yield from _nodes(one, other, f"{path}layer {one.name!r}: ", place, ports)


def _nodes(a: Node, b: Node, path: str, place: dict[Node, int], ports: bool) -> Iterator[str]:
    for what in ("id", "name", "type", "version", "extras", "parts", *(("spelling",) if ports else ())):
        if getattr(a, what) != getattr(b, what):
            yield f"{path}{what} is {getattr(a, what)!r} and {getattr(b, what)!r}"
    if _attributes(a) != _attributes(b):
        yield f"{path}the attributes are {_attributes(a)} and {_attributes(b)}"
    if _elements(a.rt_info) != _elements(b.rt_info):
        yield f"{path}the rt_info is {_elements(a.rt_info)} and {_elements(b.rt_info)}"
    yield from _constants(a, b, path)
    if [port.edge_attributes for port in a.ports] != [port.edge_attributes for port in b.ports]:
        yield f"{path}the attributes of its edges differ"
    if [_origin(v, place) for v in a.inputs] != [_origin(v, place) for v in b.inputs]:
        yield f"{path}the inputs come from elsewhere"
    for what, mine, theirs in (("inputs", a.ports, b.ports), ("outputs", a.outputs, b.outputs)):
        said = [[_says(port, ports) for port in side] for side in (mine, theirs)]
        if said[0] != said[1]:
            yield f"{path}the {what} are {said[0]} and {said[1]}"
    if set(a.bodies) != set(b.bodies):
        yield f"{path}the bodies are {sorted(a.bodies)} and {sorted(b.bodies)}"
        return
    for name, body in a.bodies.items():
        yield from _bodies(body, b.bodies[name], f"{path}{name}: ", ports)


def _bodies(a: Body, b: Body, path: str, ports: bool) -> Iterator[str]:
    maps = [[(e.kind, e.external, e.internal, e.attributes) for e in body.port_maps] for body in (a, b)]
    if maps[0] != maps[1]:
        yield f"{path}the port maps differ"
    if [(e.source, e.target, e.attributes) for e in a.back_edges] != [(e.source, e.target, e.attributes) for e in b.back_edges]:
        yield f"{path}the back edges differ"
    yield from _graphs(a.graph, b.graph, path, ports)


def _constants(a: Node, b: Node, path: str) -> Iterator[str]:
    if (a.constant is None) != (b.constant is None):
        yield f"{path}one has data, the other has none"
    elif a.constant is not None and b.constant is not None:
        if (a.constant.element, a.constant.shape) != (b.constant.element, b.constant.shape):
            yield f"{path}the data is {a.constant.element}{list(a.constant.shape)} and {b.constant.element}{list(b.constant.shape)}"
        elif not np.array_equal(a.constant.raw, b.constant.raw):
            yield f"{path}the data differs"


def _origin(value: Value | None, place: dict[Node, int]) -> Any:
    return None if value is None else (place.get(value.node), value.index)


def _says(port: Input | Value, ports: bool) -> Any:
    fact, names = port.fact, []
    if isinstance(port, Value):
        names = port.names
    elif fact is None and port.source is not None:
        fact = port.source.fact
    # A file holds neither symbols nor bounds on its ports, and an unknown rank as it holds a scalar.
    shape = None if fact is None else tuple(size if isinstance(size, int) else -1 for size in fact.shape or ())
    written = (port.port, port.attributes) if ports else None
    return None if fact is None else fact.element, shape, tuple(names), _elements(port.rt_info), written


# What a writer puts into the data of a constant; its place in the .bin says nothing.
_PLACE = ("element_type", "shape", "offset", "size")


def _attributes(node: Node) -> dict[str, str]:
    if node.constant is None:
        return node.attributes
    return {key: text for key, text in node.attributes.items() if key not in _PLACE}


def _elements(roots: Any) -> list[Any]:
    """What elements say, white space apart: in the order of the document, so that nothing recurses."""
    return [
        (element.tag, dict(element.attrib), (element.text or "").strip(), len(element)) for root in roots or () for element in root.iter()
    ]
