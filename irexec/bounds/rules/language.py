"""Normalization, rotation, attention and recurrences of language models."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import INCREASING
from irexec.bounds.rules.normalization import constant, positive, root, squares
from irexec.bounds.rules.products import attention
from irexec.errors import OpError, check
from irexec.ops.paged import attention_bias, spans
from irexec.ops.recurrences import delta_rule, l2_normalized, rows_of
from irexec.ops.rotary import arranged, rotary_factors
from irexec.schema.attributes import NOT_KEPT


@rule("RMS")
def rms(layer: Layer, x: Interval, scale: Interval | None = None) -> Bound:
    """x / sqrt(mean of squares + epsilon) * scale: a sum in any order, then one rounding each. Anything for a row with
    NaN or infinities."""
    of = layer.algebra
    mean = of.divide(positive(of.total(squares(of, x), (-1,))), constant(of, max(x.exact.shape[-1], 1)))
    found = of.divide(x, root(of, positive(of.add(mean, constant(of, layer.attributes["epsilon"])))), 4.0)
    found = found if scale is None else of.multiply(found, scale)
    return found.open_where(~np.isfinite(found.exact))


@rule("RoPE")
def rope(layer: Layer, data: Interval, cos: Interval, sin: Interval, positions: Interval | None = None) -> Bound:
    """A sum of two products."""
    check(positions is None or positions.is_certain, "positions that are not certain")
    of, attributes = layer.algebra, layer.attributes["attributes"]
    index = None if positions is None else positions.exact
    whole = ([floats(getattr(one, end)) for one in (data, cos, sin)] for end in ("exact", "low", "high"))
    ends = [rotary_factors(x, c, s, index, attributes) for x, c, s in whole]
    # The sign in the factor of the partner exchanges its ends.
    x, partner, cosines, sines = (
        settled(exact, np.minimum(low, high), np.maximum(low, high)) for exact, low, high in zip(*ends, strict=True)
    )
    found = of.add(of.multiply(x, cosines), of.multiply(partner, sines))
    return found.moved(lambda array: arranged(array, attributes))


@rule("PagedAttentionExtension")
def paged_attention(layer: Layer, *inputs: Interval | None) -> tuple[Bound, ...]:
    """Attention of each sequence to its own tokens, those of earlier runs in the caches that are given. Anything for
    earlier tokens of rotated blocks. The weights that positions received are not bounded."""
    given = {spec.name: one for spec, one in zip(layer.definition.inputs, inputs, strict=False) if one is not None}
    floating = {"query", "key", "value", "key_cache", "value_cache", "scale", "sinks"}
    are_certain = all(one.is_certain for name, one in given.items() if name not in floating)
    check(are_certain, "blocks or lengths that are not certain")
    check(layer.attributes["write_kv_cache"], "tokens of another layer are in the caches")
    certain = {name: one.exact for name, one in given.items() if name not in floating}
    query, sinks = given["query"], given["sinks"]
    blocks, heads, size = given["key_cache"].exact.shape[:3]
    widths = given["key_cache"].exact.shape[3], given["value_cache"].exact.shape[3]
    sink = sinks.moved(lambda array: array.reshape(-1, 1, 1)) if sinks.exact.size else None
    places = (certain[name] for name in ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins"))
    found = []
    for span in spans(len(query.exact), *places):
        shape = span.new, query.exact.shape[1] // max(widths[0], 1) * widths[1]
        if (span.past and certain["rotated_block_indices"].size) or not span.new:
            found.append(Interval.certain(np.zeros(shape)).open_where(np.ones(shape, bool)))
            continue
        q = _heads(query, span.tokens, widths[0])
        group = len(q.exact) // max(heads, 1)
        rows, at = span.rows(-(-(span.past + span.new) // max(size, 1)), blocks), np.arange(span.past)
        k, v = (
            joined(
                lambda *parts: np.concatenate(parts, 1),
                _earlier(given[f"{name}_cache"], rows[at // max(size, 1)], at % max(size, 1)),
                _heads(given[name], span.tokens, width),
            ).moved(functools.partial(np.repeat, repeats=group, axis=0))
            for name, width in zip(("key", "value"), widths, strict=True)
        )
        bias = attention_bias(
            span, certain["sliding_window"], certain["max_context_len"], floats(certain["alibi_slopes"]),
            *map(certain.get, ("token_type_ids", "qq_bias", "qq_bias_begins")),
        )  # fmt: skip
        plain = replace(layer, attributes={"causal": False})
        one = attention(plain, q, k, v, Interval.certain(bias), given["scale"], sink)
        if not isinstance(one, Interval):
            raise OpError("attention without a bound")
        found.append(one.moved(lambda heads: heads.swapaxes(0, 1).reshape(heads.shape[1], -1)))
    every = joined(lambda *parts: np.concatenate(parts), *found) if found else Interval.certain(np.zeros((0, 0)))
    return every, Unbounded("weights that positions received"), Interval.certain(np.zeros(0))


def _heads(x: Interval, rows: slice, width: int) -> Interval:
    """Some rows, with their columns taken apart into heads: (heads, rows, width)."""
    return x.moved(lambda array: array[rows].reshape(rows.stop - rows.start, -1, width).swapaxes(0, 1))


def _earlier(cache: Interval, rows: np.ndarray, slots: np.ndarray) -> Interval:
    """The tokens in these rows and slots of a cache: (heads, tokens, width)."""
    return cache.moved(lambda array: array[rows, :, slots].swapaxes(0, 1))


Steps = Callable[[int, Any], tuple[Interval, Any]]
"""Token and state to the bounds of the output and of the next state."""


@rule("SelectiveSSM")
def selective_ssm(
    layer: Layer, a: Interval, dt: Interval, b: Interval, x: Interval, c: Interval, state: Interval
) -> tuple[Bound, ...]:
    """A decay by an exponential, a sum of two products and a sum in any order for each token: an element of the state
    has the error of the token before times its decay, and its own roundings."""
    by_token = (one.moved(lambda array: np.moveaxis(array, 1, 0)) for one in (dt, b, x, c))
    return _over_time(_scan(layer.algebra, a, *by_token), state, x.exact.shape)


def _over_time(step: Steps, state: Any, shape: tuple[int, ...]) -> tuple[Interval, Any]:
    """The bounds of the outputs of all tokens, (batch, tokens, ...), and of the last state."""
    outputs = []
    for t in range(shape[1]):
        y, state = step(t, state)
        outputs.append(y)
    every = joined(lambda *parts: np.stack(parts, 1), *outputs) if outputs else Interval.certain(np.zeros(shape))
    return every, state


def _scan(of: Algebra, a: Interval, dt: Interval, b: Interval, x: Interval, c: Interval) -> Steps:
    """The step of a selective scan, of intervals with the tokens first."""
    repeats = x.exact.shape[-2] // max(b.exact.shape[-2], 1)
    decays = of.increasing(np.exp, of.multiply(dt, a), INCREASING["Exp"])

    def step(t: int, state: Interval) -> tuple[Interval, Interval]:
        kept, rate, into, new, out = (one.moved(lambda array: array[t]) for one in (decays, dt, b, x, c))
        into, out = (one.moved(lambda array: np.repeat(array, repeats, -2)[..., None, :]) for one in (into, out))
        kept, rate = (one.moved(lambda array: array[..., None, None]) for one in (kept, rate))
        new = new.moved(lambda array: array[..., None])
        state = of.add(of.multiply(state, kept), of.multiply(new, of.multiply(rate, into)))
        return of.total(of.multiply(state, out), (-1,), keepdims=False), state

    return step


@rule("GatedDeltaNet")
def gated_delta_net(
    layer: Layer, query: Interval, key: Interval, value: Interval, state: Interval, gate: Interval, beta: Interval
) -> tuple[Bound, ...]:
    """An error of a column of the state, as the norm of a vector over the keys, from token to token.

    A token takes an error e of the column to decay * (1 - beta * key key^T) e. The norm of that matrix is the larger of
    1 and abs(1 - beta * norm(key)^2), so that errors of normalized keys and a beta between 0 and 1 do not grow. It adds
    the roundings of the decay and of the sum, relative to the column, and norm(key) times the error of the change, beta
    * (value - key . column): a sum in any order, whose terms add up to at most norm(key) * norm(column), and three
    roundings. An output has the error of norm(query) times that of the column, and that of a sum in any order.
    """
    by_token = [one.moved(lambda array: np.moveaxis(array, 1, 0)) for one in (query, key, value, gate, beta)]
    step = _delta(layer, *by_token, norm="fuse_qk_l2norm")
    every, (exact, error) = _over_time(step, _with_errors(state), value.exact.shape)
    final = layer.algebra.widened(settled(exact, exact, exact), np.broadcast_to(error[..., None, :], exact.shape))
    return every, final if value.exact.shape[1] else state


Column = tuple[np.ndarray, np.ndarray]
"""A state (..., keys, values), and the norm of the error of each of its columns, (..., values)."""


def _with_errors(state: Interval) -> Column:
    return floats(state.exact), np.sqrt((state.radius**2).sum(-2))


def _delta(
    layer: Layer, query: Interval, key: Interval, value: Interval, gate: Interval, beta: Interval, *, norm: str
) -> Steps:
    """The step of a gated delta rule on a Column, of intervals with the tokens first; see ``gated_delta_net``."""
    of, attributes = layer.algebra, layer.attributes
    unit, epsilons = of.arithmetic.unit, (attributes["q_l2_norm_eps"], attributes["k_l2_norm_eps"])
    decay = of.increasing(np.exp, gate, INCREASING["Exp"])
    size = query.exact.shape[-1]
    share = float(of.gamma(size + 2))
    arrays = (floats(one.exact) for one in (query, key, value, gate, beta))
    plain = delta_rule(*arrays, epsilons=epsilons if attributes[norm] else ())
    repeats = value.exact.shape[-2] // max(key.exact.shape[-2], 1)
    q, dq = _norms(of, query, epsilons[0] if attributes[norm] else None, repeats)
    k, dk = _norms(of, key, epsilons[1] if attributes[norm] else None, repeats)
    q, dq = q / np.sqrt(max(size, 1)), (dq + 2 * unit * q) / np.sqrt(max(size, 1))
    b, v = beta.magnitude[..., None], value.magnitude
    grows = np.where(floats(beta.low)[..., None] < 0, 1 + b * k * k, np.maximum(1, b * k * k - 1))

    def step(t: int, state: Column) -> tuple[Interval, Column]:
        exact, error = state
        column = np.sqrt((exact**2).sum(-2)) + error
        decayed = decay.magnitude[t][..., None] * column
        error = decay.magnitude[t][..., None] * error + decay.radius[t][..., None] * column + unit * decayed
        terms = v[t] + k[t] * decayed
        change = b[t] * (share * k[t] * decayed + dk[t] * decayed + value.radius[t] + 3 * unit * terms)
        change += beta.radius[t][..., None] * terms
        error = grows[t] * error + k[t] * change + dk[t] * b[t] * terms
        error += 2 * unit * (decayed + k[t] * b[t] * terms) + size * of.arithmetic.smallest
        y, exact = plain(t, exact)
        far = q[t] * error + (share * q[t] + dq[t]) * (np.sqrt((exact**2).sum(-2)) + error)
        return of.rounded(of.widened(settled(y, y, y), far)), (exact, error)

    return step


def _norms(of: Algebra, x: Interval, epsilon: float | None, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of the norm of each vector and of that of its error, (..., H, 1)."""
    exact = floats(x.exact)
    norm, error = (np.sqrt((part**2).sum(-1, keepdims=True)) for part in (exact, x.radius))
    if epsilon is not None:
        # A vector is divided by at least its norm; the derivative is at most the inverse of the divisor.
        scale = np.sqrt(norm**2 + epsilon)
        norm = np.sqrt((l2_normalized(exact, epsilon) ** 2).sum(-1, keepdims=True))
        count = float(of.gamma(exact.shape[-1] + 2))
        error = 2 * error / scale + (count + 6 * of.arithmetic.unit) * norm
    return np.repeat(norm + error, repeats, -2), np.repeat(error, repeats, -2)


@rule("PagedGatedDeltaNet")
def paged_gated_delta_net(
    layer: Layer, query: Interval, key: Interval, value: Interval, table: Interval, gate: Interval, beta: Interval,
    *places: Interval,
) -> Bound:  # fmt: skip
    """That of GatedDeltaNet, from the state in the table on; in the tables of later runs the norm of the radii of a
    column is that of its error."""
    step = _delta(layer, query, key, value, gate, beta, norm="use_qk_l2norm")

    def row(state: Column) -> Interval:
        exact = state[0].swapaxes(-1, -2)
        radius = np.broadcast_to(state[1][..., None] / np.sqrt(max(exact.shape[-1], 1)), exact.shape)
        return settled(exact, exact - radius, exact + radius)

    def begin(one: Interval) -> Column:
        return _with_errors(one.moved(lambda array: array.swapaxes(-1, -2)))

    return _in_blocks(layer, table, value.exact.shape, step, places, begin=begin, row=row)


@rule("PagedSelectiveSSM")
def paged_selective_ssm(
    layer: Layer, a: Interval, dt: Interval, b: Interval, x: Interval, c: Interval, table: Interval, *places: Interval
) -> Bound:
    """That of SelectiveSSM, from the state in the table on."""
    step = _scan(layer.algebra, a, dt, b, x, c)
    return _in_blocks(layer, table, x.exact.shape, step, places, writes_without=False)


@rule("PagedCausalConv1D")
def paged_causal_conv1d(
    layer: Layer, x: Interval, table: Interval, weight: Interval, bias: Interval, *places: Interval
) -> Bound:
    """A sum in any order of the bias and of products with the last tokens, which the table holds without an error."""
    of, (of_group, kernel) = layer.algebra, weight.exact.shape[1:]

    def step(t: int, state: Interval) -> tuple[Interval, Interval]:
        new = x.moved(lambda array: array[t][:, None])
        state = joined(lambda old, one: np.concatenate([old[:, 1:], one], 1), state, new)
        shared = state.moved(lambda array: np.repeat(array.reshape(-1, of_group, kernel), of_group, 0))
        terms = [of.multiply(shared, weight).moved(lambda array: array.reshape(len(array), -1))]
        if bias.exact.size:
            terms.append(bias.moved(lambda array: array[:, None]))
        return of.total(joined(lambda *parts: np.concatenate(parts, 1), *terms), (1,), keepdims=False), state

    return _in_blocks(layer, table, x.exact.shape, step, places)


def _in_blocks(
    layer: Layer, table: Interval, shape: tuple[int, ...], step: Steps, places: Sequence[Interval], *,
    writes_without: bool = True, begin: Callable[[Interval], Any] = lambda row: row,
    row: Callable[[Any], Interval] = lambda state: state,
) -> Bound:  # fmt: skip
    """The bound of sequences whose states are in the rows of a table, which is kept as the run leaves it.

    Args:
        layer, table, shape, step: the layer, its table, the shape of its output, and a step.
        places: the integers that place the sequences.
        writes_without: whether the last state is written without an interval.
        begin, row: from a row of the table to a state, and back.
    """
    check(all(one.is_certain for one in places), "blocks or lengths that are not certain")
    begins, blocks, block_begins, past, interval = (one.exact for one in places)
    runs = [*spans(shape[0], past, begins, blocks, block_begins)]
    plan = [*rows_of(runs, interval, len(table.exact), writes_without)]
    outputs, left = [Interval.certain(np.zeros((0, *shape[1:])))], [table]
    for span, first, written in plan:
        # A runtime may run the sequences at once.
        is_written = any(first in other.values() for others, _, other in plan if others is not span)
        check(not is_written, "a sequence begins with a row that another one writes")
        one = begin(table.moved(operator.itemgetter(first)))
        for t in range(span.tokens.start, span.tokens.stop):
            y, one = step(t, one)
            outputs.append(y.moved(lambda array: array[None]))
            if t in written:
                left.append(joined(functools.partial(_replaced, at=written[t]), left.pop(), row(one)))
    layer.attributes.get("caches", NOT_KEPT).keep(layer.definition.caches[0], left[0])
    return joined(lambda *parts: np.concatenate(parts), *outputs)


def _replaced(table: np.ndarray, row: np.ndarray, at: int) -> np.ndarray:
    found = floats(table).copy()
    found[at] = row
    return found
