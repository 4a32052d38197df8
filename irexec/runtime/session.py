"""Compiled models and their sessions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.model import Model, Port, check_model, find_port, output_ports
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.backend.threads import limited
from irexec.compile.plan import plan
from irexec.compile.steps import Plan
from irexec.errors import InputError, ModelError
from irexec.ir import graph as ir
from irexec.ir.facts import Fact
from irexec.ir.find import find_value
from irexec.ir.graph import Value
from irexec.runtime.execute import run
from irexec.runtime.inputs import Inputs, arrange
from irexec.runtime.variables import VariableStates, variables_of

_PLANS_KEPT = 8


class Outputs(Mapping[str, np.ndarray]):
    """The results of one run, in the order of the model's Results, none of them left out.

    It is a mapping by name; ``[]`` also takes any other name of a Result, and a position.
    """

    def __init__(self, ports: Sequence[Port], arrays: Sequence[np.ndarray]) -> None:
        self._ports = list(ports)
        self._arrays = list(arrays)
        self._by_name = {port.name: array for port, array in zip(ports, arrays, strict=True)}

    def __getitem__(self, key: str | int) -> np.ndarray:
        if isinstance(key, int):
            return self._arrays[key]
        if key in self._by_name:
            return self._by_name[key]
        for port, array in zip(self._ports, self._arrays, strict=True):
            if key in port.names:
                return array
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {array.dtype}{list(array.shape)}" for name, array in self.items())
        return f"Outputs({inside})"


class CompiledModel:
    """A model that is ready to run; call it with inputs.

    It keeps the state of its variables between calls; ``session()`` makes an independent state.

    Args:
        model: the model; later changes to it do not count.
        threads: how many threads BLAS may use; None leaves NumPy's choice.
        optimize: fold constants and use the fast ways of operations; without, plain kernels alone.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be run.
    """

    def __init__(self, model: ir.Model, *, threads: int | None = None, optimize: bool = True) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is {threads!r}, expected a whole number of at least 1")
        check_model(model)
        refuse_execution_graph(model)
        _refuse_damage(model)
        self.model = Model.of(model)
        self.threads, self.optimize = threads, optimize
        self._inference = infer_shapes(model)
        self.inputs: list[Port] = self.model.inputs
        self.outputs: list[Port] = output_ports(model, self._inference.facts)
        self._is_static = all(_fact(self._inference, port).is_static for port in self.inputs)
        self._plans: OrderedDict[object, Plan] = OrderedDict()
        self._misses = 0
        self._lock = threading.Lock()
        self._variables = variables_of(model, self._inference)
        self._session = Session(self)
        if self._is_static:
            self._plan((), None)

    def __call__(self, inputs: Inputs = None) -> Outputs:
        """Run on the inputs: a mapping by name or position, a sequence, or one array."""
        return self._session(inputs)

    def run(self, inputs: Inputs = None, outputs: Sequence[str | int] | str | int | None = None) -> dict[str, np.ndarray] | Outputs:
        """Run, and return the named tensors: any in the graph, by tensor name, layer name, id or ``name:port``."""
        return self._session.run(inputs, outputs)

    def values(self, inputs: Inputs, values: Sequence[Value]) -> list[np.ndarray]:
        """Run, and return the arrays of any values of the graph."""
        return self._session.values(inputs, values)

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

    def _plan(self, shapes: tuple[tuple[int, ...], ...], targets: tuple[Value, ...] | None) -> Plan:
        """The plan for inputs of these shapes; the one for any shape where there are too many of them."""
        key = (() if self._is_static else shapes, targets)
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
                return self._plans[key]
            self._misses += 1
            if self._misses > 2 * _PLANS_KEPT and not self._is_static:
                shapes, key = (), ((), targets)
            if key not in self._plans:
                self._plans[key] = self._make(shapes, targets)
            while len(self._plans) > _PLANS_KEPT:
                self._plans.popitem(last=False)
            return self._plans[key]

    def _make(self, shapes: tuple[tuple[int, ...], ...], targets: tuple[Value, ...] | None) -> Plan:
        inference = self._inference
        if shapes and not self._is_static:
            facts = [Fact(_fact(inference, port).element, shape) for port, shape in zip(self.inputs, shapes, strict=True)]
            inference = infer_shapes(self.model, dict(zip(self.model.parameters, facts, strict=True)))
        with limited(self.threads):
            return plan(self.model, inference, targets, optimize=self.optimize)


class Session:
    """One state of a compiled model's variables.

    Attributes:
        variables: by variable_id; empty until something was assigned. Setting one sets the state.
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self.variables = VariableStates(compiled._variables)

    def reset(self) -> None:
        """Back to the state before the first run."""
        self.variables.clear()

    def __call__(self, inputs: Inputs = None) -> Outputs:
        """Run on the inputs; see CompiledModel."""
        compiled = self._compiled
        return Outputs(compiled.outputs, self._run(inputs, None))

    def run(self, inputs: Inputs = None, outputs: Sequence[str | int] | str | int | None = None) -> dict[str, np.ndarray] | Outputs:
        """Run, and return the named tensors; all Results where none are named."""
        if outputs is None:
            return self(inputs)
        if isinstance(outputs, str | int):
            outputs = [outputs]
        arrays = self.values(inputs, [self._value(key) for key in outputs])
        return {str(key): array for key, array in zip(outputs, arrays, strict=True)}

    def values(self, inputs: Inputs, values: Sequence[Value]) -> list[np.ndarray]:
        """Run, and return the arrays of any values of the graph.

        Raises:
            InputError: a value is not of this graph, such as one inside a body, of which every iteration has another.
        """
        nodes = {id(node) for node in self._compiled.model.nodes}
        for value in values:
            if id(value.node) not in nodes:
                raise InputError(f"{value.node.name!r} is no layer of the graph itself, only tensors of that can be given")
        return self._run(inputs, tuple(values))

    def _value(self, key: str | int) -> Value:
        if isinstance(key, int):
            source = find_port(self._compiled.outputs, key, "output").node.inputs[0]
            if source is None:
                raise InputError(f"output {key} has no source")
            return source
        if not isinstance(key, str):
            raise InputError(f"a tensor is asked for by {key!r}, expected its name or the position of a result")
        return find_value(self._compiled.model, key)

    def _run(self, inputs: Inputs, targets: tuple[Value, ...] | None) -> list[np.ndarray]:
        compiled = self._compiled
        arrays = arrange(compiled.inputs, inputs)
        planned = compiled._plan(tuple(array.shape for array in arrays), targets)
        with limited(compiled.threads):
            return run(planned, arrays, self.variables.arrays)


def _refuse_damage(model: ir.Model) -> None:
    """Raise ModelError for what the reader found that leaves no graph to run truthfully."""
    graphs = [model, *(body.graph for node in model.walk() for body in node.bodies.values())]
    errors = [problem for graph in graphs for problem in graph.problems if problem.severity == "error"]
    if not errors:
        return
    first = errors[0]
    place = f"{model.path or 'the model'}{'' if first.line is None else f', line {first.line}'}"
    layer = "" if first.layer_name is None else f", layer {first.layer_id} {first.layer_name!r} ({first.layer_type})"
    more = f" (and {len(errors) - 1} more, see validate)" if len(errors) > 1 else ""
    raise ModelError(f"{place}{layer}: {first.message}{more}")


def _fact(inference: Inference, port: Port) -> Fact:
    return inference.facts[port.node.outputs[0]]


def compile_model(model: ir.Model, *, threads: int | None = None, optimize: bool = True) -> CompiledModel:
    """Make a model ready to run; see CompiledModel."""
    return CompiledModel(model, threads=threads, optimize=optimize)
