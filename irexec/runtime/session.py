"""Compiled models and their sessions."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis import version_10
from irexec.analysis.cost import Costs
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.model import Model, Port, brief, check_model, find_port, input_ports, output_ports, ports_table
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.backend.threads import one_blas_thread, thread_count
from irexec.compile.errors import check_as_inferred, node_error
from irexec.compile.memory_limit import MemoryLimit
from irexec.compile.plan import Compilation, plan
from irexec.compile.plan_report import PlanReport, describe_plan
from irexec.compile.steps import Plan
from irexec.errors import InputError, ModelError, OpError
from irexec.html import definitions, display
from irexec.ir import graph as ir
from irexec.ir.facts import Fact
from irexec.ir.find import find_value
from irexec.ir.graph import Value
from irexec.reference.limits import limited
from irexec.runtime.arenas import Arenas
from irexec.runtime.array_display import arrays_table
from irexec.runtime.execute import Observer, run
from irexec.runtime.inputs import Inputs, bind_inputs, bind_shapes
from irexec.runtime.limits import RunLimits
from irexec.runtime.observation import OnLayer, observer_of
from irexec.runtime.outputs import Outputs
from irexec.runtime.plans import PlanCache
from irexec.runtime.profile import Profile, describe_profile, followed, measure
from irexec.runtime.run_progress import RunProgress, progress_observer
from irexec.runtime.variables import VariableStates, variables_of
from irexec.runtime.weights import WeightsMode, are_unpacked

Targets = tuple[Value, ...] | None
InputShapes = tuple[tuple[int, ...], ...]


class CompiledModel:
    """A model that is ready to run; call it with inputs.

    It keeps the state of its variables between calls; ``session()`` makes an independent state.

    Args:
        model: the model. It is copied: changing it afterwards changes nothing here.
        threads: how many threads work on a step; by default IREXEC_NUM_THREADS, or as many as the process has cores to run on.
        optimize: rewrite the graph and use fast kernels; without, only reference kernels run. The names of passes run these alone.
        weights: whether compressed weights are "packed", "unpacked" or what suits the memory there is; see compile_model.
        tolerant: a layer that cannot be run is an error only once a tensor is asked for that depends on it.
        max_memory: bytes that the process may hold; see compile_model.

    Attributes:
        model: the copy that runs.
        inputs, outputs: its Parameters and Results, in order.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be run.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        threads: int | None = None,
        optimize: bool | Collection[str] = True,
        weights: WeightsMode = "auto",
        tolerant: bool = False,
        max_memory: int | None = None,
    ) -> None:
        check_model(model)
        refuse_execution_graph(model)
        _refuse_damage(model)
        self.model, self._copies = _snapshot(model)
        self.threads, self.optimize, self.tolerant = thread_count(threads), optimize, tolerant
        self._memory = MemoryLimit(max_memory)
        unpack = are_unpacked(weights, self.model, self._memory)
        self._compilation = Compilation(self._memory, optimize=optimize, threads=self.threads, unpack=unpack)
        self._arenas = Arenas(self._memory)
        self._inference = infer_shapes(self.model, tolerant=tolerant)
        self.inputs: list[Port] = input_ports(self.model, self._inference.facts)
        self.outputs: list[Port] = output_ports(self.model, self._inference.facts)
        self._is_static = all(_fact(self._inference, port).is_static for port in self.inputs)
        self._plans = PlanCache()
        self._variables = variables_of(self.model, self._inference)
        self._session = Session(self)
        if self._is_static and not tolerant:
            self._plan((), None)

    def __repr__(self) -> str:
        return f"<CompiledModel {self.model.name!r}: {brief(self.inputs)} -> {brief(self.outputs)}>"

    def _repr_html_(self) -> str:
        general = {"layers": f"{len(self.model.nodes):,}", "threads": str(self.threads), "variables": ", ".join(self._variables)}
        ports = ports_table({"input": self.inputs, "output": self.outputs})
        return display(f"{self.model.name or 'model'}, compiled", definitions(general), ports)

    def __call__(self, inputs: Inputs = None, *, allow_cast: bool = False) -> Outputs:
        """Run on the inputs: a mapping by name or position, a sequence, or one array.

        Arrays of another element type are taken where every value stays the same, and with ``allow_cast`` also where
        conversion changes values, as the operation Convert does.
        """
        return self._session(inputs, allow_cast=allow_cast)

    def run(
        self,
        inputs: Inputs = None,
        outputs: Sequence[str | int] | str | int | None = None,
        *,
        allow_cast: bool = False,
        on_layer: OnLayer | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray] | Outputs:
        """Run, and return the tensors that ``outputs`` names; see Session.run."""
        return self._session.run(inputs, outputs, allow_cast=allow_cast, on_layer=on_layer, timeout=timeout)

    def values(
        self,
        inputs: Inputs,
        values: Sequence[Value],
        *,
        allow_cast: bool = False,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> list[np.ndarray]:
        """Run, and return the arrays of any values of the graph; see Session.values."""
        return self._session.values(inputs, values, allow_cast=allow_cast, timeout=timeout, progress=progress)

    def input(self, key: str | int = 0) -> Port:
        """The input of a name or position; raises InputError if there is none."""
        return find_port(self.inputs, key)

    def output(self, key: str | int = 0) -> Port:
        """The output of a name or position; raises InputError if there is none."""
        return find_port(self.outputs, key, "output")

    @property
    def plan(self) -> PlanReport:
        """What runs, step by step: printable. Of a model with dynamic inputs it is the plan for inputs of any shape; see plan_for."""
        return self._report(())

    def plan_for(self, shapes: Mapping[str | int, Sequence[int]] | Sequence[int]) -> PlanReport:
        """What runs for inputs of these shapes.

        Args:
            shapes: by name or position of the input, or one shape for a model of one input. Inputs of static shape may be left out.

        Raises:
            InputError: a shape does not fit its input, or one is missing.
            NodeError: the graph cannot take the shapes.
        """
        return self._report(bind_shapes(self.inputs, shapes))

    def _report(self, shapes: InputShapes) -> PlanReport:
        key = () if self._is_static else shapes
        made = self._plans.get((key, None), lambda: self._make(key, None))
        return describe_plan(made, self.model, self._compilation.store)

    def profile(
        self,
        inputs: Inputs = None,
        runs: int = 20,
        *,
        allow_cast: bool = False,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> Profile:
        """Run several times and measure every step; the state of variables is that before the first call, and stays as it is.

        Args:
            inputs: as for a call.
            runs: how many runs are measured, after two that are not.
            allow_cast: as for a call.
            timeout: seconds that all runs together may take; None for any.
            progress: called after each run with its part of all of them.

        Raises:
            InputError: ``runs`` is not a whole number of at least 1, or the inputs are wrong.
            NodeError: a kernel refuses its inputs.
            RunTimeoutError: the runs take longer than ``timeout``.
        """
        if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
            raise InputError(f"runs is {runs!r}, expected a whole number of at least 1")
        arrays = bind_inputs(self.inputs, inputs, allow_cast=allow_cast)
        shapes = tuple(array.shape for array in arrays)
        session, planned, limits = self.session(), self._plan(shapes, None), RunLimits(self._memory, timeout)

        def run_once(observer: Observer) -> None:
            session.reset()
            with one_blas_thread():
                run(planned, arrays, session.variables.arrays, self._arenas, observer, limits)

        times = measure(run_once if progress is None else followed(run_once, runs, progress), len(planned.steps), runs)
        return describe_profile(planned, times, Costs(self.model, self._infer(shapes).facts))

    @property
    def inference(self) -> Inference:
        """What is known of every value before a run."""
        return self._inference

    def require(self, values: Sequence[Value]) -> None:
        """Raise the error of a layer that cannot be run, if one of the values depends on it."""
        blocked = self._inference.blocked(self.model)
        for value in values:
            if value.node in blocked:
                raise blocked[value.node]

    @property
    def variables(self) -> VariableStates:
        """The state that calls of this object keep, by variable_id; see Session."""
        return self._session.variables

    def reset(self) -> None:
        """Back to the state before the first call."""
        self._session.reset()

    def session(self) -> Session:
        """A new, independent state of the model's variables."""
        return Session(self)

    def _plan(self, shapes: InputShapes, targets: Targets) -> Plan:
        """The plan for inputs of these shapes, or one for inputs of any shape where theirs are not worth a plan of their own."""
        if self._is_static or not self._plans.is_worth_a_plan((shapes, targets)):
            shapes = ()
        return self._plans.get((shapes, targets), lambda: self._make(shapes, targets))

    def _make(self, shapes: InputShapes, targets: Targets) -> Plan:
        inference = self._infer(shapes)
        with one_blas_thread(), limited(self._memory):
            return plan(self.model, inference, targets, self._compilation)

    def _infer(self, shapes: InputShapes) -> Inference:
        """What is known of every value where the inputs have these shapes; () stands for those of the model."""
        if not shapes or self._is_static:
            return self._inference
        facts = [Fact(_fact(self._inference, port).element, shape) for port, shape in zip(self.inputs, shapes, strict=True)]
        found = infer_shapes(self.model, dict(zip(self.model.parameters, facts, strict=True)), tolerant=self.tolerant)
        if not self.tolerant:
            self._check_as_inferred(found)
        return found

    def _check_as_inferred(self, found: Inference) -> None:
        """Raise NodeError where a value does not have the shape that was inferred for inputs of any shape."""
        for node in self.model.nodes:
            for value in node.outputs:
                try:
                    check_as_inferred(found[value], self._inference[value])
                except OpError as error:
                    raise node_error(node, [], error) from error

    def _own(self, value: Value) -> Value:
        """The value of the copy for one of the model that was compiled, or of the copy itself."""
        own = self._copies.get(value)
        if own is None:
            raise InputError(f"{value.node.name!r} is not a layer of the graph itself, only tensors of that can be given")
        return own


class Session:
    """One state of a compiled model's variables.

    Attributes:
        variables: by variable_id; empty until something was assigned. Setting one sets the state.
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self.variables = VariableStates(compiled._variables)

    def __repr__(self) -> str:
        return f"<Session of {self._compiled.model.name!r}: variables {', '.join(map(repr, self.variables)) or 'none'}>"

    def _repr_html_(self) -> str:
        return display(f"session of {self._compiled.model.name or 'a model'}", arrays_table(self.variables.items()))

    def reset(self) -> None:
        """Back to the state before the first run."""
        self.variables.clear()

    def __call__(self, inputs: Inputs = None, *, allow_cast: bool = False) -> Outputs:
        """Run on the inputs; see CompiledModel."""
        return Outputs(self._compiled.outputs, self._run(inputs, None, allow_cast))

    def run(
        self,
        inputs: Inputs = None,
        outputs: Sequence[str | int] | str | int | None = None,
        *,
        allow_cast: bool = False,
        on_layer: OnLayer | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray] | Outputs:
        """Run, and return the tensors that are asked for.

        Args:
            inputs: as for a call.
            outputs: one key or several. A text is the name of any tensor in the graph: its tensor name, the name or id of the layer
                that produces it, or ``layer:port``; an int is the position of a Result. None means all Results.
            allow_cast: as for a call.
            on_layer: called after each step with its layers, outputs and time, as a StepRun. Layers that were fused are one step;
                with ``optimize=False`` each is a step of its own. What it raises ends the run.
            timeout: seconds that the run may take; None for any. The time is looked at between steps and between the iterations
                of loops, so that a single step that takes longer is completed first. The state of variables is then that
                before the run.

        Returns:
            A dict by the keys, as text, in the order asked for; Outputs where ``outputs`` is None.

        Raises:
            InputError: there is no such tensor; the message offers similar names.
            NodeError: a kernel refuses its inputs, or there is not enough memory.
            RunTimeoutError: the run takes longer than ``timeout``.
        """
        observer = None if on_layer is None else observer_of(on_layer)
        if outputs is None:
            return Outputs(self._compiled.outputs, self._run(inputs, None, allow_cast, observer, timeout))
        if isinstance(outputs, str | int):
            outputs = [outputs]
        values = tuple(self._compiled._own(self._value(key)) for key in outputs)
        arrays = self._run(inputs, values, allow_cast, observer, timeout)
        return {str(key): array for key, array in zip(outputs, arrays, strict=True)}

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
        return self._run(inputs, tuple(map(self._compiled._own, values)), allow_cast, timeout=timeout, progress=progress)

    def _value(self, key: str | int) -> Value:
        if isinstance(key, int):
            source = self._compiled.output(key).node.inputs[0]
            if source is None:
                raise InputError(f"output {key} has no source")
            return source
        if not isinstance(key, str):
            raise InputError(f"a tensor is asked for by {key!r}, expected its name or the position of a result")
        return find_value(self._compiled.model, key)

    def _run(
        self,
        inputs: Inputs,
        targets: Targets,
        allow_cast: bool,
        observer: Observer | None = None,
        timeout: float | None = None,
        progress: RunProgress | None = None,
    ) -> list[np.ndarray]:
        compiled = self._compiled
        limits = RunLimits(compiled._memory, timeout)
        arrays = bind_inputs(compiled.inputs, inputs, allow_cast=allow_cast)
        planned = compiled._plan(tuple(array.shape for array in arrays), targets)
        if progress is not None:
            observer = progress_observer(planned, progress)
        with one_blas_thread():
            return run(planned, arrays, self.variables.arrays, compiled._arenas, observer, limits)


def _snapshot(model: ir.Model) -> tuple[Model, dict[Value, Value]]:
    """A copy that changes to the model do not reach, and its value for each value of the model and of the copy.

    The bytes of constants are shared, since they are read-only, and attributes that are parsed already are not parsed again.
    """
    copied = copy.copy(Model.of(model))
    for node, fresh in zip(model.walk(), copied.walk(), strict=True):
        fresh.typed = node.typed
        fresh.constant = None if node.constant is None else replace(node.constant)
    values: dict[Value, Value] = {}
    for node, fresh in zip(model.nodes, copied.nodes, strict=True):
        values.update(zip(node.outputs, fresh.outputs, strict=True))
    if model.version == version_10.VERSION:
        version_10.adapt(copied)
    values |= {value: value for node in copied.nodes for value in node.outputs}
    return copied, values


def _refuse_damage(model: ir.Model) -> None:
    """Raise ModelError for what the reader found that leaves no graph to run truthfully."""
    graphs = [model, *(body.graph for node in model.walk() for body in node.bodies.values())]
    errors = [problem for graph in graphs for problem in graph.problems if problem.severity == "error"]
    if not errors:
        return
    more = f" (and {len(errors) - 1} more, see validate)" if len(errors) > 1 else ""
    raise ModelError(f"{errors[0].at(str(model.path or 'the model'))}: {errors[0].message}{more}")


def _fact(inference: Inference, port: Port) -> Fact:
    return inference.facts[port.node.outputs[0]]
