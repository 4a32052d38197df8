"""Layers as a file has them: attributes as text, declared outputs, bodies with port maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from irexec.analysis.collection import collected
from irexec.authoring.tensor import LooseBuilder, Tensor
from irexec.dtypes.elements import element
from irexec.ir.facts import Fact
from irexec.ir.graph import BackEdge, Body, Graph, Input, PortMap, Value
from irexec.ir.shape_text import parse_shape

PortEntry: TypeAlias = tuple[int, Tensor] | tuple[int, Tensor, Mapping[str, str]]
"""The index of an input or output of a layer, or -1; a Parameter or Result of its body; attributes of the port map."""


def layer(
    type: str, version: str, inputs: Sequence[Tensor], attributes: Mapping[str, str], outputs: Sequence[str | None], *,
    name: str | None = None, names: Sequence[str] = (), bodies: Mapping[str, Body] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A layer of any type, as it is: nothing is checked or inferred.

    Args:
        type: the operation type.
        version: as IR writes it: "opset1", "extension".
        inputs: tensors.
        attributes: text by name.
        outputs: the declared element type and shape of each output, such as "f32[1,?,8]"; None for an output without.
        name: the layer's name.
        names: the tensor names of the first output.
        bodies: by the IR's element name: "body", "then_body", "else_body".
    """
    node = LooseBuilder(inputs).layer(type, version, name or type, dict(attributes))
    node.ports = [Input(tensor.value, tensor.value.fact) for tensor in inputs]
    node.bodies = dict(bodies or {})
    facts = [None if text is None else declared(text) for text in outputs]
    node.outputs = [Value(node, i, fact, list(names) if i == 0 else []) for i, fact in enumerate(facts)]
    return tuple(Tensor(value, value.fact or Fact(None, None)) for value in node.outputs)


def declared(text: str) -> Fact:
    """A fact from text such as "f32[1,?,8]"; "?" in place of an element type that is not known."""
    name, _, shape = text.partition("[")
    return Fact(None if name == "?" else element(name), parse_shape(f"[{shape}"))


def body(
    results: Sequence[Tensor], parameters: Sequence[Tensor], *, inputs: Sequence[PortEntry],
    outputs: Sequence[PortEntry], back_edges: Sequence[tuple[Tensor, Tensor]] = (), sinks: Sequence[Tensor] = (),
    name: str = "",
) -> Body:  # fmt: skip
    """A body with its port maps, for ``layer``.

    Args:
        results: the outcomes of ``result``, in order.
        parameters: the outcomes of ``parameter``, in order.
        inputs: for each entry of the port map: the index of the layer's input, the Parameter, and further attributes.
        outputs: the same for the layer's outputs and Results.
        back_edges: pairs of a Result and the Parameter of the next iteration.
        sinks: tensors to be kept although no result depends on them.
        name: of the graph.
    """
    graph = Graph(name, collected(results, parameters, sinks))
    ids = {
        tensor.value.node: node.id
        for tensors, nodes in ((results, graph.results), (parameters, graph.parameters))
        for tensor, node in zip(tensors, nodes, strict=True)
    }
    maps = [
        PortMap(kind, index, ids[tensor.value.node], dict(*more))
        for kind, ports in (("input", inputs), ("output", outputs))
        for index, tensor, *more in ports
    ]
    backs = [BackEdge(ids[source.value.node], ids[target.value.node]) for source, target in back_edges]
    return Body(graph, maps, backs)
