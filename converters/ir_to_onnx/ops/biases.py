"""Constants that are added to a product, recognised: the third input of Conv, ConvTranspose and Gemm."""

from __future__ import annotations

from onnx import NodeProto, helper

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.registry import recognises
from irexec.ir.graph import Value

_PRODUCTS = {
    "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MatMul",
}  # fmt: skip


@recognises("Add")
def biased(ctx: ExportContext) -> Tensor | None:
    """Add(product, bias), where nothing else reads the product: the product's node with the bias."""
    for product, bias in (ctx.node.inputs, ctx.node.inputs[::-1]):
        if product is not None and product.node.type in _PRODUCTS and ctx.writer.state.used[product] == 1:
            return None if bias is None else _with_bias(ctx, product, ctx.writer.tensor(bias))
    return None


def _with_bias(ctx: ExportContext, product: Value, bias: Tensor) -> Tensor | None:
    result = ctx.writer.tensor(product)
    node = next((node for node in reversed(ctx.graph.nodes) if result.name in node.output), None)
    # Integers and types without a kernel are converted after the product.
    if node is None or len(node.input) != 2 or not result.element.is_float or bias.constant is None:
        return None
    type, shape = _biased_operator(ctx, node, product), bias.require_shape("the bias")
    rank = result.rank
    if type is None or rank is None or result.shape is None or len(shape) > rank:
        return None
    # Conv adds a number to each channel, Gemm to each column.
    axis = 1 if type != "Gemm" else rank - 1
    sizes = [1] * (rank - len(shape)) + [size if isinstance(size, int) else 0 for size in shape]
    if sizes != [result.shape[axis] if i == axis else 1 for i in range(rank)] or result.is_known_empty():
        return None
    inputs = [Tensor(name, result.element) for name in node.input]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    return ctx.emit(type, *inputs, ctx.reshape(bias, [sizes[axis]]), **attributes)


def _biased_operator(ctx: ExportContext, node: NodeProto, product: Value) -> str | None:
    """The operator that takes a bias, in place of the node; None if there is none."""
    if node.op_type in ("Conv", "ConvTranspose", "Gemm"):
        return node.op_type
    if node.op_type != "MatMul":
        return None
    matrices = [None if value is None else ctx.writer.tensor(value).rank for value in product.node.inputs]
    return "Gemm" if matrices == [2, 2] else None
