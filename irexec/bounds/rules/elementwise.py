r"""Element-wise operations: arithmetic, monotone functions, powers.

Errors are those of the usual implementations in units of roundoff, by the largest \|x\| and \|f(x)\|. exp by way of
exp2 has a relative error of \|x\| roundings. tanh and sigmoid have an absolute error: by way of exp they lose all
digits beside 1, and ONNX Runtime 1.32 adds 1 / 2 to a quotient of polynomials. OpenVINO 2026.4 computes erf by a
polynomial (Abramowitz and Stegun, 7.1.26) with an absolute error of 8 roundings of 1.

The ends of the interval are the results for the ends of the inputs, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, corners, floats, hull, joined, settled, spanning
from irexec.bounds.registry import Layer, rule
from irexec.errors import check
from irexec.schema.shape_rules import MOVES, align, alignment


def aligned(layer: Layer, a: Interval, b: Interval) -> tuple[Interval, Interval]:
    """Both operands broadcast to the shape of the result."""
    mode = alignment(layer.attributes)
    exact, low, high = (align(getattr(a, end), getattr(b, end), *mode) for end in ("exact", "low", "high"))
    first, second = (
        Interval.certain(exact[i]) if one.is_certain else Interval(exact[i], low[i], high[i])
        for i, one in enumerate((a, b))
    )
    return first, second


_OF_TWO = {"Add": Algebra.add, "Subtract": Algebra.subtract, "Multiply": Algebra.multiply}


@rule(*_OF_TWO)
def of_two(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a + b, a - b or a * b."""
    return _OF_TWO[layer.definition.type](layer.algebra, *aligned(layer, a, b))


@rule("Divide")
def divide(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a / b; a reciprocal and a product are as good as a division."""
    check(layer.element is None or layer.is_float, "a quotient of integers that are not known")
    return layer.algebra.divide(*aligned(layer, a, b))


@rule("SquaredDifference")
def squared_difference(layer: Layer, a: Interval, b: Interval) -> Bound:
    """(a - b) * (a - b)."""
    difference = layer.algebra.subtract(*aligned(layer, a, b))
    product = layer.algebra.multiply(difference, difference)
    # A square is not negative, although the product of two intervals around zero may be.
    return settled(product.exact, np.where(product.low < 0, 0.0, product.low), product.high)


@rule("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
def compared(layer: Layer, a: Interval, b: Interval) -> Bound:
    """A comparison is open where the intervals of the operands overlap in more than one point."""
    exact = layer.run(a, b)[0]
    if a.is_certain and b.is_certain:
        return Interval.certain(exact)
    a, b = aligned(layer, a, b)
    with np.errstate(invalid="ignore"):
        is_open = ~((floats(a.low) > floats(b.high)) | (floats(a.high) < floats(b.low)))
    return Interval(exact, exact & ~is_open, exact | is_open)


@rule("Select")
def select(layer: Layer, condition: Interval, a: Interval, b: Interval) -> Bound:
    """One of two tensors; either where the condition is open."""
    chosen = _chosen(layer, condition.exact, a, b)
    if condition.is_certain:
        is_certain = a.is_certain and b.is_certain
        return Interval.certain(chosen.exact) if is_certain else chosen
    check(chosen.exact.dtype.kind == "f", "the condition of integers is not certain")
    either, is_open = hull(chosen, _chosen(layer, ~condition.exact, a, b)), condition.low != condition.high
    return settled(chosen.exact, np.where(is_open, either.low, chosen.low), np.where(is_open, either.high, chosen.high))


def _chosen(layer: Layer, condition: np.ndarray, a: Interval, b: Interval) -> Interval:
    exact, low, high = (layer.run(condition, getattr(a, end), getattr(b, end))[0] for end in ("exact", "low", "high"))
    return spanning(exact, low, high)


Error = Callable[[np.ndarray, np.ndarray], np.ndarray]


def relative(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Four roundings of the result."""
    return 4 * y


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
    return layer.function(*(None if one is None else floats(one.exact) for one in rest))


@rule(*INCREASING)
def increasing(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """A function that never decreases; its parameters are read as they are."""
    type, of = layer.definition.type, layer.algebra
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


_PLACES = {"GatherTree": (0, 1, 2, 3), "ReverseSequence": (1,)}
"""Inputs that may be floating-point numbers and tell places: indices, lengths, and the identifiers that are compared
with the end of a text."""


@rule(*MOVES, "SparseFillEmptyRows")
def moved(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """Elements keep their values and change their places, which floating-point inputs may tell as well."""
    places = _PLACES.get(layer.definition.type, ())
    are_known = all(one is None or one.is_certain for one in (inputs[i] for i in places if i < len(inputs)))
    check(are_known, "an index is not certain")
    return _at_ends(layer, inputs)


@rule("Maximum", "Minimum", "Relu", "Clamp", "ReduceMax", "ReduceMin", "Floor", "Ceiling", "Round", "Sign")
def ordered(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """A result never decreases where an input grows; of NaN implementations make what they like."""
    found = _at_ends(layer, inputs)
    if layer.definition.type == "Clamp" and isinstance(found[0], Interval) and inputs[0] is not None:
        found = (_with_limits(layer, inputs[0], found[0]),)
    has_nan = any(one is not None and one.exact.dtype.kind == "f" and np.isnan(one.exact).any() for one in inputs)
    return tuple(_open_at_nan(layer, inputs, one) for one in found) if has_nan else found


def _with_limits(layer: Layer, x: Interval, found: Interval) -> Interval:
    """Limits of Clamp are attributes, which a runtime rounds to its type: so are results that are not the data's."""
    if found.exact.dtype.kind != "f":
        return found
    rounded = layer.algebra.rounded(settled(floats(found.exact), floats(found.low), floats(found.high)))
    is_same = (found.low == x.low) & (found.high == x.high)
    low, high = np.where(is_same, floats(found.low), rounded.low), np.where(is_same, floats(found.high), rounded.high)
    return settled(floats(found.exact), low, high)


def _open_at_nan(layer: Layer, inputs: tuple[Interval | None, ...], found: Bound) -> Bound:
    """Anything where a NaN arrives: maxps returns its second operand, fmax the number, IEEE 754-2019 NaN."""
    if isinstance(found, Unbounded):
        return found
    # A NaN anywhere in a reduced row reaches the result of the row.
    if layer.definition.type.startswith("Reduce"):
        return found.open_where(np.ones(found.exact.shape, bool))
    marks = [np.isnan(floats(one.exact)) for one in inputs if one is not None and one.exact.dtype.kind == "f"]
    if len(marks) == 2:
        marks = list(align(marks[0], marks[1], *alignment(layer.attributes)))
    mark = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*marks)), found.exact.shape)
    return found.open_where(mark)


@rule("PRelu")
def prelu(layer: Layer, x: Interval, slope: Interval) -> Bound:
    """x, or x times the slope where x is negative, rounded once: for each sign monotone in both operands."""
    check(layer.is_float, "products of integers that are not known")
    run = layer.function()
    exact = run(x.exact, slope.exact)
    ends = [run(a, b) for a in (x.low, x.high) for b in (slope.low, slope.high)]
    low, high = np.stack(ends).min(0), np.stack(ends).max(0)
    # An interval around zero may have its extreme at zero.
    around = (floats(x.low) < 0) & (floats(x.high) > 0)
    low, high = np.where(around, np.minimum(low, 0), low), np.where(around, np.maximum(high, 0), high)
    return layer.algebra.rounded(settled(exact, low, high))


def _at_ends(layer: Layer, inputs: tuple[Interval | None, ...]) -> tuple[Bound, ...]:
    uncertain = [one for one in inputs if one is not None and not one.is_certain]
    if not uncertain:
        return layer.certain(*inputs)
    check(all(one.exact.dtype.kind == "f" for one in uncertain), "an index is not certain")
    ends = (
        layer.run(*(None if one is None else _end(one, side) for one in inputs)) for side in ("exact", "low", "high")
    )
    return tuple(spanning(*each) for each in zip(*ends, strict=True))


def _end(x: Interval, side: str) -> np.ndarray:
    array: np.ndarray = getattr(x, side)
    return floats(array) if x.exact.dtype.kind == "f" else array


@rule("Swish")
def swish(layer: Layer, x: Interval, beta: Interval | None = None) -> Bound:
    """x times the sigmoid of beta x; the slope is that for beta 1, since swish(x, beta) is swish(beta x, 1) / beta."""
    found = layer.algebra.smooth(_function(layer, () if beta is None else (beta,)), 1.2, x, gated)
    if beta is None or beta.is_certain:
        return found
    with np.errstate(all="ignore"):
        # The slope in beta is x^2 times that of the sigmoid, which is at most 1 / 4 and at most exp(-|beta x|).
        least = np.minimum(np.abs(floats(beta.low)), np.abs(floats(beta.high))).reshape(-1)[0]
        reach = x.magnitude**2 * np.minimum(0.25, np.exp(-least * (np.abs(floats(x.exact)) - x.radius)))
        return layer.algebra.widened(found, reach * float(beta.radius.reshape(-1)[0]))


@rule("Power")
def power(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a ** b by way of a logarithm: some roundings of the exponent b log(a), by which the result is multiplied.

    For a positive base the power is monotone in each operand. Other bases have a bound where the exponent is an
    integer: by the sign and the absolute value. Base 0 is exact for a positive exponent. Large results may overflow.
    """
    check(layer.element is None or layer.is_float, "powers of integers that are not known")
    a, b = aligned(layer, a, b)
    of, base = layer.algebra, floats(a.exact)
    with np.errstate(all="ignore"):
        exact = np.power(base, floats(b.exact))
        size = corners(np.power, _absolute_values(a), b)
        steps = max(8, layer.arithmetic.limit("Power")) + 4 * np.maximum(
            np.abs(floats(b.low)), np.abs(floats(b.high))
        ) * _log_size(a)
        found = of.widened(size, np.where(size.magnitude == 0, 0, steps * of.arithmetic.unit * size.magnitude))
        found = of.overflowing(found)
        odd = (np.mod(floats(b.exact), 2) == 1) & (base < 0)
        low, high = np.where(odd, -found.high, found.low), np.where(odd, -found.low, found.high)
    is_whole = (np.rint(floats(b.exact)) == b.exact) & (b.low == b.high)
    is_signed = (floats(a.high) < 0) & is_whole
    is_zero = (floats(a.low) == 0) & (floats(a.high) == 0) & (floats(b.low) > 0)
    is_known = ((floats(a.low) > 0) | is_signed | is_zero) & np.isfinite(base) & np.isfinite(floats(b.exact))
    return Interval(exact, low, high).open_where(np.broadcast_to(~is_known, exact.shape))


def _absolute_values(x: Interval) -> Interval:
    """\\|x\\|, which is not rounded."""
    ends, spans = (np.abs(floats(x.low)), np.abs(floats(x.high))), (floats(x.low) < 0) & (floats(x.high) > 0)
    return settled(np.abs(floats(x.exact)), np.where(spans, 0, np.minimum(*ends)), np.maximum(*ends))


def _log_size(x: Interval) -> np.ndarray:
    found = np.maximum(np.abs(np.log(np.abs(floats(x.low)))), np.abs(np.log(np.abs(floats(x.high)))))
    return np.where(np.isfinite(found), found, 0.0)


@rule("Mod", "FloorMod")
def remainder(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a - b k, where k is a / b without its fraction, exactly or by a quotient with three roundings: k is open where
    the quotient is that near to an integer."""
    is_known = a.is_certain and b.is_certain and a.exact.dtype.kind == "f"
    check(is_known, "a remainder of operands that are not certain")
    whole = np.floor if layer.definition.type == "FloorMod" else np.trunc
    a, b = aligned(layer, a, b)
    unit = layer.arithmetic.unit
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(a.exact), floats(b.exact))[0])
        quotient = floats(a.exact) / b.exact
        reach = 3 * unit * np.abs(quotient) + layer.arithmetic.smallest
        ends = [floats(a.exact) - floats(b.exact) * whole(quotient + side) for side in (-reach, reach)]
        found = settled(exact, np.minimum(*ends), np.maximum(*ends))
        found = layer.algebra.widened(found, 2 * unit * (np.abs(floats(a.exact)) + np.abs(exact)))
    return found.open_where(~np.isfinite(quotient) | (quotient == 0))


@rule("Tan")
def tan(layer: Layer, x: Interval) -> Bound:
    """tan increases between two poles; the argument is reduced to one period with four roundings."""
    of = layer.algebra
    near = of.widened(x, 4 * layer.arithmetic.unit * (x.magnitude + 1))
    with np.errstate(all="ignore"):
        branches = [np.floor(floats(end) / np.pi + 0.5) for end in (near.low, near.high)]
        found = of.rounded(joined(np.tan, near), max(8.0, layer.arithmetic.limit("Tan")))
    return found.open_where((branches[0] != branches[1]) | ~np.isfinite(found.exact))


@rule("Cosh")
def cosh(layer: Layer, x: Interval) -> Bound:
    """cosh is the same for -x, and increases with \\|x\\|."""
    of = layer.algebra
    return of.overflowing(of.increasing(np.cosh, _absolute_values(x), of.published("Cosh", by_exp)))


@rule("ErfInv")
def erf_inv(layer: Layer, x: Interval) -> Bound:
    """The inverse of erf increases. Approximations take the logarithm of 1 - x^2, which is known up to two roundings
    of 1, and evaluate a polynomial of it, with an error of up to 2^-12 in OpenVINO 2026.4."""
    of = layer.algebra
    # The change of x by which 1 - x^2 changes by two roundings of 1.
    near = of.widened(settled(floats(x.exact), floats(x.low), floats(x.high)), 2 * of.arithmetic.unit * x.magnitude)
    inside = np.abs(floats(x.exact)) < 1
    run = layer.function()
    low, high = (run(np.clip(floats(end), -1, 1)) for end in (near.low, near.high))
    found = settled(run(x.exact), low, high)
    return of.widened(of.rounded(found, 32.0), 2.0**-12 * found.magnitude).open_where(~inside)
