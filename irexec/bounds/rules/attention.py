"""Scaled dot-product attention, layer by layer or with the softmax in blocks."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import Algebra, floats, joined
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.products import sum_of_products
from irexec.bounds.rules.reductions import shares
from irexec.reference.products import score_scale

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
    return found.open_where(np.broadcast_to(~np.isfinite(weights.high).all(-1, keepdims=True), found.exact.shape))


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
