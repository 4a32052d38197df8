"""Arenas: the memory of runs, and the segments of a plan.

Only steps whose arrays are the same in every run belong to one, since their calls are bound once for an arena. A run
that is observed takes the steps one by one.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, Job, NativeKernel
from irexec.backend.kernel import KernelContext
from irexec.backend.pool import Pool
from irexec.backend.scratch import ALIGNMENT
from irexec.backend.threads import ThreadTrials
from irexec.compile.errors import too_large
from irexec.compile.memory_limit import MemoryLimit, arena_error, check_arena
from irexec.compile.steps import Plan, Step
from irexec.errors import RunTimeoutError
from irexec.ir.process import new_lock


class Segment:
    """Steps that run as one job.

    Attributes:
        steps: in order.
        frees: the slots that hold nothing after the steps.
        late: functions that complete the parameters of a step for a run, each with its step; see Binding.late.
    """

    def __init__(self, steps: Sequence[Step], contexts: Sequence[KernelContext], slots: Sequence[Any]) -> None:
        self.steps = steps
        self.frees = [slot for step in steps for slot in step.frees]
        self._pool = contexts[0].pool
        self._trials = ThreadTrials()
        bindings: list[Binding] = []
        unknown = np.zeros(1, np.int32)
        for step, context in zip(steps, contexts, strict=True):
            assert isinstance(step.kernel, NativeKernel)
            inputs, outputs = [slots[slot] for slot in step.inputs], [slots[slot] for slot in step.outputs]
            bindings.append(step.kernel.bound(inputs, outputs, context, unknown))
        self.late = [
            (step, complete) for step, binding in zip(steps, bindings, strict=True) for complete in binding.late
        ]
        self.repeatable = [binding.repeatable for binding in bindings]
        self._check = bindings[0].check
        self._job = Job(bindings)

    def run(self) -> None:
        """Run all steps.

        Raises:
            NanHasNoLevelError: see Binding.check.
            RunTimeoutError: the run takes too long; it names the layer.
        """
        try:
            if self._pool.threads == 1:
                self._job.run(self._pool, alone=True)
            else:
                self._trials.run(lambda: self._job.run(self._pool, alone=self._trials.alone))
        except RunTimeoutError as error:
            raise RunTimeoutError.at(self.steps[self._job.reached].node.name, error.seconds) from error
        self._check()


def segments_of(steps: Sequence[Step], contexts: Sequence[KernelContext], slots: Sequence[Any]) -> dict[int, Segment]:
    """The segments of a plan, by their first step."""
    found: dict[int, Segment] = {}
    first = 0
    while first < len(steps):
        last = first
        while last < len(steps) and _is_native(steps[last], contexts[last]):
            last += 1
        while last > first:
            segment = Segment(steps[first:last], contexts[first:last], slots)
            if all(segment.repeatable):
                found[first] = segment
                break
            last = first + segment.repeatable.index(False)
        first = max(last, first + 1)
    return found


def _is_native(step: Step, context: KernelContext) -> bool:
    return isinstance(step.kernel, NativeKernel) and context.fixed and not step.fresh and not step.aliases


KEPT = 2
"""Arenas that are kept for the next runs, for each arena of a run."""


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """A plan set up on an arena.

    Attributes:
        slots: the slots before a run: constants, and arrays on the arena. One more than the plan has: the last one is
            None.
        contexts: for each step what its kernel works with.
        segments: by their first step.
    """

    slots: list[Any]
    contexts: list[KernelContext]
    segments: dict[int, Segment]


@dataclass(eq=False)
class Arena:
    """Bytes, and the plans that are set up on them."""

    buffer: np.ndarray
    frames: weakref.WeakKeyDictionary[Plan, PlacedPlan] = field(default_factory=weakref.WeakKeyDictionary)

    def frame(self, plan: Plan) -> PlacedPlan:
        """The plan set up on this arena."""
        found = self.frames.get(plan)
        if found is None:
            found = self.frames[plan] = _set_up(plan, self.buffer)
        return found


class Arenas:
    """The arenas of a compiled model. Each grows to the largest plan that it was used for; a few are kept.

    Args:
        memory: the limit of allocated memory.
        depth: arenas that a run takes at once: one for the model, and one for each body inside another.
    """

    def __init__(self, memory: MemoryLimit | None = None, depth: int = 1) -> None:
        self.memory, self._kept = memory or MemoryLimit(), KEPT * depth
        self._free: list[Arena] = []
        self._lock = new_lock()

    def take(self, plan: Plan) -> Arena:
        """An arena that is large enough for the plan, for the caller alone.

        Raises:
            NodeError: there is not enough memory for it.
        """
        with self._lock:
            fitting = [arena for arena in self._free if arena.buffer.size >= plan.arena]
            if fitting:
                arena = next((a for a in fitting if plan in a.frames), fitting[-1])
                self._free.remove(arena)
                return arena
            if self._free:
                self._free.pop()
        check_arena(plan, self.memory)
        try:
            return Arena(_aligned(plan.arena))
        except MemoryError as error:
            raise arena_error(plan, too_large(error)) from error

    def give_back(self, arena: Arena) -> None:
        """The run is over."""
        with self._lock:
            if len(self._free) < self._kept:
                self._free.append(arena)

    @property
    def size(self) -> int:
        """Bytes of the arenas that no run uses now."""
        with self._lock:
            return sum(arena.buffer.size for arena in self._free)


def _aligned(size: int) -> np.ndarray:
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


def _set_up(plan: Plan, buffer: np.ndarray) -> PlacedPlan:
    slots: list[Any] = [None] * (plan.slots + 1)
    for slot, array in plan.constants:
        slots[slot] = array
    for place in plan.arrays:
        slots[place.slot] = place.view(buffer)
    for alias in plan.aliases:
        slots[alias.slot] = alias.view(slots[alias.source])
    pool = Pool(plan.threads)
    contexts = [_context(step, slots, pool, buffer) for step in plan.steps]
    return PlacedPlan(slots, contexts, segments_of(plan.steps, contexts, slots))


def _context(step: Step, slots: list[Any], pool: Pool, buffer: np.ndarray) -> KernelContext:
    shared, scratches = step.workspace.cut(buffer[step.offset :], pool.threads)
    late = () if step.kernel is None else step.kernel.late
    arrays = [slot for i, slot in enumerate(step.inputs) if i not in late]
    fixed = all(slot < 0 or slots[slot] is not None for slot in (*arrays, *step.outputs))
    return KernelContext(pool, scratches, shared, fixed)
