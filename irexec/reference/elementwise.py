"""Activations as formulas, for floating-point arrays; results have the type of the argument."""

from __future__ import annotations

import math

import numpy as np

from irexec.reference.special import erfc


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def swish(x: np.ndarray, beta: np.ndarray | np.floating | float = 1) -> np.ndarray:
    """x / (1 + exp(-beta * x))."""
    return np.asarray(x / (1 + np.exp(x * -beta)))


def elu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-abs(x))), which does not overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def mish(x: np.ndarray) -> np.ndarray:
    """x * tanh(log(1 + exp(x)))."""
    return np.asarray(x * np.tanh(softplus(x)))


def gelu(x: np.ndarray) -> np.ndarray:
    """x * (1 + erf(x / sqrt(2))) / 2, as x * erfc(-x / sqrt(2)) / 2, which does not cancel below zero."""
    return np.asarray(x * erfc(x * np.float64(-math.sqrt(0.5))) / 2).astype(x.dtype)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2, close to ``gelu``, in a form that does not cancel."""
    return swish(x, 2 * math.sqrt(2 / math.pi) * (1 + 0.044715 * x * x))
