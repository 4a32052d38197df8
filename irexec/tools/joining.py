"""Joining two models: outputs of one are inputs of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irexec.analysis.model import Model, Port, expected, find_port
from irexec.api import ModelLike, as_model
from irexec.authoring.editing import Editing
from irexec.authoring.surgery import add_result, graft
from irexec.errors import InputError
from irexec.ir.graph import Value


def join(a: ModelLike, b: ModelLike, mapping: Mapping[str, str] | None = None) -> Model:
    """A model of the layers of two others, which stay as they are.

    Args:
        a: the model, or what read_model takes, whose outputs are used. Its other outputs are outputs of the new model.
        b: the model that uses them. Its other inputs are inputs of the new model, and its outputs are its last outputs.
        mapping: names of outputs of ``a`` by names of inputs of ``b``; an output may be the source of several inputs.
            By default what has the same name, or the only output and the only input. Names of layers, tensors and
            variables that both models have are those of ``a``.

    Raises:
        InputError: the output or input does not exist, an input is named twice, or none of both has the same name.
        NodeError: an input does not take the type or shape of the output.
        ModelError: a model is damaged.
    """
    second, made = as_model(b), as_model(a).clone()
    made.path = made.bin_path = made.check_bin = None
    editing = Editing(made)
    with editing.step("join"):
        _join(editing, second, _pairs(made.outputs, second.inputs) if mapping is None else mapping)
    return made


def _pairs(outputs: Sequence[Port], inputs: Sequence[Port]) -> dict[str, str]:
    """The outputs by inputs of the same name; else the only output by the only input."""
    pairs = {port.name: source.name for port in inputs for source in outputs if {*port.names} & {*source.names}}
    if not pairs and len(outputs) == len(inputs) == 1:
        return {inputs[0].name: outputs[0].name}
    if not pairs:
        raise InputError(
            f"no output of the first model has the name of an input of the second; outputs {expected(outputs)}; "
            f"inputs {expected(inputs)}"
        )
    return pairs


def _join(editing: Editing, b: Model, mapping: Mapping[str, str]) -> None:
    if not mapping:
        raise InputError("no output of the first model is an input of the second")
    outputs, inputs = editing.model.outputs, b.inputs
    sources: dict[str, Value] = {}
    for given, output in mapping.items():
        port, target = find_port(outputs, output, "output"), find_port(inputs, given)
        if target.name in sources:
            raise InputError(f"input {target.name!r} is given twice")
        (source,) = port.node.inputs
        if source is None:
            raise InputError(f"no value arrives at output {port.name!r}")
        sources[target.name] = source
        editing.drop([port.node])
    for port in inputs:
        if port.name not in sources:
            if port.element is None:
                raise InputError(f"the element type of input {port.name!r} is not known")
            sources[port.name] = editing.add.parameter(
                port.element, port.shape, port.node.name, [editing.free_tensor_name(port.name)]
            )
    for value in graft(editing, b, sources):
        add_result(editing, value)
