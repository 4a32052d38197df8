"""GridSample: pixels around a point whose position is rounded.

Positions are computed in f32 at least, ((g + 1) * size - 1) / 2 in any form: six roundings of size * (\\|g\\| + 1). The
weights are continuous in the position, across borders as well, with a largest slope; so that each of the pixels within
reach changes by the slope times the difference at most. The nearest pixel is open where the difference passes an edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from irexec.bounds.algebra import Algebra, floats, integers_near, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.resampling import cubic_slope
from irexec.reference.resize import SampleParams, pixel_of, position_of

_SLOPES = {"bilinear": 1.0, "bicubic": cubic_slope(-0.75)}
_F32 = 2.0**-24

Gather = Callable[[np.ndarray], np.ndarray]


@rule("GridSample")
def grid_sample(layer: Layer, x: Interval, grid: Interval) -> Bound:
    """See the docstring of the module; sampled integers may be rounded in any direction."""
    attributes = layer.attributes["attributes"]
    params = SampleParams(attributes.mode, attributes.padding_mode, attributes.align_corners)
    if 0 in x.exact.shape or 0 in grid.exact.shape:
        return Unbounded("nothing is sampled")
    points = [_positions(grid, 1 - axis, size, params) for axis, size in enumerate(x.exact.shape[2:])]
    is_kept = params.mode == "nearest" and x.exact.dtype.kind != "f"
    with np.errstate(all="ignore"):
        exact = layer.run(x.exact if is_kept else floats(x.exact), floats(grid.exact))[0]
        if params.mode == "nearest":
            found = _nearest(x, exact, points, params)
        else:
            found = _weighted(layer.algebra, x, exact, points, params)
    if x.exact.dtype.kind != "f" and not is_kept:
        found = integers_near(found, layer.run(x.exact, floats(grid.exact))[0])
    # A position that may be off by half a pixel has pixels out of reach.
    is_open = np.logical_or(*(~(np.isfinite(position) & (error < 0.25)) for position, error in points))
    return found.open_where(np.broadcast_to(is_open[:, None], exact.shape) | ~np.isfinite(floats(exact)))


def _positions(grid: Interval, coordinate: int, size: int, params: SampleParams) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N, h, w) among the pixels of one axis, and how much implementations differ there."""
    points, radius = floats(grid.exact)[..., coordinate], grid.radius[..., coordinate]
    error = 12 * _F32 * size * (np.abs(points) + 1) + radius * size / 2
    return position_of(points, size, params.align_corners), error


def _pixels(x: Interval, whole: tuple[np.ndarray, np.ndarray], params: SampleParams) -> tuple[Gather, np.ndarray]:
    """A function that gathers (N, C, h, w) of a tensor at integral positions (N, h, w), and where they count."""
    (rows, has_row), (columns, has_column) = (
        pixel_of(position, size, params) for position, size in zip(whole, x.exact.shape[2:], strict=True)
    )
    images = np.arange(len(rows)).reshape(-1, 1, 1)
    return lambda array: np.moveaxis(array[images, :, rows, columns], -1, 1), has_row & has_column


def _nearest(
    x: Interval, exact: np.ndarray, points: list[tuple[np.ndarray, np.ndarray]], params: SampleParams
) -> Interval:
    low, high = exact, exact
    for sides in itertools.product((-1, 1), repeat=2):
        whole = tuple(np.rint(at + side * error) for (at, error), side in zip(points, sides, strict=True))
        gather, counts = _pixels(x, (whole[0], whole[1]), params)
        inside = counts[:, None]
        low = np.minimum(low, np.where(inside, gather(x.low), 0))
        high = np.maximum(high, np.where(inside, gather(x.high), 0))
    return settled(floats(exact), floats(low), floats(high)) if exact.dtype.kind == "f" else Interval(exact, low, high)


def _weighted(
    of: Algebra, x: Interval, exact: np.ndarray, points: list[tuple[np.ndarray, np.ndarray]], params: SampleParams
) -> Interval:
    """The error of the weights and of a sum of at most 16 products, from the magnitudes of the pixels within reach."""
    size, reach, base = np.zeros(exact.shape), np.zeros(exact.shape), np.zeros(exact.shape)
    slope, unit = _SLOPES[params.mode], of.arithmetic.unit
    for down, across in itertools.product(*(list(_taps(at, error, params)) for at, error in points)):
        gather, counts = _pixels(x, (down[0], across[0]), params)
        doubts = [
            slope * error + 16 * _F32 * (1 + slope) + 4 * unit * one[1]
            for one, (_, error) in zip((down, across), points, strict=True)
        ]
        weight = np.where(counts, down[1] * across[1], 0)[:, None]
        doubted = np.where(counts, (down[1] + doubts[0]) * (across[1] + doubts[1]), 0)[:, None]
        magnitude = gather(x.magnitude)
        size, base = size + doubted * magnitude, base + weight * magnitude
        reach = reach + doubted * gather(x.radius)
    reach = reach + np.maximum(size - base, 0)
    return of.summed(settled(exact, exact - reach, exact + reach), size, 16.0 + 4)


def _taps(position: np.ndarray, error: np.ndarray, params: SampleParams) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The integral positions within reach of a position, and the absolute weight of each; 0 beyond the taps."""
    count = 2 if params.mode == "bilinear" else 4
    base = np.floor(position - error)
    for step in range(1 - count // 2, count // 2 + 2):
        distance = np.abs(position - (base + step))
        yield base + step, _curve(distance) if count == 4 else np.maximum(0, 1 - distance)


def _curve(x: np.ndarray) -> np.ndarray:
    """The absolute weight of cubic interpolation at a distance from the point."""
    a = -0.75
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.abs(np.where(x < 1, near, np.where(x < 2, far, 0)))
