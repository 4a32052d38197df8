"""A runtime, and the results that it returns."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.dtypes.elements import F32, I32, Element
from irexec.dtypes.rounding import round_to
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value
from irexec.ir.order import Names
from irexec.messages import counted
from irexec.runtime.inputs import bind_inputs

if TYPE_CHECKING:
    from irexec.tools.engines.runtimes.process import Worker


@dataclass(frozen=True)
class ObservedCopy:
    """The copy.

    Attributes:
        model: with one Result for each value that is asked for, in this order, and no other.
        inputs: the layer names of its Parameters, in the order of those of the model; each is unique.
        types: the element types that the Parameters take.
    """

    model: Model
    inputs: tuple[str, ...]
    types: tuple[Element | None, ...]


def observed(model: Model, values: Sequence[Value], elements: Sequence[Element | None]) -> ObservedCopy:
    """A copy that gives these values of a model.

    Tensors of types that NumPy lacks go in and out in f32 or i32, through a Convert: other runtimes have no arrays of
    these types.

    Args:
        model: a model, which is not changed.
        values: of the graph itself.
        elements: the element type of each value; None where it is not known.
    """
    made = copy.copy(model)
    # The reader of version 10 changes the types of inputs and outputs; names of tensors may occur twice, and none is
    # needed.
    made.version = 11
    for value in (value for node in made.nodes for value in node.outputs):
        value.names = []
    position = {node: i for i, node in enumerate(model.nodes)}
    found = [made.nodes[position[value.node]].outputs[value.index] for value in values]
    made.nodes = [node for node in made.nodes if node.type != "Result"]
    adding = _Adding(made)
    parameters = [node for node in made.parameters if node.outputs]
    inputs = [adding.parameter(node) for node in parameters]
    for i, (value, element) in enumerate(zip(found, elements, strict=True)):
        given = _given(value)
        adding.result(adding.replaced.get(given, given), element, i)
    return ObservedCopy(made, tuple(node.name for node in parameters), tuple(inputs))


def fed(inputs: Sequence[Port], arrays: Mapping[str, np.ndarray], made: ObservedCopy) -> dict[str, np.ndarray]:
    """The inputs of a model by the names and in the types of the copy.

    Raises:
        InputError: they do not fit.
    """
    bound = bind_inputs(inputs, dict(arrays))
    if len(bound) != len(made.inputs):
        raise InputError(f"{counted(len(bound), 'input')} for {counted(len(made.inputs), 'Parameter')}")
    return {
        name: array if element is None or element.kind == "string" else array.astype(element.carrier, copy=False)
        for name, array, element in zip(made.inputs, bound, made.types, strict=True)
    }


def _given(value: Value) -> Value:
    """The value itself, or what an Assign passes on: in OpenVINO its output cannot be read."""
    source = value.node.inputs[0] if value.node.type == "Assign" and value.node.inputs else None
    return value if source is None else source


class _Adding:
    """Layers that are added to a graph.

    Attributes:
        replaced: the replacements of Parameters whose type was changed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.replaced: dict[Value, Value] = {}
        self._next = max((node.id for node in model.nodes), default=-1) + 1
        self._names = Names()

    def parameter(self, node: Node) -> Element | None:
        """Let a Parameter have a name of its own, and take a type that NumPy has; that type."""
        node.name = self._names.free(node.name)
        value = node.outputs[0]
        declared = Fact(None, None) if value.fact is None else value.fact
        if declared.element is None or _is_given(declared.element):
            return declared.element
        carried = carried_type(declared.element)
        node.attributes["element_type"] = carried.name
        value.fact = Fact(carried, declared.shape)
        converted = self.convert(value, declared.element)
        for other in self.model.nodes:
            for port in other.ports:
                if port.source is value and other is not converted.node:
                    port.source = converted
        self.replaced[value] = converted
        return carried

    def result(self, value: Value, element: Element | None, index: int) -> None:
        """A Result of a value."""
        if element is not None and not _is_given(element):
            value = self.convert(value, carried_type(element))
        self._node("Result", f"irexec.result.{index}", value)

    def convert(self, value: Value, element: Element) -> Value:
        """The value, converted."""
        node = self._node("Convert", f"irexec.convert.{self._next}", value)
        node.attributes["destination_type"] = element.name
        shape = None if value.fact is None else value.fact.shape
        node.outputs.append(Value(node, 0, Fact(element, shape)))
        return node.outputs[0]

    def _node(self, type: str, name: str, value: Value) -> Node:
        node = Node(self._next, name, type, "opset1", [Input(value, value.fact)])
        self._next += 1
        self.model.nodes.append(node)
        return node


def _is_given(element: Element) -> bool:
    return element.native or element.kind in ("string", "boolean")


def carried_type(element: Element) -> Element:
    """A type that NumPy has for the values of one that it lacks."""
    return F32 if element.is_float else I32


Arrays = Mapping[str, np.ndarray]
"""Arrays by the names of a model's inputs."""


class Runtime(ABC):
    """A model in a runtime.

    Args:
        name: of the runtime.
        model: the graph whose values can be asked for.

    Attributes:
        inputs: of the model.
        worker: the process of the engine, in which other models may run too; None for a runtime without one.
    """

    worker: Worker | None = None

    def __init__(self, name: str, model: Model) -> None:
        self.name, self.model = name, model
        self.inputs: list[Port] = model.inputs

    @property
    def version(self) -> str:
        """The version of another runtime; "" before it has run."""
        return ""

    @property
    def precision(self) -> str:
        """The type, such as f16, that another runtime computes floats in; "" where it does not say, or has not run."""
        return ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the file that another runtime runs, if it is not written from the model."""
        return ()

    def gives(self, value: Value) -> bool:
        """Whether the runtime can be asked for a value of the graph."""
        return True

    @abstractmethod
    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """Run several times, from the initial state of variables on, which go from run to run.

        Args:
            runs: the inputs of each run, by the names of ``inputs``.
            values: of the graph itself, none of those inside bodies; only such as it ``gives``.

        Returns:
            For each run one array for each value, in the carrier of its element type.

        Raises:
            NodeError, UnsupportedError: irexec cannot run the model.
            EngineError: another runtime cannot, or its process ended.
            InputError: the inputs do not fit.
            RunTimeoutError: it takes longer than the timeout.
        """

    def run(self, inputs: Arrays, values: Sequence[Value]) -> list[np.ndarray]:
        """The arrays of a single run; see ``run_all``."""
        return self.run_all([inputs], values)[0]

    def close(self) -> None:
        """End what the runtime needs, such as a process."""
        return

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def in_carrier(array: np.ndarray, element: Element | None) -> np.ndarray:
    """An array of a runtime in the carrier of the element type, if it is of another type of the same kind."""
    if element is None or element.kind == "string" or array.dtype == element.carrier:
        return array
    floats = array.dtype.kind == "f" and element.is_float
    whole = array.dtype.kind in "iub" and not element.is_float
    if not floats and not whole:
        return array
    cast = array.astype(element.carrier)
    return cast if element.native else round_to(element, cast)
