"""Sums of products: the error of any order of summation.

The exact result is y = sum w x, of n terms. With inputs known up to r_x and r_w, every implementation lies within

    gamma(n) * sum (|w| + r_w) (|x| + r_x)  +  sum (|w| r_x + r_w |x| + r_w r_x)

since each product is rounded once and then takes part in at most n - 1 additions.
The reference kernel computes the three sums from absolute values, and n from ones.

Winograd's method computes a convolution of 3 by 3 with tiles from differences of neighbouring elements, so that its
error depends on the largest element of a tile and not on the element itself: its bound takes the largest magnitude in
the neighbourhood. Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015; the error of F(4x4, 3x3) in
Barabasz and others, Error Analysis and Improving the Accuracy of Winograd Convolution, 2018.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irexec.bounds.algebra import Algebra, floats, settled
from irexec.bounds.interval import Bound, Interval
from irexec.bounds.registry import Layer, rule

_CONVOLUTIONS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData")
_TILE = 5
"""Elements on each side whose magnitude may enter an element of a tile of Winograd's F(4x4) or F(6x6)."""
_WINOGRAD = 16.0
"""Growth of the error by the transforms of F(6x6), beside that of the sum over channels."""
_TILES = 3.0
"""Growth of the roundings of tiles by the transforms of F(2x2), where these are coarser than the sums."""


@rule("MatMul", "GroupedMatMul", *_CONVOLUTIONS)
def product(layer: Layer, x: Interval, w: Interval, *rest: Interval | None) -> Bound:
    """A sum of products of two tensors."""
    others = [None if one is None else one.exact for one in rest]
    a, b = layer.algebra.factor(x), layer.algebra.factor(w)

    def run(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return floats(layer.run(floats(left), floats(right), *others)[0])

    if not _may_be_winograd(layer, w.exact.shape):
        return sum_of_products(layer.algebra, run, a, b)
    extra = run(_neighbourhood(a.magnitude), b.magnitude)
    found = sum_of_products(layer.algebra, run, a, b, _WINOGRAD * extra)
    tiles = _TILES * layer.arithmetic.tile_unit * extra
    return layer.algebra.widened(found, tiles) if tiles.any() else found


def sum_of_products(
    of: Algebra, run: Callable[[np.ndarray, np.ndarray], np.ndarray], a: Interval, b: Interval,
    extra: np.ndarray | None = None,
) -> Interval:  # fmt: skip
    """Sums of products of two tensors.

    Args:
        run: the operation on f64.
        a, b: the factors, as the runtime may hold them.
        extra: a magnitude to add to that of each sum.
    """
    with np.errstate(all="ignore"):
        exact = run(floats(a.exact), floats(b.exact))
        size = run(a.magnitude, b.magnitude)
        count = run(np.ones(a.exact.shape), np.ones(b.exact.shape))
        reach = _reach(run, a, b)
        if extra is not None:
            size = size + extra
        found = of.summed(settled(exact, exact - reach, exact + reach), size, count)
    return found if np.isfinite(size).all() else _open_at_infinities(found, exact, size)


def _reach(run: Callable[..., np.ndarray], a: Interval, b: Interval) -> np.ndarray | float:
    if a.is_certain and b.is_certain:
        return 0.0
    radius_a, radius_b = a.radius, b.radius
    return run(np.abs(floats(a.exact)) + radius_a, radius_b) + run(radius_a, np.abs(floats(b.exact)))


def _open_at_infinities(found: Interval, exact: np.ndarray, size: np.ndarray) -> Interval:
    """Anything where an infinity or NaN takes part: what is added first decides."""
    return found.open_where(~np.isfinite(exact) | ~np.isfinite(size))


def _may_be_winograd(layer: Layer, weights: tuple[int, ...]) -> bool:
    spatial = weights[2:] if layer.definition.type == "Convolution" else ()
    return bool(spatial) and all(size <= 7 for size in spatial) and max(spatial) >= 3


def _neighbourhood(magnitude: np.ndarray) -> np.ndarray:
    """The largest magnitude within a tile around each element, along the spatial axes."""
    found = magnitude
    for axis in range(2, magnitude.ndim):
        widths = [(_TILE, _TILE) if i == axis else (0, 0) for i in range(magnitude.ndim)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(found, widths), 2 * _TILE + 1, axis)
        found = windows.max(axis=-1)
    return found
