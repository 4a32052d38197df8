"""From a graph to a plan: lowered, optimised, a kernel selected for each operation, memory laid out.

A plan is immutable and knows no state, so that threads can share it. Without ``optimize`` every step is the reference
kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.shape_inference import Inference
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import KernelOptions
from irexec.backend.pool import Pool
from irexec.backend.registry import has_candidates
from irexec.backend.scratch import Workspace
from irexec.backend.threads import set_for_run
from irexec.compile.checking import DeclaredCheck, InferredCheck
from irexec.compile.errors import node_error, too_large
from irexec.compile.graph import CompileGraph, CompileValue, LoweredBody, Operation
from irexec.compile.lower import Sources, lower
from irexec.compile.memory_limit import MemoryLimit, allocated_by, check_arena, refuse_too_large
from irexec.compile.passes import optimize
from irexec.compile.rewriting import FOLDING_BUDGET, DerivedConstants, Report, Rewriting
from irexec.compile.select import is_native, is_selectable, is_static, may_be_f16, reference_call, select_kernel
from irexec.compile.specialise import ByShape
from irexec.compile.steps import Alias, BodyPlan, Check, Plan, ReferenceCall, Step, StepReport
from irexec.compile.storage.layout import STAGED, STAGED_IN_BODY, lay_out, slot_array
from irexec.compile.storage.planned import EXTERNAL, Owner, PlannedOperation, Storage, memory_intervals
from irexec.compile.storage.views import is_view
from irexec.dtypes.elements import Element
from irexec.errors import NodeError, OpError
from irexec.ir import graph as ir
from irexec.ir.facts import Fact
from irexec.ir.order import grouped
from irexec.schema.attributes import Caches, Variables
from irexec.schema.opdef import OpDef, cache_variable

# Bytes that take longer to pack than threads to start.
_LARGE = 1 << 22


@dataclass
class Compilation:
    """Options and constants that all plans of a compiled model share.

    Attributes:
        memory: the limit of what may be allocated.
        store: packed constants.
        sources, derived: constants of the model, and constants that passes derive from them.
        optimize: False for reference kernels alone; True for all passes; or the names of the passes to run.
        options: of the kernels.
        dynamic_quantization: values of a group of the activations that are quantised in each run; 0 for none.
        declared: the declared element types of values that are computed in another type.
        observed: whether every input of a step stays in memory until the step has run: no step writes over an input,
            and every operation has a step.
    """

    memory: MemoryLimit = field(default_factory=MemoryLimit)
    store: ConstantStore = field(default_factory=ConstantStore)
    sources: Sources = field(default_factory=dict)
    derived: DerivedConstants = field(default_factory=DerivedConstants)
    optimize: bool | Collection[str] = True
    options: KernelOptions = field(default_factory=KernelOptions)
    dynamic_quantization: int = 0
    declared: Mapping[ir.Value, Element] = field(default_factory=dict)
    observed: bool = False

    @property
    def folding_budget(self) -> int:
        """Bytes that folding a constant may add to what is stored."""
        return min(FOLDING_BUDGET, self.memory.left(recently=True))


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
        rewriting = Rewriting(
            compilation.derived, compilation.options, compilation.dynamic_quantization, compilation.folding_budget
        )
        passes = compilation.optimize or ()
        if passes or compilation.dynamic_quantization:
            optimize(lowered, rewriting, None if passes is True else passes)
        return plan_graph(lowered, rewriting.report, compilation)


def plan_graph(graph: CompileGraph, report: Report, compilation: Compilation) -> Plan:
    """The plan of a compile graph.

    Raises:
        NodeError: a tensor, or all that are held at once, take more memory than there is.
    """
    refuse_too_large(graph, compilation.memory)
    made = _Planner(graph, report, compilation).plan()
    check_arena(made, compilation.memory)
    return made


@contextmanager
def _at(operation: Operation) -> Iterator[None]:
    """Errors with the layer of an operation."""
    try:
        yield
    except NodeError:
        raise
    except OpError as error:
        raise node_error(operation.node, [], error) from error
    except (MemoryError, OverflowError) as error:
        raise node_error(operation.node, [], too_large(error)) from error


class _Planner:
    def __init__(self, graph: CompileGraph, report: Report, compilation: Compilation) -> None:
        self.graph, self.report, self.compilation = graph, report, compilation
        self.targets = set(graph.targets)
        self.slots: dict[CompileValue, int] = {}

    def plan(self) -> Plan:
        operations = [self._select(operation) for operation in self.graph.order()]
        self._pack([planned for planned in operations if planned.kernel is not None])
        observed = self.compilation.observed
        reuse = self.compilation.optimize is not False and not observed
        threads = self.compilation.options.threads
        stage = STAGED_IN_BODY if self.graph.is_body else STAGED
        storage = lay_out(self.graph, operations, threads, reuse, overwrite=not observed, stage=stage if reuse else 0)
        running = [planned for planned in operations if not storage.is_view(planned)]
        frees = self._frees(running, storage)
        run_views = self._run_views(running, storage)
        steps = tuple(self._step(planned, storage, frees.get(planned, []), run_views) for planned in running)
        targets = tuple(self._slot(value) for value in self.graph.targets)
        for value in self.graph.inputs:
            if value in storage.buffers:
                # Even if no step reads it: it may be a part of a Concat in its position.
                self._slot(value)
        aliases = self._aliases(storage)
        sources = tuple(value.constant for value in self.graph.constants() if value.constant is not None)
        read = [
            value
            for planned in operations
            for value, wanted in zip(planned.operation.outputs, planned.wanted, strict=True)
            if wanted
        ]
        sized = [value for value in read if value.fact.is_static and value.fact.element is not None]
        store = self.compilation.store
        return Plan(
            steps=steps,
            slots=len(self.slots),
            constants=tuple(
                (slot, store.array(value.constant)) for value, slot in self.slots.items() if value.constant is not None
            ),
            parameters=tuple(self.slots.get(value, -1) for value in self.graph.inputs),
            targets=targets,
            copied=self._copied(storage),
            arrays=tuple(
                slot_array(v, self.slots[v], buffer.offset) for v, buffer in storage.buffers.items() if v in self.slots
            ),
            aliases=aliases,
            input_aliases=tuple(alias for value in self.graph.inputs for alias in run_views.get(value, ())),
            arena=storage.arena,
            threads=self.compilation.options.threads,
            sources=sources,
            passes={name: count for name, count in self.report.applied.items() if count},
            intermediate=sum(value.fact.nbytes for value in sized),
            views=tuple(
                node for planned in operations if storage.is_view(planned) for node in planned.operation.origins
            ),
            refusals=self.report.refusals_of(self.graph),
            intervals=memory_intervals(operations, storage, self.targets),
        )

    def _slot(self, value: CompileValue) -> int:
        return self.slots.setdefault(value, len(self.slots))

    def _select(self, operation: Operation) -> PlannedOperation:
        wanted = tuple(bool(value.uses) or value in self.targets for value in operation.outputs)
        kernel = None
        optimized = self.compilation.optimize is not False and (
            operation.definition is None or operation.empty_outputs is None
        )
        if optimized and is_selectable(operation) and is_native(operation) and not is_view(operation):
            with _at(operation):
                kernel = select_kernel(operation, wanted, self.compilation.options)
        return PlannedOperation(operation, kernel, wanted)

    def _pack(self, operations: Sequence[PlannedOperation]) -> None:
        """Pack the constants of kernels; many bytes on several threads, which share no lock while they copy."""

        def pack(index: int, _worker: int) -> None:
            planned = operations[index]
            assert planned.kernel is not None, "only operations with a kernel are packed"
            with _at(planned.operation):
                planned.kernel.pack(self.compilation.store)

        inputs = {value for planned in operations for value in planned.operation.inputs if value is not None}
        size = sum(value.constant.size for value in inputs if value.constant is not None)
        Pool(self.compilation.options.threads if size > _LARGE else 1).run(len(operations), pack)

    def _aliases(self, storage: Storage) -> tuple[Alias, ...]:
        """The views of buffers that steps read; a view of a view stands after it."""
        for value, (source, _) in reversed(storage.views.items()):
            if value in self.slots:
                self._slot(source)
        return tuple(
            Alias(self.slots[value], self.slots[source], view)
            for value, (source, view) in storage.views.items()
            if value in self.slots
        )

    def _run_views(self, running: Sequence[PlannedOperation], storage: Storage) -> dict[CompileValue, list[Alias]]:
        """By the value viewed, the views that are made in each run because a step reads them or they are targets."""
        read = self.targets.union(*(planned.operation.inputs for planned in running))
        return grouped(
            (viewed, Alias(self._slot(value), self._slot(viewed), view))
            for value, (viewed, view) in storage.run_views.items()
            if value in read
        )

    def _frees(
        self, running: Sequence[PlannedOperation], storage: Storage
    ) -> dict[PlannedOperation, list[CompileValue]]:
        """The values with memory of their own whose last reader is each operation."""
        last: dict[CompileValue, PlannedOperation] = {}
        for planned in running:
            for value in (*planned.operation.outputs, *planned.operation.inputs):
                if (
                    value.constant is None
                    and value not in self.targets
                    and value not in storage.buffers
                    and value not in storage.views
                ):
                    last[value] = planned
        return grouped((planned, value) for value, planned in last.items())

    def _step(
        self,
        planned: PlannedOperation,
        storage: Storage,
        frees: Sequence[CompileValue],
        run_views: dict[CompileValue, list[Alias]],
    ) -> Step:
        operation, kernel = planned.operation, planned.kernel
        read: list[CompileValue | None] = planned.read
        call, algorithm = None, "" if kernel is None else kernel.algorithm
        if kernel is None:
            function, algorithm, read = self._call(operation, planned.wanted, read)
            call = ReferenceCall(
                function,
                elements=_rounding(operation),
                check=_check_of(operation),
                bodies={name: self._body(body) for name, body in operation.bodies.items()},
                state=None if operation.definition is None else _state(operation.definition),
                caches=None if operation.definition is None else _caches(operation.definition, operation.node),
                views=planned.returns_views,
            )
        read = [None if i in storage.in_position.get(planned, ()) else value for i, value in enumerate(read)]
        workspace = storage.workspaces.get(planned)
        outputs = operation.outputs
        fresh = tuple(slot_array(value, self._slot(value), None) for value in outputs if value in storage.fresh)
        return Step(
            node=operation.node,
            kernel=kernel,
            call=call,
            inputs=tuple(-1 if value is None else self._slot(value) for value in read),
            outputs=tuple(self._slot(v) if wanted else -1 for v, wanted in zip(outputs, planned.wanted, strict=True)),
            report=_report(operation, algorithm),
            fresh=fresh,
            aliases=tuple(alias for value in outputs for alias in run_views.get(value, ())),
            frees=tuple(self.slots[value] for value in frees if value in self.slots),
            workspace=Workspace() if workspace is None or kernel is None else kernel.needed,
            offset=0 if workspace is None else workspace.offset,
            size=allocated_by(operation) if kernel is None else sum(array.size for array in fresh),
        )

    def _body(self, body: LoweredBody) -> BodyPlan:
        return BodyPlan(body.node, body.body, plan_graph(body.graph, self.report, self.compilation))

    def _call(
        self, operation: Operation, wanted: Sequence[bool], read: list[CompileValue | None]
    ) -> tuple[Callable[..., Any], str, list[CompileValue | None]]:
        """The function of an operation without a fast kernel, its algorithm, and the inputs that it reads."""
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
        options = self.compilation.options
        is_offered = optimize and has_candidates(definition, native=options.native)
        if is_offered and not is_static(operation) and not _is_of_integers(operation):
            special = ByShape(operation, call, self.compilation.store, options)
            return special, "by shape", [None if value.constant is not None else value for value in operation.inputs]
        return call, "reference", read

    def _copied(self, storage: Storage) -> tuple[bool, ...]:
        """Whether each target may share memory with the arena; outside of bodies, also with an earlier target or with
        memory of others."""
        if self.graph.is_body:
            return tuple(bool(storage.owners[value] & storage.buffers.keys()) for value in self.graph.targets)
        seen: set[Owner] = {EXTERNAL, *storage.buffers}
        copied = []
        for value in self.graph.targets:
            copied.append(bool(storage.owners[value] & seen))
            seen |= storage.owners[value]
        return tuple(copied)


def _report(operation: Operation, algorithm: str) -> StepReport:
    chain = operation.chain
    return StepReport(
        operation.type,
        operation.origins,
        algorithm,
        tuple(Fact(value.fact.element, value.fact.shape) for value in operation.outputs),
        tuple(value.order for value in operation.outputs),
        () if chain is None else tuple(instruction.type for instruction in chain.instructions),
    )


def _given(outputs: tuple[np.ndarray, ...], *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Outputs that do not depend on the inputs."""
    return outputs


def _is_of_integers(operation: Operation) -> bool:
    """True if only integers are computed: mostly sizes and counters, with few elements and changing values."""
    elements = [value.fact.element for value in operation.inputs]
    return all(element is not None and not element.is_float for element in elements)


def _state(definition: OpDef) -> str | None:
    return next((name for name, kind in definition.injected.items() if kind in (Variables, Caches)), None)


def _caches(definition: OpDef, node: ir.Node) -> dict[str, str] | None:
    return {name: cache_variable(value) for name, value in definition.kept_inputs(node).items()} or None


def _rounding(operation: Operation) -> tuple[Element | None, ...] | None:
    """The type to round each output to; None if NumPy has all types."""
    elements = tuple(
        None if value.fact.element is None or value.fact.element.native else value.fact.element
        for value in operation.outputs
    )
    return elements if any(elements) and operation.definition is not None and not operation.definition.view else None


def _check_of(operation: Operation) -> Check | None:
    """The check of the inputs of a run; None if they and the shapes of the outputs were known before."""
    definition, facts = operation.definition, [value.fact for value in operation.inputs]
    if definition is None:
        return None
    static = all(fact.is_static and fact.element is not None for fact in facts)
    # Where the shape of a result is not known, it may depend on any input. Otherwise the first one is data.
    static = static and all(value.fact.is_static for value in operation.outputs)
    if static and all(fact.known is not None for fact in facts[1:] if _is_shape_like(fact)):
        return None
    known = [value.fact if value.constant is not None else value.fact.element for value in operation.inputs]
    if bool(operation.bodies) or _state(definition) is not None:
        return DeclaredCheck(definition, known)
    return InferredCheck(definition, operation.attributes, [value.fact for value in operation.outputs], known)


def _is_shape_like(fact: Fact) -> bool:
    return fact.element is not None and fact.element.is_integer
