"""BitCast: the bits of a value read as another type, computed by arithmetic, since IR lacks the operation."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F64, I64, Element, element
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value

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
