"""Faults of the graphs of a model that do not depend on the meaning of operators."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain
from pathlib import Path

import onnx
from onnx import TensorProto

from converters.onnx.declared import agree, fact_of, fact_of_tensor
from converters.onnx.graphs import UsedNames, own_names, subgraphs
from converters.onnx.locations import Graphs, at_value, graphs_of, location, path_of
from converters.onnx.objections import UnknownTypeError
from converters.onnx.tensors import constant_of
from irexec.errors import IrexecError
from irexec.ir import onnx_codes as codes
from irexec.ir.findings import Finding
from irexec.ir.order import sort_by_producers


def structure_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    """Findings in every graph of a model whose nodes are marked, functions and subgraphs included."""
    if not model.graph.output:
        yield at_value(codes.NO_OUTPUT, "", model.graph.name, "graph", "the graph has no output: it computes nothing")
    used = UsedNames()
    for path, graph in graphs_of(model):
        yield from _duplicates(path, graph)
        yield from _order(graph, used)
        yield from _unused(graph, used)
        if isinstance(graph, onnx.GraphProto):
            yield from _values(path, graph)
    yield from _missing(model)


def _duplicates(path: str, graph: Graphs) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name, what in _defined(graph):
        # An initializer may be the default of the input with its name.
        if name in seen and (seen[name], what) != ("an input", "an initializer"):
            yield at_value(codes.DUPLICATE_NAME, path, name, "value", f"{name!r} is {what} and also {seen[name]}")
        seen[name] = what


def _defined(graph: Graphs) -> Iterator[tuple[str, str]]:
    """Every name that a graph defines, and a description of its value."""
    if isinstance(graph, onnx.GraphProto):
        yield from ((info.name, "an input") for info in graph.input)
        yield from ((tensor.name, "an initializer") for tensor in graph.initializer)
        yield from ((tensor.values.name, "an initializer") for tensor in graph.sparse_initializer)
    else:
        yield from ((name, "an input") for name in graph.input)
    for node in graph.node:
        yield from ((name, f"an output of node {location(node).name!r}") for name in node.output if name)


def _order(graph: Graphs, used: UsedNames) -> Iterator[Finding]:
    """Cycles, and nodes that are not in order."""
    producers = {name: i for i, node in enumerate(graph.node) for name in reversed(node.output) if name}
    needed = [{producers[name] for name in used.of(node) if name in producers} for node in graph.node]
    _, stuck = sort_by_producers(needed)
    if stuck:
        yield location(graph.node[stuck[0]]).finding(codes.CYCLE, "it is part of a cycle of nodes, or depends on one")
        return
    for i, before in enumerate(needed):
        late = max(before, default=-1)
        if late > i:
            after = location(graph.node[late]).name
            yield location(graph.node[i]).finding(
                codes.ORDER, f"it reads an output of node {after!r}, which comes after it"
            )


def _unused(graph: Graphs, used: UsedNames) -> Iterator[Finding]:
    outputs = graph.output if not isinstance(graph, onnx.GraphProto) else [info.name for info in graph.output]
    producers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    waiting = [producers[name] for name in outputs if name in producers]
    needed = set(waiting)
    while waiting:
        found = {producers[name] for name in used.of(graph.node[waiting.pop()]) if name in producers} - needed
        needed |= found
        waiting += found
    for i, node in enumerate(graph.node) if outputs else ():
        if i not in needed:
            yield location(node).finding(codes.UNUSED_NODE, "no output of the graph depends on it")


def _missing(model: onnx.ModelProto) -> Iterator[Finding]:
    """Values without a producer in the graph that reads them and in the graphs around it."""
    waiting: list[tuple[str, Graphs, Set[str]]] = [("", model.graph, set())]
    waiting += [(path, graph, set()) for path, graph in graphs_of(model) if isinstance(graph, onnx.FunctionProto)]
    for path, graph, outer in waiting:
        known = outer | (own_names(graph) if isinstance(graph, onnx.GraphProto) else _names(graph))
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                if name and name not in known:
                    yield location(node).finding(codes.MISSING_VALUE, f"nothing produces {name!r}, which it reads")
            waiting += ((path_of(inner), inner, known) for inner in subgraphs(node))
        outputs = [info.name for info in graph.output] if isinstance(graph, onnx.GraphProto) else graph.output
        for name in outputs:
            if name not in known:
                yield at_value(
                    codes.MISSING_VALUE, path, name, "output", f"nothing produces {name!r}, an output of the graph"
                )


def _names(function: onnx.FunctionProto) -> set[str]:
    return (set(function.input) | {name for node in function.node for name in node.output}) - {""}


def _values(path: str, graph: onnx.GraphProto) -> Iterator[Finding]:
    """Inputs that contradict initializers, and value_info of values that do not exist."""
    initializers = {tensor.name: fact_of_tensor(tensor) for tensor in graph.initializer}
    for info in graph.input:
        declared, found = fact_of(info.type.tensor_type), initializers.get(info.name)
        if found is not None and not agree(declared, found):
            reason = f"it is declared as {declared}, but its initializer is {found}"
            yield at_value(codes.INITIALIZER, path, info.name, "input", reason)
    known = own_names(graph)
    for info in graph.value_info:
        if info.name not in known:
            yield at_value(codes.STALE_VALUE, path, info.name, "value_info", f"the graph has no value {info.name!r}")


def tensor_findings(graph: onnx.GraphProto, folder: Path | None) -> Iterator[tuple[str, Finding]]:
    """Initializers that nodes or outputs use, but that cannot be read: the name and the finding of each."""
    used = UsedNames()
    read = {output.name for output in graph.output}.union(*map(used.of, graph.node))
    for tensor in chain(graph.initializer, graph.sparse_initializer):
        name = tensor.name if isinstance(tensor, TensorProto) else tensor.values.name
        if name not in read:
            continue
        try:
            constant_of(tensor, folder)
        except IrexecError as error:
            code = codes.UNSUPPORTED_TYPE if isinstance(error, UnknownTypeError) else codes.DAMAGED_TENSOR
            yield name, at_value(code, path_of(graph), name, "initializer", str(error))
