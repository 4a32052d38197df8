"""Functions that are monotone in parts: powers, remainders, tan, cosh and the inverse of erf."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import Algebra, corners, floats, joined, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.arithmetic import aligned
from irexec.bounds.rules.functions import by_exp, gated


@rule("Swish")
def swish(layer: Layer, x: Interval, beta: Interval | None = None) -> Bound:
    """x times the sigmoid of beta x; the slope is that for beta 1, since swish(x, beta) is swish(beta x, 1) / beta."""
    others = [] if beta is None else [floats(beta.exact)]
    found = layer.algebra.smooth(lambda array: layer.run(floats(array), *others)[0], 1.2, x, gated)
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
    if layer.element is not None and not layer.element.is_float:
        return Unbounded("powers of integers that are not known")
    a, b = aligned(layer, a, b)
    of, base = layer.algebra, floats(a.exact)
    with np.errstate(all="ignore"):
        exact = np.power(base, floats(b.exact))
        size = corners(np.power, _absolute(a), b)
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


def _absolute(x: Interval) -> Interval:
    """\\|x\\| for an interval on one side of zero."""
    ends = np.abs(floats(x.low)), np.abs(floats(x.high))
    return settled(np.abs(floats(x.exact)), np.minimum(*ends), np.maximum(*ends))


def _log_size(x: Interval) -> np.ndarray:
    found = np.maximum(np.abs(np.log(np.abs(floats(x.low)))), np.abs(np.log(np.abs(floats(x.high)))))
    return np.where(np.isfinite(found), found, 0.0)


@rule("Mod", "FloorMod")
def remainder(layer: Layer, a: Interval, b: Interval) -> Bound:
    """a - b k, where k is a / b without its fraction, exactly or by a quotient with three roundings: k is open where
    the quotient is that near to an integer."""
    if not (a.is_certain and b.is_certain) or a.exact.dtype.kind != "f":
        return Unbounded("a remainder of operands that are not certain")
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
    of, near = layer.algebra, _reduced(layer, x)
    with np.errstate(all="ignore"):
        branches = [np.floor(floats(end) / np.pi + 0.5) for end in (near.low, near.high)]
        found = of.rounded(joined(np.tan, near), max(8.0, layer.arithmetic.limit("Tan")))
    return found.open_where((branches[0] != branches[1]) | ~np.isfinite(found.exact))


def _reduced(layer: Layer, x: Interval) -> Interval:
    return layer.algebra.widened(x, 4 * layer.arithmetic.unit * (x.magnitude + 1))


@rule("Cosh")
def cosh(layer: Layer, x: Interval) -> Bound:
    """cosh is the same for -x, and increases with \\|x\\|."""
    ends = np.abs(floats(x.low)), np.abs(floats(x.high))
    spans = (floats(x.low) < 0) & (floats(x.high) > 0)
    size = settled(np.abs(floats(x.exact)), np.where(spans, 0, np.minimum(*ends)), np.maximum(*ends))
    return layer.algebra.overflowing(layer.algebra.increasing(np.cosh, size, layer.algebra.published("Cosh", by_exp)))


@rule("ErfInv")
def erf_inv(layer: Layer, x: Interval) -> Bound:
    """The inverse of erf increases. Approximations take the logarithm of 1 - x^2, which is known up to two roundings
    of 1, and evaluate a polynomial of it, with an error of up to 2^-12 in OpenVINO 2026.4."""
    of = layer.algebra
    near = of.widened(settled(floats(x.exact), floats(x.low), floats(x.high)), _beside_one(of, x))
    inside = np.abs(floats(x.exact)) < 1
    with np.errstate(all="ignore"):
        ends = [floats(layer.run(np.clip(floats(end), -1, 1))[0]) for end in (near.low, near.high)]
        exact = floats(layer.run(floats(x.exact))[0])
    found = settled(exact, ends[0], ends[1])
    return of.widened(of.rounded(found, 32.0), 2.0**-12 * found.magnitude).open_where(~inside)


def _beside_one(of: Algebra, x: Interval) -> np.ndarray:
    """The change of x by which 1 - x^2 changes by two roundings of 1."""
    return 2 * of.arithmetic.unit * x.magnitude
