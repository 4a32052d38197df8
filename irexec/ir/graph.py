"""The layer graph: nodes, the values between them, bodies and the model.

It holds what a file says, right or wrong: attributes stay text, port ids and unknown attributes stay as written, and
what a graph cannot express (an edge to a layer that does not exist, a second layer with the same id) is kept in
``Graph.problems``. Shapes and types on ports are DECLARED by the file or the builder; the results of shape inference
are a separate mapping (irexec.analysis.shape_inference).

``payload`` keeps the rest of the file, so that the same file can be written again; only the package of the reader opens
it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import InputError, ModelError
from irexec.ir.codes import CODES
from irexec.ir.constants import Constant, constant_value
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.messages import counted, listed
from irexec.records import Shown


@dataclass(eq=False, slots=True)
class Value:
    """One output port of a node: a tensor of the graph.

    Attributes:
        node: the node that produces it.
        index: 0 for the first output, whatever the id of its port.
        fact: the declared element type and shape; a port without dims has shape (), although
            OpenVINO writes the same for a tensor of unknown rank. None if nothing is declared.
        names: the tensor names.
        port: the port's id as written; None for a node that was not read from a file.
        line: the XML line of the port.
        payload: other content of the port in the file; opaque.
    """

    node: Node
    index: int
    fact: Fact | None = None
    names: list[str] = field(default_factory=list)
    port: int | None = None
    line: int | None = None
    payload: Any = None

    @property
    def label(self) -> str:
        """``layer`` or, where that has several outputs, ``layer:index``."""
        return self.node.name if len(self.node.outputs) == 1 else f"{self.node.name}:{self.index}"

    @property
    def name(self) -> str:
        """Name for people: the first tensor name, else the label."""
        return self.names[0] if self.names else self.label

    @property
    def shape(self) -> PartialShape:
        """The declared shape; None if it is unknown."""
        return None if self.fact is None else self.fact.shape

    @property
    def element_type(self) -> Element | None:
        """The declared element type; None if it is unknown."""
        return None if self.fact is None else self.fact.element

    @property
    def port_id(self) -> int:
        """The id of its port; ids that are not written run on from the inputs."""
        return len(self.node.ports) + self.index if self.port is None else self.port

    def __repr__(self) -> str:
        return f"<Value {self.node.name!r}:{self.index} {self.fact or ''}>"


@dataclass(eq=False, slots=True)
class Input:
    """One input port of a node.

    Attributes:
        source: the value that arrives; None if no edge does.
        fact, port, line: as for Value.
        payload: other content of the port and its edge in the file; opaque.
    """

    source: Value | None = None
    fact: Fact | None = None
    port: int | None = None
    line: int | None = None
    payload: Any = None

    def __repr__(self) -> str:
        return f"<Input from {self.source or 'nothing'}>"


@dataclass(eq=False, slots=True)
class Node(Shown):
    """One layer.

    Attributes:
        id: the layer's id.
        name: as written.
        type: as written, with OpenVINO's aliases resolved (Const -> Constant).
        version: as written: "opset8", "onednn", ...
        ports: the input ports in order. A missing trailing input has no port.
        outputs: the output ports in order.
        attributes: of the ``data`` element, as text AS WRITTEN.
        bodies: by the IR's element name: "body", "then_body", "else_body".
        constant: for a Constant.
        line: the XML line of the layer; None for a node that was not read from a file.
        spelling: the type as written; None for a node that was not read from a file.
        payload: other content of the layer in the file; opaque.
        typed: ``attributes`` as parsed by irexec.analysis.attributes, which alone uses them.
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
    line: int | None = None
    spelling: str | None = None
    payload: Any = None
    typed: Any = field(default=None, repr=False)

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The values that arrive at the node, in the order of its input ports; ``ports[i].source = value`` changes
        one."""
        return tuple([port.source for port in self.ports])

    @property
    def array(self) -> np.ndarray:
        """The values of a Constant, unpacked, in its shape; read-only.

        Raises:
            ModelError: its bytes cannot be read.
            InputError: the layer is not a Constant.
        """
        if self.constant is None:
            raise InputError(f"layer {self.name!r} is a {self.type}: only a Constant has an array")
        try:
            return constant_value(self.constant)
        except ModelError as error:
            raise ModelError(f"layer {self.id} {self.name!r} (Constant) {error}") from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """``array``, as NumPy asks for it."""
        return np.array(self.array, dtype, copy=copy)

    def input_index(self, number: int) -> int | None:
        """The index of the input whose port has that id; None if there is none."""
        return next((index for index in range(len(self.ports)) if self.input_id(index) == number), None)

    def input_id(self, index: int) -> int:
        """The id of the port of an input; ports without an id count from 0."""
        written = self.ports[index].port
        return index if written is None else written

    def output_index(self, number: int) -> int | None:
        """The index of the output whose port has that id; None if there is none."""
        return next((value.index for value in self.outputs if value.port_id == number), None)

    def finding(self, code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
        """A finding at this layer, or at the port of that id; at the layer's line unless another is given."""
        return Finding(code, CODES[code].severity, self.id, self.name, self.type, port, line or self.line, message)

    def detached(self) -> Node:
        """A copy without the edges that arrive; the constant's bytes are shared."""
        fresh = copy.copy(self)
        fresh.attributes = dict(self.attributes)
        fresh.bodies = {name: body.copied() for name, body in self.bodies.items()}
        fresh.ports = [replace(port, source=None) for port in self.ports]
        fresh.outputs = [replace(value, node=fresh, names=list(value.names)) for value in self.outputs]
        return fresh

    def __getstate__(self) -> list[Any]:
        """The pickled state: definitions of operations are found again where the node is used."""
        return [None if each.name == "typed" else getattr(self, each.name) for each in fields(self)]

    def __setstate__(self, saved: list[Any]) -> None:
        for each, value in zip(fields(self), saved, strict=True):
            setattr(self, each.name, value)

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.name!r} {self.type}>"


@dataclass(eq=False, repr=False)
class Graph(Shown):
    """Nodes in the order in which they are written, which need not be topological.

    ``copy.copy`` gives a graph with nodes of its own that shares the bytes of constants; ``copy.deepcopy`` and pickle
    work for graphs of any length.

    Attributes:
        name: as written.
        nodes: the layers.
        problems: parts of the file that the graph cannot express.
        payload: other content of the file; opaque.
    """

    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    payload: Any = None

    @property
    def parameters(self) -> list[Node]:
        """The Parameters, in order."""
        return [node for node in self.nodes if node.type == "Parameter"]

    @property
    def results(self) -> list[Node]:
        """The Results, in order."""
        return [node for node in self.nodes if node.type == "Result"]

    @property
    def sinks(self) -> list[Node]:
        """Nodes that have an effect without a consumer."""
        return [node for node in self.nodes if node.type == "Assign"]

    def walk(self) -> Iterator[Node]:
        """Every node, those of bodies after the node that has them."""
        waiting = self.nodes[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            for body in reversed(node.bodies.values()):
                waiting += reversed(body.graph.nodes)

    def __getstate__(self) -> dict[str, Any]:
        """The copied and pickled state: nodes without edges, and the edges as indices, so that nothing recurses along
        them."""
        origins = {value: (i, j) for i, node in enumerate(self.nodes) for j, value in enumerate(node.outputs)}
        edges = [[None if value is None else origins.get(value, value) for value in node.inputs] for node in self.nodes]
        state = {"nodes": [node.detached() for node in self.nodes], "problems": list(self.problems)}
        return {"state": vars(self) | state, "edges": edges}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved["state"])
        for node, origins in zip(self.nodes, saved["edges"], strict=True):
            for port, origin in zip(node.ports, origins, strict=True):
                port.source = self.nodes[origin[0]].outputs[origin[1]] if isinstance(origin, tuple) else origin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {counted(len(self.nodes), 'layer')}>"


def graphs(graph: Graph) -> Iterator[Graph]:
    """The graph and every body in it."""
    yield graph
    for node in graph.walk():
        for body in node.bodies.values():
            yield body.graph


def slice_attributes(axis: int, *, reverse: bool = False) -> dict[str, str]:
    """The attributes of an entry of a port map for slices of size 1, of which the last comes first with ``reverse``."""
    start, end, stride = ("-1", "0", "-1") if reverse else ("0", "-1", "1")
    return {"axis": str(axis), "start": start, "end": end, "stride": stride, "part_size": "1"}


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class BackEdge:
    """``source`` (a Result of the body) is passed to ``target`` (a Parameter) of the next iteration; layer ids.

    ``payload`` is what else the file says of the edge; opaque.
    """

    source: int
    target: int
    line: int | None = None
    payload: Any = field(default=None, compare=False)


@dataclass(eq=False, slots=True)
class Body:
    """A graph inside a node, and how it is connected to the node's ports."""

    graph: Graph
    port_maps: list[PortMap] = field(default_factory=list)
    back_edges: list[BackEdge] = field(default_factory=list)

    def copied(self) -> Body:
        """A copy with nodes of its own that shares the bytes of constants."""
        return Body(copy.copy(self.graph), list(self.port_maps), list(self.back_edges))


class BinCheck(Protocol):
    """Compares a .bin with what the .xml says of it."""

    def __call__(self, *, whole: bool) -> list[Finding]: ...


@dataclass(eq=False, repr=False)
class ModelGraph(Graph):
    """A whole IR.

    Attributes:
        version: of the ``net`` element: 10 or 11.
        path: the .xml or .onnx it was read from.
        bin_path: the .bin with its weights, if there is one.
        bin_size: its number of bytes.
        external_files: the files with the external data of an .onnx, or the .bin of an IR of version 2 to 7.
        origin: version and writer of the IR of version 2 to 7 that the model was made of, for people; None for others.
        check_bin: gives the finding that the .bin is not the one that was written with the .xml, if so; None where the
            .xml does not say. With ``whole=True`` all bytes of the .bin are read, which may raise ModelError.
    """

    version: int = 11
    path: Path | None = None
    bin_path: Path | None = None
    bin_size: int = 0
    check_bin: BinCheck | None = None
    external_files: tuple[Path, ...] = ()
    origin: str | None = None

    @property
    def files(self) -> dict[str, str]:
        """The files it was read from, with what each is, which nothing may overwrite."""
        parts = [path for path in (self.bin_path, *self.external_files) if path is not None]
        return dict.fromkeys(map(str, parts), "part of the model") | (
            {str(self.path): "the model"} if self.path else {}
        )

    def __repr__(self) -> str:
        """One line: the name, the number of layers, the first inputs and outputs as they are declared."""
        inputs = listed([_declared(node, value) for node in self.parameters for value in node.outputs[:1]], 3) or "none"
        sources = [value for node in self.results for value in node.inputs[:1] if value is not None]
        outputs = listed([_declared(value.node, value) for value in sources], 3) or "none"
        return f"<{type(self).__name__} {self.name!r}: {counted(len(self.nodes), 'layer')}, {inputs} -> {outputs}>"


def _declared(node: Node, value: Value) -> str:
    name = value.names[0] if value.names else node.name
    return f"{name}: {value.fact}" if value.fact is not None else name
