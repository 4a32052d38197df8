"""Observation of a run: its steps, reported while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.compile.steps import Step
from irexec.records import Shown
from irexec.runtime.array_text import type_and_shape
from irexec.runtime.execute import Observer


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


def _read_only(array: np.ndarray | None) -> np.ndarray | None:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
