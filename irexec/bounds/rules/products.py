"""Sums of products: matrices, windows, deformable convolutions, attention, Fourier transforms.

The exact result is y = sum w x, of n terms. With inputs known up to r_x and r_w, every implementation lies within

    gamma(n) * sum (|w| + r_w) (|x| + r_x)  +  sum (|w| r_x + r_w |x| + r_w r_x)

since each product is rounded once and then takes part in at most n - 1 additions.
The reference kernel computes the three sums from absolute values, and n from ones.

Winograd's method computes a convolution of 3 by 3 with tiles from differences of neighbouring elements, so that its
error depends on the largest element of a tile and not on the element itself: its bound takes the largest magnitude in
the neighbourhood. Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015; the error of F(4x4, 3x3) in
Barabasz and others, Error Analysis and Improving the Accuracy of Winograd Convolution, 2018.

A fast transform of n points has some roundings in each of its stages; a sum over all terms has n additions, and the
angle of its factors may be rounded when it is as large as 2 pi n. Either way an element differs by at most (20 + 10 n)
roundings of the sum of the absolute values, which is the largest that any partial sum may be. The errors of the
transforms along several axes add up, and what is between them, or between stages, may be rounded to the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec.bounds.interval import (
    Algebra,
    Bound,
    Function,
    Interval,
    Mask,
    Unbounded,
    floats,
    integers_near,
    joined,
    settled,
)
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.normalization import positive, shares, squares
from irexec.errors import check
from irexec.ir.facts import integer, integers
from irexec.reference import special
from irexec.reference.convolution import grid_of
from irexec.reference.products import score_scale
from irexec.schema.shape_rules import normalize_axes, normalize_axis

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
    a, b, run = layer.algebra.factor(x), layer.algebra.factor(w), layer.function(*rest)
    if not _may_be_winograd(layer, w.exact.shape):
        return sum_of_products(layer.algebra, run, a, b)
    extra = run(_neighbourhood(a.magnitude), b.magnitude)
    found = sum_of_products(layer.algebra, run, a, b, _WINOGRAD * extra)
    unit = layer.arithmetic.tile_unit
    # An infinite magnitude times a unit of 0 would be NaN.
    return layer.algebra.widened(found, _TILES * unit * extra) if unit else found


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
    # The order of the additions decides where an infinity or NaN takes part.
    return found if np.isfinite(size).all() else found.open_where(~np.isfinite(exact) | ~np.isfinite(size))


def _reach(run: Callable[..., np.ndarray], a: Interval, b: Interval) -> np.ndarray | float:
    if a.is_certain and b.is_certain:
        return 0.0
    radius_a, radius_b = a.radius, b.radius
    return run(np.abs(floats(a.exact)) + radius_a, radius_b) + run(radius_a, np.abs(floats(b.exact)))


def _may_be_winograd(layer: Layer, weights: tuple[int, ...]) -> bool:
    spatial = weights[2:] if layer.definition.type == "Convolution" else ()
    return bool(spatial) and all(size <= 7 for size in spatial) and max(spatial) >= 3


def _neighbourhood(magnitude: np.ndarray) -> np.ndarray:
    """The largest magnitude within a tile around each element, along the spatial axes."""
    found = magnitude
    # Padding alone, of data without elements, has no neighbours.
    for axis in range(2, magnitude.ndim if magnitude.size else 0):
        widths = [(_TILE, _TILE) if i == axis else (0, 0) for i in range(magnitude.ndim)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(found, widths), 2 * _TILE + 1, axis)
        found = windows.max(axis=-1)
    return found


@rule("MaxPool", "AdaptiveMaxPool", integers=True)
def largest(layer: Layer, x: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The largest element of each window is not rounded; its index is that of any element of the window that may be it.

    Windows with NaN have no bound, and neither have windows in the padding alone, whose minimum depends on the type.
    """

    def run(array: np.ndarray) -> np.ndarray:
        return layer.run(array, *rest)[0]

    # Zeros have the maximum zero, but where there is padding alone.
    is_open = run(np.zeros_like(x.exact)) != 0
    if x.exact.dtype.kind != "f":
        found = Interval.certain(run(x.exact))
        found = found.open_where(is_open) if is_open.any() else found
    else:
        exact, low, high = (floats(run(floats(end))) for end in (x.exact, x.low, x.high))
        is_open = is_open | ~np.isfinite(exact) | (np.abs(exact) >= layer.arithmetic.largest)
        if np.isnan(floats(x.exact)).any():
            is_open = np.ones_like(is_open)
        found = settled(exact, low, high).open_where(is_open)
    if len(layer.outputs) == 1:
        return (found,)
    if found.exact.dtype.kind in "iu":
        # A search that begins at the smallest number finds none that is larger.
        is_open = is_open | (found.exact == np.iinfo(found.exact.dtype).min)
    return found, _index_of_largest(layer, x, found, is_open, run, layer.run(x, *rest)[1])


def _index_of_largest(
    layer: Layer, x: Interval, found: Interval, is_open: Mask, run: Function, exact: np.ndarray
) -> Bound:
    """The index of any element between the first and the last one of the window whose interval meets that of the
    largest value."""
    axis = normalize_axis(getattr(layer.attributes.get("attributes"), "axis", 2), x.exact.ndim)
    if axis > 2:
        return Unbounded("the index of an element within a part of the spatial axes")
    lead = x.exact.shape[:axis]
    own = np.broadcast_to(np.arange(np.prod(x.exact.shape[axis:])).reshape(x.exact.shape[axis:]), x.exact.shape)
    first, last = -run(-own.astype(np.float64)), run(own.astype(np.float64))
    size = math.prod(x.exact.shape[axis:])
    tops = x.high.reshape(*lead, size)

    def admits(index: np.ndarray) -> Mask:
        is_index = (index >= first) & (index <= last) & (index == np.trunc(index))
        flat = np.where(is_index, index, 0).astype(np.int64).reshape(*lead, math.prod(index.shape[axis:]))
        values = np.take_along_axis(tops, flat, -1).reshape(index.shape)
        return np.asarray(is_open | (is_index & (values >= found.low)))

    return Interval(exact, np.zeros_like(exact), np.full_like(exact, size - 1), admits=admits)


@rule("AvgPool", "AdaptiveAvgPool", integers=True)
def mean(layer: Layer, x: Interval, *rest: Interval | None) -> Bound:
    """The sum of each window in any order, divided by a count or multiplied by its reciprocal.

    The kernel's result for absolute values bounds the error; no window has more terms than the tensor has elements
    along the spatial axes. The mean of integers is rounded in any direction.
    """
    run = layer.function(*rest)
    exact, reach, size = map(run, (x.exact, x.radius, x.magnitude))
    # The mean of a window beside the data is open: OpenVINO divides zero by zero.
    is_empty = run(np.ones(x.exact.shape)) == 0
    window = getattr(layer.attributes.get("attributes"), "kernel", None) or x.exact.shape[2:]
    found = layer.algebra.summed(settled(exact, exact - reach, exact + reach), size, float(np.prod(window)))
    found = layer.algebra.rounded(found, 2.0).open_where(~np.isfinite(exact) | is_empty)
    return found if x.exact.dtype.kind == "f" else integers_near(found, layer.run(x, *rest)[0])


@rule("DeformableConvolution")
def deformable(layer: Layer, x: Interval, offsets: Interval, w: Interval, mask: Interval | None = None) -> Bound:
    """The position of a point is its place in the window plus its offset, rounded twice, or not where the sum is
    exact.

    Interpolation changes by at most twice the largest pixel for each position that a point moves along an axis. Every
    product has four roundings, for the interpolation and the mask, besides the sum. A point that may be on either side
    of the border, where pixels begin to count, has no bound.
    """
    check(x.exact.dtype.kind == "f", "integers at moved points are rounded as the runtime likes")
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
    return found.open_where(is_open[:, None] | ~np.isfinite(exact))


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


_BLOCK = 16
"""Columns of the scores in the smallest block whose maximum is subtracted before the others are known."""


@rule("ScaledDotProductAttention")
def attention(
    layer: Layer, query: Interval, key: Interval, value: Interval, mask: Interval | None = None,
    scale: Interval | None = None, sink: Interval | None = None,
) -> Bound:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value.

    The scale is applied to the query, to both factors by its root, or to the scores: three roundings of each product.
    Blocks of the softmax have exponentials of their own, see ``shares``; the shares are a factor of the second product.
    A masked score has no share, whatever it is.
    """
    of, causal = layer.algebra, layer.attributes["causal"]
    if 0 in query.exact.shape or 0 in key.exact.shape:
        return Unbounded("attention to nothing")
    if mask is not None and not mask.is_certain and mask.exact.dtype.kind != "f":
        return Unbounded("a mask that is not certain")
    factor = of.read(Interval.certain(np.asarray(score_scale(floats(query.exact), None)))) if scale is None else scale
    scores = _scores(of, query, key, factor.moved(lambda array: np.asarray(array).reshape(())))
    if causal:
        scores = _kept(scores, np.tri(*scores.exact.shape[-2:], dtype=np.bool_))
    elif mask is not None:
        scores = _kept(scores, mask.exact) if mask.exact.dtype == np.bool_ else _added(of, scores, mask)
    weights = _weights(of, scores, sink)
    found = sum_of_products(of, np.matmul, of.factor(weights), of.factor(value))
    return found.open_where(~np.isfinite(weights.high).all(-1, keepdims=True))


def _scores(of: Algebra, query: Interval, key: Interval, scale: Interval) -> Interval:
    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.matmul(a, np.swapaxes(b, -1, -2))

    products = sum_of_products(of, run, of.factor(query), of.factor(key))
    scaled = of.multiply(products, scale)
    size = run(query.magnitude, key.magnitude) * scale.magnitude
    return of.widened(scaled, 3 * max(of.arithmetic.unit, of.arithmetic.factor_unit) * size)


def _kept(scores: Interval, mask: np.ndarray) -> Interval:
    exact, low, high = (np.where(mask, floats(getattr(scores, end)), -np.inf) for end in ("exact", "low", "high"))
    return Interval(exact, low, high)


def _added(of: Algebra, scores: Interval, mask: Interval) -> Interval:
    """The sum; -inf stays -inf, which the sum's own bound would saturate."""
    found = of.add(scores, mask)
    return _kept(found, np.broadcast_to(~np.isneginf(floats(mask.high)), found.exact.shape))


def _weights(of: Algebra, scores: Interval, sink: Interval | None) -> Interval:
    count = scores.exact.shape[-1]
    blocks = float(-(-count // _BLOCK))
    if sink is None:
        return shares(of, scores, -1, blocks)
    rows = (*scores.exact.shape[:-1], 1)
    both = joined(lambda a, b: np.concatenate([a, np.broadcast_to(b, rows)], -1), scores, sink)
    return shares(of, both, -1, blocks).moved(lambda array: array[..., :count])


def _transformed(
    of: Algebra, exact: np.ndarray, size: np.ndarray, radius: np.ndarray, sizes: Sequence[int]
) -> Interval:
    """A transform along axes of these sizes, of terms whose absolute values and radii add up to ``size`` and
    ``radius``."""
    points = float(math.prod(sizes))
    factor = of.arithmetic.sum_unit * sum(20 + 10 * size for size in sizes)
    factor += of.arithmetic.unit * (4 + 2 * len(sizes) + 2 * math.log2(max(points, 1)))
    with np.errstate(all="ignore"):
        reach = radius + factor * (size + radius) + points * of.arithmetic.smallest
        reach = np.broadcast_to(np.where(np.isnan(reach), np.inf, reach), exact.shape)
        found = of.widened(settled(exact, exact - reach, exact + reach), 0.0)
        is_open = ~(size * points <= of.arithmetic.sum_largest)
    return found.open_where(is_open)


@rule("DFT", "IDFT", "RDFT", "IRDFT")
def transform(layer: Layer, x: Interval, axes: Interval, signal_size: Interval | None = None) -> Bound:
    """See the docstring of the module; an inverse divides by the number of points."""
    type, has_pairs = layer.definition.type, layer.definition.type != "RDFT"
    along = normalize_axes(integers(axes.exact, "axes"), x.exact.ndim - has_pairs)
    exact = layer.function(axes, *([] if signal_size is None else [signal_size]))(x.exact)
    if exact.size == 0 or x.exact.size == 0:
        return Interval.certain(exact)
    # The sum along axes, of both numbers of each pair.
    size, radius = (
        (array.sum(-1) if has_pairs else array).sum(along, keepdims=True) for array in (x.magnitude, x.radius)
    )
    # Every point of IRDFT but the first and the last stands for two.
    size, radius = (2 * size, 2 * radius) if type == "IRDFT" else (size[..., None], radius[..., None])
    sizes = [max(exact.shape[axis], x.exact.shape[axis]) for axis in along]
    if type in ("IDFT", "IRDFT"):
        divisor = float(math.prod(exact.shape[axis] for axis in along))
        size, radius = size / divisor, radius / divisor
    return _transformed(layer.algebra, exact, size, radius, sizes)


@rule("STFT")
def stft(layer: Layer, signal: Interval, window: Interval, size: Interval, step: Interval) -> Bound:
    """The transform of frames times the window: the products have one rounding more."""
    count, stride = integer(size.exact, "frame_size"), integer(step.exact, "frame_step")
    exact = layer.function(size, step)(signal.exact, window.exact)
    if exact.size == 0:
        return Interval.certain(exact)
    weight, doubt = (special.centered(array, count) for array in (window.magnitude, window.radius))
    magnitude, radius = (special.frames_of(array, count, stride) for array in (signal.magnitude, signal.radius))
    total = (magnitude * weight).sum(-1)[..., None, None]
    reach = (radius * weight + magnitude * doubt).sum(-1)[..., None, None]
    if layer.attributes["transpose_frames"]:
        total, reach = np.swapaxes(total, -2, -3), np.swapaxes(reach, -2, -3)
    return _transformed(layer.algebra, exact, total, reach, [count])


@rule("ISTFT")
def istft(
    layer: Layer, x: Interval, window: Interval, size: Interval, step: Interval, length: Interval | None = None
) -> Bound:
    """The inverse transforms times the window, added where they overlap, divided by the sum of squares of the window.

    Where that sum is small, or 0, the result has no bound: implementations differ in what they divide by then.
    """
    of, count, stride = layer.algebra, integer(size.exact, "frame_size"), integer(step.exact, "frame_step")
    exact = layer.function(size, step, *([] if length is None else [length]))(x.exact, window.exact)
    if exact.size == 0 or x.exact.size == 0:
        return Interval.certain(exact)
    weight = squares(of, window.moved(lambda array: special.centered(array, count)))
    frames = x.exact.shape[-2]

    def added(array: np.ndarray) -> np.ndarray:
        """Frames (batch, frames, size) added, and cut as the signal is."""
        total = special.overlap_add(np.ascontiguousarray(array), stride)
        margin = count // 2 if layer.attributes["center"] else 0
        cut = special.resized(total[:, margin:], (1,), (exact.shape[-1],))
        return cut.reshape(*exact.shape[:-1], -1) if len(array) > 1 or exact.ndim == 1 else cut

    def frame(array: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """The absolute values of each frame, times those of the window."""
        each = 2 * array.sum((-1, -3)).reshape(-1, frames, 1) / count
        return added(each * special.centered(factor, count))

    scale = math.sqrt(count) if layer.attributes["normalized"] else 1.0
    overlaps = float(-(-count // stride))
    squared = weight.moved(lambda array: added(np.broadcast_to(floats(array), (1, frames, count))))
    squared = positive(of.summed(squared, squared.magnitude, overlaps))
    total = _transformed(
        of, exact * squared.exact / scale, frame(x.magnitude, window.magnitude),
        frame(x.radius, window.magnitude) + frame(x.magnitude, window.radius), [count + int(overlaps)]
    )  # fmt: skip
    found = of.divide(of.multiply(total, Interval.certain(np.array(scale))), squared, 6.0)
    ends = settled(exact, np.minimum(found.low, exact), np.maximum(found.high, exact))
    return ends.open_where(floats(squared.low) < 1e-6)
