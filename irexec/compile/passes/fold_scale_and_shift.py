"""Fold scales and shifts of channels into the weights of a product beside them, and leave one addition.

Batch normalization is such an operation, and so are Multiply, Divide, Add and Subtract with constants. The weights are
scaled in f64 and rounded once, when a kernel packs them.
"""

from __future__ import annotations

import numpy as np

from irexec.compile.channels import Affine, Channels, Product, affine_of, product_of, scaled
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, create


def fold_scale_and_shift(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Fold the operations before each product into it, then the operations after it."""
    for operation in graph.order():
        for fold in (_fold_before, _fold_after):
            product = product_of(operation) if operation in graph else None
            if isinstance(product, Product):
                fold(graph, rewriting, product)
            elif product is not None:
                rewriting.refused(operation, product)


def _fold_after(graph: CompileGraph, rewriting: Rewriting, product: Product) -> None:
    """The operations after a product, each the only reader of the one before: scale * product + shift."""
    operations: list[Operation] = []
    value, whole = product.operation.output, Affine.identity(product.outputs)
    while len(value.uses) == 1 and not graph.is_target(value):
        operation = value.uses[0][0]
        found = affine_of(operation, product.outputs)
        if found is None or found[0] is not value:
            break
        whole = found[1].after(whole)
        operations.append(operation)
        value = operation.output
    if len(operations) < 2 and all(operation.type == "Add" for operation in operations):
        return
    if not whole.is_moderate:
        rewriting.refused(product.operation, "a scale or shift after it is too large or too small")
        return
    _scale_weights(graph, rewriting, product, product.outputs, whole.scale)
    graph.replace_all_uses_with(value, product.operation.output)
    for operation in reversed(operations):
        graph.remove(operation)
    _add_shift(graph, rewriting, product, [product.operation, *operations], whole.shift)
    rewriting.applied(len(operations))


def _fold_before(graph: CompileGraph, rewriting: Rewriting, product: Product) -> None:
    """The operations before a convolution, each read by the next one alone: product(scale * x + shift)."""
    channels, operations = product.inputs, list[Operation]()
    if channels is None:
        return
    value, whole = product.operation.inputs[product.data], Affine.identity(channels)
    while value.producer is not None and len(value.uses) == 1 and not graph.is_target(value):
        found = affine_of(value.producer, channels)
        if found is None:
            break
        if found[1].shift.any() and not product.takes_shift:
            rewriting.refused(value.producer, "padding of the convolution after it is not shifted")
            break
        whole = whole.after(found[1])
        operations.insert(0, value.producer)
        value = found[0]
    if not operations:
        return
    bias = _bias(product, whole.shift)
    if not whole.is_moderate or not np.isfinite(bias).all():
        rewriting.refused(product.operation, "a scale or shift before it is too large or too small")
        return
    _scale_weights(graph, rewriting, product, channels, whole.scale)
    _set_input(graph, product.operation, product.data, value)
    for operation in reversed(operations):
        graph.remove(operation)
    _add_shift(graph, rewriting, product, [*operations, product.operation], bias)
    rewriting.applied(len(operations))


def _bias(product: Product, shift: np.ndarray) -> np.ndarray:
    """The constant that a shift of the data adds to each channel of the result."""
    weights = product.operation.inputs[product.weights].constant
    if not shift.any() or weights is None or product.inputs is None:
        return np.zeros(product.outputs.count)
    moved = weights.array() * shift.reshape(product.inputs.weights_shape)
    others = tuple(axis for axis, size in enumerate(product.outputs.weights_shape) if size == 1)
    return np.broadcast_to(moved.sum(axis=others).reshape(-1), product.outputs.count)


def _scale_weights(
    graph: CompileGraph, rewriting: Rewriting, product: Product, channels: Channels, scale: np.ndarray
) -> None:
    weights = product.operation.inputs[product.weights]
    element = weights.fact.element
    if element is None:
        raise AssertionError("constants have a type")
    if (scale == 1).all():
        return
    key = (channels.weights_shape, scale.tobytes())
    made = rewriting.derived(
        key, [weights], element, weights.fact.static_shape, lambda array: scaled(array, scale, channels.weights_shape)
    )
    made.name = weights.name
    _set_input(graph, product.operation, product.weights, made)


def _set_input(graph: CompileGraph, operation: Operation, index: int, value: CompileValue) -> None:
    graph.set_inputs(operation, [value if i == index else old for i, old in enumerate(operation.inputs)])


def _add_shift(
    graph: CompileGraph, rewriting: Rewriting, product: Product, origins: list[Operation], shift: np.ndarray
) -> None:
    """Make readers read the product with the shift added; without a shift, extend the product's layers."""
    output, element = product.operation.output, product.operation.output.fact.element
    if not shift.any() or element is None:
        product.operation.origins = tuple(dict.fromkeys(node for operation in origins for node in operation.origins))
        return
    constant = rewriting.literal(shift.reshape(product.outputs.shape).astype(element.carrier), element)
    adding = create(graph, "Add", "opset1", [output, constant], {}, origins)
    graph.replace_all_uses_with(output, adding.output)
    graph.set_inputs(adding, [output, constant])
