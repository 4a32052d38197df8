"""A plan for people and programs: one row for each step, and the effects of the passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from irexec.analysis.cost import NO_COMPUTATION
from irexec.backend.calls import NativeKernel
from irexec.backend.constants import AS_IT_IS, ConstantStore
from irexec.backend.kernel import Order
from irexec.compile.rewriting import Refusal
from irexec.compile.steps import Plan, Step
from irexec.compile.storage.planned import MemoryInterval, in_use
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph
from irexec.ir.order import grouped
from irexec.messages import amount, counted
from irexec.records import Record, Report


@dataclass(frozen=True, repr=False)
class StepRow(Record):
    """One step.

    Attributes:
        number: its position among the steps of its plan, from 1.
        path: the names of the bodies that it is in, each followed by a slash.
        layers: the names of the layers that it computes; a layer that was replaced by several steps is in each of them.
        operation: its type, and those of the element-wise operations that are computed with it: "Convolution+Add+Relu".
        algorithm: of the kernel; "reference" for the reference kernel, "by shape" where one is selected for each run.
        order: the axes of the first output from the outermost to the innermost in memory; None for C order.
        output: element type and shape of the first output.
        bytes: of the outputs that are read or asked for; None where a shape or type is not known.
    """

    number: int
    path: str
    layers: tuple[str, ...]
    operation: str
    algorithm: str
    order: Order | None
    output: str
    bytes: int | None

    @property
    def layout(self) -> str:
        """The order as text, such as "0231"; empty for C order."""
        return "" if self.order is None else "".join(map(str, self.order))

    @property
    def title(self) -> str:
        """The first of its layers, and how many more there are: "conv1 +2"."""
        more = f" +{len(self.layers) - 1}" if len(self.layers) > 1 else ""
        return f"{self.path}{self.layers[0]}{more}"

    def __repr__(self) -> str:
        size = "?" if self.bytes is None else amount(self.bytes)
        parts = self.operation, self.algorithm, self.layout, self.output, size
        return f"<StepRow {self.number} {self.title!r}: {', '.join(filter(None, parts))}>"


@dataclass(frozen=True)
class Reason(Record):
    """Why a pass left some operations as they are, and the layers in question."""

    pass_name: str
    reason: str
    layers: tuple[str, ...]


@dataclass(frozen=True)
class PlanReport(Report):
    """The steps that a compiled model runs for certain input shapes.

    Attributes:
        name: of the model.
        steps: in the order in which they run; steps of a body come after the step that owns it.
        layers: number of computed layers of the model; Parameters, Constants and Results are not counted.
        computed: number of these layers in steps.
        viewed: number of the other layers, views of tensors that need no step.
        passes: the changes of the passes, by name.
        refusals: why passes left operations as they are.
        threads: number of threads of a step.
        kernels: the available kernels: "C kernels for x86-64-v3", or "NumPy alone" and the reason.
        native: number of steps that the C kernels compute.
        arena: bytes that one run needs for the tensors between the steps, workspace of the kernels included.
        intermediate: bytes of all tensors that are read or asked for together, if each had memory of its own.
        packed: bytes that kernels have made of constants, for all plans of the compiled model.
        kept: bytes of constants that steps read as they are, in the mapped .bin or unpacked.
        held: the occupied memory during the steps of the model itself, arenas of bodies included.
    """

    name: str
    steps: tuple[StepRow, ...]
    layers: int
    computed: int
    viewed: int
    passes: dict[str, int]
    refusals: tuple[Refusal, ...]
    threads: int
    kernels: str
    native: int
    arena: int
    intermediate: int
    packed: int
    kept: int
    held: tuple[MemoryInterval, ...] = field(metadata={"json": False})

    _json_properties = ("removed",)

    def reasons(self) -> list[Reason]:
        """The refusals with the same pass and reason together, the most frequent first."""
        found = grouped(((refusal.pass_name, refusal.reason), refusal.layer) for refusal in self.refusals)
        reasons = [Reason(name, reason, tuple(layers)) for (name, reason), layers in found.items()]
        return sorted(reasons, key=lambda reason: -len(reason.layers))

    @property
    def removed(self) -> int:
        """Number of layers that are neither in a step nor views: computed while the model was compiled, or not
        needed."""
        return self.layers - self.computed - self.viewed

    def __repr__(self) -> str:
        return f"<PlanReport {self.name!r}: {counted(len(self.steps), 'step')} for {self.layers} layers>"


def describe_plan(plan: Plan, model: Graph, store: ConstantStore, kernels: str) -> PlanReport:
    """The report of a plan of ``model`` whose constants are in ``store``; ``kernels`` as for PlanReport."""
    graphs = list(_plans(plan, model))
    computed = {node for one, _ in graphs for step in one.steps for node in step.report.origins}
    viewed = {node for one, _ in graphs for node in one.views} - computed
    layers = {node for _, graph in graphs for node in graph.nodes if node.type not in NO_COMPUTATION}
    packed, kept = _constant_bytes(store)
    return PlanReport(
        name=model.name,
        steps=tuple(_rows(plan, "")),
        layers=len(layers),
        computed=len(layers & computed),
        viewed=len(layers & viewed),
        passes=dict(plan.passes),
        refusals=tuple(dict.fromkeys(refusal for one, _ in graphs for refusal in one.refusals)),
        threads=plan.threads,
        kernels=kernels,
        native=sum(isinstance(step.kernel, NativeKernel) for one, _ in graphs for step in one.steps),
        arena=_arena(plan),
        intermediate=sum(one.intermediate for one, _ in graphs),
        packed=packed,
        kept=kept,
        held=(*plan.intervals, *_held_by_bodies(plan)),
    )


def _plans(plan: Plan, graph: Graph) -> Iterator[tuple[Plan, Graph]]:
    """The plan and those of bodies, each with its graph."""
    yield plan, graph
    for step in plan.steps:
        for body in step.bodies.values():
            yield from _plans(body.plan, body.body.graph)


def _arena(plan: Plan) -> int:
    """Bytes of the plan's arena and of those that its bodies need meanwhile."""
    return plan.arena + max((_arena(body.plan) for step in plan.steps for body in step.bodies.values()), default=0)


def _held_by_bodies(plan: Plan) -> Iterator[MemoryInterval]:
    """The peak of the tensors of bodies while a step runs; workspace is left out, as it is for the plan itself."""
    for i, step in enumerate(plan.steps):
        size = max((_peak(body.plan) for body in step.bodies.values()), default=0)
        if size:
            yield MemoryInterval(size, i, i, (step.node.name,), "body")


def _peak(plan: Plan) -> int:
    tensors = [one for one in plan.intervals if one.kind != "workspace"]
    return max(in_use([*tensors, *_held_by_bodies(plan)], len(plan.steps)), default=0)


def _rows(plan: Plan, path: str) -> Iterator[StepRow]:
    for number, step in enumerate(plan.steps, 1):
        yield _row(number, step, path)
        for name, body in step.bodies.items():
            yield from _rows(body.plan, f"{path}{step.node.name}/{name}/")


def _row(number: int, step: Step, path: str) -> StepRow:
    return StepRow(
        number=number,
        path=path,
        layers=tuple(node.name for node in step.report.origins),
        operation=step.report.operation,
        algorithm=step.report.algorithm,
        order=step.report.orders[0] if step.report.orders else None,
        output=str(step.report.facts[0]) if step.report.facts else "",
        bytes=_bytes([fact for fact, slot in zip(step.report.facts, step.outputs, strict=True) if slot >= 0]),
    )


def _bytes(facts: Sequence[Fact]) -> int | None:
    """Bytes of arrays of these facts, as they are held; None if a shape or type is not known."""
    known = all(fact.is_static and fact.element is not None for fact in facts)
    return sum(fact.nbytes for fact in facts) if known else None


def _constant_bytes(store: ConstantStore) -> tuple[int, int]:
    """Bytes of packed constants, and of constants as they are; shared memory counts once."""
    packed, kept = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
    for packing, made in store.made():
        for array in _arrays(made):
            memory = (array.__array_interface__["data"][0], array.nbytes)
            (kept if packing == AS_IT_IS or _is_mapped(array) else packed)[memory] = array.nbytes
    return sum(packed.values()), sum(kept.values())


def _is_mapped(array: np.ndarray) -> bool:
    """Whether it is a view of a mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return type(base).__module__ == "mmap"


def _arrays(made: Any) -> Iterator[np.ndarray]:
    """The arrays in what a kernel made of constants: an array, or arrays in containers and objects."""
    if isinstance(made, np.ndarray):
        yield made
    elif isinstance(made, tuple | list):
        for part in made:
            yield from _arrays(part)
    elif is_dataclass(made):
        for field in fields(made):
            yield from _arrays(getattr(made, field.name))
