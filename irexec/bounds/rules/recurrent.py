"""Recurrent cells, and decoders of sequences.

The products of a gate and its bias are one sum in any order; states are rounded to the type after each step, or not.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, floats, integers_near, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import INCREASING, relative
from irexec.bounds.rules.products import sum_of_products
from irexec.errors import check
from irexec.ops.sequences import activations
from irexec.schema.recurrent import CellAttributes, GRUCellAttributes, LSTMCellAttributes

State = tuple[Interval, ...]
Step = Callable[[Interval, State], State]
Function = Callable[[Interval], Interval]

_ERRORS = {"sigmoid": INCREASING["Sigmoid"], "tanh": INCREASING["Tanh"], "hardsigmoid": INCREASING["HardSigmoid"]}


def _functions(of: Algebra, attributes: CellAttributes) -> list[Function]:
    """The activations of a cell after its clip: none of them ever decreases."""
    errors = (_ERRORS.get(name.strip().lower(), relative) for name in attributes.functions)
    pairs = zip(activations(attributes), errors, strict=True)
    return [functools.partial(of.increasing, function, error=error) for function, error in pairs]


def _clipped(x: Interval, clip: float) -> Interval:
    return x if clip <= 0 or np.isinf(clip) else joined(lambda array: np.clip(array, -clip, clip), x)


def _product(of: Algebra, x: Interval, w: Interval) -> Interval:
    return sum_of_products(of, lambda a, b: a @ b.T, of.factor(x), of.factor(w))


def _part(x: Interval, begin: int, end: int) -> Interval:
    return x.moved(lambda array: array[..., begin:end])


def _one_minus(of: Algebra, x: Interval) -> Interval:
    return of.subtract(Interval.certain(np.ones(x.exact.shape)), x)


def _lstm(of: Algebra, r: Interval, b: Interval, p: Interval | None, attributes: CellAttributes) -> Step:
    f_act, g_act, h_act = _functions(of, attributes)
    size, clip = attributes.hidden_size, attributes.clip

    def peeped(gate: Interval, cell: Interval, index: int) -> Interval:
        return gate if p is None else of.add(gate, of.multiply(_part(p, index * size, (index + 1) * size), cell))

    def step(gates: Interval, state: State) -> State:
        hidden, cell = state
        total = of.add(of.add(gates, _product(of, hidden, r)), b)
        f, i, c, o = (_part(total, k * size, (k + 1) * size) for k in range(4))
        f = f_act(_clipped(peeped(f, cell, 0), clip))
        is_coupled = getattr(attributes, "input_forget", False)
        i = _one_minus(of, f) if is_coupled else f_act(_clipped(peeped(i, cell, 1), clip))
        cell = of.add(of.multiply(f, cell), of.multiply(i, g_act(_clipped(c, clip))))
        return of.multiply(f_act(_clipped(peeped(o, cell, 2), clip)), h_act(cell)), cell

    return step


def _gru(of: Algebra, r: Interval, b: Interval, attributes: GRUCellAttributes, attention: bool) -> Step:
    f_act, g_act = _functions(of, attributes)
    size, clip = attributes.hidden_size, attributes.clip
    first, last = (r.moved(lambda array: array[: 2 * size]), r.moved(lambda array: array[2 * size :]))

    def step(gates: Interval, state: State) -> State:
        (hidden,) = state
        both = of.add(of.add(_part(gates, 0, 2 * size), _product(of, hidden, first)), _part(b, 0, 2 * size))
        both = f_act(_clipped(both, clip))
        z, reset = _part(both, 0, size), _part(both, size, 2 * size)
        if attention:
            z = of.multiply(z, _one_minus(of, _part(gates, 3 * size, 3 * size + 1)))
        if attributes.linear_before_reset:
            inner = of.multiply(reset, of.add(_product(of, hidden, last), _part(b, 3 * size, 4 * size)))
        else:
            inner = _product(of, of.multiply(reset, hidden), last)
        inner = of.add(of.add(_part(gates, 2 * size, 3 * size), inner), _part(b, 2 * size, 3 * size))
        new = g_act(_clipped(inner, clip))
        mixed = of.add(of.multiply(_one_minus(of, z), new), of.multiply(z, hidden))
        # new + z * (hidden - new) has roundings relative to both terms.
        reach = 2 * of.arithmetic.unit * (new.magnitude + hidden.magnitude)
        return (_between(of.widened(mixed, reach), z, new, hidden, 4 * reach),)

    return step


def _between(mixed: Interval, z: Interval, a: Interval, b: Interval, reach: np.ndarray) -> Interval:
    """A mixture of a and b, which lies between them where the share z of b is between 0 and 1."""
    is_share = (z.low >= 0) & (z.high <= 1)
    low = np.where(is_share, np.minimum(a.low, b.low) - reach, -np.inf)
    high = np.where(is_share, np.maximum(a.high, b.high) + reach, np.inf)
    return settled(mixed.exact, np.maximum(mixed.low, low), np.minimum(mixed.high, high))


def _rnn(of: Algebra, r: Interval, b: Interval, attributes: CellAttributes) -> Step:
    (function,) = _functions(of, attributes)

    def step(gates: Interval, state: State) -> State:
        total = of.add(of.add(gates, _product(of, state[0], r)), b)
        return (function(_clipped(total, attributes.clip)),)

    return step


def _step_of(layer: Layer, r: Interval, b: Interval, p: Interval | None = None) -> Step:
    of, attributes = layer.algebra, layer.attributes["attributes"]
    if isinstance(attributes, GRUCellAttributes):
        return _gru(of, r, b, attributes, layer.definition.type.startswith("AUGRU"))
    return _lstm(of, r, b, p, attributes) if isinstance(attributes, LSTMCellAttributes) else _rnn(of, r, b, attributes)


def _gates(of: Algebra, x: Interval, w: Interval, attention: Interval | None) -> Interval:
    """Gates of the inputs, and the attention of AUGRU in one more column."""
    gates = _product(of, x, w)
    return gates if attention is None else joined(lambda *parts: np.concatenate(parts, -1), gates, attention)


@rule("RNNCell", "GRUCell", "LSTMCell", "AUGRUCell")
def cell(layer: Layer, x: Interval, *inputs: Interval | None) -> Bound | tuple[Bound, ...]:
    """One step: sums of products and a bias, then each function and gate with its roundings. The update gate of AUGRU
    is a product with one more."""
    attributes, count = layer.attributes["attributes"], 2 if layer.definition.type == "LSTMCell" else 1
    states, (w, r, *rest) = inputs[:count], inputs[count:]
    assert w is not None and r is not None
    b, last = (*rest, None, None)[:2]
    attention, p = (last, None) if layer.definition.type == "AUGRUCell" else (None, last)
    b = Interval.certain(np.zeros(attributes.bias_count * attributes.hidden_size)) if b is None else b
    gates = _gates(layer.algebra, x, w, attention)
    return _step_of(layer, r, b, p)(gates, tuple(one for one in states if one is not None))


@rule("RNNSequence", "GRUSequence", "LSTMSequence", "AUGRUSequence")
def sequence(layer: Layer, x: Interval, *inputs: Interval) -> tuple[Bound, ...]:
    """Each direction step by step, with the bound of the state of the step before; sequences of unequal length keep
    their last state, and have zeros after it.

    The bounds of a long sequence are wide, since each step adds its own to that of the step before. An array is
    therefore judged step by step, from the hidden states that it holds itself: each may differ by two roundings from
    the state from which the runtime continued.
    """
    count = 2 if layer.definition.type == "LSTMSequence" else 1
    states, (lengths, w, r, b, *attention) = inputs[:count], inputs[count:]
    limits = np.minimum(lengths.exact.astype(np.int64), x.exact.shape[1])
    ways = [
        _Direction(
            layer.algebra,
            _gates(layer.algebra, x, _at(w, d), attention[0] if attention else None),
            _step_of(layer, _at(r, d), _at(b, d)),
            tuple(one.moved(operator.itemgetter((slice(None), d))) for one in states),
            limits,
            is_reverse,
        )
        for d, is_reverse in enumerate(layer.attributes["attributes"].reversed_directions)
    ]
    found = [way.run() for way in ways]
    y, *finals = map(_stacked, zip(*((one, *final) for one, final in found), strict=True))
    if attention:
        return y, *finals

    def admits(actual: np.ndarray) -> np.ndarray:
        parts = [way.run(floats(actual[:, d]))[0].outside(actual[:, d]) for d, way in enumerate(ways)]
        return ~np.stack(parts, 1)

    return Interval(y.exact, y.low, y.high, y.codes, admits), *finals


def _at(x: Interval, index: int) -> Interval:
    return x.moved(operator.itemgetter(index))


@dataclass(frozen=True)
class _Direction:
    """One direction of a sequence: gates of the inputs [B, T, G * S], the step, the first states, and the lengths."""

    of: Algebra
    gates: Interval
    step: Step
    start: State
    limits: np.ndarray
    is_reverse: bool

    def run(self, observed: np.ndarray | None = None) -> tuple[Interval, State]:
        """The hidden states [B, T, S] and the last states.

        Args:
            observed: hidden states from which each next step continues; by default from the bounds of the step before.
        """
        batch, steps = self.gates.exact.shape[:2]
        rows, state = np.arange(batch), self.start
        ends = [np.zeros((batch, steps, state[0].exact.shape[-1])) for _ in range(3)]
        for t in range(steps):
            running = t < self.limits
            index = np.where(running, self.limits - 1 - t, 0) if self.is_reverse else np.full(batch, t)
            new = self.step(self.gates.moved(operator.itemgetter((rows, index))), state)
            for array, end in zip(ends, (new[0].exact, new[0].low, new[0].high), strict=True):
                array[rows[running], index[running]] = end[running]
            if observed is not None:
                new = (self.of.rounded(Interval.certain(observed[rows, index]), 2.0), *new[1:])
            state = tuple(_chosen(running, after, before) for after, before in zip(new, state, strict=True))
        return settled(ends[0], ends[1], ends[2]), state


def _chosen(mask: np.ndarray, a: Interval, b: Interval) -> Interval:
    def choose(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(mask[:, None], x, y)

    return joined(choose, a, b)


def _stacked(parts: Iterable[Interval]) -> Interval:
    return joined(lambda *arrays: np.stack(arrays, 1), *parts)


@rule("CTCGreedyDecoder", "CTCGreedyDecoderSeqLen")
def decoded(layer: Layer, x: Interval, lengths: Interval, *rest: Interval | None) -> tuple[Bound, ...]:
    """The best class of each step is known if its interval lies above all others: then the result is."""
    check(lengths.is_certain, "lengths that are not certain")
    if x.exact.shape[2] > 1:
        best = np.argmax(floats(x.exact), 2)[..., None]
        others = floats(x.high).copy()
        np.put_along_axis(others, best, -np.inf, 2)
        # A comparison with NaN is false.
        is_best = np.take_along_axis(floats(x.low), best, 2)[..., 0] > others.max(2)
        check(bool(is_best.all()), "classes of which either may be the best")
    return layer.certain(x, lengths, *rest)


@rule("CTCLoss")
def ctc_loss(layer: Layer, logits: Interval, *rest: Interval | None) -> Bound:
    """Minus the logarithm of a sum of products of probabilities, computed from logarithms.

    The logarithm of a softmax has an absolute error as LogSoftmax has. Of a logarithm of a sum of exponentials the
    error is at most the largest one of its terms, and that of its own roundings is relative to its value, which
    no sum of the logarithms of the steps exceeds. Errors of the steps add up. An impossible text is infinite, or as
    large as the runtime likes.
    """
    exact = floats(layer.run(floats(logits.exact), *rest)[0])
    unit, steps = layer.arithmetic.unit, logits.exact.shape[1]
    check(logits.exact.size > 0 and bool(np.isfinite(logits.exact).all()), "logits that are not finite")
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
    reach = 5 * own + 16 * layer.arithmetic.unit * 5 * size
    made = []
    for exact in layer.run(*(floats(one.exact) if is_float and one is not None else one for one in planes)):
        if is_float:
            made.append(layer.algebra.widened(settled(floats(exact), floats(exact), floats(exact)), reach))
            continue
        low, high = (np.clip(floats(exact) + sign * (1 + reach), 0, 255) for sign in (-1, 1))
        made.append(integers_near(Interval(exact, np.ceil(low), np.floor(high)), exact))
    return tuple(made)
