"""Progress of a run, by the estimated times of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irexec.compile.steps import Plan, Step
from irexec.runtime.execute import Observer

RunProgress = Callable[[float], object]
"""Called after each step with the estimated completed fraction of the run, from 0 to 1."""

# Nanoseconds: the minimum time of a step, and a byte of a result that a reference kernel computes.
_STEP, _BYTE = 1e4, 1.0


def progress_observer(plan: Plan, progress: RunProgress) -> Observer:
    """An observer that reports the progress of one run."""
    estimates = list(map(_estimate, plan.steps))
    parts = iter([estimate / sum(estimates) for estimate in estimates])

    def observe(step: Step, outputs: Sequence[Any], seconds: float) -> None:
        progress(next(parts))

    return observe


def _estimate(step: Step) -> float:
    if step.kernel is not None:
        return max(_STEP, step.kernel.cost)
    return _STEP + _BYTE * sum(fact.known_nbytes for fact in step.report.facts)
