"""Segments: consecutive steps of native kernels that run as one job, without Python in between.

Only steps whose arrays are the same in every run belong to one, since their calls are bound once for an arena. A run
that is observed takes the steps one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irexec.backend.calls import Job, NativeKernel
from irexec.backend.kernel import KernelContext
from irexec.backend.trials import ThreadTrials
from irexec.compile.steps import Step
from irexec.errors import RunTimeoutError


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
        bindings = []
        for step, context in zip(steps, contexts, strict=True):
            assert isinstance(step.kernel, NativeKernel)
            inputs, outputs = [slots[slot] for slot in step.inputs], [slots[slot] for slot in step.outputs]
            bindings.append(step.kernel.bound(inputs, outputs, context))
        self.late = [
            (step, complete) for step, binding in zip(steps, bindings, strict=True) for complete in binding.late
        ]
        self.repeatable = [binding.repeatable for binding in bindings]
        self._guarded = [binding for binding in bindings if binding.guards]
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
        for binding in self._guarded:
            binding.check()


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
