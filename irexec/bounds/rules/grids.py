"""Boxes from which detectors start, the heads of YOLO, and sums of overlapping patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irexec.bounds.algebra import Algebra, floats, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.functions import INCREASING
from irexec.ir.integers import integers

_ROUNDINGS = 64.0
"""More roundings than any implementation has from the attributes to an edge of a box: a root, a ratio, products, a
centre and a division by the size of the image, in the reference kernel and in the implementation."""


@rule("PriorBox", "PriorBoxClustered")
def prior_boxes(layer: Layer, grid: Interval, image: Interval) -> Bound:
    """Edges of boxes are a centre plus and minus half a size, divided by the size of the image.

    The error of an edge is relative to both terms, neither of which is larger than twice the largest edge and the
    largest size. Clipping makes no error larger.
    """
    attributes = layer.attributes["attributes"]
    if getattr(attributes, "fixed_size", ()):
        return Unbounded("how boxes of a fixed size are placed is rounded to pixels")
    exact = floats(layer.run(grid.exact, image.exact)[0])
    size = float(np.abs(exact).max(initial=1.0)) + _largest_side(attributes) / max(1.0, float(image.exact.min()))
    return layer.algebra.widened(settled(exact, exact, exact), _ROUNDINGS * layer.arithmetic.unit * 2 * size)


def _largest_side(attributes: object) -> float:
    """The largest side of a box, in pixels."""
    names = ("min_size", "max_size", "width", "height")
    ratios = getattr(attributes, "aspect_ratio", ())
    stretch = max([1.0, *ratios, *(1 / one for one in ratios)]) ** 0.5
    return stretch * max([0.0, *(side for name in names for side in getattr(attributes, name, ()))])


@rule("ExperimentalDetectronPriorGridGenerator")
def prior_grid(layer: Layer, priors: Interval, feature_map: Interval, image: Interval) -> Bound:
    """A prior plus the centre of a cell, (i + 0.5) * stride: three roundings, each relative to no more than both terms.

    The values after the boxes of a grid that is smaller than the feature map are not specified.
    """
    attributes = layer.attributes["attributes"]
    rows, columns = feature_map.exact.shape[2:]
    if (attributes.h or rows, attributes.w or columns) != (rows, columns):
        return Unbounded("a grid of another size than the feature map")
    exact = floats(layer.run(floats(priors.exact), floats(feature_map.exact), floats(image.exact))[0])
    reach = float(priors.radius.max(initial=0.0)) if not priors.is_certain else 0.0
    size = float(np.abs(exact).max(initial=0.0)) + float(priors.magnitude.max(initial=0.0))
    # The stride, a quotient, may be rounded too.
    return layer.algebra.widened(settled(exact, exact, exact), reach + 8 * layer.arithmetic.unit * 2 * size)


@rule("ExperimentalDetectronTopKROIs")
def top_rois(layer: Layer, rois: Interval, scores: Interval) -> Bound:
    """Rows are moved, if the order of the scores is the same in every implementation and there are enough of them."""
    count = layer.attributes["max_rois"]
    order = np.argsort(-floats(scores.exact), kind="stable")[: count + 1]
    low, high = floats(scores.low)[order], floats(scores.high)[order]
    if count > len(scores.exact) or np.isnan(scores.exact).any() or not (low[:-1] > high[1:]).all():
        return Unbounded("scores that are equal, or too few")
    rest = floats(scores.high).copy()
    rest[order] = -np.inf
    if len(order) and (rest >= low[-1]).any():
        return Unbounded("scores that may be in another order")
    exact, low, high = (layer.run(end, scores.exact)[0] for end in (rois.exact, rois.low, rois.high))
    return Interval.certain(exact) if rois.is_certain else settled(floats(exact), floats(low), floats(high))


@rule("RegionYolo")
def region_yolo(layer: Layer, x: Interval) -> Bound:
    """Sigmoids and softmax of channels, or channels as they are: each has a relative error of no more than that of exp
    of twice the largest element, and of the sum of all channels; sigmoids have an absolute one as well."""
    if not x.is_certain or not np.isfinite(x.exact).all():
        return Unbounded("elements that are not certain")
    exact = floats(layer.run(floats(x.exact))[0])
    largest = float(x.magnitude.max(initial=0.0))
    share = layer.arithmetic.unit * (32 + 8 * min(largest, 800.0))
    share += layer.arithmetic.sum_unit * x.exact.shape[1]
    size = np.abs(exact)
    reach = size * np.expm1(share) + layer.arithmetic.unit * INCREASING["Sigmoid"](size, size)
    return layer.algebra.widened(settled(exact, exact, exact), reach)


@rule("Col2Im")
def col2im(layer: Layer, x: Interval, size: Interval, kernel: Interval) -> Bound:
    """A sum of at most as many elements as a window has, in any order; each partial sum may be stored."""
    if not (layer.element is not None and layer.element.is_float):
        return Unbounded("sums of integers that are not known")

    def run(array: np.ndarray) -> np.ndarray:
        return floats(layer.run(floats(array), size.exact, kernel.exact)[0])

    with np.errstate(all="ignore"):
        exact = run(x.exact)
        reach = 0.0 if x.is_certain else run(x.radius)
        count = float(np.prod(integers(kernel.exact, "kernel_size")))
        of = Algebra(replace(layer.arithmetic, sum_unit=2 * layer.arithmetic.unit))
        return of.summed(settled(exact, exact - reach, exact + reach), run(x.magnitude), count)
