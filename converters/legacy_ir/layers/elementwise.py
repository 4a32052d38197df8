"""Element-wise layers: ScaleShift, Power, Eltwise, and functions of one input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import NoEquivalentError, WrongAttributeError
from converters.legacy_ir.registry import parsed, translates
from irexec.dtypes.elements import F32, I32
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.messages import listed
from irexec.schema.attributes import Floats


@translates("ScaleShift")
def scale_shift(layer: Layer, data: Value, weights: Value | None = None, biases: Value | None = None) -> Value:
    """x * weights + biases, by channel (axis 1)."""
    data = layer.f32(data)
    scaled: Value = layer.emit("Multiply", data, by_channel(layer, "weights", weights, data), version=1)
    if biases is None and not layer.has_blob("biases"):
        return scaled
    return layer.emit("Add", scaled, by_channel(layer, "biases", biases, data), version=1)


def by_channel(layer: Layer, tag: str, given: Value | None, data: Value) -> Value:
    """One number for each channel of the data, or one for all, that broadcasts along axis 1: an input or a blob."""
    shape = layer.shape(data)
    count = layer.blob_count(tag) if given is None else math.prod(layer.shape(given))
    channels = shape[1] if len(shape) > 1 else shape[0]
    check(count in (1, channels), f"the {tag} have {count} elements, the input {channels} channels")
    target = (count, *[1] * max(0, len(shape) - 2))
    if given is None:
        return layer.blob(tag, target)
    return layer.reshaped(layer.f32(given), target)


@translates("Power")
def power(layer: Layer, data: Value, *, power: float, scale: float, shift: float) -> Value:
    """(shift + scale * x) ** power."""
    value = layer.f32(data)
    if scale != 1:
        value = layer.emit("Multiply", value, layer.constant(scale, F32), version=1)
    if shift != 0 or power < 0:
        # 0 + -0 is 0, whose negative powers are not those of -0.
        value = layer.emit("Add", value, layer.constant(shift, F32), version=1)
    return value if power == 1 else layer.emit("Power", value, layer.constant(power, F32), version=1)


_ARITHMETIC = {
    "sum": "Add", "add": "Add", "mul": "Multiply", "prod": "Multiply", "max": "Maximum", "min": "Minimum",
    "sub": "Subtract", "div": "Divide", "pow": "Power", "squared_diff": "SquaredDifference", "floor_mod": "FloorMod",
}  # fmt: skip
_COMPARISONS = {
    "equal": "Equal", "not_equal": "NotEqual", "less": "Less", "less_equal": "LessEqual", "greater": "Greater",
    "greater_equal": "GreaterEqual",
}  # fmt: skip
_LOGICAL = {"logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_xor": "LogicalXor"}


@translates("Eltwise")
def eltwise(layer: Layer, *inputs: Value, operation: str = "sum", coeff: Floats = ()) -> Value:
    """The inputs combined from the left, with NumPy's broadcasting; ``coeff`` are the factors of a sum.

    The engines ignore the factors of inputs that have different sizes.
    """
    operation = operation.lower()
    check(len(inputs) > 0, "the layer has no input")
    if operation == "logical_not":
        return layer.emit("LogicalNot", layer.boolean(inputs[0]), version=1)
    if operation in _LOGICAL:
        return _folded(layer, _LOGICAL[operation], [layer.boolean(value) for value in inputs])
    if operation not in _ARITHMETIC and operation not in _COMPARISONS:
        raise WrongAttributeError(f"operation {operation!r} is not one of {listed([*_ARITHMETIC, *_COMPARISONS], 20)}")
    kinds = {layer.kind(value) for value in inputs}
    values = [layer.f32(value) for value in inputs] if len(kinds) > 1 else list(inputs)
    if operation in _COMPARISONS:
        return _folded(layer, _COMPARISONS[operation], values)
    if operation == "floor_mod" and kinds == {I32}:
        layer.note(
            legacy_codes.AGAINST_DESCRIPTION,
            "floor_mod of the engines has the sign of the dividend; here, as its name says, that of the divisor",
        )
    if coeff and len({layer.shape(value) for value in values}) == 1:
        values = _scaled(layer, values, operation, coeff)
    return _folded(layer, _ARITHMETIC[operation], values)


def _scaled(layer: Layer, values: Sequence[Value], operation: str, coeff: Floats) -> list[Value]:
    if operation not in ("sum", "add"):
        raise WrongAttributeError(f"coeff is for a sum, the operation is {operation}")
    if len(coeff) != len(values):
        raise WrongAttributeError(f"coeff has {len(coeff)} numbers, the layer {len(values)} inputs")
    return [
        value if factor == 1 else layer.emit("Multiply", layer.f32(value), layer.constant(factor, F32), version=1)
        for value, factor in zip(values, coeff, strict=True)
    ]


def _folded(layer: Layer, type: str, values: Sequence[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = layer.emit(type, result, value, version=1)
    return result


@translates("ReLU")
def relu(layer: Layer, data: Value, *, negative_slope: float = 0.0) -> Value:
    """x where it is positive, else x * negative_slope."""
    if not negative_slope:
        return layer.emit("Relu", layer.f32(data), version=1)
    return layer.emit("PRelu", layer.f32(data), layer.constant([negative_slope], F32), version=1)


@translates("PReLU")
def prelu(layer: Layer, data: Value, weights: Value | None = None, *, channel_shared: bool = False) -> Value:
    """ReLU with one slope for each channel, or one for all."""
    data = layer.f32(data)
    if weights is None:
        count = layer.blob_count("weights")
        channels = layer.shape(data)[1] if layer.rank(data) > 1 else 1
        check(count in (1, channels), f"the weights have {count} elements, the input {channels} channels")
    slope = layer.blob("weights") if weights is None else layer.f32(weights)
    return layer.emit("PRelu", data, slope, version=1)


@translates("ELU")
def elu(layer: Layer, data: Value, *, alpha: float = 1.0) -> Value:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return layer.emit("Elu", layer.f32(data), version=1, alpha=alpha)


@translates("Clamp")
def clamp(layer: Layer, data: Value, *, min: float, max: float) -> Value:
    """x, at least ``min`` and at most ``max``."""
    return layer.emit("Clamp", layer.f32(data), version=1, min=min, max=max)


@translates("ReLU6")
def relu6(layer: Layer, data: Value) -> Value:
    """x between 0 and 6."""
    return clamp(layer, data, min=0.0, max=6.0)


@translates("HardSigmoid")
def hard_sigmoid(layer: Layer, data: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    """alpha * x + beta, between 0 and 1."""
    factors = [layer.constant(number, F32) for number in (alpha, beta)]
    return layer.emit("HardSigmoid", layer.f32(data), *factors, version=1)


@translates("Selu")
def selu(layer: Layer, data: Value, *, alpha: float = 1.67326, gamma: float = 1.0507) -> Value:
    """gamma * x where it is positive, else gamma * alpha * (exp(x) - 1)."""
    factors = [layer.constant(number, F32) for number in (alpha, gamma)]
    return layer.emit("Selu", layer.f32(data), *factors, version=1)


def _function(type: str, version: int) -> Callable[[Layer, Value], Value]:
    """The translator of a function of one input that is an operation."""

    def translate(layer: Layer, data: Value) -> Value:
        return layer.emit(type, layer.f32(data), version=version)

    return translate


# Layer types by the operation and version of the same function.
_FUNCTIONS = {
    "Sigmoid": ("Sigmoid", 1), "TanH": ("Tanh", 1), "Exp": ("Exp", 1), "Erf": ("Erf", 1), "Floor": ("Floor", 1),
    "Ceil": ("Ceiling", 1), "Sin": ("Sin", 1), "Cos": ("Cos", 1), "Tan": ("Tan", 1), "Asin": ("Asin", 1),
    "Acos": ("Acos", 1), "Atan": ("Atan", 1), "Sinh": ("Sinh", 1), "Cosh": ("Cosh", 1), "Asinh": ("Asinh", 4),
    "Acosh": ("Acosh", 4), "Atanh": ("Atanh", 4), "Sign": ("Sign", 1), "Neg": ("Negative", 1), "Log": ("Log", 1),
    "Abs": ("Abs", 1), "Softplus": ("SoftPlus", 4), "Softsign": ("SoftSign", 9),
}  # fmt: skip
for _type, (_operation, _version) in _FUNCTIONS.items():
    translates(_type)(_function(_operation, _version))


translates("Logistic")(_function("Sigmoid", 1))


@translates("Swish")
def swish(layer: Layer, data: Value, *, alpha: float = 1.0) -> Value:
    """x * sigmoid(alpha * x)."""
    return layer.emit("Swish", layer.f32(data), layer.constant(alpha, F32), version=4)


@translates("Reciprocal")
def reciprocal(layer: Layer, data: Value) -> Value:
    """1 / x."""
    return layer.emit("Divide", layer.constant(1.0, F32), layer.f32(data), version=1)


@translates("Not", "LogicalNot")
def logical_not(layer: Layer, data: Value) -> Value:
    """True where x is 0."""
    return layer.emit("LogicalNot", layer.boolean(data), version=1)


@translates("Gelu")
def gelu(layer: Layer, data: Value) -> Value:
    """Gelu, whose approximation only release 2020.4 has."""
    layer.note(legacy_codes.AGAINST_DESCRIPTION, "release 2020.4 computes Gelu by tanh within 5e-4; here it is exact")
    return layer.emit("Gelu", layer.f32(data), version=2)


@translates("Activation")
def activation(layer: Layer, data: Value, *, type: str) -> Value:
    """One of the functions that ``type`` names."""
    kind = type.lower()
    options: dict[str, Any] = {}
    if kind not in _ACTIVATIONS:
        raise NoEquivalentError(f"the engines have no activation of type {type!r}, only {listed([*_ACTIVATIONS], 20)}")
    for key in _OPTIONS.get(kind, ()):
        if key in layer.attributes:
            options[key] = parsed(key, float, layer.attributes[key])
        elif kind == "clamp":
            raise WrongAttributeError(f"the attribute {key} is missing")
    return _ACTIVATIONS[kind](layer, data, **options)


_OPTIONS = {"relu": ("negative_slope",), "elu": ("alpha",), "clamp": ("min", "max")}
_ACTIVATIONS: dict[str, Any] = {
    "sigmoid": _function("Sigmoid", 1), "logistic": _function("Sigmoid", 1),
    "tanh": _function("Tanh", 1), "exp": _function("Exp", 1), "elu": elu, "relu": relu,
    "relu6": relu6, "clamp": clamp, "prelu": prelu, "not": logical_not,
}  # fmt: skip
