"""Activations made of several functions, by blocks that stay in cache from one function to the next.

Arguments are float32 or float64; results lie in memory as they do. Numbers that are compared with one
number are compared with an array of it, for which NumPy is four times faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_BLOCK = 1 << 15


def in_blocks(function: Callable[[np.ndarray, np.ndarray], object], x: np.ndarray) -> np.ndarray:
    """An array of what ``function`` writes for pieces of ``x``, given the piece and where to write, both flat."""
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    source = np.asarray(x.transpose(order), order="C")
    out = np.empty_like(source)
    numbers, results = source.reshape(-1), out.reshape(-1)
    for start in range(0, numbers.size, _BLOCK):
        function(numbers[start : start + _BLOCK], results[start : start + _BLOCK])
    return out.transpose(np.argsort(order))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return in_blocks(_sigmoid, x)


def _sigmoid(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(1, out, out=out)


def swish(x: np.ndarray, beta: np.floating | float = 1) -> np.ndarray:
    """x / (1 + exp(-beta * x))."""

    def block(x: np.ndarray, out: np.ndarray) -> None:
        np.multiply(x, -beta, out=out)
        np.exp(out, out=out)
        out += 1
        np.divide(x, out, out=out)

    return in_blocks(block, x)


def elu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere: with t = tanh(x / 2) that is alpha * 2 t / (1 - t)."""
    zeros = np.zeros(min(x.size, _BLOCK), x.dtype)

    def block(x: np.ndarray, out: np.ndarray) -> None:
        t = np.minimum(x, zeros[: x.size])
        t *= 0.5
        np.tanh(t, out=t)
        np.subtract(1, t, out=out)
        np.divide(t, out, out=out)
        out *= 2 * alpha
        out += np.maximum(x, zeros[: x.size])

    return in_blocks(block, x)


def mish(x: np.ndarray) -> np.ndarray:
    """x * tanh(log(1 + exp(x))): with n = e * (e + 2), e = exp(x), that is x * n / (n + 2), and x from 20 on."""
    most = np.full(min(x.size, _BLOCK), 20, x.dtype)

    def block(x: np.ndarray, out: np.ndarray) -> None:
        n = np.minimum(x, most[: x.size])
        np.exp(n, out=n)
        np.add(n, 2, out=out)
        n *= out
        np.add(n, 2, out=out)
        np.divide(n, out, out=out)
        out *= x

    return in_blocks(block, x)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-abs(x)))."""
    zeros = np.zeros(min(x.size, _BLOCK), x.dtype)

    def block(x: np.ndarray, out: np.ndarray) -> None:
        np.abs(x, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)
        np.log1p(out, out=out)
        out += np.maximum(x, zeros[: x.size])

    return in_blocks(block, x)


def gelu(x: np.ndarray, inside: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """x * (1 + inside(x)) / 2."""

    def block(x: np.ndarray, out: np.ndarray) -> None:
        np.add(inside(x), 1, out=out)
        out *= 0.5
        out *= x

    return in_blocks(block, x)


def cubic_tanh(x: np.ndarray) -> np.ndarray:
    """tanh(sqrt(2 / pi) * (x + 0.044715 * x³)), close to erf(x / sqrt(2))."""
    inner = x * x
    inner *= math.sqrt(2 / math.pi) * 0.044715
    inner += math.sqrt(2 / math.pi)
    inner *= x
    return np.tanh(inner, out=inner)
