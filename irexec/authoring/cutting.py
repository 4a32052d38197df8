"""Cutting a model at tensors, and giving out further ones."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.authoring.editing import Editing
from irexec.errors import InputError
from irexec.ir.find import find_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import needed


def cut_from(editing: Editing, tensors: Sequence[str]) -> None:
    """Make tensors inputs of the model; see Editor.cut_from."""
    values = _values(editing, tensors, "input")
    for value in values:
        if value.node.type == "Parameter":
            raise InputError(f"{value.name!r} is an input of the model already")
    before = needed(editing.model)
    made = [_parameter(editing, value) for value in values]
    for value, parameter in zip(values, made, strict=True):
        editing.replace_uses(value, parameter)
    if not any(editing.readers(parameter) for parameter in made):
        raise InputError(f"nothing reads {values[0].name!r}")
    _drop_unneeded(editing, before)
    alive = set(editing.model.nodes)
    for value, parameter in zip(values, made, strict=True):
        if value.node in alive:
            # The layer is needed by something else, and keeps its name.
            continue
        parameter.node.name = value.node.name if len(value.node.outputs) == 1 else parameter.node.name


def _parameter(editing: Editing, value: Value) -> Value:
    """A Parameter for a value, whose tensor names it gets."""
    fact = editing.facts[value]
    if fact.element is None:
        raise InputError(f"the element type of {value.label!r} is not known, so that it cannot be an input")
    made = editing.add.parameter(fact.element, fact.shape, value.name)
    editing.move_names(value, made)
    if not made.names:
        made.names = [editing.free_tensor_name(value.label)]
    return made


def cut_to(editing: Editing, tensors: Sequence[str]) -> None:
    """Make tensors the only outputs of the model; see Editor.cut_to."""
    values = _values(editing, tensors, "output")
    before = needed(editing.model)
    kept = {value: _result_of(editing, value) for value in values}
    editing.drop([result for result in editing.model.results if result not in kept.values()])
    for value, result in kept.items():
        if result is None:
            add_result(editing, value)
    rest = [node for node in editing.model.nodes if node.type != "Result"]
    results = {node.inputs[0]: node for node in editing.model.results}
    editing.model.nodes = [*rest, *(results[value] for value in values)]
    _drop_unneeded(editing, before)


def add_output(editing: Editing, tensor: str, name: str | None) -> None:
    """Make a tensor a further output of the model; see Editor.add_output."""
    value = find_value(editing.model, tensor)
    if _result_of(editing, value) is not None:
        raise InputError(f"{value.name!r} is an output of the model already")
    add_result(editing, value)
    if name is not None:
        if any(name in other.names for node in editing.model.nodes for other in node.outputs if other is not value):
            raise InputError(f"the output cannot be called {name!r}: a tensor has that name")
        value.names = [name, *(other for other in value.names if other != name)]


def add_result(editing: Editing, value: Value) -> Node:
    """A Result of a value, which gets a tensor name if it has none."""
    if not value.names:
        value.names = [editing.free_tensor_name(value.label)]
    return editing.add.result(value)


def _values(editing: Editing, tensors: Sequence[str], kind: str) -> list[Value]:
    if not tensors:
        raise InputError(f"no tensor is named to become an {kind}")
    values = [find_value(editing.model, tensor) for tensor in tensors]
    for index, value in enumerate(values):
        if value in values[:index]:
            raise InputError(f"{tensors[index]!r} is named twice: it is the tensor {value.name!r}")
    return values


def _result_of(editing: Editing, value: Value) -> Node | None:
    return next((node for node in editing.model.results if node.inputs and node.inputs[0] is value), None)


def _drop_unneeded(editing: Editing, before: set[Node]) -> None:
    """Take out what was needed before and is not needed any more, Parameters and variables that nothing reads too."""
    now = needed(editing.model, sinks=False)
    editing.drop([node for node in editing.model.nodes if node in before and node not in now])
