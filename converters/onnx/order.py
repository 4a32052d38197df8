"""Order of the nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from converters.onnx.graphs import UsedNames, describe
from converters.onnx.objections import WithoutValueError
from irexec.ir.order import sort_by_producers


def in_order(
    nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int], used: UsedNames
) -> list[onnx.NodeProto]:
    """The nodes with every producer before its consumers, whatever their order in the file.

    Args:
        nodes: the nodes of a graph.
        taken: names that are not outputs of a node, and their descriptions in messages.
        opsets: opsets of the domains, for messages.
        used: the names that the nodes read.

    Raises:
        ConversionError: the graph has a cycle, or a value has two producers.
    """
    producers = _producers(nodes, taken, opsets)
    order, stuck = sort_by_producers(
        [{producers[name] for name in used.of(node) if name in producers} for node in nodes]
    )
    if stuck:
        raise WithoutValueError(
            f"{describe(nodes[stuck[0]], opsets)}: it is part of a cycle of nodes, or depends on one"
        )
    return [nodes[i] for i in order]


def _producers(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in taken:
                raise WithoutValueError(f"{describe(node, opsets)}: its output {name!r} is also {taken[name]}")
            if name in producers:
                raise WithoutValueError(f"{describe(node, opsets)}: its output {name!r} is produced twice")
            producers[name] = i
    return producers
