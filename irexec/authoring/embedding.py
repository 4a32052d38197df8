"""One model as a part of another."""

from __future__ import annotations

from collections.abc import Mapping

from irexec.analysis.model import Model, Port, expected, find_port
from irexec.authoring.facts import with_bodies
from irexec.authoring.tensor import LooseBuilder, Operand, Tensor, constant
from irexec.errors import InputError, UnsupportedError
from irexec.ir.graph import Node, Value
from irexec.ir.order import Names, topological

VARIABLE = "variable_id"
"""The attribute of a ReadValue or Assign that names its variable."""


def embed(model: Model, inputs: Mapping[str, Operand], *, prefix: str = "") -> dict[str, Tensor]:
    """Use a model inside of another: its layers are copied, with ``inputs`` in place of its own inputs.

    Args:
        model: stays as it is.
        inputs: a tensor or an array for every input, by any of its names.
        prefix: goes before the names of layers and tensors, which must be unique in a model.

    Returns:
        The outputs of the model by their names.

    Raises:
        InputError: an input is missing, does not exist, or has another element type.
        NodeError: a layer cannot take the shapes that follow from the inputs.
        UnsupportedError: the model has variables.
    """
    if model.sinks:
        raise UnsupportedError(f"model {model.name!r} has variables, which cannot be embedded")
    return copied(model, inputs, prefix=prefix)[0]


def copied(
    model: Model, inputs: Mapping[str, Operand], *, prefix: str = "", variables: Names | None = None
) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The outputs of a copy of a model by their names, and what its variables are assigned.

    Args:
        model, inputs, prefix: as for ``embed``.
        variables: names that its variables must not have; those that have one are renamed.
    """
    made = _given(model, inputs)
    renamed = {name: variables.free(name) for name in _variables(model)} if variables is not None else {}
    for node in topological(model)[0]:
        if node.type not in ("Parameter", "Result"):
            made |= dict(zip(node.outputs, _copied(node, made, prefix, renamed), strict=False))
    outputs = {port.name: made[source] for port in model.outputs for source in port.node.inputs if source is not None}
    return outputs, [made[value] for node in model.sinks for value in node.outputs]


def _variables(model: Model) -> dict[str, None]:
    return {node.attributes[VARIABLE]: None for node in model.walk() if VARIABLE in node.attributes}


def _given(model: Model, inputs: Mapping[str, Operand]) -> dict[Value, Tensor]:
    """The tensors in place of the outputs of the Parameters."""
    ports = model.inputs
    found = {find_port(ports, name).node: value for name, value in inputs.items()}
    missing = [port for port in ports if port.node not in found]
    if missing:
        raise InputError(f"no value is given for {expected(missing)}")
    return {port.node.outputs[0]: _fitting(port, found[port.node]) for port in ports}


def _fitting(port: Port, operand: Operand) -> Tensor:
    tensor = operand if isinstance(operand, Tensor) else constant(operand, port.element)
    if port.element is not None and tensor.element is not port.element:
        raise InputError(f"input {port.name!r} is {tensor.fact}, expected {port.element}")
    return tensor


def _copied(node: Node, made: Mapping[Value, Tensor], prefix: str, variables: Mapping[str, str]) -> list[Tensor]:
    """The outputs of a copy of a node."""
    tensors = [made[value] for value in node.inputs if value is not None]
    builder = LooseBuilder(tensors)
    values = builder.clone_node(node, *(tensor.value for tensor in tensors))
    if prefix:
        values[0].node.name = prefix + node.name
    for inner in with_bodies(values[0].node):
        if inner.attributes.get(VARIABLE) in variables:
            inner.attributes[VARIABLE] = variables[inner.attributes[VARIABLE]]
    for value in values:
        value.names = [prefix + name for name in value.names]
    return [Tensor(value, builder.fact(value)) for value in values]
