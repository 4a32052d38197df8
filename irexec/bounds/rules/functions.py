"""Element-wise functions of one tensor.

Errors are those of the usual implementations in units of roundoff, by the largest \\|x\\| and \\|f(x)\\|. exp by way of
exp2 has a relative error of \\|x\\| roundings. tanh and sigmoid have an absolute error: by way of exp they lose all
digits beside 1, and ONNX Runtime 1.32 adds 1 / 2 to a quotient of polynomials. OpenVINO 2026.4 computes erf by a
polynomial (Abramowitz and Stegun, 7.1.26) with an absolute error of 8 roundings of 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irexec.bounds.algebra import floats
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule

Error = Callable[[np.ndarray, np.ndarray], np.ndarray]


def relative(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Four roundings of the result."""
    return 4 * y


def _once(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y


def by_exp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """exp of a rounded argument."""
    return (8 + np.minimum(x, 800)) * y


def _differences(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Half of exp(x) - exp(-x): near 0 the error is some roundings of 1."""
    return by_exp(x, y) + 4


def _absolute(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 8 * y + 4


def _by_polynomial(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 8 * y + 12


def _by_argument(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Reduction of an argument to one period rounds the argument."""
    return 8 * y + 4 + 4 * x


def gated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x times a function with values up to 1, whose absolute error is some roundings."""
    return 8 * y + 6 * x


INCREASING: dict[str, Error] = {
    "Exp": by_exp, "Log": _absolute, "Sqrt": relative, "Tanh": _absolute, "Sigmoid": _absolute, "Erf": _by_polynomial,
    "Atan": relative, "Asin": _absolute, "Asinh": _absolute, "Acosh": _absolute, "Atanh": _absolute,
    "Sinh": _differences, "SoftPlus": _absolute,
    "HardSigmoid": _absolute, "SoftSign": relative, "Elu": _absolute, "Selu": _absolute,
}  # fmt: skip
_SMOOTH: dict[str, tuple[float, Error]] = {
    "Sin": (1.0, _by_argument), "Cos": (1.0, _by_argument), "Gelu": (1.2, gated), "Mish": (1.2, gated),
    "HSwish": (1.6, gated), "HSigmoid": (0.5, _absolute), "Abs": (1.0, lambda x, y: np.zeros_like(y)),
}  # fmt: skip


_CLAMPED = ("HardSigmoid", "HSigmoid")
"""Functions made of a minimum and a maximum: implementations make of NaN what they like."""


def _lenient(layer: Layer, x: Interval, found: Bound) -> Bound:
    if layer.definition.type not in _CLAMPED or isinstance(found, Unbounded):
        return found
    mark = np.isnan(floats(x.exact))
    return found.open_where(mark) if mark.any() else found


def _function(layer: Layer, rest: tuple[Interval | None, ...]) -> Callable[[np.ndarray], np.ndarray]:
    others = [None if one is None else floats(one.exact) for one in rest]
    return lambda array: layer.run(floats(array), *others)[0]


@rule(*INCREASING)
def increasing(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """A function that never decreases; its parameters are read as they are."""
    type = layer.definition.type
    of = layer.algebra
    found = of.increasing(_function(layer, rest), x, of.published(type, INCREASING[type]))
    if type == "Exp":
        # An argument that is clamped at -87.34 makes the smallest normal number of what is below it.
        found = of.widened(found, layer.arithmetic.smallest)
    return _lenient(layer, x, of.overflowing(found) if type in ("Exp", "Sinh") else found)


@rule("Acos")
def acos(layer: Layer, x: Interval) -> Bound:
    """The arc cosine never increases."""
    return layer.algebra.decreasing(_function(layer, ()), x, layer.algebra.published("Acos", _absolute))


@rule(*_SMOOTH)
def smooth(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """A function with a largest slope."""
    slope, usual = _SMOOTH[layer.definition.type]
    error, of_erf = layer.algebra.published(layer.definition.type, usual), layer.arithmetic.limit("Erf") / 2
    if layer.definition.type == "Gelu" and of_erf:
        error = lambda x, y: usual(x, y) + of_erf * x  # noqa: E731
    return _lenient(layer, x, layer.algebra.smooth(_function(layer, rest), slope, x, error))


@rule("Negative")
def negative(layer: Layer, x: Interval) -> Bound:
    """The sign is changed, nothing is rounded."""
    return layer.algebra.negated(x)
