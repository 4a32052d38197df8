"""From a graph to a plan: lowered, optimised, a kernel selected for each operation, memory laid out.

A plan is immutable and knows no state, so that threads can share it. Without ``optimize`` every step is the reference kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple, without_elements
from irexec.analysis.shape_inference import Inference
from irexec.backend.constants import ConstantStore, Holding
from irexec.backend.numpy_state import set_for_run
from irexec.backend.registry import has_candidates
from irexec.compile.errors import check_as_inferred, node_error, too_large
from irexec.compile.graph import Graph, LoweredBody, Operation, Value
from irexec.compile.held import held
from irexec.compile.lower import Sources, lower
from irexec.compile.memory_limit import MemoryLimit, allocated_by, check_arena, refuse_too_large
from irexec.compile.passes import optimize
from irexec.compile.rewriting import FOLDING_BUDGET, DerivedConstants, Report, Rewriting
from irexec.compile.select import is_native, is_static, may_be_f16, reference_call, select_kernel
from irexec.compile.specialise import Specialising
from irexec.compile.steps import Alias, BodyPlan, Plan, Step
from irexec.compile.storage import lay_out, place_of
from irexec.compile.storage_types import FIXED, Draft, Storage
from irexec.dtypes.elements import Element
from irexec.ir import graph as ir
from irexec.ir.facts import EveryOutput, Fact
from irexec.schema.injected import Variables
from irexec.schema.inputs import check_inputs
from irexec.schema.opdef import OpDef


@dataclass
class Compilation:
    """What all plans of a compiled model share, and how they are made.

    Attributes:
        memory: how much may be allocated.
        store: what kernels made of constants.
        sources, derived: the constants themselves.
        optimize: False for reference kernels alone; True for all passes; or the names of the passes to run.
        threads: how many threads work on a step.
        holding: how compressed weights are held.
        declared: the element types in which values are given that are computed in another one.
        observed: every input of a step is still in memory when the step has run: no step writes over one, and none is left out
            because its outputs are views.
    """

    memory: MemoryLimit = field(default_factory=MemoryLimit)
    store: ConstantStore = field(default_factory=ConstantStore)
    sources: Sources = field(default_factory=dict)
    derived: DerivedConstants = field(default_factory=DerivedConstants)
    optimize: bool | Collection[str] = True
    threads: int = 1
    holding: Holding = "unpacked"
    declared: Mapping[ir.Value, Element] = field(default_factory=dict)
    observed: bool = False

    @property
    def folding_budget(self) -> int:
        """Bytes that folding a constant may add to what is stored."""
        return min(FOLDING_BUDGET, self.memory.left())


def plan(
    graph: ir.Graph,
    inference: Inference,
    targets: Sequence[ir.Value] | None = None,
    compilation: Compilation | None = None,
) -> Plan:
    """Plan the computation of ``targets`` (by default the Results) and of everything that has an effect.

    What tolerant inference could not infer is left out: an Assign after it has no effect.

    Raises:
        NodeError, UnsupportedError, ModelError: a target depends on what cannot be computed.
    """
    compilation = compilation or Compilation()
    # Constants are folded and packed as a run computes.
    with set_for_run():
        lowered = lower(graph, inference, compilation.sources, targets, compilation.declared)
        rewriting = Rewriting(compilation.derived, compilation.threads, compilation.holding, compilation.folding_budget)
        if compilation.optimize is not False:
            optimize(lowered, rewriting, None if compilation.optimize is True else compilation.optimize)
        return plan_graph(lowered, rewriting.report, compilation)


def plan_graph(graph: Graph, report: Report, compilation: Compilation) -> Plan:
    """The plan of a compile graph.

    Raises:
        NodeError: a tensor, or all that are held at once, take more memory than there is.
    """
    refuse_too_large(graph, compilation.memory)
    made = _Planner(graph, report, compilation).plan()
    check_arena(made, compilation.memory)
    return made


class _Planner:
    def __init__(self, graph: Graph, report: Report, compilation: Compilation) -> None:
        self.graph, self.report, self.compilation = graph, report, compilation
        self.targets = set(graph.targets)
        self.slots: dict[Value, int] = {}

    def plan(self) -> Plan:
        drafts = [self._draft(operation) for operation in self.graph.order()]
        observed = self.compilation.observed
        reuse = self.compilation.optimize is not False and not observed
        storage = lay_out(self.graph, drafts, self.compilation.threads, reuse, overwrite=not observed)
        planned = [draft for draft in drafts if not storage.is_view(draft)]
        frees = self._frees(planned, storage)
        late = self._late(planned, storage)
        steps = tuple(self._step(draft, storage, frees.get(draft, []), late) for draft in planned)
        targets = tuple(self._slot(value) for value in self.graph.targets)
        aliases = self._aliases(storage)
        sources = tuple(value.constant for value in self.graph.constants() if value.constant is not None)
        read = [
            value
            for draft in drafts
            for value, wanted in zip(draft.operation.outputs, draft.wanted, strict=True)
            if wanted
        ]
        sized = [value for value in read if value.fact.is_static and value.fact.element is not None]
        return Plan(
            steps=steps,
            slots=len(self.slots),
            constants=self._constants(),
            parameters=tuple(self.slots.get(value, -1) for value in self.graph.inputs),
            targets=targets,
            copied=self._copied(storage),
            places=tuple(
                place_of(v, self.slots[v], buffer.offset) for v, buffer in storage.buffers.items() if v in self.slots
            ),
            aliases=aliases,
            late_aliases=tuple(alias for value in self.graph.inputs for alias in late.get(value, ())),
            arena=storage.arena,
            threads=self.compilation.threads,
            sources=sources,
            passes={name: count for name, count in self.report.applied.items() if count},
            intermediate=sum(value.fact.nbytes for value in sized),
            views=tuple(node for draft in drafts if storage.is_view(draft) for node in draft.operation.origins),
            refusals=self.report.refusals_of(self.graph),
            held=held(drafts, storage, self.targets),
        )

    def _slot(self, value: Value) -> int:
        return self.slots.setdefault(value, len(self.slots))

    def _draft(self, operation: Operation) -> Draft:
        wanted = tuple(bool(value.uses) or value in self.targets for value in operation.outputs)
        kernel = None
        try:
            optimized = self.compilation.optimize is not False and (
                operation.definition is None or operation.empty_outputs is None
            )
            if optimized and is_static(operation) and is_native(operation):
                kernel = select_kernel(operation, wanted, self.compilation.threads, self.compilation.holding)
            if kernel is not None:
                kernel.pack(self.compilation.store)
        except (MemoryError, OverflowError) as error:
            raise node_error(operation.node, [], too_large(error)) from error
        return Draft(operation, kernel, wanted)

    def _constants(self) -> tuple[tuple[int, np.ndarray], ...]:
        store = self.compilation.store
        return tuple(
            (slot, store.array(value.constant)) for value, slot in self.slots.items() if value.constant is not None
        )

    def _aliases(self, storage: Storage) -> tuple[Alias, ...]:
        """The views that steps read, each after the one that it is a view of."""
        for value, (source, _) in reversed(storage.views.items()):
            if value in self.slots:
                self._slot(source)
        return tuple(
            Alias(self.slots[value], self.slots[source], view)
            for value, (source, view) in storage.views.items()
            if value in self.slots
        )

    def _late(self, planned: Sequence[Draft], storage: Storage) -> dict[Value, list[Alias]]:
        """The views to be made in each run, of those that a step reads or that are asked for, by the value viewed."""
        read = self.targets.union(*(draft.operation.inputs for draft in planned))
        late: dict[Value, list[Alias]] = {}
        for value, (root, view) in storage.late.items():
            if value in read:
                late.setdefault(root, []).append(Alias(self._slot(value), self._slot(root), view))
        return late

    def _frees(self, planned: Sequence[Draft], storage: Storage) -> dict[Draft, list[Value]]:
        """For each step the values whose last use it is, of those that have memory of their own."""
        last: dict[Value, Draft] = {}
        for draft in planned:
            for value in (*draft.operation.outputs, *draft.operation.inputs):
                if (
                    value.constant is None
                    and value not in self.targets
                    and value not in storage.buffers
                    and value not in storage.views
                ):
                    last[value] = draft
        frees: dict[Draft, list[Value]] = {}
        for value, draft in last.items():
            frees.setdefault(draft, []).append(value)
        return frees

    def _step(self, draft: Draft, storage: Storage, frees: Sequence[Value], late: dict[Value, list[Alias]]) -> Step:
        operation, kernel = draft.operation, draft.kernel
        read: list[Value | None] = draft.read
        call, algorithm = None, "" if kernel is None else kernel.algorithm
        if kernel is None:
            call, algorithm, read = self._call(operation, draft.wanted, read)
        read = [None if i in storage.joined.get(draft, ()) else value for i, value in enumerate(read)]
        workspace = storage.workspaces.get(draft)
        fresh = tuple(place_of(value, self._slot(value), None) for value in operation.outputs if value in storage.fresh)
        return Step(
            node=operation.node,
            type=operation.type,
            origins=operation.origins,
            kernel=kernel,
            call=call,
            algorithm=algorithm,
            inputs=tuple(-1 if value is None else self._slot(value) for value in read),
            outputs=tuple(
                self._slot(v) if wanted else -1 for v, wanted in zip(operation.outputs, draft.wanted, strict=True)
            ),
            fresh=fresh,
            aliases=tuple(alias for value in operation.outputs for alias in late.get(value, ())),
            frees=tuple(self.slots[value] for value in frees if value in self.slots),
            workspace=(0, 0) if workspace is None or kernel is None else (workspace.offset, kernel.workspace),
            elements=_rounding(operation) if kernel is None else None,
            check=_check_of(operation) if kernel is None else None,
            types=tuple(value.fact if value.constant is not None else value.fact.element for value in operation.inputs),
            bodies={name: self._body(body) for name, body in operation.bodies.items()},
            state=None if operation.definition is None else _state(operation.definition),
            facts=tuple(Fact(value.fact.element, value.fact.shape) for value in operation.outputs),
            orders=tuple(value.order for value in operation.outputs),
            size=allocated_by(operation) if kernel is None else sum(place.size for place in fresh),
            chain=()
            if operation.chain is None
            else tuple(instruction.type for instruction in operation.chain.instructions),
        )

    def _body(self, body: LoweredBody) -> BodyPlan:
        return BodyPlan(body.node, body.body, plan_graph(body.graph, self.report, self.compilation))

    def _call(
        self, operation: Operation, wanted: Sequence[bool], read: list[Value | None]
    ) -> tuple[Callable[..., Any], str, list[Value | None]]:
        """What computes an operation that has no kernel: a function, how it computes, and which inputs it is given."""
        definition = operation.definition
        if definition is None:
            raise AssertionError("chains have kernels")
        empty = operation.empty_outputs
        if empty is not None:
            return functools.partial(_given, empty), "no elements", read
        optimize = self.compilation.optimize is not False
        if optimize and definition.first_output_kernel is not None and not any(wanted[1:]):
            return functools.partial(definition.first_output_kernel, **operation.attributes), "reference", read
        call = reference_call(definition, operation.attributes, widen=may_be_f16(operation))
        if optimize and has_candidates(definition) and not is_static(operation) and not _is_of_integers(operation):
            special = Specialising(
                operation, call, self.compilation.store, self.compilation.threads, self.compilation.holding
            )
            return special, "by shape", [None if value.constant is not None else value for value in operation.inputs]
        return call, "reference", read

    def _copied(self, storage: Storage) -> tuple[bool, ...]:
        """Which targets may share memory with what is not theirs, following operations that return views."""
        seen: set[Value | str] = {FIXED}
        copied = []
        for value in self.graph.targets:
            copied.append(bool(storage.roots[value] & seen))
            seen |= storage.roots[value]
        return tuple(copied)


def _given(outputs: tuple[np.ndarray, ...], *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Outputs that do not depend on the inputs."""
    return outputs


def _is_of_integers(operation: Operation) -> bool:
    """Whether it computes on integers alone, which are mostly sizes and counters: few elements, other values on every call."""
    elements = [value.fact.element for value in operation.inputs]
    return all(element is not None and not element.is_float for element in elements)


def _state(definition: OpDef) -> str | None:
    return next((name for name, kind in definition.injected.items() if kind is Variables), None)


def _rounding(operation: Operation) -> tuple[Element | None, ...] | None:
    """What each output is to be rounded to, if NumPy lacks any of their types."""
    elements = tuple(
        None if value.fact.element is None or value.fact.element.native else value.fact.element
        for value in operation.outputs
    )
    return elements if any(elements) and operation.definition is not None and not operation.definition.view else None


def _check_of(operation: Operation) -> Callable[..., Any] | None:
    """What checks the inputs of a run, where they or the shapes of the outputs were not known before."""
    definition, facts = operation.definition, [value.fact for value in operation.inputs]
    if definition is None:
        return None
    static = all(fact.is_static and fact.element is not None for fact in facts)
    # Where the shape of a result is not known, any input may be what it follows from. Otherwise the first one is data.
    static = static and all(value.fact.is_static for value in operation.outputs)
    if static and all(fact.known is not None for fact in facts[1:] if _is_shape_like(fact)):
        return None
    if bool(operation.bodies) or _state(definition) is not None:
        return functools.partial(_check_declared, definition)
    return functools.partial(_check, definition, operation.attributes, [value.fact for value in operation.outputs])


def _check(
    definition: OpDef, attributes: dict[str, Any], planned: Sequence[Fact], *inputs: Fact
) -> tuple[Fact, ...] | None:
    """The facts of the outputs that are to be allocated; None where they may be views of the inputs, or are not known.

    Raises:
        OpError: the inputs of a run, which were not known before, are not what the operation takes or was planned for.
    """
    facts = as_tuple(definition.infer(inputs, attributes))
    if any(isinstance(fact, EveryOutput) for fact in facts):
        return None
    for fact, before in zip(facts, planned, strict=False):
        check_as_inferred(fact, before)
    may_be_views = (
        definition.view
        and without_elements(facts) is None
        and sum(fact.known_nbytes for fact in facts) <= sum(fact.known_nbytes for fact in inputs)
    )
    return None if may_be_views else facts


def _check_declared(definition: OpDef, *inputs: Fact) -> None:
    """Raise OpError unless the inputs of a run have the declared types and ranks: all that can be checked without inferring bodies."""
    check_inputs(definition.inputs, inputs)


def _is_shape_like(fact: Fact) -> bool:
    return fact.element is not None and fact.element.is_integer
