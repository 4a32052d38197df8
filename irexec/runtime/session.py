"""Sessions: runs of a compiled model that share the state of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress

import numpy as np

from irexec.analysis.model import Port
from irexec.backend.kernel import NanHasNoLevelError
from irexec.backend.threads import one_blas_thread
from irexec.ir.graph import Value
from irexec.records import Shown
from irexec.runtime.execute import Observer, RunLimits, run
from irexec.runtime.inputs import Inputs, Outputs, bind_inputs
from irexec.runtime.observation import OnLayer, RunProgress, observer_of, progress_observer
from irexec.runtime.program import Program, Targets
from irexec.runtime.variables import VariableStates


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
            InputError: there is no such tensor; the message offers similar names.
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
