"""Random values. A seed makes them the same in every run, but not in every runtime."""

from __future__ import annotations

import math
from typing import Any

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F32, F64, Element
from irexec.errors import OpError, check
from irexec.ir.graph import Value


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
