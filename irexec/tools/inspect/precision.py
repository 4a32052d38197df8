"""The element types of a model: how each layer's weights are stored and computed with, and of which types its
activations are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.constant_layers import constant_layers, leaves
from irexec.analysis.cost import NO_COMPUTATION, packed_bytes, total
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.shape_inference import UNKNOWN, Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Table
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value, graphs
from irexec.ir.order import grouped
from irexec.messages import amount, metric
from irexec.records import Record, Report
from irexec.tools.inspect.weights import MOVES, StoredWeights, stored_weights


@dataclass(frozen=True)
class LayerPrecision(Record):
    """The element types of one layer.

    Attributes:
        id, name, type, line: of the layer.
        path: the names of the bodies that it is in, each followed by a slash.
        activations: the element types of its inputs that are not constants, each once.
        levels: the number of quantisation levels of the inputs, where FakeQuantize produces them, or the type of a
            FakeConvert.
        weights: each input that consists of constants, unless these are not parameters (see irexec.analysis.cost).
        outputs: the element types of its outputs, each once.
    """

    id: int
    name: str
    type: str
    line: int | None
    path: str
    activations: tuple[str, ...]
    levels: tuple[str, ...]
    weights: tuple[StoredWeights, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class StorageRow(Record):
    """Weights with the same storage.

    Attributes:
        element, scheme, computed: as for StoredWeights.
        tensors, elements, bytes: their numbers.
        decompressed: bytes in the type in which layers compute with them; None if a shape is not known.
    """

    element: str
    scheme: str
    computed: str
    tensors: int
    elements: int
    bytes: int
    decompressed: int | None

    @property
    def bits(self) -> float:
        """Average bits that one of them takes, with its part of scales and zero points."""
        return 8 * self.bytes / self.elements


@dataclass(frozen=True)
class ActivationType(Record):
    """The tensors between layers that are of one element type.

    Attributes:
        element: the element type.
        tensors, bytes: their numbers; bytes are None if a shape is not known.
    """

    element: str
    tensors: int
    bytes: int | None


@dataclass(frozen=True)
class PrecisionReport(Report):
    """The element types of a model.

    Attributes:
        name: of the model.
        layers: layers with weights or activations, in the order of the file.
        weights: how weights are stored, the way with the most elements first.
        activations: element types of the tensors between layers, the most frequent first.
        weight_elements: number of weights, without scales and zero points; a constant that several layers read
            counts once.
        stored: bytes of the weights as they are stored, with scales and zero points.
        decompressed: bytes of the weights in the types in which layers compute with them; None if one is not known.
        other: bytes of all other constants: shapes, axes, tables of indices.
    """

    name: str
    layers: tuple[LayerPrecision, ...]
    weights: tuple[StorageRow, ...]
    activations: tuple[ActivationType, ...]
    weight_elements: int
    stored: int
    decompressed: int | None
    other: int

    _json_properties = ("bits_per_weight",)

    @property
    def bits_per_weight(self) -> float | None:
        """Average bits that a weight takes as it is stored, with its part of scales and zero points; None without
        weights."""
        return 8 * self.stored / self.weight_elements if self.weight_elements else None

    def __repr__(self) -> str:
        return f"<PrecisionReport {self.name!r}: {totals(self)[0]}>"

    def sections(self) -> list[Content]:
        """The layers in the order of the file, how weights are stored, the types of activations, and the sums."""
        return [Table(_LAYER_COLUMNS, self.layers, what="layers"), *self.by_type(), totals(self)]

    def by_type(self) -> list[Content]:
        """The tables of how weights are stored and of the types of activations."""
        stored = Table(_STORAGE_COLUMNS, self.weights, label="weights") if self.weights else None
        return [stored, Table(_ACTIVATION_COLUMNS, self.activations, label="activations")]


def precision(model: ModelLike, inference: Inference | None = None) -> PrecisionReport:
    """The element types of weights and activations, layer by layer and in sum; weights are not read.

    Args:
        model: any model, or what read_model takes.
        inference: facts of its values; inferred unless given.

    Raises:
        ModelError: it is an execution graph.
    """
    model = as_model(model)
    refuse_execution_graph(model)
    facts = (inference or infer_shapes(model, tolerant=True)).facts
    counted = set[Node]()
    layers = tuple(_layers(model, "", facts, counted))
    stored = [weights for layer in layers for weights in layer.weights if not weights.shared]
    return PrecisionReport(
        name=model.name,
        layers=layers,
        weights=tuple(_storages(stored)),
        activations=tuple(_activation_types(model, facts)),
        weight_elements=sum(weights.elements for weights in stored),
        stored=sum(weights.bytes for weights in stored),
        decompressed=_decompressed(stored),
        other=sum(node.constant.size for node in model.walk() if node.constant is not None and node not in counted),
    )


def _layers(graph: Graph, path: str, facts: Mapping[Value, Fact], counted: set[Node]) -> Iterator[LayerPrecision]:
    computed = constant_layers(graph)
    for node in graph.nodes:
        if node.type in NO_COMPUTATION or node in computed:
            continue
        inputs = [value for value in node.inputs if value is not None]
        dynamic = [value for value in inputs if not leaves(value, computed)]
        weights = [stored_weights(value, computed, facts, counted) for value in inputs if value not in dynamic]
        yield LayerPrecision(
            node.id, node.name, node.type, node.line, path,
            activations=_elements(dynamic, facts),
            levels=tuple(dict.fromkeys(text for value in dynamic if (text := _levels(value.node)))),
            weights=tuple(found for found in weights if found is not None),
            outputs=_elements(node.outputs, facts),
        )  # fmt: skip
        for name, body in node.bodies.items():
            yield from _layers(body.graph, f"{path}{node.name}/{name}/", facts, counted)


def _elements(values: Sequence[Value], facts: Mapping[Value, Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(facts.get(value, UNKNOWN).element or "?") for value in values))


def _levels(node: Node) -> str:
    """Levels or type of the quantisation by a layer, or by the layer before those that only move values; empty for
    others."""
    while node.type in MOVES and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].node
    if node.type == "FakeQuantize":
        return f"{node.attributes.get('levels', '?')} levels"
    return node.attributes.get("destination_type", "f8e4m3") if node.type == "FakeConvert" else ""


def _storages(stored: Sequence[StoredWeights]) -> list[StorageRow]:
    groups = grouped(((weights.element, weights.scheme, weights.computed), weights) for weights in stored)
    found = [
        StorageRow(*key, len(g), sum(w.elements for w in g), sum(w.bytes for w in g), _decompressed(g))
        for key, g in groups.items()
    ]
    return sorted(found, key=lambda storage: -storage.elements)


def _decompressed(weights: Sequence[StoredWeights]) -> int | None:
    return total(one.decompressed for one in weights)


def _activation_types(model: Graph, facts: Mapping[Value, Fact]) -> list[ActivationType]:
    """Types of all values that a layer reads, constants apart, bodies included."""
    groups: dict[str, list[int | None]] = {}
    for graph in graphs(model):
        computed = constant_layers(graph)
        read = {value for node in graph.nodes for value in node.inputs if value is not None}
        for node in graph.nodes:
            for value in read.intersection(node.outputs) if node.constant is None and node not in computed else ():
                fact = facts.get(value, UNKNOWN)
                groups.setdefault(str(fact.element or "?"), []).append(packed_bytes(fact))
    found = [ActivationType(element, len(sizes), total(sizes)) for element, sizes in groups.items()]
    return sorted(found, key=lambda count: -count.tensors)


def _bits(row: LayerPrecision) -> str:
    """Average bits of the weights of a layer."""
    elements, size = sum(w.elements for w in row.weights), sum(w.bytes for w in row.weights)
    return f"{8 * size / elements:.3g}" if row.weights else ""


def _computed(element: str, size: int | None) -> str:
    return f"{element} {'?' if size is None else amount(size)}"


_LAYER_COLUMNS = [
    Column("layer", lambda row: row.path + row.name, "path"),
    Column("operation", "type"),
    Column(
        "activations",
        lambda row: ", ".join(row.activations) + (f" ({', '.join(row.levels)})" if row.levels else ""),
    ),
    Column("weights", lambda row: ", ".join(dict.fromkeys(weights.element for weights in row.weights))),
    Column("bits", _bits, "number"),
    Column("stored", lambda row: amount(sum(w.bytes for w in row.weights)) if row.weights else "", "number"),
    Column(
        "computed",
        lambda row: _computed(row.weights[0].computed, _decompressed(row.weights)) if row.weights else "",
        "number",
    ),
]
"""A layer with several weights has a list of types, and the bits and sizes of all."""

_STORAGE_COLUMNS = [
    Column("stored as", "element"),
    Column("decompressed by", "scheme", "sentence"),
    Column("tensors", "tensors", "number"),
    Column("weights", "elements", "count"),
    Column("bits", lambda row: f"{row.bits:.3g}", "number"),
    Column("stored", "bytes", "bytes"),
    Column("computed", lambda row: _computed(row.computed, row.decompressed), "number"),
]
_ACTIVATION_COLUMNS = [
    Column("activations", "element"),
    Column("tensors", "tensors", "number"),
    Column("bytes", "bytes", "bytes"),
]


def totals(report: PrecisionReport) -> list[str]:
    """The lines below the tables."""
    if not report.weight_elements:
        return [f"no weights; {amount(report.other)} of other constants"]
    computed = "an unknown size" if report.decompressed is None else amount(report.decompressed)
    return [
        f"{metric(report.weight_elements)} weights, {report.bits_per_weight:.3g} bits each: "
        f"{amount(report.stored)} stored, "
        f"{computed} as they are computed with",
        f"{amount(report.other)} of other constants, such as shapes and indices",
    ]
