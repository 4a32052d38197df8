"""Other readings of a layer: the values that OpenVINO is known to give, each with its own interval.

A reading belongs to a code of the portability table. It says which values the difference explains, and no others: a row
without a reading explains nothing, and a layer outside of both intervals is outside. A reading is for OpenVINO alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.bounds.interval import Bound, Interval, Unbounded, floats
from irexec.bounds.registry import Layer
from irexec.reference.integers import quantised_rows
from irexec.schema.shape_rules import align

Inputs = Sequence[Interval | None]
Evaluate = Callable[[Layer, Inputs], tuple[Bound, ...]]
"""The bounds of a layer, as the specification has them."""
Reading = Callable[[Layer, Inputs, Evaluate], tuple[Bound, ...]]

READINGS: dict[str, Reading] = {}
"""By code."""


def read_as(codes: Sequence[str], layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """The bounds of the outputs of a layer by the first of the codes that has a reading."""
    code = next((one for one in codes if one in READINGS), None)
    if code is None:
        return evaluate(layer, inputs)
    found = READINGS[code](layer, inputs, evaluate)
    return _each(found, lambda one: replace(one, codes=(*one.codes, code)))


def _each(bounds: Sequence[Bound], change: Callable[[Interval], Interval]) -> tuple[Bound, ...]:
    return tuple(one if isinstance(one, Unbounded) else change(one) for one in bounds)


def _reading(code: str) -> Callable[[Reading], Reading]:
    def register(function: Reading) -> Reading:
        READINGS[code] = function
        return function

    return register


def _with(layer: Layer, **changes: object) -> Layer:
    """The layer with other attributes, which may be fields of the operation's dataclass."""
    made: dict[str, object] = {}
    for name, value in layer.attributes.items():
        fields = getattr(value, "__dataclass_fields__", {})
        own: Mapping[str, object] = {key: one for key, one in changes.items() if key in fields}
        made[name] = replace(value, **own) if own else changes.get(name, value)
    return replace(layer, attributes=made)


def _with_other(changes: Callable[[Layer], Mapping[str, object]]) -> Reading:
    return lambda layer, inputs, evaluate: evaluate(_with(layer, **changes(layer)), inputs)


READINGS |= {
    # A quotient of integers without its fraction.
    "IR911": _with_other(lambda layer: {"m_pythondiv": False}),
    # The axes of the second input are the last ones.
    "IR912": _with_other(lambda layer: {"auto_broadcast": "numpy"}),
    "IR919": _with_other(lambda layer: {"cube_coeff": -0.5}),
    "IR932": _with_other(lambda layer: {"do_softmax": False}),
    # The bias without its fraction.
    "IR946": _with_other(lambda layer: {"bias": float(int(layer.attributes["bias"]))}),
}
"""Readings of a layer with other attributes."""


def _arrays(inputs: Inputs) -> list[np.ndarray] | None:
    """The inputs, if all are certain."""
    known = [one.exact for one in inputs if one is not None and one.is_certain]
    return known if len(known) == len([one for one in inputs if one is not None]) else None


@_reading("IR913")
def _saturated(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """Saturated sums and products of bytes; of a mean the sum saturates, and the quotient is cut."""
    known = _arrays(inputs)
    if known is None:
        return (Unbounded("sums of bytes that are not known"),)
    limits = np.iinfo(known[0].dtype)
    made = layer.run(*(one.astype(np.int64) for one in known))[0]
    if layer.definition.type == "ReduceMean":
        # The mean times the number of elements is the sum, up to the fraction that the division dropped.
        count = max(1, known[0].size // max(1, made.size))
        exact = floats(layer.run(floats(known[0]), *known[1:])[0]) * count
        made = np.trunc(np.clip(np.rint(exact), limits.min, limits.max) / count)
    return (Interval.certain(np.clip(made, limits.min, limits.max).astype(known[0].dtype)),)


@_reading("IR915")
@_reading("IR916")
def _rounded_bytes(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """An interpolated byte is rounded up or down."""
    known = _arrays(inputs)
    if known is None:
        return (Unbounded("bytes that are not known"),)
    exact = layer.run(*known)[0]
    value = floats(layer.run(floats(known[0]), *known[1:])[0])
    return (Interval(exact, np.floor(value - 1e-3), np.ceil(value + 1e-3)),)


@_reading("IR918")
@_reading("IR921")
def _lowest(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """The lowest value of f32 or i32 in place of that of the type."""
    first, *rest = evaluate(layer, inputs)
    if isinstance(first, Unbounded):
        return (first, *rest)
    kind = first.exact.dtype
    lowest, other = (np.iinfo(kind).min, -(2.0**31)) if kind.kind in "iu" else (-65504.0, float(np.finfo("f4").min))
    is_lowest = floats(first.exact) <= lowest
    low = np.where(is_lowest, np.minimum(floats(first.low), min(other, lowest)), floats(first.low))
    high = np.where(is_lowest, np.maximum(floats(first.high), max(other, lowest)), floats(first.high))
    return (Interval(first.exact, np.where(is_lowest, -np.inf, low) if kind.kind == "f" else low, high), *rest)


@_reading("IR927")
def _spatial_axes(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """The spatial axes alone."""
    axes = inputs[1]
    if axes is None:
        return evaluate(layer, inputs)
    return evaluate(layer, [inputs[0], Interval.certain(axes.exact[axes.exact > 1])])


@_reading("IR925")
def _without_peepholes(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """Neither peephole weights nor input_forget."""
    weights = inputs[6] if len(inputs) > 6 else None
    kept = [*inputs[:6], *([] if weights is None else [Interval.certain(np.zeros_like(weights.exact))])]
    return evaluate(_with(layer, input_forget=False), kept)


@_reading("IR926")
def _to_the_end(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """Every sequence runs to its end."""
    at, data = 3 if layer.definition.type == "LSTMSequence" else 2, inputs[0]
    lengths = inputs[at]
    if data is None or lengths is None:
        return evaluate(layer, inputs)
    full = Interval.certain(np.full_like(lengths.exact, data.exact.shape[1]))
    return evaluate(layer, [*inputs[:at], full, *inputs[at + 1 :]])


@_reading("IR920")
@_reading("IR970")
def _nan_of_nothing(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """NaN where the specification has 0."""
    return _each(evaluate(layer, inputs), lambda one: one.open_where(floats(one.exact) == 0))


@_reading("IR922")
def _cut_mean(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """A mean of integers that is rounded up."""
    known = _arrays(inputs)
    if known is None:
        return (Unbounded("integers that are not known"),)
    exact = layer.run(*known)[0]
    return (Interval(exact, exact, exact + 1),)


@_reading("IR930")
def _finite(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """The largest finite value in place of an infinity."""
    largest = layer.arithmetic.largest

    def finite(array: np.ndarray) -> np.ndarray:
        return np.clip(floats(array), -largest, largest)

    return _each(evaluate(layer, inputs), lambda one: replace(one, low=finite(one.low), high=finite(one.high)))


@_reading("IR945")
def _rounded_reciprocal(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """A product with the reciprocal of the divisor, which is rounded to f16."""
    a, b = inputs[0], inputs[1]
    found = evaluate(layer, inputs)[0]
    if a is None or b is None or isinstance(found, Unbounded):
        return (found,)
    with np.errstate(all="ignore"):
        # f16 has no normal number below 2^-14: the reciprocal of a large divisor loses bits.
        exact = 1 / floats(b.exact)
        error = np.abs(exact.astype(np.float16).astype(np.float64) - exact) + 2.0**-11 * np.abs(exact)
        mode = layer.attributes.get("auto_broadcast", "numpy")
        wide = align(np.abs(floats(a.exact)), error, mode, 0)
    return (layer.algebra.widened(found, wide[0] * wide[1]),)


@_reading("IR939")
def _beside_zero(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """Levels that are off by two ulps of the larger bound of the output."""
    found = evaluate(layer, inputs)[0]
    ends = [one for one in inputs[3:5] if one is not None]
    if isinstance(found, Unbounded) or not ends:
        return (found,)
    largest = max(float(one.magnitude.max(initial=0)) for one in ends)
    return (layer.algebra.widened(found, 2 * 2.0**-23 * largest),)


@_reading("IR969")
def _distance_without_sign(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """The distance from start to stop without its sign."""
    known = _arrays(inputs)
    if known is None or (known[1].item() >= known[0].item()) == (known[2].item() > 0):
        return evaluate(layer, inputs)
    other = np.asarray(2 * known[0].astype(np.float64) - known[1], known[1].dtype)
    return evaluate(layer, [inputs[0], Interval.certain(other), inputs[2]])


UNDEFINED = frozenset({"IR928", "IR931", "IR944", "IR949", "IR950", "IR973", "IR984", "IR988", "IR991", "IR993"})
"""Codes of differences by which a layer has any values: memory that was never written, or belongs to something else."""


def anything(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Bounds of the same shapes that contain everything."""
    return _each(bounds, lambda one: one.open_where(np.ones(np.shape(one.exact), bool)))


READINGS.update(dict.fromkeys(UNDEFINED, lambda layer, inputs, evaluate: anything(evaluate(layer, inputs))))


def quantised_by_groups(x: Interval, group: int, axis: int) -> Interval:
    """Rows that are quantised by groups in f32 before a product: see irexec.reference.integers.quantised_rows.

    Source: the dynamic quantisation of OpenVINO's CPU plugin. The scale is the largest magnitude of a group over 127,
    with two roundings at most; the integer is nearest to the quotient, with the roundings of the reciprocal of the
    scale, of the product with it, and of the scale: near a half it is either of two. A group with a NaN or an infinity
    has any values.
    """
    unit, size = 2.0**-24, np.shape(x.exact)[axis]

    def cut(array: np.ndarray) -> np.ndarray:
        rows = np.moveaxis(floats(array), axis, -1)
        padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -size % group)])
        return padded.reshape(*rows.shape[:-1], -1, group)

    def whole(array: np.ndarray) -> np.ndarray:
        rows = array.reshape(*array.shape[:-2], -1)[..., :size]
        return np.moveaxis(rows, -1, axis)

    exact, low, high = cut(x.exact), cut(x.low), cut(x.high)
    with np.errstate(all="ignore"):
        levels, scale = quantised_rows(np.moveaxis(floats(x.exact), axis, -1).astype(np.float32), group)
        most = np.maximum(np.abs(low), np.abs(high)).max(-1, keepdims=True)
        least = np.maximum(0, np.maximum(low, -high)).max(-1, keepdims=True)
        smallest, largest = least / 127 * (1 - 2 * unit), most / 127 * (1 + 2 * unit)
        first = np.minimum(low / smallest, low / largest)
        last = np.maximum(high / smallest, high / largest)
        first, last = first - 4 * unit * np.abs(first), last + 4 * unit * np.abs(last)
        first, last = (np.rint(np.clip(end, -127, 127)) for end in (first, last))
        first, last = np.where(np.isnan(first), -127, first), np.where(np.isnan(last), 127, last)
        limit = most * (1 + 4 * unit)
        ends = np.minimum(first * smallest, first * largest), np.maximum(last * smallest, last * largest)
        least_value, most_value = np.maximum(ends[0], -limit), np.minimum(ends[1], limit)
        # Scales that f32 does not have as normal numbers are flushed to zero, or not.
        is_tiny = most / 127 < 2 * float(np.finfo(np.float32).tiny)
        least_value, most_value = np.where(is_tiny, -limit, least_value), np.where(is_tiny, limit, most_value)
        value = levels.astype(np.float64) * scale
    is_open = np.broadcast_to(~np.isfinite(most), exact.shape)
    value = np.where(is_open, exact, value)
    found = Interval(
        whole(value), whole(np.minimum(least_value, value)), whole(np.maximum(most_value, value)), x.codes
    )  # fmt: skip
    return found.open_where(whole(is_open))


@_reading("IR1001")
def _rounded_zero(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """Levels that are moved so that 0 is one of them."""
    low, high = inputs[3], inputs[4]
    if low is None or high is None:
        return evaluate(layer, inputs)
    first, last = floats(low.exact), floats(high.exact)
    step = (last - first) / (layer.attributes["levels"] - 1)
    moved = -np.rint(-first / step) * step - first
    ends = (Interval.certain((end.exact + moved).astype(end.exact.dtype)) for end in (low, high))
    return evaluate(layer, [*inputs[:3], *ends])


@_reading("IR1002")
def _last_query_sees_all(layer: Layer, inputs: Inputs, evaluate: Evaluate) -> tuple[Bound, ...]:
    """A causal mask whose last row hides nothing, in place of a first row that hides all but one key."""
    query, key, value = inputs[:3]
    if query is None or key is None:
        return evaluate(layer, inputs)
    rows, columns = query.exact.shape[-2], key.exact.shape[-2]
    mask = Interval.certain(np.tri(rows, columns, columns - rows, dtype=bool))
    return evaluate(_with(layer, causal=False), [query, key, value, mask, *inputs[4:]])
