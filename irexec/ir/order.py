"""The order in which the nodes of a graph can be computed, and the nodes that its outputs need."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irexec.ir.graph import Graph, Node


def topological(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes with every producer before its consumers, and the nodes on or after a cycle.

    Nodes that do not depend on each other keep the order in which they are written. Producers that are not nodes of the
    graph do not count.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}
    producers = [
        {position[v.node] for v in node.inputs if v is not None and v.node in position} for node in graph.nodes
    ]
    order, stuck = sort_by_producers(producers)
    return [graph.nodes[i] for i in order], [graph.nodes[i] for i in stuck]


def sort_by_producers(producers: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """The indices 0, 1, ... sorted so that all of ``producers[i]``, which are distinct, come before i.

    Returns:
        The sorted indices, and those on or after a cycle. Time is linear in nodes and edges, and nothing recurses.
    """
    waiting = [len(needed) for needed in producers]
    consumers: list[list[int]] = [[] for _ in producers]
    for i, needed in enumerate(producers):
        for producer in needed:
            consumers[producer].append(i)
    order = [i for i, count in enumerate(waiting) if count == 0]
    for i in order:
        for consumer in consumers[i]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                order.append(consumer)
    return order, [i for i, count in enumerate(waiting) if count > 0]


def needed(graph: Graph, *, sinks: bool = True) -> set[Node]:
    """The nodes on which a Result or an Assign depends, these included.

    Args:
        graph: the graph.
        sinks: whether every Assign counts; otherwise one counts only if a needed node reads its variable.
    """
    found: set[Node] = set()
    waiting = [*graph.results, *(graph.sinks if sinks else ())]
    while waiting:
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += [value.node for value in node.inputs if value is not None]
        read = {node.attributes.get("variable_id") for node in found if node.type == "ReadValue"}
        waiting = [sink for sink in graph.sinks if sink not in found and sink.attributes.get("variable_id") in read]
    return found
