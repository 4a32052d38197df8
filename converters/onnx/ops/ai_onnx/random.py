"""Random tensors and Dropout, which drops nothing except in training mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import BOOLEAN, F32, F64, Element
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
