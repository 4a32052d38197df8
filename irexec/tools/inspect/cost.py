"""The cost of every layer: multiply-accumulates, parameters, bytes and their ratio; see irexec.analysis.cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.cost import NO_COMPUTATION, NOTHING, Cost, LayerCosts
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Table
from irexec.ir.dims import is_static, product
from irexec.ir.graph import Graph, Node
from irexec.ir.order import grouped
from irexec.messages import amount, counted, listed, metric
from irexec.records import Record, Report

SortKey = Literal["macs", "parameters", "bytes", "order"]


@dataclass(frozen=True)
class LayerCost(Record):
    """The cost of one layer, in all iterations of the loops that it is in.

    Attributes:
        id, name, type, line: of the layer.
        path: the names of the bodies that it is in, each followed by a slash.
        constants: the names of layers that depend on constants alone and are counted with it: it is the first that
            reads their result, as a product that reads decompressed weights. What is between them is neither read nor
            written.
        times: number of its runs; None if it is not known, 0 in the cheaper branch of an If.
        macs: multiply-accumulates; None if they depend on a shape that is not known. A layer with bodies has those of
            its bodies in rows of their own.
        parameters: elements of constants.
        read, written: bytes of the inputs, with constants as they are stored, and of the outputs; None likewise.
    """

    id: int
    name: str
    type: str
    line: int | None
    path: str
    constants: tuple[str, ...]
    times: int | None
    macs: int | None
    parameters: int
    read: int | None
    written: int | None

    _json_properties = ("bytes", "intensity")

    @property
    def cost(self) -> Cost:
        """Its MACs, parameters and bytes, which add up."""
        return Cost(self.macs, self.parameters, self.read, self.written)

    @property
    def bytes(self) -> int | None:
        """Bytes read and written."""
        return self.cost.bytes

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: floating-point operations, two for each MAC, for each byte read or written."""
        return 2 * self.macs / self.bytes if self.macs and self.bytes else None


@dataclass(frozen=True)
class TypeCost(Record):
    """The cost of all layers of one type: see LayerCost; None where that of any of them is not known."""

    type: str
    layers: int
    macs: int | None
    parameters: int
    bytes: int | None


@dataclass(frozen=True)
class CostReport(Report):
    """The cost of a model.

    Attributes:
        name: of the model.
        layers: in the order of the file, those of bodies after the layer that has them.
        types: the type with the most MACs first.
        cost: of the whole model, as if every layer read its inputs from memory and wrote its outputs there. None for
            what is not known of any layer.
        known: the same of the layers of which it is known.
        unknown: the names of the layers whose MACs or bytes are not known.
        open_inputs: the inputs with sizes that are not known, which ``reshape`` gives.
    """

    name: str
    layers: tuple[LayerCost, ...]
    types: tuple[TypeCost, ...]
    cost: Cost
    known: Cost
    unknown: tuple[str, ...]
    open_inputs: tuple[str, ...]

    def rows(self, sort: SortKey = "macs") -> list[LayerCost]:
        """The layers, the most expensive first; of equal MACs the one with more bytes."""
        keys: dict[str, Callable[[LayerCost], tuple[int, int]]] = {
            "macs": lambda row: (row.macs or 0, row.bytes or 0),
            "parameters": lambda row: (row.parameters, row.macs or 0),
            "bytes": lambda row: (row.bytes or 0, row.macs or 0),
        }
        return list(self.layers) if sort == "order" else sorted(self.layers, key=keys[sort], reverse=True)

    def share(self, macs: int | None) -> float | None:
        """The part of the model's MACs; None if either is not known, and without any."""
        return macs / self.cost.macs if macs is not None and self.cost.macs else None

    def __repr__(self) -> str:
        return f"<CostReport {self.name!r}: {totals(self)[0]}>"

    def sections(self) -> list[Content]:
        """The layers and the types, the most expensive first, and the sums."""
        costs = [
            Column("MACs", "macs", "count"),
            Column("params", "parameters", "count"),
            Column("bytes", "bytes", "bytes"),
        ]
        share = Column("share", lambda row: self.share(row.macs), "share")
        layers = [
            share,
            Column("layer", lambda row: row.path + row.name, "path"),
            Column("operation", "type"),
            *costs,
            Column("FLOP/B", lambda row: None if row.intensity is None else f"{row.intensity:.3g}", "number"),
        ]
        types = [share, Column("operation", "type"), Column("layers", "layers", "number"), *costs]
        return [Table(layers, self.rows(), what="layers"), Table(types, self.types, what="types"), totals(self)]


def cost(model: ModelLike, inference: Inference | None = None) -> CostReport:
    """The cost of the layers of a model, from their types and shapes alone; nothing is run, and weights are not read.

    Args:
        model: any model, or what read_model takes; ``reshape`` says for which input shapes.
        inference: facts of its values; inferred unless given.

    Raises:
        ModelError: it is an execution graph.
    """
    model = as_model(model)
    refuse_execution_graph(model)
    facts = (inference or infer_shapes(model, tolerant=True)).facts
    rows = tuple(_rows(model, "", 1, LayerCosts(model, facts)))
    names = tuple(row.path + row.name for row in rows if row.macs is None or row.bytes is None)
    open_inputs = (str(port) for port in model.inputs if not is_static(port.shape))
    known = sum((Cost(row.macs or 0, row.parameters, row.read or 0, row.written or 0) for row in rows), NOTHING)
    return CostReport(model.name, rows, tuple(_by_type(rows)), _sum(rows), known, names, tuple(open_inputs))


def _rows(graph: Graph, path: str, times: int | None, costs: LayerCosts) -> Iterator[LayerCost]:
    """The rows of a graph that runs ``times`` times."""
    first = _first_readers(graph, costs)
    merged = grouped((reader, constant) for constant, reader in first.items())
    for node in graph.nodes:
        if node.type in NO_COMPUTATION or node in first:
            continue
        together = merged.get(node, [])
        own, names = costs.of([*together, node], bodies=False), tuple(one.name for one in together)
        macs, read, written = (product(count, times) for count in (own.macs, own.read, own.written))
        yield LayerCost(
            node.id, node.name, node.type, node.line, path, names, times, macs, own.parameters, read, written
        )
        runs = costs.runs(node)
        for name, body in node.bodies.items():
            yield from _rows(body.graph, f"{path}{node.name}/{name}/", product(times, runs[name]), costs)


def _first_readers(graph: Graph, costs: LayerCosts) -> dict[Node, Node]:
    """Layers that depend on constants alone, each with the first reader of its result that depends on more."""
    constant = constant_layers(graph)
    found: dict[Node, Node] = {}
    for node in constant:
        seen, reader = {node}, _reader(node, costs)
        while reader in constant and reader not in seen:
            seen.add(reader)
            reader = _reader(reader, costs)
        if reader is not None and reader.type not in NO_COMPUTATION and reader not in constant:
            found[node] = reader
    order = {node: i for i, node in enumerate(graph.nodes)}
    return dict(sorted(found.items(), key=lambda pair: order[pair[0]]))


def _reader(node: Node, costs: LayerCosts) -> Node | None:
    return next((reader for value in node.outputs for reader in costs.readers(value)), None)


def _sum(rows: Iterable[LayerCost]) -> Cost:
    return sum((row.cost for row in rows), NOTHING)


def _by_type(rows: Sequence[LayerCost]) -> list[TypeCost]:
    groups = grouped((row.type, row) for row in rows)
    sums = [(type, len(group), _sum(group)) for type, group in groups.items()]
    found = [TypeCost(type, count, whole.macs, whole.parameters, whole.bytes) for type, count, whole in sums]
    return sorted(found, key=lambda row: (row.macs or 0, row.bytes or 0), reverse=True)


def totals(report: CostReport) -> list[str]:
    """The lines below the tables: sums, and what is not known."""
    whole, known = report.cost, report.known
    exact = whole.macs is not None and whole.bytes is not None
    at_least = "" if exact else "at least "
    macs, size = known.macs or 0, known.bytes or 0
    unit = "MACs" if macs > 999 else " MACs"
    text = f"{at_least}{metric(macs)}{unit}, {metric(known.parameters)} parameters, {amount(size)} read and written"
    lines = [f"{text}, {2 * macs / size:.3g} FLOP/B" if exact and macs and size else text]
    if report.unknown:
        lines.append(f"not known of {counted(len(report.unknown), 'layer')}: {listed(report.unknown, 3)}")
    if report.unknown and report.open_inputs:
        lines.append(f"sizes that --shape or reshape would give: {', '.join(report.open_inputs)}")
    return lines
