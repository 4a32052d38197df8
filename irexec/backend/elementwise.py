"""Fast kernels of activations made of several functions, by blocks that stay in cache from one function to the next.

Elements are compared with an array of zeros rather than with a scalar, for which NumPy is four times faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.dtypes.elements import F16, F32
from irexec.ir.facts import Fact

# Elements of a block.
_BLOCK = 1 << 15
_ZEROS = {kind: np.zeros(_BLOCK, kind) for kind in (np.dtype(np.float32), np.dtype(np.float64))}
_LIMITS = {kind: np.full(_BLOCK, 20, kind) for kind in _ZEROS}

# erf(x) is tanh(x * P(x * x)) to float32's rounding, from 4.2 on 1: P has the highest power first and was fitted on [-4, 4].
_ERF = (1.5895133524436716e-07, -5.985570175101789e-06, 8.971200807534588e-05, -6.257183544791842e-04, -1.8438481655491277e-04,
        1.0276548185247328e-01, 1.1283797054344622e00)  # fmt: skip

Block = Callable[[np.ndarray, np.ndarray], object]
Kernel = Callable[..., np.ndarray]


def in_blocks(function: Block, x: np.ndarray) -> np.ndarray:
    """An array of what ``function`` writes for blocks of ``x``, given the block and where to write, both flat.

    The result lies in memory as ``x`` does.
    """
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    source = np.asarray(x.transpose(order), order="C")
    out = np.empty_like(source)
    elements, results = source.reshape(-1), out.reshape(-1)
    for start in range(0, elements.size, _BLOCK):
        function(elements[start : start + _BLOCK], results[start : start + _BLOCK])
    return out.transpose(np.argsort(order))


def _kernel(data: Fact, block: Block) -> Kernel | None:
    """The kernel that applies ``block`` to floating-point data, f16 by way of f32; None for data of another or unknown type."""
    if data.element is None or not data.element.is_float:
        return None
    if data.element is F16:
        return lambda x: in_blocks(block, x.astype(np.float32)).astype(np.float16)
    return lambda x: in_blocks(block, x)


@fast_kernel("Sigmoid", since=1)
def _sigmoid_1(data: Fact) -> Kernel | None:
    return _kernel(data, _sigmoid)


def _sigmoid(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(1, out, out=out)


@fast_kernel("Swish", since=4)
def _swish_4(data: Fact, beta: Fact | None = None) -> Kernel | None:
    if data.element is None or data.element is F16:
        return None
    return lambda x, beta=None: in_blocks(_swish(1 if beta is None else beta.reshape(-1)[0]), x)


def _swish(beta: np.floating | float) -> Block:
    def block(x: np.ndarray, out: np.ndarray) -> None:
        np.multiply(x, -beta, out=out)
        np.exp(out, out=out)
        out += 1
        np.divide(x, out, out=out)

    return block


@fast_kernel("Elu", since=1)
def _elu_1(data: Fact, *, alpha: float) -> Kernel | None:
    """With t = tanh(x / 2) the exponential part, exp(x) - 1, is 2 t / (1 - t)."""

    def block(x: np.ndarray, out: np.ndarray) -> None:
        zeros = _ZEROS[x.dtype][: x.size]
        t = np.minimum(x, zeros)
        t *= 0.5
        np.tanh(t, out=t)
        np.subtract(1, t, out=out)
        np.divide(t, out, out=out)
        out *= 2 * alpha
        out += np.maximum(x, zeros)

    return _kernel(data, block)


@fast_kernel("Mish", since=4)
def _mish_4(data: Fact) -> Kernel | None:
    return _kernel(data, _mish)


def _mish(x: np.ndarray, out: np.ndarray) -> None:
    """With n = e * (e + 2), e = exp(x), it is x * n / (n + 2); above 20 that is x."""
    n = np.minimum(x, _LIMITS[x.dtype][: x.size])
    np.exp(n, out=n)
    np.add(n, 2, out=out)
    n *= out
    np.add(n, 2, out=out)
    np.divide(n, out, out=out)
    out *= x


@fast_kernel("SoftPlus", since=4)
def _softplus_4(data: Fact) -> Kernel | None:
    return _kernel(data, _softplus)


def _softplus(x: np.ndarray, out: np.ndarray) -> None:
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(x, _ZEROS[x.dtype][: x.size])


@fast_kernel("Erf", since=1)
def _erf_1(data: Fact) -> Kernel | None:
    return None if data.element is None or data.element.carrier == np.float64 else _kernel(data, _erf)


def _erf(x: np.ndarray, out: np.ndarray) -> None:
    """Good to float32's rounding only."""
    clipped = np.clip(x, -4.2, 4.2)
    square = clipped * clipped
    np.multiply(square, _ERF[0], out=out)
    for coefficient in _ERF[1:-1]:
        out += coefficient
        out *= square
    out += _ERF[-1]
    out *= clipped
    np.tanh(out, out=out)


@fast_kernel("Gelu", since=2)
def _gelu_2(data: Fact) -> Kernel | None:
    return _gelu_7(data)


@fast_kernel("Gelu", since=7)
def _gelu_7(data: Fact, *, approximation_mode: str = "erf") -> Kernel | None:
    if approximation_mode == "tanh":
        return _kernel(data, _gelu_tanh)
    return None if data.element is None or data.element.carrier == np.float64 else _kernel(data, _gelu_erf)


def _gelu_erf(x: np.ndarray, out: np.ndarray) -> None:
    _erf(x * math.sqrt(0.5), out)
    _half_of_x_times_1_plus(x, out)


def _gelu_tanh(x: np.ndarray, out: np.ndarray) -> None:
    np.multiply(x, x, out=out)
    out *= math.sqrt(2 / math.pi) * 0.044715
    out += math.sqrt(2 / math.pi)
    out *= x
    np.tanh(out, out=out)
    _half_of_x_times_1_plus(x, out)


def _half_of_x_times_1_plus(x: np.ndarray, out: np.ndarray) -> None:
    out += 1
    out *= 0.5
    out *= x


@fast_kernel("Relu", since=1)
def _relu_1(data: Fact) -> Kernel | None:
    """NumPy clips several times faster than it takes the maximum with a scalar."""
    if data.element is None or not data.element.is_float:
        return None
    return lambda x: np.clip(x, 0, np.inf)


@fast_kernel("PRelu", since=1)
def _prelu_1(data: Fact, slope: Fact) -> Kernel | None:
    """Known slopes: the positive part and the sloped negative part added, without a choice for every element."""
    slopes = slope.known
    if data.element is not F32 or data.shape is None or slopes is None or not np.isfinite(slopes).all():
        return None
    if slopes.ndim == 1 and len(data.shape) > 1:
        if not isinstance(data.shape[1], int):
            return None
        if slopes.shape[0] == data.shape[1]:
            slopes = slopes.reshape((1, -1) + (1,) * (len(data.shape) - 2))

    def prelu(data: np.ndarray, _: np.ndarray) -> np.ndarray:
        zeros = np.zeros(data.shape[-1:], data.dtype)
        out = np.asarray(np.minimum(data, zeros))
        with np.errstate(over="ignore"):
            out *= slopes
        out += np.maximum(data, zeros)
        return out

    return prelu
