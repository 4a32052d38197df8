"""Models in the state after a run: a fault of a later run is a fault of the first run of such a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.analysis.precision import Precision
from irexec.errors import IrexecError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.names import Names
from irexec.ir.shape_text import write_shape
from irexec.runtime.compiled_model import CompiledModel

RUNS = 8
"""Maximum number of runs of a model with variables."""


def after_run(
    model: Model, inputs: Mapping[str, np.ndarray], precision: Precision, timeout: float | None
) -> Model | None:
    """The model with the state after a run as the initial values of its variables; None without variables, or if the
    run fails.

    Args:
        model: the model, which is not changed.
        inputs: the inputs of the run, by name.
        precision: precision of f16 and bf16.
        timeout: maximum time of the run in seconds.
    """
    if not any(node.type == "Assign" for node in model.walk()):
        return None
    try:
        session = CompiledModel(model, precision=precision).session()
        session.run(inputs, timeout=timeout)
    except (IrexecError, MemoryError):
        return None
    changed = copy.copy(model)
    _begin_with(changed, dict(session.variables))
    return changed


def _begin_with(graph: Graph, state: Mapping[str, np.ndarray]) -> None:
    """Give each ReadValue of the graph and of its bodies a Constant as its initial value."""
    names, made = Names(node.name for node in graph.nodes), list[Node]()
    number = max((node.id for node in graph.nodes), default=0)
    for node in graph.nodes:
        for body in node.bodies.values():
            _begin_with(body.graph, state)
        array = state.get(node.attributes.get("variable_id", "")) if node.type == "ReadValue" else None
        if array is not None:
            made.append(_constant(node, number + 1 + len(made), names.free(f"{node.name}/state"), array))
            node.ports[:1] = [Input(made[-1].outputs[0], made[-1].outputs[0].fact)]
    graph.nodes[:0] = made


def _constant(read: Node, number: int, name: str, array: np.ndarray) -> Node:
    """A Constant for a ReadValue, of its declared element type."""
    fact = read.outputs[0].fact
    if fact is None or fact.element is None:
        raise IrexecError(f"the element type of {read.name!r} is not declared")
    values = fact.element.codec.round(array.astype(fact.element.carrier))
    attributes = {"element_type": fact.element.name, "shape": write_shape(array.shape)}
    node = Node(number, name, "Constant", "opset1", attributes=attributes, constant=packed(values, fact.element))
    node.outputs.append(Value(node, 0, Fact(fact.element, array.shape)))
    return node
