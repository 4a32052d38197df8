"""Execution graphs: what OpenVINO writes of a compiled model (``get_runtime_model()``, ``benchmark_app
-exec_graph_path``).

They look like IR, but are not models: the layers are those that a device ran, fused and reordered, without versions,
operation attributes and weights. Each says its time, its kernel, and the layers of the model that it was made from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from irexec.errors import ModelError
from irexec.ir.graph import Graph, ModelGraph, Node
from irexec.ir.order import grouped
from irexec.messages import counted
from irexec.records import Record, Records

_TIME, _ORIGINAL = "execTimeMcs", "originalLayersNames"


@dataclass(frozen=True)
class ExecutedLayer(Record):
    """One layer of an execution graph.

    Attributes:
        id, name, type: as written; the types are the device's own.
        microseconds: its mean time; None if it was not run or not measured.
        kernel: the device's implementation, such as "brgconv_avx512_amx_bf16".
        precision: the element type it computes in.
        outputs: its output ports, such as "bf16[1,16,8,8]".
        layouts: the memory layouts of its outputs, such as "acdb".
        original: the names of the layers of the model that it was made from; none for one that the device added.
    """

    id: int
    name: str
    type: str
    microseconds: float | None
    kernel: str
    precision: str
    outputs: tuple[str, ...]
    layouts: str
    original: tuple[str, ...]


@dataclass(frozen=True)
class TypeTime(Record):
    """The number of layers of a type, and the sum of their times."""

    type: str
    layers: int
    microseconds: float


def is_execution_graph(graph: Graph) -> bool:
    """Whether the file is an execution graph: no layer has a version, and some say what they were made from and how
    long they took."""
    nodes = graph.nodes
    return not any(node.version for node in nodes) and any(
        {_TIME, _ORIGINAL} <= node.attributes.keys() for node in nodes
    )


def description(graph: Graph) -> str:
    """A sentence about the file."""
    return (
        "an execution graph (of get_runtime_model() or benchmark_app -exec_graph_path), not a model: "
        f"{counted(len(graph.nodes), 'layer')} as a device ran them"
    )


def refuse_execution_graph(model: ModelGraph) -> None:
    """Raise ModelError for an execution graph, which cannot be run."""
    if is_execution_graph(model):
        raise ModelError(f"{model.path or 'the model'}: {description(model)}; run the model that was compiled instead")


def executed_layers(graph: Graph) -> Records[ExecutedLayer]:
    """The layers of an execution graph, in the order in which they are written."""
    return Records(_executed(node) for node in graph.nodes)


def times_by_type(layers: Sequence[ExecutedLayer]) -> Records[TypeTime]:
    """The time of each type of layer, the longest first."""
    by_type = grouped((layer.type, layer.microseconds or 0.0) for layer in layers)
    lines = [TypeTime(type, len(times), sum(times)) for type, times in by_type.items()]
    return Records(sorted(lines, key=lambda line: -line.microseconds))


def _executed(node: Node) -> ExecutedLayer:
    texts = node.attributes
    return ExecutedLayer(
        id=node.id,
        name=node.name,
        type=node.spelling or node.type,
        microseconds=_microseconds(texts.get(_TIME, "")),
        kernel=texts.get("primitiveType", ""),
        precision=texts.get("runtimePrecision", ""),
        outputs=tuple(str(value.fact) for value in node.outputs),
        layouts=texts.get("outputLayouts", ""),
        original=tuple(filter(None, texts.get(_ORIGINAL, "").split(","))),
    )


def _microseconds(text: str) -> float | None:
    """None for "not_executed", which is written as well where nothing was measured."""
    try:
        time = float(text)
    except ValueError:
        return None
    return time if math.isfinite(time) else None
