"""How activations and normalizations of elements run on blocks of a chain.

A function may not read an argument after it wrote ``out``, unless it cannot be run in place.
"""

from __future__ import annotations

import math

import numpy as np

from irexec.backend.block_types import block_formula, block_function, from_reference, scalar_constant
from irexec.backend.chain import Formula
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import ERF, GELU, clip, negative, odd_polynomial
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch

_INF = math.inf


@block_formula("Relu", since=1, kinds="fiu", integers=from_reference, passes=1.7, formula=Formula("MaximumP", 0.0))
def _relu(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    clip(x, 0, _INF, out=out)


@block_function("Clamp", since=1, kinds="fiu")
def _clamp_1(task: Task) -> BlockOperation | None:
    dtype = task.inputs[0].dtype
    if dtype.kind != "f":
        return from_reference(task)
    with np.errstate(over="ignore"):
        low, high = dtype.type(task.attributes["min"]), dtype.type(task.attributes["max"])

    def clamp(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        clip(x, low, high, out=out)

    return BlockOperation(clamp, passes=1.7, formula=Formula("Clamp", float(low), float(high)))


@block_formula("Sigmoid", since=1, kinds="fiu", integers=from_reference, passes=9, formula=Formula("Sigmoid"))
def _sigmoid(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    negative(x, out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.divide(1, out, out=out)


@block_function("Swish", since=4)
def _swish_4(task: Task) -> BlockOperation | None:
    if task.has_input(1):
        beta = scalar_constant(task, 1)
        formula = None if beta is None else Formula("Swish", float(beta))
        return BlockOperation(_swish_with_beta, (0, 1), (None, ()), temporaries=1, passes=10, formula=formula)
    return BlockOperation(_swish, temporaries=1, passes=9, formula=Formula("Swish", 1.0))


def _swish(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """x / (1 + exp(-x)). The form with tanh takes three quarters of the time, but cancels below -4: twenty times the
    value at -20."""
    t = scratch.take(x.shape, x.dtype)
    negative(x, t)
    _divide_by_one_and_exp(t, out, x)


def _swish_with_beta(scratch: Scratch, out: np.ndarray, x: np.ndarray, beta: np.ndarray) -> None:
    t = scratch.take(x.shape, x.dtype)
    np.multiply(x, -beta, out=t)
    _divide_by_one_and_exp(t, out, x)


def _divide_by_one_and_exp(t: np.ndarray, out: np.ndarray, x: np.ndarray) -> None:
    """x / (1 + exp(t)), with t overwritten."""
    np.exp(t, out=t)
    np.add(t, 1, out=t)
    np.divide(x, t, out=out)


@block_function("Elu", since=1, kinds="fiu")
def _elu_1(task: Task) -> BlockOperation | None:
    if task.kind != "f":
        return from_reference(task)
    alpha = task.attributes["alpha"]

    def elu(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        below = _exponential_below_zero(scratch, x)
        np.multiply(below, alpha, out=below)
        clip(x, 0, _INF, out=out)
        np.add(out, below, out=out)

    return BlockOperation(elu, temporaries=2, passes=15, formula=Formula("Elu", float(alpha)))


def _exponential_below_zero(scratch: Scratch, x: np.ndarray) -> np.ndarray:
    """exp(min(x, 0)) - 1 without cancellation: 2 t / (1 - t) for t = tanh(x / 2).

    NumPy's expm1 has no AVX2 form.
    """
    t, rest = scratch.take(x.shape, x.dtype), scratch.take(x.shape, x.dtype)
    clip(x, -_INF, 0, out=t)
    np.multiply(t, 0.5, out=t)
    np.tanh(t, out=t)
    np.subtract(1, t, out=rest)
    np.add(t, t, out=t)
    np.divide(t, rest, out=t)
    return t


@block_formula("Selu", since=1, reads=(0, 1, 2), shapes=(None, (), ()), temporaries=3, passes=16)
def _selu(scratch: Scratch, out: np.ndarray, x: np.ndarray, alpha: np.ndarray, scale: np.ndarray) -> None:
    below, above = _exponential_below_zero(scratch, x), scratch.take(x.shape, x.dtype)
    np.multiply(below, alpha, out=below)
    clip(x, 0, _INF, out=above)
    np.add(above, below, out=above)
    np.multiply(above, scale, out=out)


@block_formula("HardSigmoid", since=1, reads=(0, 1, 2), shapes=(None, (), ()), temporaries=1, passes=4)
def _hard_sigmoid(scratch: Scratch, out: np.ndarray, x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> None:
    line = scratch.take(x.shape, x.dtype)
    np.multiply(x, alpha, out=line)
    np.add(line, beta, out=line)
    clip(line, 0, 1, out=out)


@block_formula(
    "HSigmoid", since=5, kinds="fiu", integers=from_reference, passes=4, formula=Formula("HardSigmoid", 1 / 6, 0.5)
)
def _hsigmoid(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.add(x, 3, out=out)
    clip(out, 0, 6, out=out)
    np.multiply(out, 1 / 6, out=out)


@block_formula(
    "HSwish", since=4, kinds="fiu", integers=from_reference, temporaries=1, passes=5, formula=Formula("HSwish")
)
def _hswish(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    factor = scratch.take(x.shape, x.dtype)
    _hsigmoid(scratch, factor, x)
    np.multiply(x, factor, out=out)


@block_formula("Mish", since=4, temporaries=2, passes=14, formula=Formula("Mish"))
def _mish(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """With n = e * (e + 2), e = exp(x), it is x * n / (n + 2); above 20 that is x."""
    n, more = scratch.take(x.shape, x.dtype), scratch.take(x.shape, x.dtype)
    clip(x, -_INF, 20, out=n)
    np.exp(n, out=n)
    np.add(n, 2, out=more)
    np.multiply(n, more, out=n)
    np.add(n, 2, out=more)
    np.divide(n, more, out=n)
    np.multiply(x, n, out=out)


@block_formula("SoftPlus", since=4, temporaries=2, passes=18, formula=Formula("SoftPlus"))
def _softplus(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """max(x, 0) + log(1 + u), u = exp(-abs(x)).

    NumPy's log1p has no AVX2 form: with w = 1 + u as it was rounded, log(1 + u) is log(w) + (u - (w - 1)) to the last
    bit but one.
    """
    u, w = scratch.take(x.shape, x.dtype), scratch.take(x.shape, x.dtype)
    np.abs(x, out=u)
    np.negative(u, out=u)
    np.exp(u, out=u)
    np.add(u, 1, out=w)
    clip(x, 0, _INF, out=out)
    x_rest = np.subtract(w, 1, out=scratch.take(x.shape, x.dtype))
    np.subtract(u, x_rest, out=u)
    np.log(w, out=w)
    np.add(w, u, out=w)
    np.add(out, w, out=out)


@block_formula("SoftSign", since=9, temporaries=1, passes=5, formula=Formula("SoftSign"))
def _softsign(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    divisor = scratch.take(x.shape, x.dtype)
    np.abs(x, out=divisor)
    np.add(divisor, 1, out=divisor)
    np.divide(x, divisor, out=out)


@block_function("Erf", since=1, kinds="fiu")
def _erf_1(task: Task) -> BlockOperation | None:
    if task.dtype(0) != np.float32:
        return from_reference(task)
    return BlockOperation(_erf, temporaries=2, passes=18, formula=Formula("Erf"))


def _erf(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.tanh(odd_polynomial(scratch, x, ERF), out=out)


@block_function("Gelu", since=2)
@block_function("Gelu", since=7)
def _gelu(task: Task) -> BlockOperation | None:
    if task.attributes.get("approximation_mode", "erf") == "tanh":
        return BlockOperation(_gelu_tanh, temporaries=1, passes=11, formula=Formula("GeluTanh"))
    if task.dtype(0) != np.float32:
        return from_reference(task)
    return BlockOperation(_gelu_erf, temporaries=2, passes=21, formula=Formula("Gelu"))


_GELU_EXPONENT = [-2 * coefficient for coefficient in GELU]


def _gelu_erf(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """x / (1 + exp(-2 t)) for t = x P(x x), which is x (1 + tanh(t)) / 2 without cancellation below zero."""
    _divide_by_one_and_exp(odd_polynomial(scratch, x, _GELU_EXPONENT), out, x)


def _gelu_tanh(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """The same for its own polynomial, of degree 3."""
    t = scratch.take(x.shape, x.dtype)
    np.multiply(x, x, out=t)
    np.multiply(t, -2 * math.sqrt(2 / math.pi) * 0.044715, out=t)
    np.subtract(t, 2 * math.sqrt(2 / math.pi), out=t)
    np.multiply(t, x, out=t)
    _divide_by_one_and_exp(t, out, x)


@block_function("PRelu", since=1)
def _prelu_1(task: Task) -> BlockOperation | None:
    """By minimum and maximum: NumPy's functions that choose elements branch for each of them."""
    if task.dtype(0) != task.dtype(1):
        return None
    slopes = None if task.constants[1] is None else task.constants[1].array()
    is_between = slopes is not None and np.all((slopes > 0) & (slopes <= 1))
    function, passes = (_prelu_between_0_and_1, 3) if is_between else (_prelu, 6)
    shapes = (None, _slope_shape(task.shape(0), task.shape(1)))
    return BlockOperation(function, (0, 1), shapes, temporaries=1, passes=passes, formula=Formula("PRelu"))


def _slope_shape(data: tuple[int, ...], slope: tuple[int, ...]) -> tuple[int, ...] | None:
    """One slope for each channel lies along axis 1."""
    if len(slope) == 1 and len(data) > 1 and slope[0] == data[1]:
        return (1, *slope, *(1 for _ in data[2:]))
    return None


def _prelu_between_0_and_1(scratch: Scratch, out: np.ndarray, x: np.ndarray, slope: np.ndarray) -> None:
    below = scratch.take(out.shape, x.dtype)
    np.multiply(x, slope, out=below)
    np.maximum(x, below, out=out)


def _prelu(scratch: Scratch, out: np.ndarray, x: np.ndarray, slope: np.ndarray) -> None:
    if not np.isfinite(slope).all():
        np.copyto(out, np.where(x < 0, x * slope, x))
        return
    below = scratch.take(out.shape, x.dtype)
    clip(x, -_INF, 0, out=below)
    np.multiply(below, slope, out=below)
    clip(x, 0, _INF, out=out)
    np.add(out, below, out=out)


@block_function("BatchNormInference", since=1)
@block_function("BatchNormInference", since=5)
def _batch_norm(task: Task) -> BlockOperation | None:
    # Data, gamma, beta, mean and variance.
    reads = (0, 1, 2, 3, 4) if task.definition.since == 5 else (2, 0, 1, 3, 4)
    along = (1, -1) + (1,) * (len(task.shape(reads[0])) - 2)
    shapes = tuple(tuple(task.shape(i)[0] if size < 0 else size for size in along) for i in reads[1:])
    epsilon = task.attributes["epsilon"]

    def normalize(scratch: Scratch, out: np.ndarray, x: np.ndarray, *parameters: np.ndarray) -> None:
        gamma, beta, mean, variance = parameters
        scale = gamma / np.sqrt(variance + x.dtype.type(epsilon))
        centred = scratch.take(out.shape, out.dtype)
        np.subtract(x, mean, out=centred)
        np.multiply(centred, scale, out=centred)
        np.add(centred, beta, out=out)

    return BlockOperation(normalize, reads, (None, *shapes), temporaries=1, passes=5)
