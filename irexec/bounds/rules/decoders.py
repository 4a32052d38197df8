"""Connectionist temporal classification, and conversions of colour."""

from __future__ import annotations

import numpy as np

from irexec.bounds.algebra import floats, integers_near, settled
from irexec.bounds.interval import Bound, Interval, Unbounded
from irexec.bounds.registry import Layer, rule


@rule("CTCGreedyDecoder", "CTCGreedyDecoderSeqLen")
def decoded(layer: Layer, x: Interval, lengths: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The best class of each step is known if its interval lies above all others: then the result is."""
    count = len(layer.outputs)
    if not lengths.is_certain:
        return (Unbounded("lengths that are not certain"),) * count
    if x.exact.shape[2] > 1:
        best = np.argmax(floats(x.exact), 2)[..., None]
        others = floats(x.high).copy()
        np.put_along_axis(others, best, -np.inf, 2)
        # A comparison with NaN is false.
        if not (np.take_along_axis(floats(x.low), best, 2)[..., 0] > others.max(2)).all():
            return (Unbounded("classes of which either may be the best"),) * count
    arrays = (x.exact, lengths.exact, *(None if one is None else one.exact for one in rest))
    return tuple(Interval.certain(out) for out in layer.run(*arrays))


@rule("CTCLoss")
def ctc_loss(layer: Layer, logits: Interval, *rest: Interval | None) -> Bound:
    """Minus the logarithm of a sum of products of probabilities, computed from logarithms.

    The logarithm of a softmax has an absolute error as LogSoftmax has. Of a logarithm of a sum of exponentials the
    error is no larger than the largest one of its terms, and that of its own roundings is relative to its value, which
    no sum of the logarithms of the steps exceeds. Errors of the steps add up. An impossible text is infinite, or as
    large as the runtime likes.
    """
    exact = floats(layer.run(floats(logits.exact), *(None if one is None else one.exact for one in rest))[0])
    unit, steps = layer.arithmetic.unit, logits.exact.shape[1]
    if not logits.exact.size or not np.isfinite(logits.exact).all():
        return Unbounded("logits that are not finite")
    top = floats(logits.exact).max(2)
    spread = top - floats(logits.exact).min(2) + np.log(logits.exact.shape[2])
    each = unit * (16 + 16 * spread + 8 * np.abs(top)) + 2 * layer.arithmetic.sum_unit * logits.exact.shape[2]
    own = 0.0 if logits.is_certain else 2 * logits.radius.max(2).sum(1)
    reach = each.sum(1) + own + 16 * unit * steps * (spread.sum(1) + 4)
    found = layer.algebra.widened(settled(exact, exact, exact), reach)
    return found.open_where(~np.isfinite(exact))


@rule("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR", "RGBtoNV12", "BGRtoNV12", integers=True)
def recoloured(layer: Layer, *planes: Interval | None) -> tuple[Bound, ...]:
    """A sum of three products with factors up to 2.02, with at most sixteen roundings, clipped to 0 to 255.

    Bytes are rounded in any direction, once before and once after the mean of four pixels or the factors.
    """
    given = [one for one in planes if one is not None]
    size = max(float(one.magnitude.max(initial=0.0)) for one in given) + 128
    own = max(float(one.radius.max(initial=0.0)) for one in given)
    is_float = given[0].exact.dtype.kind == "f"
    arrays = [None if one is None else one.exact for one in planes]
    reach = 5 * own + 16 * layer.arithmetic.unit * 5 * size
    made = []
    for exact in layer.run(*(floats(one) if is_float and one is not None else one for one in arrays)):
        if is_float:
            made.append(layer.algebra.widened(settled(floats(exact), floats(exact), floats(exact)), reach))
            continue
        low, high = (np.clip(floats(exact) + sign * (1 + reach), 0, 255) for sign in (-1, 1))
        made.append(integers_near(Interval(exact, np.ceil(low), np.floor(high)), exact))
    return tuple(made)
