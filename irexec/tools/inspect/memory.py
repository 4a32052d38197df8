"""The memory of the tensors between the layers: its peak, the tensors in use at each layer, and the part that the
compiler saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.cost import NO_COMPUTATION, total
from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import UNKNOWN, Inference, infer_shapes
from irexec.api import ModelLike, as_model
from irexec.compile.plan_report import PlanReport
from irexec.compile.storage.planned import Interval, MemoryInterval, in_use
from irexec.display import Column, Content, Curve, Table
from irexec.errors import IrexecError
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import needed, topological
from irexec.messages import amount, counted, listed
from irexec.records import Record, Report
from irexec.runtime.compiled_model import CompiledModel


@dataclass(frozen=True)
class LiveTensor(Interval):
    """A tensor between layers, in use from the layer that computes it to the last layer that reads it.

    A result of the model is in use until the last layer, and a value that a loop passes to its next iteration from the
    first, 0.

    Attributes:
        name: its first tensor name, or else ``layer`` or ``layer:index``.
        path: the names of the bodies that it is in, each followed by a slash.
        layer, type: the layer that computes it.
        fact: element type and shape, as text.
    """

    name: str
    path: str
    layer: str
    type: str
    fact: str


@dataclass(frozen=True)
class Liveness:
    """The tensors in use while a graph runs.

    Attributes:
        order: layers in order of execution, without constant and unused layers.
        tensors: the tensors between these layers.
        bodies: the liveness in the bodies of each layer that has bodies.
        path: the names of the bodies around the graph.
    """

    order: tuple[Node, ...]
    tensors: tuple[LiveTensor, ...]
    bodies: Mapping[int, tuple[Liveness, ...]]
    path: str = ""
    curve: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        # During each layer the tensors of the largest of its bodies are in use, too.
        peaks = {i: max(max(one.curve, default=0) for one in bodies) for i, bodies in self.bodies.items()}
        sizes = in_use(self.tensors, len(self.order))
        object.__setattr__(self, "curve", tuple(size + peaks.get(i, 0) for i, size in enumerate(sizes)))

    @property
    def peak(self) -> int:
        """The index of the layer of the peak, the first such layer; 0 without layers."""
        return max(range(len(self.curve)), key=lambda i: self.curve[i], default=0)

    def alive(self, index: int) -> list[LiveTensor]:
        """The tensors that are alive during a layer; those of the body that needs the most memory are among them."""
        found = [tensor for tensor in self.tensors if tensor.first <= index <= tensor.last]
        body = max(self.bodies.get(index, ()), key=lambda one: max(one.curve, default=0), default=None)
        return found + (body.alive(body.peak) if body is not None else [])

    def every_tensor(self) -> list[LiveTensor]:
        """The tensors, and those of bodies."""
        return [
            *self.tensors,
            *(tensor for bodies in self.bodies.values() for one in bodies for tensor in one.every_tensor()),
        ]


def liveness(graph: Graph, facts: Mapping[Value, Fact]) -> Liveness:
    """The tensors in use while a graph runs, from facts alone. Inputs of the graph belong to the caller."""
    return _of_graph(graph, facts, "", frozenset())


def _of_graph(graph: Graph, facts: Mapping[Value, Fact], path: str, carried: frozenset[Value]) -> Liveness:
    # The layers that run.
    wanted = needed(graph) - constant_layers(graph)
    order = [node for node in topological(graph)[0] if node in wanted and node.type not in NO_COMPUTATION]
    index = {node: i for i, node in enumerate(order)}
    last = {value: index[node] for node in order for value in node.inputs if value is not None}
    kept = {value for node in (*graph.results, *graph.sinks) for value in node.inputs if value is not None}
    tensors = [
        _tensor(value, path, facts, i, len(order) - 1 if value in kept else last[value])
        for i, node in enumerate(order)
        for value in node.outputs
        if value in last or value in kept
    ]
    tensors += [_tensor(value, path, facts, 0, last[value]) for value in carried if value in last]
    bodies = {
        i: tuple(_of_body(body, facts, f"{path}{node.name}/{name}/") for name, body in node.bodies.items())
        for i, node in enumerate(order)
        if node.bodies
    }
    return Liveness(tuple(order), tuple(tensors), bodies, path)


def _of_body(body: Body, facts: Mapping[Value, Fact], path: str) -> Liveness:
    """Parameters are views of what is outside, unless the iteration before has computed them."""
    targets = {edge.target for edge in body.back_edges}
    carried = frozenset(node.outputs[0] for node in body.graph.parameters if node.id in targets and node.outputs)
    return _of_graph(body.graph, facts, path, carried)


def _tensor(value: Value, path: str, facts: Mapping[Value, Fact], first: int, last: int) -> LiveTensor:
    node, fact = value.node, facts.get(value, UNKNOWN)
    known = fact.is_static and fact.element is not None and fact.element.kind != "string"
    text = str(Fact(fact.element, fact.shape))
    return LiveTensor(fact.nbytes if known else None, first, last, value.name, path, node.name, node.type, text)


@dataclass(frozen=True)
class PlannedMemory(Record):
    """The memory of the compiled model during a run.

    Attributes:
        arena: bytes of the arena and of those of bodies, with the workspace of kernels.
        workspace: bytes of the largest workspace of a step.
        tensors: the maximum bytes of tensors in use at once, as far as they are known: in the arena, in memory of their
            own, and in bodies. Views need none, tensors that are written over their input share it, and those within
            fused steps do not exist.
        at: the index of this step.
        layers: the layers that this step computes.
        own: the maximum bytes of tensors that are held at once in memory of their own, such as results.
        steps: number of steps.
        packed, kept: bytes that kernels have made of constants, and of constants as they are.
        threads: for how many threads there is workspace.
        held: all of it.
    """

    arena: int
    workspace: int
    tensors: int
    at: int
    layers: tuple[str, ...]
    own: int
    steps: int
    packed: int
    kept: int
    threads: int
    held: tuple[MemoryInterval, ...] = field(repr=False)


@dataclass(frozen=True)
class MemoryReport(Report):
    """The memory of the tensors between the layers of a model, each in memory of its own; inputs and constants apart.

    Attributes:
        name: of the model.
        peak: bytes that are alive at once at most, as far as they are known.
        at: the index of the layer during which that is; None without layers.
        layer, type, line: the layer.
        alive: the tensors that are alive then, the largest first.
        curve: bytes that are alive during each layer.
        order: the names of the layers, in the order in which they run.
        total: bytes of all tensors together.
        unknown: the names of tensors whose type or shape is not known; no bytes of them are counted.
        inputs, outputs: bytes of the inputs, which the caller holds, and of the outputs; None if a shape is not known.
        weights: bytes of all constants as they are stored.
        open_inputs: the inputs with sizes that are not known, which ``reshape`` gives.
        plan: the memory of the compiled model; None if it is not known.
        no_plan: why it is not known.
    """

    name: str
    peak: int
    at: int | None
    layer: str
    type: str
    line: int | None
    alive: tuple[LiveTensor, ...]
    curve: tuple[int, ...] = field(repr=False)
    order: tuple[str, ...] = field(repr=False)
    total: int
    unknown: tuple[str, ...]
    inputs: int | None
    outputs: int | None
    weights: int
    open_inputs: tuple[str, ...]
    plan: PlannedMemory | None
    no_plan: str

    def __repr__(self) -> str:
        return f"<MemoryReport {self.name!r}: {totals(self)[0]}>"

    def sections(self) -> list[Content]:
        """The tensors that are alive at the peak, the memory over the layers, and the sums beside what the plan
        holds."""
        columns = [
            Column("alive at the peak", lambda tensor: tensor.path + tensor.name),
            Column("layer", lambda tensor: tensor.path + tensor.layer if tensor.layer != tensor.name else ""),
            Column("operation", "type"),
            Column("tensor", "fact", "code"),
            Column("bytes", "bytes", "bytes"),
            Column(
                "layers", lambda tensor: f"{tensor.first + 1}-{tensor.last + 1}", "number", "from which to which layer"
            ),
        ]
        alive = Table(columns, self.alive, what="tensors", label="tensors alive at the peak") if self.alive else None
        text = f"bytes of tensors alive during each of {counted(len(self.curve), 'layer')}, at most {amount(self.peak)}"
        return [alive, Curve(self.curve, amount(self.peak), text) if self.peak else None, totals(self)]


def memory(
    model: ModelLike,
    *,
    threads: int | None = None,
    precision: Precision = DEFAULT_PRECISION,
    max_memory: int | None = None,
    compiled: bool = True,
    inference: Inference | None = None,
) -> MemoryReport:
    """When which tensors are alive, and what the compiled model holds; nothing is run.

    Args:
        model: any model, or what read_model takes; ``reshape`` says for which input shapes.
        threads, precision, max_memory: as for CompiledModel.
        compiled: compile the model to see what it holds then, which packs its weights.
        inference: facts of its values; inferred unless given.

    Raises:
        ModelError: it is an execution graph.
    """
    model = as_model(model)
    refuse_execution_graph(model)
    facts = (inference or infer_shapes(model, tolerant=True)).facts
    live = liveness(model, facts)
    at = live.peak if live.order else None
    node = live.order[at] if at is not None else None
    tensors = live.every_tensor()
    alive = sorted(live.alive(at), key=lambda tensor: -(tensor.bytes or 0)) if at is not None else []
    planned, reason = _planned(model, threads, precision, max_memory) if compiled else (None, "it was not compiled")
    return MemoryReport(
        name=model.name,
        peak=live.curve[at] if at is not None else 0,
        at=at,
        layer=node.name if node else "",
        type=node.type if node else "",
        line=node.line if node else None,
        alive=tuple(alive),
        curve=live.curve,
        order=tuple(one.name for one in live.order),
        total=sum(tensor.bytes or 0 for tensor in tensors),
        unknown=tuple(tensor.path + tensor.name for tensor in tensors if tensor.bytes is None),
        inputs=_bytes((one.outputs[0] for one in model.parameters if one.outputs), facts),
        outputs=_bytes((one.inputs[0] for one in model.results if one.inputs), facts),
        weights=sum(one.constant.size for one in model.walk() if one.constant is not None),
        open_inputs=tuple(str(port) for port in model.inputs if not is_static(port.shape)),
        plan=planned,
        no_plan=reason,
    )


def _bytes(values: Iterable[Value | None], facts: dict[Value, Fact]) -> int | None:
    found = [facts.get(value) if value is not None else None for value in values]
    return total(None if one is None or one.element is None or not one.is_static else one.nbytes for one in found)


def _planned(
    model: Model, threads: int | None, precision: Precision, max_memory: int | None
) -> tuple[PlannedMemory | None, str]:
    try:
        compiled = CompiledModel(model, threads=threads, precision=precision, max_memory=max_memory)
        return planned_memory(compiled.plan), ""
    except IrexecError as error:
        return None, str(error)


def planned_memory(report: PlanReport) -> PlannedMemory:
    """The memory of a compiled model, from the report of its plan."""
    tops = [row for row in report.steps if not row.path]
    tensors = in_use([one for one in report.held if one.kind != "workspace"], len(tops))
    own = in_use([one for one in report.held if one.kind == "own"], len(tops))
    at = max(range(len(tops)), key=lambda i: tensors[i], default=0)
    return PlannedMemory(
        arena=report.arena,
        workspace=max((one.bytes for one in report.held if one.kind == "workspace"), default=0),
        tensors=max(tensors, default=0),
        at=at,
        layers=tops[at].layers if tops else (),
        own=max(own, default=0),
        steps=len(tops),
        packed=report.packed,
        kept=report.kept,
        threads=report.threads,
        held=report.held,
    )


def totals(report: MemoryReport) -> list[str]:
    """The lines below the table."""
    at_least = "at least " if report.unknown else ""
    where = ""
    if report.at is not None:
        where = f" during layer {report.at + 1} of {len(report.order)}, {report.layer} ({report.type})"
    lines = [
        f"peak {at_least}{amount(report.peak)}{where}; all tensors {at_least}{amount(report.total)}",
        f"inputs {_amount(report.inputs)}, outputs {_amount(report.outputs)}, constants {amount(report.weights)}",
    ]
    if report.unknown:
        lines.append(f"sizes not known of {counted(len(report.unknown), 'tensor')}: {listed(report.unknown, 3)}")
        if report.open_inputs:
            lines.append(f"sizes that --shape or reshape would give: {', '.join(report.open_inputs)}")
    if (plan := report.plan) is not None:
        at = f" during step {plan.at + 1} of {plan.steps}, {plan.layers[0]}" if plan.layers else ""
        lines += [
            f"planned: peak {at_least}{amount(plan.tensors)}{at}",
            f"arena {amount(plan.arena)}, with workspace of up to {amount(plan.workspace)} for "
            f"{counted(plan.threads, 'thread')}; {amount(plan.own)} outside of it",
            f"constants of the plan: {amount(plan.packed)} packed, {amount(plan.kept)} as they are",
        ]
    elif report.no_plan:
        lines.append(f"the plan is not known: {report.no_plan}")
    return lines


def _amount(size: int | None) -> str:
    return "of unknown size" if size is None else amount(size)
