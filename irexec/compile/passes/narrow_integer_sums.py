"""Write products of integers minus their zero points as products of floats with a step of 1, as DequantizeLinear would.

    Convert(levels) - zero point -> Convolution, MatMul with Convert(weights) - zero point -> [Add] -> [Convert to f32]

ONNX's QLinearConv and its like are converted so, in f64 where f32 would not hold the sums. Computed in integers they
are exact, so that f32 is enough for what follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.levels import PRODUCTS
from irexec.compile.passes.compute_in_integers import DEEPEST, may_use_integers
from irexec.compile.passes.fold_constants import fold
from irexec.compile.rewriting import Rewriting, create
from irexec.compile.select import is_static
from irexec.dtypes.elements import F32, F64, I8, U8


def narrow_integer_sums(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Rewrite the products, where they may be computed in integers."""
    if not may_use_integers(graph, rewriting):
        return
    for operation in graph.order():
        is_product = operation.type in PRODUCTS and operation in graph and is_static(operation)
        if is_product and operation.output.fact.element in (F32, F64):
            _narrow(graph, rewriting, operation)


@dataclass(frozen=True)
class _Centred:
    """Integers minus a zero point, and the Reshape that follows it."""

    levels: CompileValue
    zero: np.ndarray
    reshape: Operation | None


def _narrow(graph: CompileGraph, rewriting: Rewriting, product: Operation) -> None:
    data, weights = (_centred(graph, rewriting, value) for value in product.inputs[:2])
    if data is None or weights is None or len(product.inputs) > 2 or data.reshape is not None or data.zero.size != 1:
        return
    stored = weights.levels.constant
    if stored is None or data.levels.constant is not None or not _fits(weights, product):
        return
    ends = [] if product.output.fact.element is F32 else _ends(graph, rewriting, product)
    if ends is None:
        rewriting.refused(product, "its sums of integers are read in f64")
        return

    def made(type: str, *inputs: CompileValue, **attributes: object) -> CompileValue:
        return create(graph, type, "opset1", inputs, attributes, [product]).output

    def floats(one: _Centred) -> CompileValue:
        value = made("Convert", one.levels, destination_type=F32)
        value = made("Subtract", value, rewriting.literal(one.zero.astype(np.float32), F32))
        step = np.ones((1,) * len(one.levels.fact.static_shape), np.float32)
        value = made("Multiply", value, rewriting.literal(step, F32))
        if one.reshape is None:
            return value
        return made("Reshape", value, one.reshape.inputs[1], special_zero=one.reshape.attributes["special_zero"])

    assert product.definition is not None, "products have definitions"
    attributes = product.definition.ungrouped(product.attributes)
    definition = product.definition
    value = create(
        graph, definition.type, definition.version, [floats(data), floats(weights)], attributes, [product]
    ).output
    for end in ends:
        if end.type == "Add":
            other = next(one for one in end.inputs if one.constant is not None)
            value = made("Add", value, made("Convert", other, destination_type=F32))
    graph.replace_all_uses_with((ends[-1] if ends else product).output, value)
    graph.remove_unused()
    rewriting.applied()


def _centred(graph: CompileGraph, rewriting: Rewriting, value: CompileValue) -> _Centred | None:
    """The integers of 8 bits of which a value is the floats; None for others."""
    reshape = value.producer if value.producer is not None and value.producer.type == "Reshape" else None
    centred = value.producer if reshape is None else reshape.inputs[0].producer
    if centred is None or centred.type != "Subtract":
        return None
    converted, zero = centred.inputs[0].producer, _folded(graph, rewriting, centred.inputs[1])
    if converted is None or converted.type != "Convert" or zero is None or not (zero == np.rint(zero)).all():
        return None
    moved = converted.inputs[0].producer
    if moved is not None and moved.type == "Transpose":
        # A matrix of weights may be transposed.
        _folded(graph, rewriting, converted.inputs[0])
        if (made := converted.inputs[0].constant) is not None:
            made.hold_bytes()
    levels = converted.inputs[0]
    is_stored = levels.fact.element in (U8, I8) and levels.fact.shape == centred.output.fact.shape
    return _Centred(levels, zero, reshape) if is_stored else None


def _folded(graph: CompileGraph, rewriting: Rewriting, value: CompileValue) -> np.ndarray | None:
    """The value of small constants, or of what is computed of them."""
    waiting, found = [value], list[Operation]()
    while waiting:
        producer = waiting.pop().producer
        if producer is not None and producer not in found:
            found.append(producer)
            waiting += producer.inputs
    if len(found) > 4 or not all(one.is_pure for one in found):
        return None
    reader = value.readers[0] if value.readers else None
    index = next(i for i, one in enumerate(reader.inputs) if one is value) if reader is not None else 0
    for one in reversed(found):
        fold(graph, one, rewriting)
    held = value if reader is None else reader.inputs[index]
    return held.constant.array() if held.constant is not None else None


def _fits(weights: _Centred, product: Operation) -> bool:
    """Whether the weights minus their zero points are integers of 8 bits, and a sum of products fits 32 bits."""
    assert weights.levels.constant is not None, "weights are constants"
    values = weights.levels.constant.array().astype(np.int32) - weights.zero.astype(np.int32)
    channels = max(weights.levels.fact.static_shape)
    is_small = math.prod(weights.levels.fact.static_shape) // max(1, channels) <= DEEPEST
    return is_small and values.min(initial=0) >= -128 and values.max(initial=0) <= 127


def _ends(graph: CompileGraph, rewriting: Rewriting, product: Operation) -> list[Operation] | None:
    """The addition of a constant, if any, and the conversion to f32 that follow sums in f64; None for others."""
    found: list[Operation] = []
    value = product.output
    while len(value.readers) == 1 and not graph.is_target(value):
        reader = value.readers[0]
        found.append(reader)
        if reader.type == "Convert":
            return found if reader.output.fact.element is F32 else None
        others = [one for one in reader.inputs if one is not value]
        if reader.type != "Add" or len(found) > 1 or len(others) != 1 or _folded(graph, rewriting, others[0]) is None:
            return None
        value = reader.output
    return None
