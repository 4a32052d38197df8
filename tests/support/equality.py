"""Whether two graphs are equal, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from irexec.io import plain
from irexec.ir.graph import Body, Graph, Input, Node, Value


def differences(a: Graph, b: Graph, *, ports: bool = False) -> list[str]:
    """One sentence for each difference; empty for graphs that are equal.

    Lines, paths and offsets in the .bin do not count; nor does what a writer fills in (the ids and
    further attributes of ports, the spelling of types), unless ``ports``. Constants are compared by
    their bytes, what only the file needs by what its elements say.
    """
    return list(_graphs(a, b, "", ports))


def _graphs(a: Graph, b: Graph, path: str, ports: bool) -> Iterator[str]:
    if a.name != b.name:
        yield f"{path}the name is {a.name!r} and {b.name!r}"
    yield from _payloads(a, b, path)
    found = [[(p.code, p.layer_id, p.port) for p in graph.problems] for graph in (a, b)]
    if found[0] != found[1]:
        yield f"{path}the problems are {found[0]} and {found[1]}"
    if len(a.nodes) != len(b.nodes):
        yield f"{path}there are {len(a.nodes)} and {len(b.nodes)} layers"
        return
    position = {node: i for graph in (a, b) for i, node in enumerate(graph.nodes)}
    for one, other in zip(a.nodes, b.nodes, strict=True):
        yield from _nodes(one, other, f"{path}layer {one.name!r}: ", position, ports)


def _payloads(a: Graph | Node, b: Graph | Node, path: str) -> Iterator[str]:
    mine, theirs = plain(a.payload), plain(b.payload)
    for field in sorted(mine.keys() | theirs.keys()):
        if mine.get(field) != theirs.get(field):
            yield f"{path}the {field} of its XML element are {mine.get(field)} and {theirs.get(field)}"


def _nodes(a: Node, b: Node, path: str, position: dict[Node, int], ports: bool) -> Iterator[str]:
    for what in ("id", "name", "type", "version", *(("spelling",) if ports else ())):
        if getattr(a, what) != getattr(b, what):
            yield f"{path}{what} is {getattr(a, what)!r} and {getattr(b, what)!r}"
    yield from _payloads(a, b, path)
    if _attributes(a) != _attributes(b):
        yield f"{path}the attributes are {_attributes(a)} and {_attributes(b)}"
    yield from _constants(a, b, path)
    if [_origin(v, position) for v in a.inputs] != [_origin(v, position) for v in b.inputs]:
        yield f"{path}the inputs come from different layers"
    for what, mine, theirs in (("inputs", a.ports, b.ports), ("outputs", a.outputs, b.outputs)):
        declared = [[_declared(port, ports) for port in side] for side in (mine, theirs)]
        if declared[0] != declared[1]:
            yield f"{path}the {what} are {declared[0]} and {declared[1]}"
    if set(a.bodies) != set(b.bodies):
        yield f"{path}the bodies are {sorted(a.bodies)} and {sorted(b.bodies)}"
        return
    for name, body in a.bodies.items():
        yield from _bodies(body, b.bodies[name], f"{path}{name}: ", ports)


def _bodies(a: Body, b: Body, path: str, ports: bool) -> Iterator[str]:
    maps = [[(e.kind, e.external, e.internal, e.attributes) for e in body.port_maps] for body in (a, b)]
    if maps[0] != maps[1]:
        yield f"{path}the port maps differ"
    edges = [[(e.source, e.target, plain(e.payload)) for e in body.back_edges] for body in (a, b)]
    if edges[0] != edges[1]:
        yield f"{path}the back edges differ"
    yield from _graphs(a.graph, b.graph, path, ports)


def _constants(a: Node, b: Node, path: str) -> Iterator[str]:
    if (a.constant is None) != (b.constant is None):
        yield f"{path}only one has data"
    elif a.constant is not None and b.constant is not None:
        if (a.constant.element, a.constant.shape) != (b.constant.element, b.constant.shape):
            yield f"{path}the data is {a.constant.element}{list(a.constant.shape)} and {b.constant.element}{list(b.constant.shape)}"
        elif not np.array_equal(a.constant.raw, b.constant.raw):
            yield f"{path}the data differs"


def _origin(value: Value | None, position: dict[Node, int]) -> Any:
    return None if value is None else (position.get(value.node), value.index)


def _declared(port: Input | Value, ports: bool) -> Any:
    fact, names = port.fact, []
    if isinstance(port, Value):
        names = port.names
    elif fact is None and port.source is not None:
        fact = port.source.fact
    # A file contains neither symbols nor bounds on its ports, and an unknown rank is written as a scalar is.
    shape = None if fact is None else tuple(size if isinstance(size, int) else -1 for size in fact.shape or ())
    written = port.port if ports else None
    return None if fact is None else fact.element, shape, tuple(names), plain(port.payload, as_written=ports), written


# What a writer puts into the data of a constant; its offset in the .bin does not matter.
_OFFSET = ("element_type", "shape", "offset", "size")


def _attributes(node: Node) -> dict[str, str]:
    if node.constant is None:
        return node.attributes
    return {key: text for key, text in node.attributes.items() if key not in _OFFSET}
