"""A stand-in of another runtime, so that a test depends neither on its release nor on the processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from irexec.analysis.model import Model
from irexec.ir.graph import Value
from irexec.tools.compare import options, run
from irexec.tools.engines.runtimes import Arrays, Runtime, open_runtime

Compute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Recorded(Runtime):
    """A runtime that gives what a function computes, by the names of tensors.

    Args:
        name: of the runtime.
        model: the graph; the shapes of its inputs are static.
        compute: the function.
    """

    def __init__(self, name: str, model: Model, compute: Compute) -> None:
        super().__init__(name, model)
        self._compute = compute
        zeros = {port.name: np.zeros(port.shape, port.element.carrier) for port in model.inputs}  # type: ignore[arg-type, union-attr]
        self._names = set(compute(zeros))

    def gives(self, value: Value) -> bool:
        return value.name in self._names

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        return [[arrays[value.name] for value in values] for arrays in map(self._compute, runs)]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, compute: Compute) -> None:
    """Let the function stand for the runtime of that name in comparisons."""

    def opened(asked: str, model: Model, **rest: object) -> Runtime:
        return Recorded(name, model, compute) if asked == name else open_runtime(asked, model, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(options, "open_runtime", opened)
    monkeypatch.setattr(run, "require_runtime", lambda name: None)
