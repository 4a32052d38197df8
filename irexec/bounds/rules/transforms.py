"""Fourier transforms: sums of n terms, each times a number of absolute value 1.

A fast transform of n points has some roundings in each of its stages; a sum over all terms has n additions, and the
angle of its factors may be rounded when it is as large as 2 pi n. Either way an element differs by at most (20 + 10 n)
roundings of the sum of the absolute values, which is the largest that any partial sum may be. The errors of the
transforms along several axes add up, and what is between them, or between stages, may be rounded to the type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.bounds.algebra import Algebra, floats, settled
from irexec.bounds.interval import Bound, Interval
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.normalization import positive, squares
from irexec.ir.integers import integer, integers
from irexec.reference import special
from irexec.schema.shape_rules import normalize_axes


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
    return found.open_where(np.broadcast_to(is_open, exact.shape))


@rule("DFT", "IDFT", "RDFT", "IRDFT")
def transform(layer: Layer, x: Interval, axes: Interval, signal_size: Interval | None = None) -> Bound:
    """See the docstring of the module; an inverse divides by the number of points."""
    type, others = layer.definition.type, [axes.exact, *([] if signal_size is None else [signal_size.exact])]
    has_pairs = type != "RDFT"
    along = normalize_axes(integers(axes.exact, "axes"), x.exact.ndim - has_pairs)
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(x.exact), *others)[0])
    if exact.size == 0 or x.exact.size == 0:
        return Interval.certain(exact)
    size, radius = (_added(array, along, has_pairs) for array in (x.magnitude, x.radius))
    if type != "IRDFT":
        size, radius = size[..., None], radius[..., None]
    sizes = [max(exact.shape[axis], x.exact.shape[axis]) for axis in along]
    if type == "IRDFT":
        # Every point but the first and the last stands for two.
        size, radius = 2 * size, 2 * radius
    if type in ("IDFT", "IRDFT"):
        divisor = float(math.prod(exact.shape[axis] for axis in along))
        size, radius = size / divisor, radius / divisor
    return _transformed(layer.algebra, exact, size, radius, sizes)


def _added(array: np.ndarray, axes: tuple[int, ...], has_pairs: bool) -> np.ndarray:
    """The sum along axes, of both numbers of each pair."""
    parts = array.sum(-1) if has_pairs else array
    return parts.sum(axes, keepdims=True)


@rule("STFT")
def stft(layer: Layer, signal: Interval, window: Interval, size: Interval, step: Interval) -> Bound:
    """The transform of frames times the window: the products have one rounding more."""
    count, stride = integer(size.exact, "frame_size"), integer(step.exact, "frame_step")
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(signal.exact), floats(window.exact), size.exact, step.exact)[0])
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

    Where that sum is small, or 0, there is no bound: implementations differ in what they divide by then.
    """
    of, count, stride = layer.algebra, integer(size.exact, "frame_size"), integer(step.exact, "frame_step")
    others = [size.exact, step.exact, *([] if length is None else [length.exact])]
    with np.errstate(all="ignore"):
        exact = floats(layer.run(floats(x.exact), floats(window.exact), *others)[0])
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
    is_small = np.broadcast_to(floats(squared.low) < 1e-6, exact.shape)
    ends = settled(exact, np.minimum(found.low, exact), np.maximum(found.high, exact))
    return ends.open_where(is_small)
