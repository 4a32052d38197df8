"""Putting nodes that a function has made, or the layers of another model, into the model that is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from irexec.analysis.collection import in_order
from irexec.analysis.model import Model
from irexec.authoring.editing import Editing
from irexec.authoring.embedding import VARIABLE, copied
from irexec.authoring.tensor import Tensor
from irexec.errors import InputError
from irexec.ir.graph import Node, Value
from irexec.ir.order import Names, find_layer, find_value, needed
from irexec.messages import counted

Function: TypeAlias = Callable[..., Tensor | Sequence[Tensor]]
"""A function of tensors, such as one of irexec.opset."""


def insert_after(editing: Editing, tensor: str, function: Function) -> None:
    """Give the readers of a tensor what a function makes of it; see Editor.insert_after."""
    value = find_value(editing.model, tensor)
    readers = editing.readers(value)
    (made,) = _called(editing, function, [value], 1)
    for node, index in readers:
        node.ports[index].source = made
    if any(node.type == "Result" for node, _ in readers) and value.node.type != "Parameter":
        editing.move_names(value, made)


def replace(editing: Editing, layer: str, replacement: Function | Model) -> None:
    """Put a function or a model in the place of a layer; see Editor.replace."""
    graph, node = find_layer(editing.model, layer)
    if graph is not editing.model:
        raise InputError(f"layer {node.name!r} is in a body: only layers outside of bodies can be replaced")
    if node.type in ("Parameter", "Result", "ReadValue", "Assign"):
        raise InputError(f"layer {node.name!r} is a {node.type}, which cannot be replaced")
    before = needed(editing.model)
    sources = [value for value in node.inputs if value is not None]
    used = [value for value in node.outputs if editing.readers(value)]
    count = 1 + max((value.index for value in used), default=0)
    if isinstance(replacement, Model):
        made = _of_model(editing, replacement, sources, node)
    else:
        made = _called(editing, replacement, sources, count)
    if len(made) < count:
        raise InputError(
            f"layer {node.name!r} has {counted(count, 'output')} that are read, the replacement {len(made)}"
        )
    for value in used:
        if made[value.index].node not in before:
            # An output of the model keeps its name, whatever the replacement calls it.
            is_output = any(reader.type == "Result" for reader, _ in editing.readers(value))
            made[value.index].names = [value.label] if is_output and not value.names else []
        editing.replace_uses(value, made[value.index])
        editing.move_names(value, made[value.index])
    editing.drop([node])
    editing.drop_unneeded(before)
    if made[0].node not in before:
        made[0].node.name = node.name


def _called(editing: Editing, function: Function, sources: Sequence[Value], count: int) -> list[Value]:
    """The values that a function makes of others; their nodes are layers of the model from now on."""
    if not callable(function):
        raise InputError(f"{function!r:.100} is not a function of tensors, such as those of irexec.opset")
    returned = function(*(Tensor(value, editing.facts[value]) for value in sources))
    tensors = list(returned) if isinstance(returned, Iterable) and not isinstance(returned, Tensor) else [returned]
    for one in tensors:
        if not isinstance(one, Tensor):
            raise InputError(f"the function returned {one!r:.100}, expected a tensor")
    if not tensors:
        raise InputError(f"the function returned no tensor, expected {count}")
    values = [tensor.value for tensor in tensors]
    _adopt(editing, values)
    return values


def _adopt(editing: Editing, values: Sequence[Value]) -> None:
    inside = set(editing.model.nodes)
    nodes = in_order([value.node for value in values], lambda node: node in inside)
    for node in nodes:
        if node.id >= 0 or node.type in ("Parameter", "Result"):
            raise InputError(f"{node.name!r} ({node.type}) belongs to another model")
    editing.adopt(nodes)


def _of_model(editing: Editing, other: Model, sources: Sequence[Value], node: Node) -> list[Value]:
    ports = other.inputs
    if len(ports) > len(sources):
        raise InputError(
            f"the model {other.name!r} has {counted(len(ports), 'input')}, layer {node.name!r} {len(sources)}"
        )
    return graft(editing, other, dict(zip([port.name for port in ports], sources, strict=False)))


def graft(editing: Editing, other: Model, sources: Mapping[str, Value]) -> list[Value]:
    """Add the layers of another model, whose inputs get values by name; the values of its outputs, in order.

    Variables whose names the model has already get others.
    """
    tensors = {name: Tensor(value, editing.facts[value]) for name, value in sources.items()}
    taken = Names(node.attributes[VARIABLE] for node in editing.model.walk() if VARIABLE in node.attributes)
    outputs, assigned = copied(other, tensors, variables=taken)
    values = [tensor.value for tensor in outputs.values()]
    _adopt(editing, [*values, *(tensor.value for tensor in assigned)])
    return values
