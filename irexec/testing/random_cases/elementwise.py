"""Random models of arithmetic, comparison, logic, functions, activations and promoted types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.random_cases import FLOATS, INTEGERS, NUMBERS, CaseGenerator, Shape, Table

RANDOM_CASES = Table()
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Maximum", "Minimum", "SquaredDifference")
_QUOTIENTS = ("Divide", "Mod", "FloorMod")
_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
_WIDE = (*FLOATS, *INTEGERS)
AXIS = "auto_broadcast.auto_broadcast_axis"


def _shapes(gen: CaseGenerator) -> tuple[Shape, Shape, dict[str, Any]]:
    """Two shapes, and the attributes that say how they broadcast."""
    mode = gen.pick(None, "numpy", "numpy", "none", "pdpd")
    if mode == "none":
        shape = gen.shape()
        return shape, shape, {"auto_broadcast": mode}
    if mode == "pdpd":
        first = gen.shape(1)
        axis = gen.pdpd_axis(first)
        return first, gen.aligned(first, axis), {"auto_broadcast": mode, AXIS: axis}
    return *gen.pair(), {"auto_broadcast": mode}


def _divisor(divisor: Typed) -> Typed:
    """Integers are not divided by 0, nor the lowest of them by -1."""
    if divisor.array.dtype.kind == "f":
        return divisor
    array = divisor.array.copy()
    array[(array == 0) | (array == -1 if array.dtype.kind == "i" else False)] = 3
    return Typed(divisor.element, array)


@RANDOM_CASES.row(*((type, 1) for type in (*_ARITHMETIC, *_COMPARISONS)))
def binary(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    kind = gen.pick(*_WIDE, *(("boolean",) if gen.type in ("Equal", "NotEqual") else ()))
    random_tensor = gen.special if gen.chance() else gen.steps
    return gen.model(random_tensor(a, kind), random_tensor(b, kind), **mode)


@RANDOM_CASES.row(*((type, 1) for type in _QUOTIENTS))
def quotient(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    kind = gen.pick(*_WIDE)
    extra = {"m_pythondiv": gen.pick(None, True, False)} if gen.type == "Divide" else {}
    return gen.model(gen.steps(a, kind, -20, 20), _divisor(gen.steps(b, kind, -6, 6)), **mode, **extra)


@RANDOM_CASES.row(("Power", 1))
def power(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    kind = gen.pick(*_WIDE)
    return gen.model(gen.steps(a, kind, -4, 4), gen.steps(b, kind, 0 if kind[0] in "iu" else -3, 3), **mode)


@RANDOM_CASES.row(("LogicalAnd", 1), ("LogicalOr", 1), ("LogicalXor", 1), ("Xor", 1))
def logical(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    return gen.model(gen.tensor(a, "boolean"), gen.tensor(b, "boolean"), **mode)


@RANDOM_CASES.row(("BitwiseAnd", 13), ("BitwiseOr", 13), ("BitwiseXor", 13))
def bitwise(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    kind = gen.pick(*INTEGERS, "boolean")
    return gen.model(gen.tensor(a, kind, -100, 100), gen.tensor(b, kind, -100, 100), **mode)


@RANDOM_CASES.row(("BitwiseLeftShift", 15), ("BitwiseRightShift", 15))
def shift(gen: CaseGenerator) -> Case:
    a, b, mode = _shapes(gen)
    kind = gen.pick(*INTEGERS)
    return gen.model(gen.tensor(a, kind, 0, 100), gen.tensor(b, kind, 0, 6), **mode)


@RANDOM_CASES.row(("LogicalNot", 1), ("BitwiseNot", 13))
def negation(gen: CaseGenerator) -> Case:
    return gen.model(gen.tensor(gen.shape(), "boolean" if gen.type == "LogicalNot" else (*INTEGERS, "boolean")))


@RANDOM_CASES.row(("Select", 1))
def select(gen: CaseGenerator) -> Case:
    whole = gen.shape()
    mode, axis = gen.pick(None, "numpy", "none", "pdpd"), None
    kind = gen.pick(*_WIDE, "boolean")
    if mode == "none":
        shapes = [whole] * 3
    elif mode == "pdpd":
        axis = gen.pdpd_axis(whole)
        shapes = [gen.aligned(whole, axis), whole, gen.aligned(whole, axis)]
    else:
        shapes = [gen.shrunk(whole), gen.shrunk(whole), gen.shrunk(whole)]
    inputs = [gen.tensor(shape, each) for shape, each in zip(shapes, ("boolean", kind, kind), strict=True)]
    return gen.model(*inputs, **{"auto_broadcast": mode, AXIS: axis})


_EVERYWHERE = ("Abs", "Ceiling", "Floor", "Negative", "Relu", "Sign")
# Functions whose results of integers are rounded.
_ROUNDED = {
    "Atan": 1,
    "Asinh": 4,
    "Cos": 1,
    "Cosh": 1,
    "Erf": 1,
    "Exp": 1,
    "HSigmoid": 5,
    "HSwish": 4,
    "Sigmoid": 1,
    "Sin": 1,
    "Sinh": 1,
    "Tan": 1,
    "Tanh": 1,
}
_OF_FLOATS = {"Mish": 4, "SoftPlus": 4, "SoftSign": 9, "Gelu": 2, "IsFinite": 10, "IsNaN": 10}
# The values for which the function is defined; it takes integers too.
_BETWEEN = {
    ("Acos", 1): (-1, 1),
    ("Asin", 1): (-1, 1),
    ("Atanh", 4): (-0.99, 0.99),
    ("Acosh", 4): (1, 9),
    ("Log", 1): (0.01, 9),
    ("Sqrt", 1): (0, 9),
}


@RANDOM_CASES.row(*((type, 1) for type in _EVERYWHERE))
def of_numbers(gen: CaseGenerator) -> Case:
    return gen.model(gen.special(gen.shape(), NUMBERS))


@RANDOM_CASES.row(*_OF_FLOATS.items())
def of_floats(gen: CaseGenerator) -> Case:
    return gen.model(gen.special(gen.shape(), low=-8, high=8))


@RANDOM_CASES.row(*_ROUNDED.items())
def rounded(gen: CaseGenerator) -> Case:
    return gen.model(gen.special(gen.shape(), _WIDE, low=-8, high=8))


@RANDOM_CASES.row(*_BETWEEN)
def between(gen: CaseGenerator) -> Case:
    low, high = _BETWEEN[gen.type, gen.since]
    kind = gen.pick(*_WIDE)
    if kind in INTEGERS:
        return gen.model(gen.tensor(gen.shape(), kind, math.ceil(low), math.floor(high)))
    return gen.model(gen.special(gen.shape(), kind, low, high))


@RANDOM_CASES.row(("Round", 5))
def rounding(gen: CaseGenerator) -> Case:
    return gen.model(
        gen.pick(gen.special, gen.steps)(gen.shape(), NUMBERS),
        mode=gen.pick(None, "half_to_even", "half_away_from_zero"),
    )


@RANDOM_CASES.row(("IsInf", 10))
def infinite(gen: CaseGenerator) -> Case:
    sides = {f"detect_{side}": gen.pick(None, True, False) for side in ("negative", "positive")}
    return gen.model(gen.special(gen.shape()), **sides)


@RANDOM_CASES.row(("Gelu", 7))
def gelu(gen: CaseGenerator) -> Case:
    return gen.model(gen.special(gen.shape()), approximation_mode=gen.pick(None, "erf", "tanh", "ERF", "TANH"))


@RANDOM_CASES.row(("Elu", 1))
def elu(gen: CaseGenerator) -> Case:
    return gen.model(gen.special(gen.shape(), _WIDE), alpha=gen.pick(0.5, 1.0, 2.5, 0.0))


@RANDOM_CASES.row(("Clamp", 1))
def clamp(gen: CaseGenerator) -> Case:
    low, high = gen.pick((-1.0, 2.0), (-2.5, 0.5), (0.0, 6.0), (float("-inf"), 3.0), (-1.0, float("inf")), (0.3, 1.7))
    return gen.model(gen.special(gen.shape(), NUMBERS), min=low, max=high)


@RANDOM_CASES.row(("Swish", 4))
def swish(gen: CaseGenerator) -> Case:
    data = gen.special(gen.shape())
    beta = typed(data.element.name, gen.pick(0.5, 1.0, -2.0)) if gen.chance() else None
    return gen.model(data, beta)


@RANDOM_CASES.row(("HardSigmoid", 1), ("Selu", 1))
def two_constants(gen: CaseGenerator) -> Case:
    data = gen.special(gen.shape(), _WIDE if gen.type == "HardSigmoid" else FLOATS)
    kind = data.element.name
    integers, floats = ((1, 0), (0, 1), (2, -1 if kind[0] == "i" else 1)), ((0.2, 0.5), (1.5, 1.25), (1.0, 0.25))
    first, second = gen.pick(*(integers if kind in INTEGERS else floats))
    one = gen.chance(0.2) and gen.type == "Selu"
    return gen.model(data, typed(kind, [first] if one else first), typed(kind, [second] if one else second))


@RANDOM_CASES.row(("PRelu", 1))
def prelu(gen: CaseGenerator) -> Case:
    data = gen.special(gen.shape(1, 4, 0), _WIDE)
    shape = list(data.array.shape)
    slopes = [[1], gen.shrunk(shape), shape[-1:]]
    if len(shape) > 1:
        slopes += [shape[1:2], [1, shape[1], *[1] * (len(shape) - 2)]]
    return gen.model(data, gen.tensor(gen.pick(*slopes), data.element.name))


@RANDOM_CASES.row(("Softmax", 1), ("Softmax", 8), ("LogSoftmax", 5))
def softmax(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    axis = gen.size(0, len(shape) - 1) if (gen.type, gen.since) == ("Softmax", 1) else gen.axis(len(shape))
    return gen.model(gen.tensor(shape, FLOATS, -9, 9), axis=axis)


@RANDOM_CASES.row(("ConvertPromoteTypes", 14))
def promotion(gen: CaseGenerator) -> Case:
    first, second = (
        gen.tensor(gen.shape(0, 3), (*INTEGERS, "f16", "f32", "f64", "bf16", "boolean"), 0, 100) for _ in range(2)
    )
    target = gen.pick(None, "f32", "i64", "f64")
    return gen.model(
        first,
        second,
        promote_unsafe=gen.chance(0.7),
        pytorch_scalar_promotion=gen.chance(),
        u64_integer_promotion_target=target,
    )


@RANDOM_CASES.row(("FakeConvert", 13))
def fake_convert(gen: CaseGenerator) -> Case:
    """Numbers of the middle of the range: at its ends the plugin and the reference part, and rows say who is right."""
    kind, shape = gen.pick("f32", "f32", "f16", "bf16"), gen.shape(1, 4)
    data = gen.tensor(shape, kind, 1, 200)
    some = gen.shrunk(shape)
    scale = typed(kind, gen.rng.choice([0.25, 0.5, 1, 2], some))
    shift = typed(kind, gen.rng.choice([-0.5, 0, 0.25], some)) if gen.chance() else None
    return gen.model(data, scale, shift, destination_type=gen.pick(None, "f8e4m3", "f8e5m2"))


@RANDOM_CASES.row(("ErfInv", 17))
def erfinv(gen: CaseGenerator) -> Case:
    return gen.model(gen.tensor(gen.shape(0, 4), ("f32", "f32", "f16", "bf16"), -0.9, 0.9))


@RANDOM_CASES.row(("RandomUniform", 8))
def random_uniform(gen: CaseGenerator) -> Case:
    kind = gen.pick("f32", "f32", "i32", "i64")
    low = gen.size(-50, 50)
    limits = [typed(kind, limit if gen.chance() else [limit]) for limit in (low, low + gen.size(1, 80))]
    shape = gen.ints(gen.sizes(gen.size(1, 3), 1, 30))
    seeds = {"global_seed": gen.size(1, 2**31), "op_seed": gen.size(0, 1000)}
    return gen.model(shape, *limits, output_type=kind, alignment=gen.pick(None, "TENSORFLOW", "PYTORCH"), **seeds)


@RANDOM_CASES.row(("Multinomial", 13))
def multinomial(gen: CaseGenerator) -> Case:
    """Distributions that leave no choice: the generator is not specified."""
    batch, classes = gen.size(1, 4), gen.size(1, 6)
    sure = np.eye(classes)[gen.rng.integers(0, classes, batch)] * 3
    logarithms = gen.chance(0.3)
    many, again = (gen.size(1, 7), True) if gen.chance(0.7) else (1, False)
    with np.errstate(divide="ignore"):
        probs = typed(gen.pick("f32", "f16"), np.log(sure) if logarithms else sure)
    return gen.model(
        probs,
        gen.ints(gen.pick(many, [many])),
        convert_type=gen.pick("i32", "i64"),
        with_replacement=again,
        log_probs=logarithms,
        global_seed=gen.size(1, 99),
        op_seed=gen.size(0, 99),
    )
