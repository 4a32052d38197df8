"""The graph as such: cycles, what nobody needs, names given twice."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.findings import CYCLE, DUPLICATE_TENSOR_NAME, NO_RESULT, UNREACHABLE, Finding, at
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological


def graph_findings(graph: Graph, *, is_model: bool) -> Iterator[Finding]:
    """What is wrong with the shape of one graph, bodies apart."""
    _, stuck = topological(graph)
    for cycle in cycles(stuck):
        path = " -> ".join(repr(node.name) for node in [*cycle[:8], cycle[0]])
        yield at(cycle[0], CYCLE, f"layers feed each other in a circle: {path}")
    if is_model and not graph.results and not graph.sinks:
        line = min((node.line for node in graph.nodes if node.line), default=None)
        yield Finding(NO_RESULT, "error", None, None, None, None, line, "the model has no Result")
    elif graph.results or graph.sinks:
        yield from _unreachable(graph)
    if is_model:
        yield from _duplicate_names(graph)


def cycles(stuck: list[Node]) -> Iterator[list[Node]]:
    """Disjoint cycles among nodes of which each is on a cycle or behind one."""
    waiting = dict.fromkeys(stuck)
    while waiting:
        path: list[Node] = []
        place: dict[Node, int] = {}
        node: Node | None = next(iter(waiting))
        while node is not None and node not in place:
            place[node] = len(path)
            path.append(node)
            node = next((v.node for v in node.inputs if v is not None and v.node in waiting), None)
        if node is None:
            done = path
        else:
            done = path[place[node] :]
            yield sorted(done, key=lambda n: n.id)[:1] + [n for n in reversed(done) if n is not min(done, key=lambda n: n.id)]
        for one in done:
            waiting.pop(one, None)


def _unreachable(graph: Graph) -> Iterator[Finding]:
    needed: set[Node] = set()
    waiting = [*graph.results, *graph.sinks]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += [value.node for value in node.inputs if value is not None]
    for node in graph.nodes:
        if node not in needed and node.type != "Parameter":
            yield at(node, UNREACHABLE, "no Result and no Assign depends on it", severity="warning")


def _duplicate_names(graph: Graph) -> Iterator[Finding]:
    owners: dict[str, Value] = {}
    for node in graph.nodes:
        for value in node.outputs:
            for name in value.names:
                first = owners.setdefault(name, value)
                if first is not value:
                    text = f"tensor name {name!r} is also that of layer {first.node.id} {first.node.name!r}"
                    yield at(node, DUPLICATE_TENSOR_NAME, text, severity="warning", port=value.port, line=value.line)
