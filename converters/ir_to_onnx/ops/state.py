"""ReadValue and Assign: variables become inputs and outputs of the model, as in decoders with past keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor, onnx_element
from irexec.analysis.builder import packed
from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import low


@exact("ReadValue")
def read_value(
    ctx: ExportContext, init_value: Tensor | None = None, *, variable_id: str, variable_type: Element | None = None,
    variable_shape: Any = None,
) -> Tensor:  # fmt: skip
    """An input of the name of the variable, whose default is a constant initial value."""
    check(ctx.graph.around is None, "a variable in a body cannot be an input of the model")
    tensors = ctx.writer.state.variable(variable_id)
    if tensors.before is None:
        tensors.before = _input(ctx, init_value, variable_id)
    found: Tensor = tensors.before
    return found


def _input(ctx: ExportContext, init_value: Tensor | None, variable: str) -> Tensor:
    fact = ctx.facts[0]
    check(fact.element is not None and fact.shape is not None, "the type or rank of the variable is not known")
    assert fact.element is not None and fact.shape is not None
    tensor = Tensor(ctx.graph.names.claim(variable), onnx_element(fact.element, ctx.opset), fact.shape)
    ctx.graph.input(tensor)
    if init_value is None:
        first = np.zeros([low(size) for size in fact.shape], tensor.element.carrier)
    elif init_value.value is not None:
        first = init_value.value
    else:
        ctx.remark("the initial value is computed from inputs, and has to be passed as an input of the first run")
        return tensor
    ctx.graph.default(Tensor(tensor.name, tensor.element, first.shape, None, packed(first, tensor.element)))
    return tensor


@exact("Assign")
def assign(ctx: ExportContext, new_value: Tensor, *, variable_id: str) -> Tensor:
    """An output, the name of the variable and /next."""
    check(ctx.graph.around is None, "a variable in a body cannot be an output of the model")
    tensors = ctx.writer.state.variable(variable_id)
    tensors.after, tensors.assign = new_value, ctx.node
    return new_value
