"""Casts, and tensors made of attributes, scalars and random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import SparseTensorProto, TensorProto

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import array_of, constant_of, element_of
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, F64, I64, STRING, Element, element
from irexec.errors import ConversionError, OpError, check
from irexec.ir.graph import Value

_LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


def cast(ctx: TranslationContext, x: Value, kind: Element, saturate: bool, round_mode: str) -> Value:
    """Conversion to another type by ONNX's rules; for types of 8 bits and less they differ from Convert's.

    Floats are rounded to integers of four and two bits, ties to even, and cut to wider ones. Source: ONNX's technical
    pages on these types.
    """
    source = ctx.element(x)
    if source is kind:
        return x
    if source.kind == "string":
        return ctx.emit("StringToNumber", x, destination_type=kind)
    if kind.kind == "string":
        return ctx.emit("AsString", x)
    if kind.name == "f8e8m0":
        return _power_of_two(ctx, x, kind, saturate, round_mode)
    if kind.name == "f4e2m1" and source.is_float:
        # NaN becomes -0, as in ml_dtypes, the source of ONNX's expected results.
        x = ctx.emit("Select", ctx.emit("IsNaN", x), ctx.constant(-0.0, x), x)
    if kind.is_integer and kind.bits < 8 and source.is_float:
        x = ctx.emit("Round", x, mode="half_to_even")
    if kind.name in _LARGEST and saturate:
        x = ctx.emit("Clamp", ctx.as_float(x), min=-_LARGEST[kind.name], max=_LARGEST[kind.name])
    return ctx.convert(x, kind)


def _power_of_two(ctx: TranslationContext, x: Value, kind: Element, saturate: bool, round_mode: str) -> Value:
    """Conversion to f8e8m0: the power of two that Convert chooses, corrected. Source: ONNX Cast-24."""
    if round_mode not in ("up", "down", "nearest"):
        raise OpError(f"round_mode is {round_mode!r}, expected up, down or nearest")
    wide = F64 if ctx.element(x) is F64 else F32
    value = Expression(ctx, ctx.convert(x, wide))
    chosen = value.to(kind).to(wide)
    below = (chosen > value).select(chosen * 0.5, chosen)
    if round_mode == "up":
        result = (below < value).select(below * 2, below)
    elif round_mode == "down":
        result = below
    else:
        result = (value < below * 1.5).select(below, below * 2)
    if not saturate:
        result = ((value > 2.0**127) | value.equals(0)).select(np.nan, result)
    return result.to(kind).value


@translates("Cast")
def cast_1(ctx: TranslationContext, x: Value, *, to: str) -> Value:
    """``to`` is the name of the type."""
    name = str(to).upper()
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 (protobuf's enum has no iterator)
        raise OpError(f"to is {to!r}, which is not a type of ONNX")
    return cast(ctx, x, element_of(TensorProto.DataType.Value(name)), True, "up")


@translates("Cast", since=6)
def cast_6(ctx: TranslationContext, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(ctx, x, element_of(to), bool(saturate), round_mode)


@translates("CastLike", since=15)
def cast_like(ctx: TranslationContext, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(ctx, x, ctx.element(like), bool(saturate), round_mode)


# Numbers of exponent and fraction bits.
_LAYOUT = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


@translates("BitCast", since=26)
def bit_cast(ctx: TranslationContext, x: Value, *, to: int) -> Value:
    """Every NaN becomes the default quiet NaN."""
    source, kind = ctx.element(x), element_of(to)
    if _width(source) != _width(kind):
        raise OpError(f"{source} has {source.bits} bits, {kind} has {kind.bits}")
    for found in (source, kind):
        if found.kind == "string" or (found.is_float and found.name not in _LAYOUT):
            raise ConversionError(f"IR cannot compute the bits of {found}", unsupported=True)
    if source.is_float and source is not kind:
        x = _bits_of(ctx, x, source)
    return _from_bits(ctx, x, kind) if kind.is_float and source is not kind else ctx.convert(x, kind)


def _width(kind: Element) -> int:
    """Number of bits; a boolean has 8."""
    return 8 if kind.kind == "boolean" else kind.bits


def _powers(ctx: TranslationContext, exponents: np.ndarray) -> Value:
    """Powers of two, indexed by an exponent field."""
    return ctx.constant(np.ldexp(1.0, exponents), F64)


def _lookup(ctx: TranslationContext, table: Value, field: Expression) -> Expression:
    return Expression(ctx, ctx.emit("Gather", table, field.value, ctx.constant(0)))


def _bits_of(ctx: TranslationContext, x: Value, kind: Element) -> Value:
    """The bits as an i64, negative for negative values."""
    exponent, fraction = _LAYOUT[kind.name]
    bias, top = 2 ** (exponent - 1) - 1, 2**exponent - 1
    value = Expression(ctx, ctx.convert(x, F64))
    size = abs(value)
    edges = np.append(np.ldexp(1.0, np.arange(1, top) - bias), np.inf)
    field = Expression(
        ctx, ctx.emit("Bucketize", size.value, ctx.constant(edges, F64), output_type="i64", with_right_bound=False)
    )
    lift = fraction + bias - np.maximum(np.arange(top + 1), 1)
    # Two factors, since the largest power is beyond the range of f64.
    scaled = size * _lookup(ctx, _powers(ctx, lift // 2), field) * _lookup(ctx, _powers(ctx, lift - lift // 2), field)
    special = field.equals(top)
    nan = Expression(ctx, ctx.emit("NotEqual", value.value, value.value)).to(F64) * 2.0 ** (fraction - 1)
    part = special.select(nan, scaled - (field > 0).to(F64) * 2.0**fraction)
    bits = field * 2**fraction + part.to(I64)
    negative = (value < 0) | (1.0 / value).equals(float("-inf"))
    lowest = -(2 ** (exponent + fraction))
    return negative.select(bits + lowest, bits).value


def _from_bits(ctx: TranslationContext, x: Value, kind: Element) -> Value:
    exponent, fraction = _LAYOUT[kind.name]
    bias, top = 2 ** (exponent - 1) - 1, 2**exponent - 1
    # Signed integers, whose sign is the sign bit.
    bits = Expression(ctx, ctx.convert(ctx.convert(x, element(f"i{kind.bits}")), I64))
    negative = bits < 0
    bits = _masked(bits, 2 ** (exponent + fraction) - 1)
    field = Expression(ctx, ctx.emit("BitwiseRightShift", bits.value, ctx.constant(fraction)))
    part = _masked(bits, 2**fraction - 1)
    down = np.maximum(np.arange(top + 1), 1) - bias - fraction
    size = (part + (field > 0).to(I64) * 2**fraction).to(F64) * _lookup(ctx, _powers(ctx, down), field)
    infinity = Expression(ctx, ctx.constant(float("inf"), F64))
    size = field.equals(top).select(part.equals(0).select(infinity, size * 0 + float("nan")), size)
    return negative.select(-size, size).to(kind).value


def _masked(bits: Expression, mask: int) -> Expression:
    ctx = bits.ctx
    return Expression(ctx, ctx.emit("BitwiseAnd", bits.value, ctx.constant(mask)))


_LARGEST_CONSTANT = 1 << 16


@translates("Constant")
def constant(
    ctx: TranslationContext, *, value: TensorProto | None = None, sparse_value: SparseTensorProto | None = None,
    value_float: float | None = None, value_floats: list[float] | None = None, value_int: int | None = None,
    value_ints: list[int] | None = None, value_string: str | None = None, value_strings: list[str] | None = None,
) -> Value:  # fmt: skip
    """The value of the only attribute."""
    tensors = [tensor for tensor in (value, sparse_value) if tensor is not None]
    listed = ((F32, value_float, value_floats), (I64, value_int, value_ints), (STRING, value_string, value_strings))
    values = [(one, kind) for kind, *both in listed for one in both if one is not None]
    if len(tensors) + len(values) != 1:
        raise OpError(f"it has {len(tensors) + len(values)} values, expected one")
    if tensors:
        return ctx.builder.raw_constant(constant_of(tensors[0], None), ctx.name)
    one, kind = values[0]
    return ctx.constant(np.asarray(one, kind.carrier), kind)


@translates("ConstantOfShape", since=9)
def constant_of_shape(ctx: TranslationContext, shape: Value, *, value: TensorProto | None = None) -> Value:
    """A constant if the shape is a small constant, else a Broadcast."""
    array, kind = (np.zeros(1, np.float32), F32) if value is None else array_of(value)
    if array.size != 1:
        raise OpError(f"value has {array.size} elements, expected 1")
    sizes = ctx.ints_if_known(shape) if shape.node.constant is not None else None
    if sizes is not None and min(sizes, default=0) >= 0 and math.prod(max(n, 1) for n in sizes) <= _LARGEST_CONSTANT:
        return ctx.constant(np.full(sizes, array.reshape(-1)[0], array.dtype), kind)
    return ctx.full(ctx.constant(array.reshape(()), kind), shape)


@translates("Range", since=11)
def range_11(ctx: TranslationContext, start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    """A range; 16-bit floats are computed in f32."""
    kind = ctx.element(start)
    wide = F32 if kind in (F16, BF16) and stash_type == 1 else kind
    scalars = [ctx.convert(ctx.scalar(value), wide) for value in (start, limit, delta)]
    return ctx.convert(ctx.emit("Range", *scalars, output_type=wide), kind)


@translates("OneHot", since=9)
def one_hot(ctx: TranslationContext, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """One-hot encoding of indices of any numeric type; negative indices count from the end."""
    if not ctx.element(indices).is_integer:
        indices = ctx.convert(indices, I64)
    depth = ctx.scalar(ctx.convert(depth, I64))
    off, on = (ctx.emit("Gather", values, ctx.constant(i), ctx.constant(0)) for i in (0, 1))
    return ctx.emit("OneHot", indices, depth, on, off, axis=axis, negative_indices_mode="normalize")


@translates("EyeLike", since=9)
def eye_like(ctx: TranslationContext, x: Value, *, dtype: int = 0, k: int = 0) -> Value:
    """A matrix of the shape of ``x`` with ones on the k-th diagonal."""
    kind = element_of(dtype) if dtype else ctx.element(x)
    if ctx.rank(x) != 2:
        raise OpError(f"the input {ctx.fact(x)} is not a matrix")
    return ctx.emit("Eye", ctx.size(x, 0), ctx.size(x, 1), ctx.constant(k), output_type=kind)


def _uniform_values(
    ctx: TranslationContext, shape: Value, kind: Element, seed: float | None, stream: int = 1
) -> Expression:
    """Uniform values in [0, 1). ``stream`` distinguishes the random tensors of one node."""
    limits = ctx.constant(0, kind), ctx.constant(1, kind)
    return Expression(ctx, ctx.emit("RandomUniform", shape, *limits, output_type=kind, **_seeds(seed, stream)))


def _seeds(seed: float | None, stream: int = 1) -> dict[str, Any]:
    """The seeds of an operation in 64 bits; none without a seed, so that every run differs."""
    if seed is None:
        return {}
    check(math.isfinite(seed), f"the seed is {seed}, expected a finite value")
    return {"global_seed": int(abs(seed)) % (1 << 63), "op_seed": stream}


def _kind(dtype: int | None, x: Value | None, ctx: TranslationContext) -> Element:
    found = element_of(dtype) if dtype else F32 if x is None else ctx.element(x)
    if not found.is_float:
        raise OpError(f"random values of {found} are not defined")
    return found


@translates("RandomUniform")
def random_uniform(
    ctx: TranslationContext, *, shape: list[int], dtype: int = 1, high: float = 1.0, low: float = 0.0,
    seed: float | None = None,
) -> Value:  # fmt: skip
    return _uniform(ctx, ctx.constant(list(shape)), _kind(dtype, None, ctx), low, high, seed)


@translates("RandomUniformLike")
def random_uniform_like(
    ctx: TranslationContext, x: Value, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
    seed: float | None = None,
) -> Value:  # fmt: skip
    return _uniform(ctx, ctx.shape_of(x), _kind(dtype, x, ctx), low, high, seed)


def _uniform(
    ctx: TranslationContext, shape: Value, kind: Element, low: float, high: float, seed: float | None
) -> Value:
    return (_uniform_values(ctx, shape, kind, seed) * (high - low) + low).value


@translates("RandomNormal")
def random_normal(
    ctx: TranslationContext, *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None,
) -> Value:  # fmt: skip
    return _normal(ctx, ctx.constant(list(shape)), _kind(dtype, None, ctx), mean, scale, seed)


@translates("RandomNormalLike")
def random_normal_like(
    ctx: TranslationContext, x: Value, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None,
) -> Value:  # fmt: skip
    return _normal(ctx, ctx.shape_of(x), _kind(dtype, x, ctx), mean, scale, seed)


def _normal(
    ctx: TranslationContext, shape: Value, kind: Element, mean: float, scale: float, seed: float | None
) -> Value:
    """The Box-Muller transform of two uniform values. Source: Box and Muller, 1958."""
    wide = F64 if kind is F64 else F32
    radius = ((1 - _uniform_values(ctx, shape, wide, seed)).log() * -2).sqrt()
    angle_cosine = (_uniform_values(ctx, shape, wide, seed, 2) * (2 * math.pi)).cos()
    return (radius * angle_cosine * scale + mean).to(kind).value


@translates("Bernoulli", since=15)
def bernoulli(ctx: TranslationContext, x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """1 with the probability in the input, else 0."""
    wide = F64 if ctx.element(x) is F64 else F32
    hit = _uniform_values(ctx, ctx.shape_of(x), wide, seed) < Expression(ctx, ctx.convert(x, wide))
    return hit.to(element_of(dtype) if dtype else ctx.element(x)).value


@translates("Multinomial", since=7)
def multinomial(
    ctx: TranslationContext, x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Value:
    """Classes by the logarithms of their probabilities, which need not be normalized."""
    kind = element_of(dtype)
    options = {"convert_type": kind.name, "with_replacement": True, "log_probs": True} | _seeds(seed)
    classes = ctx.emit("Multinomial", x, ctx.constant(sample_size), **options)
    return ctx.convert(classes, kind)


@translates("Dropout")
@translates("Dropout", since=7, without=["is_test"])
def dropout_1(ctx: TranslationContext, x: Value, *, ratio: float = 0.5, is_test: int = 0) -> tuple[Value, ...]:
    """``is_test`` is ignored, as by every runtime."""
    return _unchanged(ctx, x)


@translates("Dropout", since=12)
def dropout_12(
    ctx: TranslationContext, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *,
    seed: int | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    mode, share = ctx.known(training_mode), ctx.known(ratio)
    if training_mode is None or (mode is not None and not mode.any()) or (share is not None and not share.any()):
        return _unchanged(ctx, x)
    return _dropped(ctx, x, ctx.constant(0.5) if ratio is None else ratio, training_mode, seed or 0)


def _unchanged(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """The input, and a mask of ones if the node has that output."""
    if not ctx.needs_output(1):
        return (x,)
    kind = BOOLEAN if ctx.opset >= 10 else ctx.element(x)
    return x, ctx.full(ctx.constant(np.ones((), kind.carrier), kind), ctx.shape_of(x))


def _dropped(ctx: TranslationContext, x: Value, ratio: Value, training_mode: Value, seed: int) -> tuple[Value, ...]:
    """Dropout in training: elements dropped with probability ``ratio``, the others scaled by 1 / (1 - ratio)."""
    share = ctx.scalar(ctx.convert(ratio, F32))
    limits: dict[str, Any] = {"output_type": F32, "global_seed": seed, "op_seed": 0}
    random = ctx.emit("RandomUniform", ctx.shape_of(x), ctx.constant(0.0), ctx.constant(1.0), **limits)
    mask = ctx.emit(
        "LogicalOr", ctx.emit("GreaterEqual", random, share), ctx.emit("LogicalNot", ctx.scalar(training_mode))
    )
    scale = ctx.convert(
        ctx.emit("Divide", ctx.constant(1.0), ctx.emit("Subtract", ctx.constant(1.0), share)), ctx.element(x)
    )
    trained = ctx.emit("Select", mask, ctx.emit("Multiply", x, scale), ctx.constant(0, x))
    return ctx.emit("Select", ctx.scalar(training_mode), trained, x), mask
