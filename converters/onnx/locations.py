"""Locations of nodes in the file of a model. Nodes are marked before functions are inlined, and keep their marks."""

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
    """The location of a node.

    Attributes:
        path: the path of its graph: a function, nodes and attributes, each followed by a slash; "" for the main graph.
        index: the node's index in that graph; None if it is not known.
        name: the name of the node, or of its first output.
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
    """A finding at an initializer, input or other value of the graph with that path."""
    return Finding(code, CODES[code].severity, None, f"{path}{name}", kind, None, None, message)


def mark(model: onnx.ModelProto) -> None:
    """Mark every node and graph with its location."""
    for path, graph in list(graphs_of(model)):
        _mark(graph, path)
        for index, node in enumerate(graph.node):
            _mark(node, json.dumps([path, index, _name(node), _operator(node)]))


def graphs_of(model: onnx.ModelProto) -> Iterator[tuple[str, Graphs]]:
    """Every graph of a model, also of its functions, with its path."""
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
    """The location of a node in the file; the name alone for an unmarked node, which inlining has created."""
    mark = _mark_of(node)
    return Location(*json.loads(mark)) if mark else Location("", None, _name(node), _operator(node))


def path_of(graph: Graphs) -> str:
    """The path of a marked graph."""
    return _mark_of(graph)


def carry_marks(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Copy the mark of every inlined node to the nodes that have replaced it.

    The inliner puts the new nodes in place of the old one; the last of them has the old node's output names.
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
    """The operator, with its domain unless that is ai.onnx."""
    domain = domain_of(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _mark(thing: onnx.NodeProto | Graphs, text: str) -> None:
    entry = thing.metadata_props.add()
    entry.key, entry.value = _MARK, text


def _mark_of(thing: onnx.NodeProto | Graphs) -> str:
    # An entry of the file with the same key comes first.
    return next((entry.value for entry in reversed(thing.metadata_props) if entry.key == _MARK), "")
