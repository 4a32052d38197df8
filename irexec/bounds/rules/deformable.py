"""Deformable convolution: a sum of products of weights and of pixels that are interpolated at moved points."""

from __future__ import annotations

import math

import numpy as np

from irexec.bounds.algebra import floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.reference.convolution import grid_of


@rule("DeformableConvolution")
def deformable(layer: Layer, x: Interval, offsets: Interval, w: Interval, mask: Interval | None = None) -> Bound:
    """The position of a point is its place in the window plus its offset, rounded twice, or not where the sum is
    exact.

    Interpolation changes by at most twice the largest pixel for each position that a point moves along an axis. Every
    product has four roundings, for the interpolation and the mask, besides the sum. A point that may be on either side
    of the border, where pixels begin to count, has no bound.
    """
    if x.exact.dtype.kind != "f":
        return Unbounded("integers at moved points are rounded as the runtime likes")
    of, attributes = layer.algebra, layer.attributes["attributes"]
    a, b, m = of.factor(x), of.factor(w), None if mask is None else of.factor(mask)
    at = floats(offsets.exact)

    def run(data: np.ndarray, filter: np.ndarray, factor: np.ndarray | None) -> np.ndarray:
        arrays = [data, at, filter, *([] if factor is None else [factor])]
        return floats(layer.run(*arrays)[0])

    with np.errstate(all="ignore"):
        exact = run(floats(x.exact), floats(w.exact), None if mask is None else floats(mask.exact))
        size = run(a.magnitude, b.magnitude, None if m is None else m.magnitude)
        base = run(np.abs(floats(a.exact)), np.abs(floats(b.exact)), None if m is None else np.abs(floats(m.exact)))
        place = _positions(layer, x, w, at)
        is_exact = of.arithmetic.nearest(place) == place
        error = offsets.radius + np.where(is_exact, 0.0, 2 * of.arithmetic.unit * (np.abs(at) + np.abs(place)))
        largest = a.magnitude.max(initial=0) * (1.0 if m is None else m.magnitude.max(initial=0))
        moved = 2 * largest * _moved(b.magnitude, error)
        count = math.prod(w.exact.shape[1:])
        reach = np.maximum(size - base, 0) + moved + 4 * of.arithmetic.unit * size
        found = of.summed(settled(exact, exact - reach, exact + reach), size + moved, float(count) + 4)
    is_open = _near_border(x, place, error, getattr(attributes, "bilinear_interpolation_pad", False))
    return found.open_where(np.broadcast_to(is_open[:, None], exact.shape) | ~np.isfinite(exact))


def _moved(weight: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The sum over the points of a window of the weights times the distance that the point may move."""
    points, counts = math.prod(weight.shape[2:]), error.shape[2:]
    groups = error.shape[1] // (points * len(counts))
    each = error.reshape(len(error), groups, points, len(counts), math.prod(counts)).sum(3).max(1, initial=0)
    total = np.einsum("oik,nkp->nop", weight.reshape(*weight.shape[:2], points), each)
    return total.reshape(len(error), len(weight), *counts)


def _positions(layer: Layer, x: Interval, w: Interval, offsets: np.ndarray) -> np.ndarray:
    """The position of each point along its axis, in the shape of the offsets."""
    attributes, rank = layer.attributes["attributes"], x.exact.ndim - 2
    placed = attributes.windows(x.exact.shape[2:], w.exact.shape[2:])
    counts = offsets.shape[2:]
    grid = np.stack(
        [np.broadcast_to(one, (one.shape[0], *counts)) for one in grid_of(placed, counts, offsets.dtype)], 1
    )
    groups = offsets.shape[1] // (grid.shape[0] * rank)
    return np.tile(grid.reshape(-1, *counts), (groups, *(1,) * rank))[None] + offsets


def _near_border(x: Interval, place: np.ndarray, error: np.ndarray, has_zeros: bool) -> np.ndarray:
    """Where (N, counts...) a point of the window may be on either side of an edge."""
    rank = x.exact.ndim - 2
    sizes = np.resize(np.array(x.exact.shape[2:], np.float64), place.shape[1]).reshape((1, -1) + (1,) * rank)
    near = (np.abs(place - sizes) <= error) | (np.abs(place - (-1 if has_zeros else 0)) <= error)
    return ((error > 0) & near).any(1)
