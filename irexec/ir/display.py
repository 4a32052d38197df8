"""Layers and their ports as HTML, for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from irexec.html import ROWS, Column, Content, Html, bars, definitions, joined, table


class Port(Protocol):
    """An input or output port of a layer."""

    @property
    def fact(self) -> object | None: ...


class Layer(Protocol):
    """A layer; see irexec.ir.graph.Node."""

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, str]
    line: int | None

    @property
    def ports(self) -> Sequence[Port]: ...
    @property
    def outputs(self) -> Sequence[Port]: ...
    @property
    def bodies(self) -> Mapping[str, object]: ...


def layers_table(nodes: Iterable[Layer]) -> Html:
    """The first layers of a graph, as they are declared."""
    columns = [
        Column("id", is_number=True),
        "name",
        "type",
        Column("inputs", is_code=True),
        Column("outputs", is_code=True),
        "attributes",
    ]
    return table(columns, [_cells(node) for node in nodes], limit=ROWS, hide_empty=True)


def _cells(node: Layer) -> list[Content]:
    attributes = ", ".join(f"{name}={value}" for name, value in node.attributes.items())
    return [node.id, node.name, node.type, _facts(node.ports), _facts(node.outputs), attributes]


def layer_details(node: Layer, sources: Sequence[str], names: Sequence[str]) -> Html:
    """One layer.

    Args:
        node: the layer.
        sources: where each input comes from.
        names: the tensor names of each output.
    """
    ports: list[list[Content]] = [
        [f"input {i}", _fact(p), f"from {s}"] for i, (p, s) in enumerate(zip(node.ports, sources, strict=True))
    ]
    ports += [[f"output {i}", _fact(p), n] for i, (p, n) in enumerate(zip(node.outputs, names, strict=True))]
    general: dict[str, Content] = {
        "id": str(node.id),
        "version": node.version,
        "line": None if node.line is None else str(node.line),
    }
    bodies = {name: repr(body) for name, body in node.bodies.items()}
    return joined(
        definitions({**general, **node.attributes, **bodies}),
        table(["", Column("", is_code=True), ""], ports, limit=ROWS),
    )


def types_chart(nodes: Iterable[Layer]) -> Html:
    """How many layers of each type there are."""
    counts = Counter(node.type for node in nodes).most_common()
    return bars([(type, count, f"{count:,}") for type, count in counts], titles=("operation", "layers"), limit=ROWS)


def _facts(ports: Iterable[Port]) -> str:
    return ", ".join(map(_fact, ports))


def _fact(port: Port) -> str:
    return str(port.fact or "?")
