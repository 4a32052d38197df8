"""Sessions: runs that keep the state of variables; and the observation of a run while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.backend.kernel import NanHasNoLevelError
from irexec.backend.threads import one_blas_thread
from irexec.compile.steps import Plan, Step
from irexec.ir.graph import Value
from irexec.records import Shown
from irexec.runtime.execute import Observer, RunLimits, run
from irexec.runtime.inputs import Inputs, Outputs, bind_inputs, type_and_shape
from irexec.runtime.program import Program, Targets
from irexec.runtime.variables import VariableStates


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


class Session(Shown):
    """One state of a compiled model's variables.

    Attributes:
        program: the compiled program; sessions of one model share it.
        variables: by variable_id; empty until something was assigned. Setting one sets the state.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.variables = VariableStates(program.variables)

    def __repr__(self) -> str:
        return f"<Session of {self.program.model.name!r}: variables {', '.join(map(repr, self.variables)) or 'none'}>"

    def reset(self) -> None:
        """Back to the state before the first run."""
        self.variables.clear()

    def __call__(self, inputs: Inputs = None, *, allow_cast: bool = False) -> Outputs:
        """Run on the inputs: a mapping by name or position, a sequence, or one array.

        Arrays of another element type are taken where every value stays the same, and with ``allow_cast`` also where
        conversion changes values, as the operation Convert does.
        """
        return Outputs(self.program.outputs, self._run(inputs, None, allow_cast))

    def infer(self, inputs: Inputs = None) -> Outputs:
        """The same as a call of the session, under the name of OpenVINO's infer requests."""
        return self(inputs)

    def run(
        self,
        inputs: Inputs = None,
        outputs: Sequence[str | int] | str | int | None = None,
        *,
        allow_cast: bool = False,
        on_layer: OnLayer | None = None,
        timeout: float | None = None,
    ) -> Outputs:
        """Run, and return the tensors that are asked for.

        Args:
            inputs: as for a call.
            outputs: one key or several. A text is the name of any tensor in the graph: its tensor name, the name or id
                of the layer that produces it, or ``layer:port``; an int is the position of a Result. None means all
                Results.
            allow_cast: as for a call.
            on_layer: called after each step with its layers, outputs and time, as a StepRun. Layers that were fused are
                one step; with ``optimize=False`` each is a step of its own. What it raises ends the run.
            timeout: seconds that the run may take; None for any. The time is looked at between steps, between the
                iterations of loops and between the blocks of a long step; one call of NumPy is completed first. The
                state of variables is then that before the run.

        Returns:
            The tensors in the order asked for, by these keys as text; all Results where ``outputs`` is None.

        Raises:
            InputError: the tensor does not exist; the message offers similar names.
            NodeError: a kernel refuses its inputs, or there is not enough memory.
            RunTimeoutError: the run takes longer than ``timeout``.
        """
        observer = None if on_layer is None else observer_of(on_layer)
        if outputs is None:
            return Outputs(self.program.outputs, self._run(inputs, None, allow_cast, observer, timeout))
        if isinstance(outputs, str | int):
            outputs = [outputs]
        asked = {str(key): self.program.own(self.program.find(key)) for key in outputs}
        arrays = self._run(inputs, tuple(asked.values()), allow_cast, observer, timeout)
        facts = [self.program.inference[value] for value in asked.values()]
        ports = [
            Port(key, (key,), fact.element, fact.shape, value.node)
            for (key, value), fact in zip(asked.items(), facts, strict=True)
        ]
        return Outputs(ports, arrays)

    def values(
        self,
        inputs: Inputs,
        values: Sequence[Value],
        *,
        allow_cast: bool = False,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> list[np.ndarray]:
        """Run, and return the arrays of any values of the graph, be it the model's or the compiled copy's.

        Args:
            inputs, allow_cast, timeout: as for ``run``.
            values: of the graph itself.
            progress: called after each step with the part of the run, of 1, that it is estimated to take.

        Raises:
            InputError: a value is not of this graph, such as one inside a body, of which every iteration has another.
            NodeError, RunTimeoutError: as for ``run``.
        """
        return self._run(inputs, tuple(map(self.program.own, values)), allow_cast, timeout=timeout, progress=progress)

    def _run(
        self,
        inputs: Inputs,
        targets: Targets,
        allow_cast: bool,
        observer: Observer | None = None,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> list[np.ndarray]:
        program = self.program
        limits = RunLimits(program.memory, timeout)
        arrays = bind_inputs(program.inputs, inputs, allow_cast=allow_cast)
        for integers in (True, False):
            planned = program.plan(tuple(array.shape for array in arrays), targets, integers)
            watch = observer if progress is None else progress_observer(planned, progress)
            with one_blas_thread() if planned.calls_numpy else nullcontext(), suppress(NanHasNoLevelError):
                return run(planned, arrays, self.variables.arrays, program.arenas, watch, limits)
        raise AssertionError("a plan without integers has no levels")
