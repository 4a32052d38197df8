"""Models that are ready to run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.model import Model, Port, brief, find_port
from irexec.analysis.shape_inference import Inference
from irexec.backend.kernel import NanHasNoLevelError
from irexec.backend.threads import one_blas_thread
from irexec.errors import InputError
from irexec.ir import graph as ir
from irexec.ir.graph import Value
from irexec.runtime.execute import Observer, RunLimits, run
from irexec.runtime.inputs import Inputs, Outputs, bind_inputs, bind_shapes
from irexec.runtime.program import Program, WeightsMode
from irexec.runtime.session import RunProgress, Session

if TYPE_CHECKING:
    from irexec.compile.plan_report import PlanReport
    from irexec.runtime.profile import Profile


class CompiledModel(Session):
    """A model that is ready to run; call it with inputs.

    It keeps the state of its variables between calls; ``session()`` makes an independent state.

    Args:
        model: the model. It is copied: changing it afterwards changes nothing here.
        threads: number of threads of a step; by default IREXEC_NUM_THREADS, or as many as the process has cores to
            run on.
        optimize: rewrite the graph and use fast kernels; without, only reference kernels run. The names of passes run
            these alone.
        weights: form in which compressed weights are held; see compile_model.
        precision: "as-written", "f32" or "bf16"; see compile_model.
        tolerant: a layer that cannot be run is an error only once a tensor is asked for that depends on it.
        max_memory: bytes that the process may hold; see compile_model.
        native: whether to use the C kernels, where they were built; without, NumPy computes everything.
        dynamic_quantization: size of the groups in which rows of products with compressed weights are quantised in each
            run; see compile_model.

    Attributes:
        model: the copy that runs. Where f16 is computed in f32, Converts and element types of its layers say so.
        inputs, outputs: its Parameters and Results, in order.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be run.
        InputError: an argument is wrong.
    """

    def __init__(
        self,
        model: ir.ModelGraph,
        *,
        threads: int | None = None,
        optimize: bool | Collection[str] = True,
        weights: WeightsMode = "auto",
        precision: Precision = DEFAULT_PRECISION,
        tolerant: bool = False,
        max_memory: int | None = None,
        native: bool = True,
        dynamic_quantization: int | None = None,
    ) -> None:
        program = Program(
            model,
            threads=threads,
            optimize=optimize,
            weights=weights,
            precision=precision,
            tolerant=tolerant,
            max_memory=max_memory,
            native=native,
            dynamic_quantization=dynamic_quantization,
        )
        super().__init__(program)
        self.model: Model = program.model
        self.inputs: list[Port] = program.inputs
        self.outputs: list[Port] = program.outputs

    @property
    def threads(self) -> int:
        """Number of threads that work on a step."""
        return self.program.threads

    def __repr__(self) -> str:
        return f"<CompiledModel {self.model.name!r}: {brief(self.inputs)} -> {brief(self.outputs)}>"

    def input(self, key: str | int = 0) -> Port:
        """The input of a name or position; raises InputError if there is none."""
        return find_port(self.inputs, key)

    def output(self, key: str | int = 0) -> Port:
        """The output of a name or position; raises InputError if there is none."""
        return self.program.output(key)

    @property
    def plan(self) -> PlanReport:
        """The steps that run, printable; with dynamic inputs, the plan for inputs of any shape. See plan_for."""
        return self.program.report(())

    def plan_for(self, shapes: Mapping[Any, Sequence[int]] | Sequence[int]) -> PlanReport:
        """The steps that run for inputs of these shapes.

        Args:
            shapes: by name or position of the input, or one shape for a model of one input. Inputs of static shape may
                be left out.

        Raises:
            InputError: a shape does not fit its input, or one is missing.
            NodeError: the graph cannot take the shapes.
        """
        return self.program.report(bind_shapes(self.inputs, shapes))

    def profile(
        self,
        inputs: Inputs = None,
        runs: int = 20,
        *,
        allow_cast: bool = False,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> Profile:
        """Run several times and measure every step; the state of variables stays as before the first call.

        Args:
            inputs: as for a call.
            runs: number of runs measured as a whole, and of further ones whose steps are, both after two that are not.
            allow_cast: as for a call.
            timeout: seconds that all runs together may take; None for any.
            progress: called after each run with its part of all of them.

        Raises:
            InputError: ``runs`` is not a whole number of at least 1, or the inputs are wrong.
            NodeError: a kernel refuses its inputs.
            RunTimeoutError: the runs take longer than ``timeout``.
        """
        # A run does not need them, and would begin later.
        from irexec.analysis.cost import LayerCosts
        from irexec.runtime.profile import describe_profile, followed, measure

        if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
            raise InputError(f"runs is {runs!r}, expected a whole number of at least 1")
        arrays = bind_inputs(self.inputs, inputs, allow_cast=allow_cast)
        shapes = tuple(array.shape for array in arrays)
        session, limits = self.session(), RunLimits(self.program.memory, timeout)

        def run_once(observer: Observer | None, integers: bool) -> None:
            session.reset()
            # A run that is not observed takes as long as a call, with all that a call does.
            bound = arrays if observer is not None else bind_inputs(self.inputs, inputs, allow_cast=allow_cast)
            plan = self.program.plan(shapes, None, integers)
            with one_blas_thread() if plan.calls_numpy else nullcontext():
                results = run(plan, bound, session.variables.arrays, self.program.arenas, observer, limits)
            Outputs(self.program.outputs, results)

        for integers in (True, False):
            # The second plan, if a NaN has no level.
            planned, once = self.program.plan(shapes, None, integers), partial(run_once, integers=integers)
            with suppress(NanHasNoLevelError):
                times = measure(once if progress is None else followed(once, runs, progress), len(planned.steps), runs)
                costs = LayerCosts(self.model, self.program.infer(shapes).facts)
                return describe_profile(planned, times, costs, self.program.kernels)
        raise AssertionError("a plan without integers has no levels")

    @property
    def inference(self) -> Inference:
        """The facts of every value before a run."""
        return self.program.inference

    def require(self, values: Sequence[Value]) -> None:
        """Raise the error of a layer that cannot be run, if one of the values depends on it."""
        blocked = self.program.inference.blocked(self.model)
        for value in values:
            if value.node in blocked:
                raise blocked[value.node]

    def create_infer_request(self) -> Session:
        """A session, under the name of OpenVINO's Python."""
        return self.session()

    def session(self) -> Session:
        """A new, independent state of the model's variables."""
        return Session(self.program)
