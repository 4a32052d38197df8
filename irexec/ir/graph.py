"""The layer graph: nodes, the values between them, bodies and the model.

It is a faithful picture of a .xml, right or wrong: attributes are kept as text, port numbers and
unknown attributes as written, and what cannot be drawn as a graph (an edge to nothing, a second
layer with the same id) is kept in ``Graph.problems``. Shapes and types on ports are what the file
or the builder DECLARES; what inference finds is a mapping of its own (irexec.analysis.shape_inference).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irexec.ir.codes import CODES
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding


@dataclass(eq=False)
class Value:
    """One output port of a node, that is one wire.

    Attributes:
        node: the node that produces it.
        index: 0 for the first output, whatever the number of its port.
        fact: the declared element type and shape; a port without dims has shape (), although
            OpenVINO writes the same for a tensor of unknown rank. None if nothing is declared.
        names: the tensor names.
        port: the port's number as written; None for a node that was not read from a file.
        attributes: the port's other attributes, as written.
        rt_info: the XML elements of the port's rt_info, as written (opaque to all but irexec.io).
        line: the XML line of the port.
    """

    node: Node
    index: int
    fact: Fact | None = None
    names: list[str] = field(default_factory=list)
    port: int | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    rt_info: Any = None
    line: int | None = None

    def __repr__(self) -> str:
        return f"<Value {self.node.name!r}:{self.index} {self.fact or ''}>"


@dataclass(eq=False)
class Input:
    """One input port of a node.

    Attributes:
        source: the value that feeds it; None if no edge arrives.
        fact, port, attributes, rt_info, line: as for Value.
        edge: the position of its edge among the edges of the file; None if it was not read from a file.
        edge_attributes: what else its edge says, as written.
    """

    source: Value | None = None
    fact: Fact | None = None
    port: int | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    rt_info: Any = None
    line: int | None = None
    edge: int | None = None
    edge_attributes: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    """One layer.

    Attributes:
        id: the layer's id.
        name, type: as written, with OpenVINO's aliases resolved in ``type`` (Const -> Constant).
        version: as written: "opset8", "onednn", ...
        ports: the input ports in order. A missing trailing input is simply not there.
        outputs: the output ports in order.
        attributes: of the ``data`` element, as text AS WRITTEN.
        bodies: by the IR's element name: "body", "then_body", "else_body".
        constant: for a Constant.
        rt_info: the XML elements of rt_info, as written (opaque to all but irexec.io).
        extras: attributes of the layer element that are none of the above, as written.
        line: the XML line of the layer; None for a node that was not read from a file.
        spelling: the type as written, where it was read from a file.
        layout: the tags of the layer's child elements in the order in which they were written.
        parts: attributes, by tag, of child elements that IR gives none (input, output, the maps of bodies), as written.
        typed: what irexec.analysis.attributes has parsed ``attributes`` to; it is kept there and used nowhere else.
    """

    id: int
    name: str
    type: str
    version: str
    ports: list[Input] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    constant: Constant | None = None
    rt_info: Any = None
    extras: dict[str, str] = field(default_factory=dict)
    line: int | None = None
    spelling: str | None = None
    layout: tuple[str, ...] = ()
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    typed: Any = field(default=None, repr=False)

    @property
    def inputs(self) -> list[Value | None]:
        """The values that feed the node, in the order of its input ports."""
        return [port.source for port in self.ports]

    def input_index(self, number: int) -> int | None:
        """Which input the port of that number is; unnumbered ports count from 0. None if there is none."""
        return next((i for i, port in enumerate(self.ports) if number == (i if port.port is None else port.port)), None)

    def output_index(self, number: int) -> int | None:
        """Which output the port of that number is; unnumbered ports run on from the inputs."""
        first = len(self.ports)
        return next((v.index for v in self.outputs if number == (first + v.index if v.port is None else v.port)), None)

    def finding(self, code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
        """A finding at this layer, or at the port of that id; at the layer's line unless another is given."""
        return Finding(code, CODES[code].severity, self.id, self.name, self.type, port, line or self.line, message)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: definitions of operations are found again where the node is used."""
        return vars(self) | {"typed": None}

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.name!r} {self.type}>"


@dataclass(eq=False)
class Graph:
    """Nodes in the order in which they are written, which need not be topological.

    ``parts`` are attributes, by tag, of elements that IR gives none: layers, edges and a body itself ("").
    """

    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def parameters(self) -> list[Node]:
        return [node for node in self.nodes if node.type == "Parameter"]

    @property
    def results(self) -> list[Node]:
        return [node for node in self.nodes if node.type == "Result"]

    @property
    def sinks(self) -> list[Node]:
        """Nodes that act without a consumer."""
        return [node for node in self.nodes if node.type == "Assign"]

    def walk(self) -> Iterator[Node]:
        """Every node, those of bodies after the node that has them."""
        for node in self.nodes:
            yield node
            for body in node.bodies.values():
                yield from body.graph.walk()


@dataclass(frozen=True)
class PortMap:
    """One entry of a body's port_map.

    Attributes:
        kind: "input" or "output".
        external: external_port_id; -1 for an output that stays inside.
        internal: internal_layer_id, the Parameter or Result of the body.
        attributes: axis, start, end, stride, part_size, purpose, as text as written.
        line: the XML line.
    """

    kind: str
    external: int
    internal: int
    attributes: dict[str, str] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True)
class BackEdge:
    """``source`` (a Result of the body) feeds ``target`` (a Parameter) in the next iteration; layer ids."""

    source: int
    target: int
    line: int | None = None
    attributes: dict[str, str] = field(default_factory=dict, compare=False)


@dataclass(eq=False)
class Body:
    """A graph inside a node, and how it is wired to the node's ports."""

    graph: Graph
    port_maps: list[PortMap] = field(default_factory=list)
    back_edges: list[BackEdge] = field(default_factory=list)


@dataclass(eq=False)
class Model(Graph):
    """A whole IR.

    Attributes:
        version: of the ``net`` element: 10 or 11.
        rt_info: the XML elements of the net's rt_info, as written (opaque to all but irexec.io).
        attributes: of the net element other than name and version, as written.
        path: the .xml it was read from.
        bin_path: the .bin beside it, if there is one.
        bin_size: its number of bytes.
    """

    version: int = 11
    rt_info: Any = None
    attributes: dict[str, str] = field(default_factory=dict)
    path: Path | None = None
    bin_path: Path | None = None
    bin_size: int = 0
