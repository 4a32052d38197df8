"""The state of a model's variables: written to a .npz, read from one, and as the initial values of a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.names import Names
from irexec.ir.shape_text import write_shape
from irexec.runtime.variables import VariableStates, variables_of
from irexec.tools.arrays.files import open_arrays, write_npz


def read_state(path: str, memory: MemoryLimit | None = None) -> dict[str, np.ndarray]:
    """The arrays of variables by variable_id.

    Raises:
        InputError: the file is one array without a name.
        ModelError: it cannot be read, or takes too much memory.
    """
    with open_arrays(path, ".npz", memory or MemoryLimit()) as file:
        if not file.named:
            raise InputError(f"{path} is one array without a name, expected a .npz with an array for each variable")
        return {name: file.read(name) for name in file.names}


def check_state_file(path: str, read: Mapping[str, str]) -> None:
    """Raise InputError unless a state can be written to a .npz that is not one of the files in ``read``."""
    if not path.lower().endswith(".npz"):
        raise InputError(f"--save-state {path}: a state is written to a .npz")
    check_file("--save-state", Path(path), read)


def write_state(path: str, state: Mapping[str, np.ndarray]) -> None:
    """Write the arrays of variables to a .npz; raises ModelError if that fails."""
    with new_file(path) as file:
        write_npz(file, state)


def with_state(model: Model, state: Mapping[str, np.ndarray]) -> Model:
    """A copy of a model whose variables begin with the arrays of a state, by variable_id.

    Raises:
        InputError: the model has no such variable, or an array is not of its type and shape.
    """
    checked = VariableStates(variables_of(model, infer_shapes(model, tolerant=True)))
    checked.update(state)
    changed = copy.copy(model)
    _begin_with(changed, checked)
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
