"""ONNX graphs: their nodes, subgraphs and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import onnx
from onnx import AttributeProto

from converters.onnx.limits import MAX_NESTED_GRAPHS
from irexec.errors import ConversionError

_ALIASES = {"ai.onnx": ""}
_OPSET_MARK = "irexec.opset"


def domain_of(node: onnx.NodeProto | onnx.FunctionProto | onnx.OperatorSetIdProto) -> str:
    """The domain of a node, function or opset, "" for ai.onnx."""
    return _ALIASES.get(node.domain, node.domain)


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """The opset of each domain. Models often use the domains of runtimes without importing them."""
    found = {_ALIASES.get(opset.domain, opset.domain): opset.version for opset in model.opset_import}
    of_runtimes = dict.fromkeys(("com.microsoft", "com.microsoft.nchwc", "org.openvinotoolkit"), 1)
    return {"": 1, "com.ms.internal.nhwc": found.get("", 1)} | of_runtimes | found


def opset_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> int:
    """The opset of a node: that of its domain, unless it comes from a function of another opset."""
    # An entry of the file with the same key comes first.
    mark = next((entry.value for entry in reversed(node.metadata_props) if entry.key == _OPSET_MARK), "")
    return int(mark) if mark.isdecimal() else opsets.get(domain_of(node), 1)


def mark_opset(node: onnx.NodeProto, opset: int) -> None:
    """Mark a node with an opset of its own."""
    entry = node.metadata_props.add()
    entry.key, entry.value = _OPSET_MARK, str(opset)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the attributes of a node."""
    for attribute in node.attribute:
        yield from graphs_in(attribute)


def graphs_in(attribute: AttributeProto) -> Sequence[onnx.GraphProto]:
    """The graphs in an attribute. Files of ONNX IR version 1 lack the type of an attribute."""
    is_graph = attribute.type == AttributeProto.GRAPH or (
        attribute.type == AttributeProto.UNDEFINED and attribute.HasField("g")
    )
    return [attribute.g] if is_graph else attribute.graphs


def every_graph(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """A graph, or the body of a function, and all of its subgraphs, outer graphs first.

    Raises:
        ConversionError: subgraphs are nested more than MAX_NESTED_GRAPHS deep.
    """
    waiting = [(graph, 0)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_NESTED_GRAPHS:
            raise ConversionError(f"graph {graph.name!r} has subgraphs nested more than {MAX_NESTED_GRAPHS} deep")
        yield found
        inner = [(subgraph, depth + 1) for node in found.node for subgraph in subgraphs(node)]
        waiting += reversed(inner)


def every_node(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all of its subgraphs."""
    for inner in every_graph(graph):
        yield from inner.node


def own_names(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph defines; a name of an outer graph may be among them."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    names = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer} | set(sparse)
    # An absent output is called "".
    return (names | {name for node in graph.node for name in node.output}) - {""}


class UsedNames:
    """The names that nodes read, also from within their subgraphs. Each subgraph is searched once."""

    def __init__(self) -> None:
        # Keyed by the identity of the graph; the graph is stored too, so that no other graph gets the same identity.
        self._outer: dict[int, tuple[onnx.GraphProto, Set[str]]] = {}

    def of(self, node: onnx.NodeProto) -> Set[str]:
        """The names that a node reads."""
        return set(node.input).union(*map(self._from_outer, subgraphs(node)))

    def _from_outer(self, graph: onnx.GraphProto) -> Set[str]:
        if id(graph) not in self._outer:
            needed = {output.name for output in graph.output}.union(*map(self.of, graph.node))
            self._outer[id(graph)] = graph, needed - own_names(graph)
        return self._outer[id(graph)][1]


def describe(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    """A node in messages: its name, domain, operator and opset."""
    name = node.name or next(filter(None, node.output), "")
    domain = domain_of(node)
    opset = f" of opset {opset_of(node, opsets)}" if domain in opsets else ""
    return f"node {name!r} ({domain or 'ai.onnx'}.{node.op_type}{opset})"
