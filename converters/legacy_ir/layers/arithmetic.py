"""Arithmetic: element-wise layers, matrix products, reductions, normalisation and SoftMax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.convolution import with_biases
from converters.legacy_ir.layers.shapes import positive
from converters.legacy_ir.registry import NoEquivalentError, WrongAttributeError, parsed, translates
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.messages import listed
from irexec.schema.attributes import Floats, Positive


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
        if operation not in ("sum", "add"):
            raise WrongAttributeError(f"coeff is for a sum, the operation is {operation}")
        if len(coeff) != len(values):
            raise WrongAttributeError(f"coeff has {len(coeff)} numbers, the layer {len(values)} inputs")
        values = [
            value if factor == 1 else layer.emit("Multiply", layer.f32(value), layer.constant(factor, F32), version=1)
            for value, factor in zip(values, coeff, strict=True)
        ]
    return _folded(layer, _ARITHMETIC[operation], values)


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


@translates("FullyConnected", "InnerProduct")
def fully_connected(
    layer: Layer, data: Value, weights: Value | None = None, biases: Value | None = None, *, out_size: int
) -> Value:
    """Weights [out_size, all axes of the input but the first]; the output has two axes."""
    data = layer.f32(data)
    shape = layer.shape(data)
    check(len(shape) > 1, f"the input has rank {len(shape)}, expected 2 or more")
    inner = math.prod(shape[1:])
    if len(shape) > 2:
        data = layer.emit("Reshape", data, layer.constant([0, inner]), version=1, special_zero=True)
    sizes = (out_size, inner)
    matrix = layer.blob("weights", sizes) if weights is None else layer.reshaped(layer.f32(weights), sizes)
    product = layer.emit("MatMul", data, matrix, version=1, transpose_a=False, transpose_b=True)
    return with_biases(layer, product, biases, out_size)


@translates("Gemm")
def gemm(
    layer: Layer, a: Value, b: Value, c: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transpose_a: bool = False, transpose_b: bool = False,
) -> Value:  # fmt: skip
    """alpha * op(a) op(b) + beta * c, over batches that broadcast."""
    product: Value = layer.emit(
        "MatMul", layer.f32(a), layer.f32(b), version=1, transpose_a=transpose_a, transpose_b=transpose_b
    )
    if alpha != 1:
        product = layer.emit("Multiply", product, alpha, version=1)
    if c is None:
        return product
    addend = layer.f32(c)
    if beta != 1:
        addend = layer.emit("Multiply", addend, beta, version=1)
    total: Value = layer.emit("Add", product, addend, version=1)
    return total


def _reduction(type: str) -> Callable[..., Value]:
    def translate(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
        if type.startswith("ReduceLogical"):
            data = layer.boolean(data)
        if type == "ReduceMax":
            layer.note(
                legacy_codes.AGAINST_DESCRIPTION, "ReduceMax of the engines gives 0 in place of a negative maximum"
            )
        return layer.emit(type, data, layer.i64(axes), version=4, keep_dims=keep_dims)

    return translate


for _name in ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2"):
    translates(f"Reduce{_name}")(_reduction(f"Reduce{_name}"))
translates("ReduceAnd")(_reduction("ReduceLogicalAnd"))
translates("ReduceOr")(_reduction("ReduceLogicalOr"))


@translates("ReduceSumSquare")
def reduce_sum_square(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Sum of squares."""
    squares = layer.emit("Multiply", data, data, version=1)
    return layer.emit("ReduceSum", squares, layer.i64(axes), version=1, keep_dims=keep_dims)


@translates("ReduceLogSum")
def reduce_log_sum(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Logarithm of the sum."""
    total = layer.emit("ReduceSum", layer.f32(data), layer.i64(axes), version=1, keep_dims=keep_dims)
    return layer.emit("Log", total, version=1)


@translates("ReduceLogSumExp")
def reduce_log_sum_exp(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Logarithm of the sum of exponentials."""
    powers = layer.emit("Exp", layer.f32(data), version=1)
    return reduce_log_sum(layer, powers, axes, keep_dims=keep_dims)


# From this eps on, the two forms of Normalize differ by more than rounding.
_LARGE_EPS = 1e-4


@translates("BatchNormalization")
def batch_normalization(layer: Layer, data: Value, *, epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) by channel: the biases are the mean, the weights the variance."""
    data = layer.f32(data)
    variance, mean = (by_channel(layer, tag, None, data) for tag in ("weights", "biases"))
    centred = layer.emit("Subtract", data, mean, version=1)
    deviation = layer.emit("Sqrt", layer.emit("Add", variance, layer.constant(epsilon, F32), version=1), version=1)
    return layer.emit("Divide", centred, deviation, version=1)


@translates("Norm", "LRN")
def norm(
    layer: Layer, data: Value, *, alpha: float, beta: float, local_size: Positive = 1,
    region: Literal["across", "same"], k: float = 1.0,
) -> Value:  # fmt: skip
    """x / (k + alpha * mean of the squares in a window) ** beta; over channels, or over the last two axes."""
    axes = [1] if region == "across" else [2, 3]
    return layer.emit(
        "LRN", layer.f32(data), layer.constant(axes, I64), version=1, alpha=alpha, beta=beta, bias=k, size=local_size
    )


@translates("Normalize")
def normalize(
    layer: Layer, data: Value, *, across_spatial: bool = False, channel_shared: bool = False, eps: float = 1e-10
) -> Value:
    """x * weights / sqrt(sum of squares + eps), over channels or over all axes but the first.

    With ``channel_shared`` the first weight counts.
    """
    data = layer.f32(data)
    if eps >= _LARGE_EPS:
        layer.note(
            legacy_codes.ENGINES_DIFFER,
            f"release 2020.4 adds eps {eps:g} to the root, release 2020.1 to the sum of squares; here it is the sum",
        )
    axes = list(range(1, layer.rank(data))) if across_spatial else [1]
    scaled = layer.emit("NormalizeL2", data, layer.constant(axes, I64), version=1, eps=eps, eps_mode="add")
    weights = None
    if channel_shared and layer.blob_count("weights") > 1:
        ends = [layer.constant([end], I64) for end in (0, 1)]
        weights = layer.emit(
            "StridedSlice", layer.blob("weights"), *ends, version=1, begin_mask=(0,), end_mask=(0,)
        )  # fmt: skip
    return layer.emit("Multiply", scaled, by_channel(layer, "weights", weights, data), version=1)


@translates("MVN")
def mvn(
    layer: Layer, data: Value, *, across_channels: bool = False, normalize_variance: bool | None = None,
    eps: float = 1e-9,
) -> Value:  # fmt: skip
    """(x - mean) / sqrt(variance + eps), over the spatial axes and perhaps the channels."""
    if normalize_variance is None:
        layer.note(
            legacy_codes.ENGINES_DIFFER,
            "without normalize_variance the engines divide by the deviation, the description of the layer does not; "
            "here as the engines",
        )
    return layer.emit(
        "MVN", layer.f32(data), version=2, across_channels=across_channels,
        normalize_variance=normalize_variance is not False, eps=max(eps, float(np.finfo(np.float32).tiny)),
    )  # fmt: skip


@translates("GRN")
def grn(layer: Layer, data: Value, *, bias: float) -> Value:
    """x / sqrt(sum of squares over channels + bias)."""
    return layer.emit("GRN", layer.f32(data), version=1, bias=bias)


@translates("SoftMax")
def softmax(layer: Layer, data: Value, *, axis: int = 1) -> Value:
    """exp(x), divided by its sum along an axis."""
    data = layer.f32(data)
    return layer.emit("Softmax", data, version=1, axis=positive(axis, layer.rank(data)))


@translates("LogSoftmax")
def log_softmax(layer: Layer, data: Value, *, axis: int = -1) -> Value:
    """The logarithm of SoftMax; both releases take the last axis unless one is given."""
    data = layer.f32(data)
    return layer.emit("LogSoftmax", data, version=5, axis=positive(axis, layer.rank(data)))
