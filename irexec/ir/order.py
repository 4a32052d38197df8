"""The order in which the nodes of a graph can be computed."""

from __future__ import annotations

from irexec.ir.graph import Graph, Node


def topological(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes with every producer before its consumers, and the nodes on or behind a cycle.

    Ties go by the order in which the nodes are written. Producers that are not nodes of the graph
    do not count. Time is linear in nodes and edges, and nothing recurses.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}
    waiting: list[int] = []
    consumers: list[list[int]] = [[] for _ in graph.nodes]
    for i, node in enumerate(graph.nodes):
        producers = {position[v.node] for v in node.inputs if v is not None and v.node in position}
        waiting.append(len(producers))
        for producer in producers:
            consumers[producer].append(i)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    order: list[Node] = []
    for i in ready:
        order.append(graph.nodes[i])
        for consumer in consumers[i]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                ready.append(consumer)
    stuck = [graph.nodes[i] for i, n in enumerate(waiting) if n > 0]
    return order, stuck
