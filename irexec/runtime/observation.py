"""Observation of a run: its steps and its progress, reported while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.compile.steps import Plan, Step
from irexec.records import Shown
from irexec.runtime.execute import Observer
from irexec.runtime.inputs import type_and_shape


@dataclass(frozen=True, repr=False)
class StepRun(Shown):
    """A step that has just run.

    Attributes:
        layers: the names of the layers that it computes; several where they were fused.
        operation: its type, with those of the element-wise operations that were fused with it: "Convolution+Add+Relu".
        algorithm: of the kernel.
        outputs: the arrays that it gives, None for one that nobody reads. They are read-only and valid until the
            callback returns: their memory is used again.
        seconds: the time that it took.
    """

    layers: tuple[str, ...]
    operation: str
    algorithm: str
    outputs: tuple[np.ndarray | None, ...]
    seconds: float

    def __repr__(self) -> str:
        results = ", ".join(map(type_and_shape, self.outputs))
        return f"<StepRun {self.operation} {', '.join(map(repr, self.layers))}: {results}, {self.seconds * 1e3:.3g} ms>"


OnLayer = Callable[[StepRun], object]
"""The type of ``on_layer`` in ``run(..., on_layer=...)``."""


def observer_of(on_layer: OnLayer) -> Observer:
    """The observer of a run that calls ``on_layer``."""

    def observe(step: Step, outputs: Sequence[Any], seconds: float) -> None:
        names = tuple(node.name for node in step.report.origins)
        on_layer(StepRun(names, step.report.operation, step.report.algorithm, tuple(map(_read_only, outputs)), seconds))

    return observe


# Nanoseconds: the minimum time of a step, and a byte of a result that a reference kernel computes.
_STEP, _BYTE = 1e4, 1.0

RunProgress = Callable[[float], object]
"""Called after each step with the estimated completed fraction of the run, from 0 to 1."""


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


def _read_only(array: np.ndarray | None) -> np.ndarray | None:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
