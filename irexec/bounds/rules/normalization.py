"""Normalizations and reductions.

Epsilon is read as a tensor of the arithmetic: in f16 one below the smallest normal number may be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import relative
from irexec.errors import check
from irexec.reference.windows import pad, windows
from irexec.schema.registry import newest
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes


@rule("ReduceSum", "ReduceMean", "ReduceL1", "CumSum")
def summed(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """A sum of elements or of their absolute values, in any order; a mean divides it, or multiplies by 1/n."""
    check(layer.is_float, "sums of integers that are not known")
    run = layer.function(*rest)
    exact = run(x.exact)
    ends = (exact - run(x.radius), exact + run(x.radius)) if not x.is_certain else (exact, exact)
    size = run(x.magnitude)
    # No result has more terms than the tensor has elements.
    is_running = layer.definition.type == "CumSum"
    count = float(max(x.exact.shape, default=1)) if is_running else max(1.0, x.exact.size / max(1, exact.size))
    # Every running sum is a result, and may be rounded to the type of the tensor, or cut.
    of = replace(layer.arithmetic, sum_unit=2 * layer.arithmetic.unit) if is_running else layer.arithmetic
    found = Algebra(of).summed(settled(exact, *ends), size, count)
    return layer.algebra.rounded(found, 2.0) if layer.definition.type == "ReduceMean" else found


@rule("ReduceL2")
def root_of_squares(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """The root of a sum of squares in any order; a scaled sum of a few roundings more avoids overflows."""
    of = layer.algebra
    total = squares(of, x).moved(replace(layer, definition=newest("ReduceSum")).function(axes))
    count = max(1.0, x.exact.size / max(1, total.exact.size))
    found = root(of, positive(of.summed(total, total.magnitude, count + 4)))
    return found.open_where(~(total.high <= layer.arithmetic.largest))


@rule("ReduceProd")
def multiplied(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """A product in any order has one rounding for each factor; open where a partial product may leave the range.

    Every partial product lies between the product of the factors below 1 and that of the others.
    """
    check(layer.is_float, "products of integers that are not known")
    of, run = layer.algebra, layer.function(axes)
    exact, size = run(x.exact), run(x.magnitude)
    count = max(1.0, x.exact.size / max(1, exact.size))
    reach = run(np.abs(floats(x.exact)) + x.radius) - run(np.abs(floats(x.exact))) if not x.is_certain else 0.0
    rounding = np.expm1(count * max(layer.arithmetic.unit, layer.arithmetic.sum_unit) * 1.01)
    found = of.widened(settled(exact, exact, exact), reach + rounding * (size + reach))
    largest, smallest = run(np.maximum(x.magnitude, 1)), run(np.where(x.magnitude > 0, np.minimum(x.magnitude, 1), 1))
    is_open = ~((largest <= layer.arithmetic.largest) & (smallest >= layer.arithmetic.smallest))
    return found.open_where(is_open)


@rule("Softmax", "LogSoftmax")
def softmax(layer: Layer, x: Interval) -> Bound:
    """exp(x - max) divided by its sum; the logarithm of it may be computed from the sum's logarithm.

    A row that is -inf throughout, as a mask makes it, or that has NaN or inf, has no bound: implementations give NaN,
    zeros, or equal shares.
    """
    axis = layer.attributes.get("axis", 1)
    if layer.definition.type == "Softmax" and x.exact.ndim:
        return shares(layer.algebra, x, axis)
    of, unit = layer.algebra, layer.arithmetic.unit
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(x.exact))[0])
        top = np.max(floats(x.exact), axis=axis, keepdims=True, initial=-np.inf) if x.exact.ndim else x.exact
        size = x.exact.shape[axis] if x.exact.ndim else 1
        gap = np.abs(floats(x.exact) - top)
        # The difference is rounded once, exp has a relative error of some roundings and of its argument's.
        each = (8 + 2 * np.minimum(gap, 200)) * unit
        if not x.exact.ndim:
            return of.widened(settled(exact, exact, exact), 4 * unit)
        mean = np.max(each, axis=axis, keepdims=True, initial=0.0) + size * layer.arithmetic.sum_unit
        shift = 0.0 if x.is_certain else x.radius + np.max(x.radius, axis=axis, keepdims=True, initial=0.0)
        reach = 4 * unit * (np.abs(exact) + np.abs(top) + gap + 1) + mean + shift
        found = of.widened(settled(exact, exact, exact), np.where(np.isnan(reach), np.inf, reach))
    return found.open_where(np.isnan(exact))


def shares(of: Algebra, x: Interval, axis: int, blocks: float = 0.0) -> Interval:
    """exp(x) divided by its sum along an axis, where an element of -inf has no share.

    The share of an element is largest where it is largest itself and the others are smallest, and the other way round.
    Each exponential has a relative error of some roundings and of its argument's, and so have the sum, to the share of
    each element, and the quotient. An exponential may have an absolute error as well: OpenVINO 2023.1 has one of
    3 roundings of 1 in shares below 1e-7.

    Args:
        blocks: number of parts of the sum that are scaled by exponentials of differences of maxima.
    """
    unit, low, high = of.arithmetic.unit, floats(x.low), floats(x.high)
    if x.exact.size == 0:
        return Interval.certain(floats(x.exact))
    with np.errstate(all="ignore"):
        top = np.max(floats(x.exact), axis=axis, keepdims=True)
        parts = [np.exp(array - top) for array in (floats(x.exact), low, high)]
        exact = parts[0] / parts[0].sum(axis, keepdims=True)
        least = parts[1] / (parts[1] + np.maximum(parts[2].sum(axis, keepdims=True) - parts[2], 0))
        most = parts[2] / (parts[2] + np.maximum(parts[1].sum(axis, keepdims=True) - parts[1], 0))
        gap = np.maximum(np.abs(low - top), np.abs(high - top))
        by_logarithm = of.arithmetic.limit("Softmax") * np.where(np.isfinite(top), np.abs(top), 0.0)
        each = (8 + 8 * blocks + 2 * np.minimum(gap, 200) + by_logarithm) * unit
        weighted = (each * np.minimum(most, 1)).sum(axis, keepdims=True)
        factor = np.expm1(each + weighted + float(of.gamma(x.exact.shape[axis])) + 4 * unit)
        ends = settled(exact, np.maximum(least, 0) * (1 - factor), np.minimum(most, 1) * (1 + factor))
        is_open = ~np.isfinite(top) | ~np.isfinite(parts[2].sum(axis, keepdims=True))
        found = positive(of.widened(ends, np.where(most > 0, 4 * unit, 0.0)))
    return found.open_where(is_open | np.isnan(exact))


@rule("BatchNormInference")
def batch_norm(layer: Layer, *inputs: Interval) -> Bound:
    """gamma * (data - mean) / sqrt(variance + epsilon) + beta, also computed as data * scale + shift.

    Every implementation has at most eight roundings, each of which is relative to one of the three terms of the sum.
    """
    of, data = layer.algebra, 2 if layer.definition.since == 1 else 0
    x, shape = inputs[data], (1, -1, *(1,) * (inputs[data].exact.ndim - 2))
    gamma, beta, mean, variance = (
        one.moved(lambda array: array.reshape(shape)) for i, one in enumerate(inputs) if i != data
    )
    scale = of.divide(gamma, root(of, of.add(variance, constant(of, layer.attributes["epsilon"]))), 4.0)
    found = of.add(of.multiply(of.subtract(x, mean), scale), beta)
    with np.errstate(all="ignore"):
        terms = scale.magnitude * (x.magnitude + mean.magnitude) + beta.magnitude
        return of.widened(found, np.where(np.isnan(terms), np.inf, 8 * layer.arithmetic.unit * terms))


@rule("MVN")
def mvn(layer: Layer, x: Interval, *axes: Interval) -> Bound:
    """(x - mean) / sqrt(variance + eps); see ``normalized``."""
    rank = x.exact.ndim
    if axes:
        along = tuple(dict.fromkeys(normalize_axes(axes[0].exact.ravel().tolist(), rank)))
    else:
        along = tuple(mvn_2_axes(rank, layer.attributes["across_channels"], layer.attributes["reduction_axes"]))
    is_inside = layer.attributes.get("eps_mode", "inside_sqrt") == "inside_sqrt"
    epsilon = layer.attributes["eps"] if layer.attributes["normalize_variance"] else None
    return normalized(layer.algebra, x, along, epsilon, is_inside)


@rule("GroupNormalization")
def group_normalization(layer: Layer, x: Interval, scale: Interval, bias: Interval) -> Bound:
    """The normalized groups times scale plus bias, also as one factor and one addend for each channel.

    The roundings of the factor and the addend are among those of ``normalized``, relative to \\|x\\| and \\|mean\\|.
    """
    shape, groups = x.exact.shape, layer.attributes["num_groups"]
    grouped = x.moved(lambda array: array.reshape(shape[0], groups, math.prod(shape[1:]) // groups))
    found = normalized(layer.algebra, grouped, (2,), layer.attributes["epsilon"], True)
    along = (1, -1, *(1,) * (len(shape) - 2))
    of, factor = layer.algebra, scale.moved(lambda array: array.reshape(along))
    product = of.rounded(of.multiply(found.moved(lambda array: array.reshape(shape)), factor), 2.0)
    return of.rounded(of.add(product, bias.moved(lambda array: array.reshape(along))))


def normalized(of: Algebra, x: Interval, axes: tuple[int, ...], epsilon: float | None, is_inside: bool) -> Interval:
    """x minus its mean along axes, divided by its standard deviation unless ``epsilon`` is None.

    With an error d of the mean, an error e of each centered element c and n elements, the variance changes by at most
    2 mean(\\|c\\| e) + mean((d + e)^2), since the sum of c is 0, and by gamma(n) times itself. The mean of the squares
    minus the square of the mean changes by gamma(n + 2) times the mean of the squares instead. The quotient is also
    computed as x / s - mean / s, whose roundings are relative to \\|x\\| + \\|mean\\|.
    """
    data, unit = floats(x.exact), of.arithmetic.unit
    count = math.prod(data.shape[axis] for axis in axes)
    if data.size == 0:
        return Interval.certain(data)

    def mean_of(array: np.ndarray) -> np.ndarray:
        return array.mean(axes, keepdims=True) if axes else array

    with np.errstate(all="ignore"):
        mean, radius, size = mean_of(data), x.radius, x.magnitude
        gamma = of.gamma(count + 2)
        shift = mean_of(radius) + gamma * mean_of(size) + 2 * unit * np.abs(mean)
        each = radius + 4 * unit * (np.abs(data - mean) + size + np.abs(mean))
        centered = of.widened(settled(data - mean, data - mean, data - mean), shift + each)
        # The sum may be infinite where the mean is not; differences of infinities are NaN.
        total = count * np.maximum(mean_of(size * size), mean_of(size))
        is_open = ~(total <= of.arithmetic.sum_largest)
        if epsilon is not None:
            variance, added = _variance(of, data - mean, size, shift, each, gamma, mean_of), constant(of, epsilon)
            deviation = root(of, of.add(variance, added)) if is_inside else of.add(root(of, variance), added)
            centered = of.divide(centered, deviation, 4.0)
        return centered.open_where(is_open)


def _variance(
    of: Algebra, centered: np.ndarray, size: np.ndarray, shift: np.ndarray, each: np.ndarray, gamma: np.ndarray,
    mean_of: Callable[[np.ndarray], np.ndarray],
) -> Interval:  # fmt: skip
    variance, off = mean_of(centered * centered), np.abs(centered)
    two_passes = 2 * mean_of(off * each) + mean_of((shift + each) ** 2)
    two_passes += (gamma + 2 * of.arithmetic.unit) * mean_of((off + shift + each) ** 2)
    one_pass = 2 * gamma * mean_of(size * size) + 4 * of.arithmetic.sum_unit * mean_of(size) ** 2
    return of.widened(settled(variance, variance, variance), np.maximum(two_passes, two_passes + one_pass))


def constant(of: Algebra, value: float) -> Interval:
    """An attribute as the runtime may hold it."""
    return of.read(Interval.certain(np.array(value, np.float64)))


def root(of: Algebra, x: Interval) -> Interval:
    """The square root, by any method with four roundings; anything where the argument may be negative."""
    found = of.increasing(lambda array: np.sqrt(np.maximum(array, 0)), x, of.published("Sqrt", relative))
    return found.open_where(floats(x.low) < 0)


def squares(of: Algebra, x: Interval) -> Interval:
    """x * x, rounded once."""
    low = np.where((x.low <= 0) & (x.high >= 0), 0.0, np.minimum(np.abs(floats(x.low)), np.abs(floats(x.high))))
    with np.errstate(all="ignore"):
        return positive(of.rounded(settled(floats(x.exact) ** 2, low**2, x.magnitude**2)))


def positive(x: Interval) -> Interval:
    """The interval of a result that no implementation makes negative."""
    return Interval(x.exact, np.where(x.low < 0, 0.0, x.low), x.high, x.codes)


@rule("NormalizeL2")
def normalize_l2(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """x / sqrt(sum of squares + eps), or of the larger of both: a sum in any order, then one rounding each."""
    of, rank = layer.algebra, x.exact.ndim
    along = tuple(dict.fromkeys(normalize_axes(axes.exact.ravel().tolist(), rank)))
    check(bool(along), "NormalizeL2 without axes is the sign in OpenVINO alone")
    total = positive(of.total(squares(of, x), along))
    epsilon = constant(of, layer.attributes["eps"])
    is_added = layer.attributes["eps_mode"] == "add"
    return _quotient(of, x, of.add(total, epsilon) if is_added else joined(np.maximum, total, epsilon))


def _quotient(of: Algebra, x: Interval, square: Interval) -> Interval:
    """x divided by the root of a square; anything for a row with NaN or infinities."""
    found = of.divide(x, root(of, square), 4.0)
    return found.open_where(~np.isfinite(found.exact))


@rule("GRN")
def grn(layer: Layer, x: Interval) -> Bound:
    """x / sqrt(bias + sum of squares along the channels): a sum in any order, then one rounding each."""
    of = layer.algebra
    total = positive(of.total(squares(of, x), (1,)))
    return _quotient(of, x, of.add(total, constant(of, layer.attributes["bias"])))


@rule("LRN")
def lrn(layer: Layer, x: Interval, axes: Interval) -> Bound:
    """x / (bias + alpha * mean square of neighbours) ** beta: a sum of at most size ** axes terms, then one rounding
    each; the power by way of a logarithm has a relative error of some roundings of its exponent."""
    of, size = layer.algebra, layer.attributes["size"]
    along = tuple(dict.fromkeys(normalize_axes(axes.exact.ravel().tolist(), x.exact.ndim)))
    square, count = squares(of, x), float(size ** len(along))
    total = square.moved(lambda array: _windowed(array, along, (size - 1) // 2))
    alpha = constant(of, layer.attributes["alpha"] / count)
    scaled = of.rounded(of.multiply(positive(of.summed(total, total.magnitude, count)), alpha), 3.0)
    base = of.add(constant(of, layer.attributes["bias"]), scaled)
    power = _power(of, base, layer.attributes["beta"])
    return of.divide(x, power, 4.0).open_where(~np.isfinite(floats(x.exact)) | (floats(base.low) <= 0))


def _windowed(array: np.ndarray, axes: tuple[int, ...], side: int) -> np.ndarray:
    """Sums of the neighbours along axes, ``side`` of them on each side."""
    for axis in axes:
        padded = pad(np.moveaxis(floats(array), axis, -1), ((side,), (side,)))
        parts = windows(padded, (2 * side + 1,), (1,), (1,), (array.shape[axis],))
        array = np.moveaxis(parts.sum(-1), -1, axis)
    return array


def _power(of: Algebra, base: Interval, exponent: float) -> Interval:
    def error(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (8 + 4 * abs(exponent) * np.abs(np.log(x))) * y

    def power(array: np.ndarray) -> np.ndarray:
        return np.maximum(array, 0) ** exponent

    return of.increasing(power, base, error) if exponent >= 0 else of.decreasing(power, base, error)
