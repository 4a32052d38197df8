"""Casts, by value and by bits."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F32, F64, I64, Element, element
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value

_LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


def cast(ctx: TranslationContext, x: Value, kind: Element, saturate: bool, round_mode: str) -> Value:
    """Conversion to another type by ONNX's rules; for floats of 8 bits and less they differ from Convert's."""
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
