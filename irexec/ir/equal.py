"""Whether two graphs say the same, and where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from irexec.ir.graph import Body, Graph, Model, Node, Value


def differences(a: Graph, b: Graph, *, ports: bool = False) -> list[str]:
    """One sentence for each difference; empty for graphs that are equal.

    Lines, paths and places in the .bin do not count; nor do the numbers of ports and attributes that
    a writer fills in, unless ``ports``.
    """
    return list(_graphs(a, b, "", ports))


def _graphs(a: Graph, b: Graph, path: str, ports: bool) -> Iterator[str]:
    if a.name != b.name:
        yield f"{path}the name is {a.name!r} and {b.name!r}"
    if isinstance(a, Model) and isinstance(b, Model) and a.attributes != b.attributes:
        yield f"the attributes are {a.attributes} and {b.attributes}"
    if len(a.nodes) != len(b.nodes):
        yield f"{path}there are {len(a.nodes)} and {len(b.nodes)} layers"
        return
    place = {node: i for i, node in enumerate(a.nodes)} | {node: i for i, node in enumerate(b.nodes)}
    for one, other in zip(a.nodes, b.nodes, strict=True):
        yield from _nodes(one, other, f"{path}layer {one.name!r}: ", place, ports)


def _nodes(a: Node, b: Node, path: str, place: dict[Node, int], ports: bool) -> Iterator[str]:
    for what in ("id", "name", "type", "version", "extras"):
        if getattr(a, what) != getattr(b, what):
            yield f"{path}{what} is {getattr(a, what)!r} and {getattr(b, what)!r}"
    if a.constant is None and a.attributes != b.attributes:
        yield f"{path}the attributes are {a.attributes} and {b.attributes}"
    yield from _constants(a, b, path)
    if [_origin(v, place) for v in a.inputs] != [_origin(v, place) for v in b.inputs]:
        yield f"{path}the inputs come from elsewhere"
    if [_says(v, ports) for v in a.outputs] != [_says(v, ports) for v in b.outputs]:
        yield f"{path}the outputs are {[_says(v, ports) for v in a.outputs]} and {[_says(v, ports) for v in b.outputs]}"
    if set(a.bodies) != set(b.bodies):
        yield f"{path}the bodies are {sorted(a.bodies)} and {sorted(b.bodies)}"
        return
    for name, body in a.bodies.items():
        yield from _bodies(body, b.bodies[name], f"{path}{name}: ", ports)


def _bodies(a: Body, b: Body, path: str, ports: bool) -> Iterator[str]:
    maps = [[(e.kind, e.external, e.internal, e.attributes) for e in body.port_maps] for body in (a, b)]
    if maps[0] != maps[1]:
        yield f"{path}the port maps differ"
    if [(e.source, e.target) for e in a.back_edges] != [(e.source, e.target) for e in b.back_edges]:
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


def _says(value: Value, ports: bool) -> Any:
    fact = value.fact
    # A file holds neither symbols nor bounds on its ports, and an unknown rank as it holds a scalar.
    shape = None if fact is None else tuple(size if isinstance(size, int) else -1 for size in fact.shape or ())
    port = value.port if ports else None
    return None if fact is None else fact.element, shape, tuple(value.names), port
