"""Where the nodes of a model are in its file. Nodes are marked before functions are inlined, and keep the marks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from converters.onnx.graphs import domain_of, every_graph, graphs_in
from irexec.ir.code_table import CODES
from irexec.ir.findings import Finding

Graphs = onnx.GraphProto | onnx.FunctionProto
_MARK = "irexec.location"


@dataclass(frozen=True)
class Location:
    """Where a node is.

    Attributes:
        path: the function and the nodes and attributes that lead to its graph, each followed by a slash; "" for the
            main graph.
        index: among the nodes of that graph; None if it is not known.
        name: of the node, or of its first output.
        type: the operator, with its domain unless that is ai.onnx.
    """

    path: str
    index: int | None
    name: str
    type: str

    def finding(self, code: str, message: str) -> Finding:
        """A finding at the node."""
        return Finding(
            code, CODES[code].severity, self.index, f"{self.path}{self.name}", self.type, None, None, message
        )


def at_value(code: str, path: str, name: str, kind: str, message: str) -> Finding:
    """A finding at a value of the graph of that path, which is not a node's: an initializer, an input, ..."""
    return Finding(code, CODES[code].severity, None, f"{path}{name}", kind, None, None, message)


def mark(model: onnx.ModelProto) -> None:
    """Write on every node and graph where it is."""
    for path, graph in list(graphs_of(model)):
        _mark(graph, path)
        for index, node in enumerate(graph.node):
            _mark(node, json.dumps([path, index, _name(node), _operator(node)]))


def graphs_of(model: onnx.ModelProto) -> Iterator[tuple[str, Graphs]]:
    """Every graph of a model, also those of functions, with the path that leads to it."""
    waiting: list[tuple[str, Graphs]] = [("", model.graph)]
    waiting += [
        (f"{function.domain}.{function.name}/" if function.domain else f"{function.name}/", function)
        for function in model.functions
    ]
    while waiting:
        path, graph = waiting.pop(0)
        yield path, graph
        inner = [
            (f"{path}{_name(node)}/{attribute.name}{f'[{i}]' if attribute.graphs else ''}/", subgraph)
            for node in graph.node
            for attribute in node.attribute
            for i, subgraph in enumerate(graphs_in(attribute))
        ]
        waiting[:0] = inner


def location(node: onnx.NodeProto) -> Location:
    """Where a node was in the file. One that inlining has made and that gives nothing cannot be found: it has its own
    name alone."""
    mark = _mark_of(node)
    return Location(*json.loads(mark)) if mark else Location("", None, _name(node), _operator(node))


def path_of(graph: Graphs) -> str:
    """The path that leads to a marked graph."""
    return _mark_of(graph)


def carry_marks(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Mark the nodes that have replaced a node as that node was.

    The inliner puts them where the node was, and the last of them that has an output of the node gives it its name.
    """
    marks = {
        name: mark
        for graph in every_graph(before.graph)
        for node in graph.node
        if (mark := _mark_of(node))
        for name in node.output
    }
    for graph in every_graph(after.graph) if marks else ():
        text = ""
        for node in reversed(graph.node):
            if not _mark_of(node):
                text = next((marks[name] for name in node.output if name in marks), text)
                _mark(node, text)


def _name(node: onnx.NodeProto) -> str:
    return node.name or next(filter(None, node.output), node.op_type)


def _operator(node: onnx.NodeProto) -> str:
    """With its domain unless that is ai.onnx."""
    domain = domain_of(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _mark(thing: onnx.NodeProto | Graphs, text: str) -> None:
    entry = thing.metadata_props.add()
    entry.key, entry.value = _MARK, text


def _mark_of(thing: onnx.NodeProto | Graphs) -> str:
    # The file may have an entry of the same key: it comes first.
    return next((entry.value for entry in reversed(thing.metadata_props) if entry.key == _MARK), "")
