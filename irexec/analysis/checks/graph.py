"""The graph itself: cycles, layers that nothing depends on, tensor names that occur twice."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.shape_inference import Inference
from irexec.ir import codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Graph, ModelGraph, Node, Value, graphs
from irexec.ir.order import needed, topological


def graph_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Problems of the structure of the model and of each of its bodies."""
    for graph in graphs(model):
        _, stuck = topological(graph)
        for cycle in cycles(stuck):
            path = " -> ".join(repr(node.name) for node in [*cycle[:8], cycle[0]])
            yield cycle[0].finding(codes.CYCLE, f"the graph has a cycle: {path}")
        if graph.results or graph.sinks:
            yield from _unreachable(graph)
    if not model.results and not model.sinks:
        line = min((node.line for node in model.nodes if node.line), default=None)
        yield in_model(codes.NO_RESULT, "the model has no Result", line=line)
    yield from _duplicate_names(model)


def cycles(stuck: list[Node]) -> Iterator[list[Node]]:
    """Disjoint cycles among nodes of which each is on a cycle or after one; each starts at its smallest id."""
    waiting = dict.fromkeys(stuck)
    while waiting:
        path: list[Node] = []
        position: dict[Node, int] = {}
        node: Node | None = next(iter(waiting))
        while node is not None and node not in position:
            position[node] = len(path)
            path.append(node)
            node = next((v.node for v in node.inputs if v is not None and v.node in waiting), None)
        done = path if node is None else path[position[node] :]
        if node is not None:
            first = min(done, key=lambda n: n.id)
            yield [first, *(n for n in reversed(done) if n is not first)]
        for one in done:
            waiting.pop(one, None)


def _unreachable(graph: Graph) -> Iterator[Finding]:
    reached = needed(graph)
    for node in graph.nodes:
        if node not in reached and node.type != "Parameter":
            yield node.finding(codes.UNREACHABLE, "no Result and no Assign depends on it")


def _duplicate_names(graph: Graph) -> Iterator[Finding]:
    """One finding at the first name that occurs twice: Model Optimizer of 2021 gave every fused layer the names of its
    parts."""
    owners: dict[str, Value] = {}
    found: list[tuple[str, Value]] = []
    for node in graph.nodes:
        for value in node.outputs:
            found += [(name, value) for name in value.names if owners.setdefault(name, value) is not value]
    if found:
        name, value = found[0]
        first = owners[name].node
        more = f"; {len(found) - 1} more names occur twice" if len(found) > 1 else ""
        text = f"tensor name {name!r} is also that of layer {first.id} {first.name!r}{more}"
        yield value.node.finding(codes.DUPLICATE_TENSOR_NAME, text, port=value.port, line=value.line)
