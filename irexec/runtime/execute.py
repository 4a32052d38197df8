"""Running a plan, within limits of memory and time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from irexec.analysis.evaluate import rounded, without_elements
from irexec.backend.kernel import KernelContext, NanHasNoLevelError
from irexec.backend.threads import set_for_run
from irexec.compile.errors import node_error, too_large
from irexec.compile.memory_limit import MemoryLimit, results_text
from irexec.compile.steps import BodyPlan, Plan, ReferenceCall, Step
from irexec.errors import InputError, NodeError, OpError, RunTimeoutError
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node
from irexec.reference.limits import SMALL, limited
from irexec.runtime.arenas import Arenas, PlacedPlan, Segment
from irexec.runtime.variables import KeptInputs, State, VariableTransaction
from irexec.schema.attributes import Runner, T

Observer = Callable[[Step, Sequence[Any], float], None]
"""Called after each step with the step, its outputs and its seconds. The arrays are valid until it returns."""


class RunLimits:
    """The limits of one run, the iterations of its loops included; it starts when this is made.

    Args:
        memory: the compiled model's.
        timeout: seconds; None for any.

    Raises:
        InputError: ``timeout`` is not a positive number.
    """

    def __init__(self, memory: MemoryLimit, timeout: float | None = None) -> None:
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0
        ):
            raise InputError(f"timeout is {timeout!r}, expected a number of seconds above 0")
        self._memory, self._timeout = memory, timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        # A given limit is looked at in the first step too: the process may hold more already.
        self._taken = 0 if memory.maximum is None else SMALL

    def take(self, size: int, facts: Sequence[Fact]) -> None:
        """Raise OpError if there is not enough memory for ``size`` bytes, the outputs ``facts`` of a step.

        What is left of the memory is looked at for large tensors, and once for many small ones: a loop may collect
        them.
        """
        self._taken += size
        if self._taken >= SMALL:
            self._taken = 0
            self._memory.check_memory(size, results_text(facts))

    def check_memory(self, size: int, what: str) -> None:
        """Raise OpError unless ``size`` bytes may be allocated; ``what`` says what takes them."""
        self._memory.check_memory(size, what)

    def check_time(self, layer: str = "") -> None:
        """Raise RunTimeoutError with the next layer, if the run has taken too long.

        By default the layer is the one of the running step, which adds its name.
        """
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise RunTimeoutError.at(layer, self._timeout or 0)


class Watcher(Protocol):
    """Called after every step of an observed plan, steps of bodies included; an exception ends the run."""

    def step(self, step: Step, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """A step has run. The arrays are valid until this returns; None for an input that the kernel does not read."""

    def enter(self, node: Node, body: str, iteration: int) -> None:
        """A body of a layer begins to run; iterations count from 0."""

    def leave(self) -> None:
        """The body that was entered last has run."""


@dataclass(frozen=True, eq=False)
class _Run:
    """A run: the state of variables, its memory and limits, and the observers of its steps."""

    state: State
    arenas: Arenas
    limits: RunLimits
    observer: Observer | None = None
    watcher: Watcher | None = None


def run(
    plan: Plan,
    inputs: Sequence[np.ndarray],
    state: State,
    arenas: Arenas,
    observer: Observer | None = None,
    limits: RunLimits | None = None,
    watcher: Watcher | None = None,
) -> list[np.ndarray]:
    """The plan's targets for one array per Parameter.

    A target that may share memory with the caller's arrays, the plan or the state is copied.

    Args:
        limits: of memory and time; without, the memory that there is.
        watcher: called after every step of an observed plan.

    Raises:
        NodeError: a kernel refuses its inputs, or there is not enough memory.
        RunTimeoutError: it takes too long.
    """
    this = _Run(state, arenas, limits or RunLimits(arenas.memory), observer, watcher)
    with set_for_run() if plan.calls_numpy else contextlib.nullcontext(), limited(this.limits):
        return _targets(plan, inputs, this)


def _targets(plan: Plan, inputs: Sequence[np.ndarray], run: _Run) -> list[np.ndarray]:
    """The plan's targets; those of a body may share memory with the inputs, the plan or the state."""
    arena = run.arenas.take(plan)
    try:
        frame = arena.frame(plan)
        slots = frame.slots.copy()
        for slot, array in zip(plan.parameters, inputs, strict=True):
            if slot >= 0 and slots[slot] is not None:
                np.copyto(slots[slot], array)
            elif slot >= 0:
                slots[slot] = array
        for alias in plan.input_aliases:
            slots[alias.slot] = alias.view(slots[alias.source])
        variables = VariableTransaction(run.state)
        runner = _Runner(slots, variables, run)
        if run.watcher is None and run.observer is None:
            runner.run_all(plan.steps, frame)
        else:
            runner.run_observed(plan.steps, frame)
        # The last step may have taken too long, too.
        run.limits.check_time(plan.steps[-1].node.name if plan.steps else "")
        if variables.written:
            run.state.update(variables.written)
        arrays = [slots[slot] for slot in plan.targets]
        # Before the arena is given back, since targets may lie in it.
        return [array.copy() if copied else array for array, copied in zip(arrays, plan.copied, strict=True)]
    finally:
        run.arenas.give_back(arena)


class _Runner:
    """Runs steps on the slots of one run."""

    def __init__(self, slots: list[Any], state: VariableTransaction, of: _Run) -> None:
        self.slots, self.state, self.of, self.limits = slots, state, of, of.limits

    def run_all(self, steps: Sequence[Step], frame: PlacedPlan) -> None:
        """Run all steps, those of a segment as one."""
        position = 0
        while position < len(steps):
            segment = frame.segments.get(position)
            if segment is None:
                self.run(steps[position], frame.contexts[position])
                position += 1
                continue
            self.limits.check_time(steps[position].node.name)
            self._complete(segment)
            segment.run()
            self._free(segment.frees)
            position += len(segment.steps)

    def _complete(self, segment: Segment) -> None:
        """Complete the parameters of the steps of a segment whose arrays are not the same in every run."""
        for step, complete in segment.late:
            arrays = [self.slots[i] for i in step.inputs]
            try:
                complete([*arrays, self.state])
            except Exception as error:
                _raise_located(step, arrays, error)

    def run_observed(self, steps: Sequence[Step], frame: PlacedPlan) -> None:
        """Run the steps one by one, and tell the observer and the watcher of each."""
        observer, watcher, slots = self.of.observer, self.of.watcher, self.slots
        for step, context in zip(steps, frame.contexts, strict=True):
            arrays = [slots[slot] for slot in step.inputs]
            start = time.perf_counter()
            self.run(step, context)
            seconds = time.perf_counter() - start
            outputs = [slots[slot] if slot >= 0 else None for slot in step.outputs]
            if watcher is not None:
                watcher.step(step, arrays, outputs)
            if observer is not None:
                observer(step, outputs, seconds)

    def run(self, step: Step, context: KernelContext) -> None:
        slots = self.slots
        arrays = [slots[i] for i in step.inputs]
        self.limits.check_time(step.node.name)
        try:
            if step.size:
                self.limits.take(step.size, step.report.facts)
            if step.kernel is not None:
                for place in step.fresh:
                    slots[place.slot] = place.allocated()
                inputs = [*arrays, self.state] if step.kernel.reads_state else arrays
                context.run(step.kernel, inputs, [slots[i] for i in step.outputs])
            elif step.call is not None:
                self._call(step, step.call, arrays)
        except Exception as error:
            _raise_located(step, arrays, error)
        for alias in step.aliases:
            slots[alias.slot] = alias.view(slots[alias.source])
        self._free(step.frees)

    def _free(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self.slots[slot] = None

    def _call(self, step: Step, call: ReferenceCall, arrays: list[Any]) -> None:
        result: Any = None
        if call.check is not None:
            outputs = call.check(arrays)
            if outputs is not None:
                if not step.size:
                    self.limits.take(outputs.size, outputs.facts)
                result = without_elements(outputs.facts) if outputs.is_empty else None
        if result is None:
            result = call.function(*arrays, **self._injected(step, call))
        results = result if isinstance(result, tuple | list) else (result,)
        for i, slot in enumerate(step.outputs):
            if slot >= 0:
                is_whole = call.elements is None and isinstance(results[i], np.ndarray)
                array = (
                    results[i] if is_whole else rounded(results[i], None if call.elements is None else call.elements[i])
                )
                if self.slots[slot] is not None:
                    np.copyto(self.slots[slot], array)
                else:
                    self.slots[slot] = array if call.views else _own(array, arrays)

    def _injected(self, step: Step, call: ReferenceCall) -> dict[str, Any]:
        if not call.bodies and call.state is None:
            return {}
        injected: dict[str, Any] = {
            name: PlanRunner(body, step.report.facts, self.of, name) for name, body in call.bodies.items()
        }
        if call.state is not None:
            injected[call.state] = self.state if call.caches is None else KeptInputs(self.state, call.caches)
        return injected


def _own(array: np.ndarray, inputs: Sequence[Any]) -> np.ndarray:
    """An output with memory of its own: a kernel may return a view where only some of its cases copy."""
    is_view = array.base is not None and any(
        isinstance(x, np.ndarray) and np.may_share_memory(array, x) for x in inputs
    )
    return array.copy() if is_view else array


def _raise_located(step: Step, arrays: Sequence[Any], error: Exception) -> NoReturn:
    """Raise the error of a step with the layer in which it was raised."""
    if isinstance(error, NanHasNoLevelError):
        raise error
    if isinstance(error, RunTimeoutError):
        raise RunTimeoutError.at("/".join(filter(None, (step.node.name, error.node))), error.seconds) from error
    if isinstance(error, NodeError):
        if not step.bodies:
            raise error
        raise NodeError(
            f"in layer {step.node.name!r}: {error}", node=f"{step.node.name}/{error.node}", reason=error.reason
        ) from error
    if isinstance(error, OpError):
        raise node_error(step.node, arrays, error) from error
    if isinstance(error, MemoryError | OverflowError):
        raise node_error(step.node, arrays, too_large(error)) from error
    if not hasattr(error, "__notes__"):
        # An error in irexec itself: it keeps its type, and a note says in which layer it was raised.
        error.add_note(f"in layer {step.node.id} {step.node.name!r} ({step.node.type} of {step.node.version})")
    raise error


class PlanRunner(Runner):
    """A body as a kernel calls it: arrays of its Parameters in, arrays of its Results out.

    Results that lie in the arena are copied. Others are not: outputs of a node with bodies count as shared memory, and
    are copied when the run is over.
    """

    def __init__(self, planned: BodyPlan, outputs: Sequence[Fact], of: _Run, name: str) -> None:
        self.node, self.body, self.outputs = planned.node, planned.body, outputs
        self._planned, self._name, self._iteration = planned, name, 0
        self._run = of if of.observer is None else replace(of, observer=None)

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        # A body may have no step, and a loop of it no end.
        self._run.limits.check_time()
        watcher = self._run.watcher
        if watcher is None:
            return _targets(self._planned.plan, inputs, self._run)
        watcher.enter(self.node, self._name, self._iteration)
        self._iteration += 1
        results = _targets(self._planned.plan, inputs, self._run)
        watcher.leave()
        return results

    def connected(self, read: Callable[[Node, Body], T]) -> T:
        """See Runner.connected."""
        kept = self._planned.connections
        if read not in kept:
            kept[read] = read(self.node, self.body)
        found: T = kept[read]
        return found
