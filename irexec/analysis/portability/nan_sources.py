"""Where NaN comes from in a model whose inputs have none: divisions, roots, logarithms and constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Value

_MOVES = {
    "Broadcast", "Concat", "Convert", "Gather", "Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Tile",
    "Transpose", "Unsqueeze", "VariadicSplit",
}  # fmt: skip
_KEEPS_NAN = _MOVES | {"Abs", "Add", "Multiply", "Negative", "Subtract"}
_POSITIVE = {"Exp", "Sigmoid", "SoftPlus", "Softmax", "SoftMax"}
_NOT_NEGATIVE = {"Abs", "Relu", "ReLU", "ReduceL1", "ReduceL2", "ReduceSumSquare"}
_SMALLEST = 1e-45


def may_have_nan(value: Value, facts: Mapping[Value, Fact]) -> bool:
    """Whether a value may have NaN though the inputs of the model have none.

    False for a value that comes from layers that neither move elements nor add, subtract or multiply them.
    """
    waiting, seen = [value], set[Value]()
    while waiting:
        one = waiting.pop()
        element = facts[one].element if one in facts else None
        if one in seen or element is None or not element.is_float:
            continue
        seen.add(one)
        if _makes_nan(one):
            return True
        if one.node.type in _KEEPS_NAN:
            waiting += [source for source in one.node.inputs if source is not None]
    return False


def _makes_nan(value: Value) -> bool:
    """Whether a layer has NaN, or gives it for finite operands, as far as their bounds are known."""
    node = value.node
    array = _constant(value)
    if array is not None:
        return bool(np.isnan(array).any())
    first, second = (*node.inputs, None, None)[:2]
    match node.type:
        case "Divide" | "Mod" | "FloorMod":
            divisor = _constant(second)
            return not (_is_bounded(second, _SMALLEST) if divisor is None else divisor.all())
        case "Sqrt" | "Log":
            return not _is_bounded(first, 0)
        case "Power":
            exponent = _constant(second)
            is_whole = exponent is not None and not (exponent % 1).any()
            return not is_whole and not _is_bounded(first, 0)
    return node.type in ("Acos", "Acosh", "Asin", "Atanh")


def _is_bounded(value: Value | None, minimum: float) -> bool:
    """Whether each element is known to be ``minimum`` or larger, for a minimum near 0.

    The sum with a positive constant counts as positive: the constant is the epsilon of a normalisation.
    """
    while value is not None:
        node, array = value.node, _constant(value)
        if array is not None:
            return bool((array >= minimum).all())
        if node.type == "Clamp":
            return float(node.attributes.get("min", "nan")) >= minimum
        is_square = node.type == "Multiply" and node.inputs[0] is node.inputs[1]
        if is_square or node.type in _NOT_NEGATIVE:
            return minimum <= 0
        computed = [one for one in node.inputs if not _is_positive_constant(one)]
        if node.type in _POSITIVE or (node.type in ("Add", "Maximum") and len(computed) < len(node.inputs)):
            return True
        if node.type in _MOVES or node.type.startswith("Reduce") or node.type == "Sqrt":
            value = node.inputs[0]
        elif node.type in ("Multiply", "Divide") and len(computed) == 1:
            value = computed[0]
        else:
            return False
    return False


def _is_positive_constant(value: Value | None) -> bool:
    array = _constant(value)
    return array is not None and bool((array > 0).all())


def _constant(value: Value | None) -> np.ndarray | None:
    """The elements of a constant of numbers; None of any other value."""
    constant = None if value is None else value.node.constant
    return None if constant is None or constant.element.kind == "string" else constant_value(constant)
