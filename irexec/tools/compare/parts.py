"""Parts of models: their inputs are inner tensors of the whole model."""

from __future__ import annotations

from irexec.analysis.model import Model, Port
from irexec.errors import OpError
from irexec.ir.dims import meet_shapes
from irexec.ir.find import values_by_name
from irexec.ir.graph import Node, Value

_BOUNDARY = ("Parameter", "Constant", "Result")


def inner_inputs(whole: Model, part: Model) -> list[Port]:
    """Inputs of a part that the whole model computes, with a fitting name, type and shape; none unless it is a part.

    Names of tensors alone are little evidence: exporters call many tensors "x". At least half of the layers of a part
    have names and types of layers of the whole model, and the layers that compute its inputs are not in the part.
    """
    named = values_by_name(whole)
    common = {name for port in whole.inputs for name in port.names}
    found = [
        (port, value)
        for port in part.inputs
        if not common & set(port.names)
        for value in [_inner(port, named)]
        if value is not None
    ]
    if not found:
        return []
    layers = [node for node in part.nodes if node.type not in _BOUNDARY]
    kept = {
        named[name].node
        for node in layers
        for name in _names(node)
        if name in named and named[name].node.type == node.type
    }
    shared = sum(any(name in named and named[name].node in kept for name in _names(node)) for node in layers)
    if 2 * shared < len(layers) or any(value.node in kept for _, value in found):
        return []
    return [port for port, _ in found]


def _names(node: Node) -> list[str]:
    return [node.name, *(name for value in node.outputs for name in value.names)]


def _inner(port: Port, named: dict[str, Value]) -> Value | None:
    """The inner tensor of a model that an input may be."""
    for name in port.names:
        value = named.get(name)
        if value is not None and value.node.type not in _BOUNDARY and _fits(value, port):
            return value
    return None


def _fits(value: Value, port: Port) -> bool:
    if value.fact is None:
        return True
    try:
        meet_shapes(value.fact.shape, port.shape)
    except OpError:
        return False
    return value.fact.element in (None, port.element)
