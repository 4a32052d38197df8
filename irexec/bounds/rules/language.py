"""Normalization, rotation, attention and recurrences of language models."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from irexec.bounds.interval import Algebra, Bound, Interval, Unbounded, floats, joined, settled
from irexec.bounds.registry import Layer, rule
from irexec.bounds.rules.elementwise import INCREASING
from irexec.bounds.rules.normalization import constant, positive, root, squares
from irexec.bounds.rules.products import attention
from irexec.ops.paged import attention_bias, spans
from irexec.ops.recurrences import delta_rule, l2_normalized
from irexec.ops.rotary import arranged, rotary_factors


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
    if positions is not None and not positions.is_certain:
        return Unbounded("positions that are not certain")
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
    if not all(one.is_certain for name, one in given.items() if name not in floating):
        return (Unbounded("blocks or lengths that are not certain"),) * 3
    if not layer.attributes["write_kv_cache"]:
        return (Unbounded("tokens of another layer are in the caches"),) * 3
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
            return (Unbounded("attention without a bound"),) * 3
        found.append(one.moved(_columns))
    every = joined(lambda *parts: np.concatenate(parts), *found) if found else Interval.certain(np.zeros((0, 0)))
    return every, Unbounded("weights that positions received"), Interval.certain(np.zeros(0))


def _columns(array: np.ndarray) -> np.ndarray:
    """Heads (heads, rows, width) beside each other."""
    return array.swapaxes(0, 1).reshape(array.shape[1], -1)


def _heads(x: Interval, rows: slice, width: int) -> Interval:
    """Some rows, with their columns taken apart into heads: (heads, rows, width)."""
    return x.moved(lambda array: array[rows].reshape(rows.stop - rows.start, -1, width).swapaxes(0, 1))


def _earlier(cache: Interval, rows: np.ndarray, slots: np.ndarray) -> Interval:
    """The tokens in these rows and slots of a cache: (heads, tokens, width)."""
    return cache.moved(lambda array: array[rows, :, slots].swapaxes(0, 1))


@rule("SelectiveSSM")
def selective_ssm(
    layer: Layer, a: Interval, dt: Interval, b: Interval, x: Interval, c: Interval, state: Interval
) -> tuple[Bound, ...]:
    """A decay by an exponential, a sum of two products and a sum in any order for each token: an element of the state
    has the error of the token before times its decay, and its own roundings."""
    of, repeats = layer.algebra, x.exact.shape[2] // max(b.exact.shape[2], 1)
    decay = of.increasing(np.exp, of.multiply(dt, a), INCREASING["Exp"])
    outputs = []
    for t in range(x.exact.shape[1]):
        kept, step, into, new, out = (_token(one, t) for one in (decay, dt, b, x, c))
        into, out = (one.moved(lambda array: np.repeat(array, repeats, 1)[:, :, None]) for one in (into, out))
        kept, step = (one.moved(lambda array: array[..., None, None]) for one in (kept, step))
        new = new.moved(lambda array: array[..., None])
        state = of.add(of.multiply(state, kept), of.multiply(new, of.multiply(step, into)))
        outputs.append(of.total(of.multiply(state, out), (-1,), keepdims=False))
    if not outputs:
        return Interval.certain(np.zeros(x.exact.shape)), state
    return joined(lambda *parts: np.stack(parts, 1), *outputs), state


def _token(x: Interval, t: int) -> Interval:
    return x.moved(lambda array: array[:, t])


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
    of, attributes = layer.algebra, layer.attributes
    unit, epsilons = of.arithmetic.unit, (attributes["q_l2_norm_eps"], attributes["k_l2_norm_eps"])
    decay = of.increasing(np.exp, gate, INCREASING["Exp"])
    tokens, size = query.exact.shape[1], query.exact.shape[3]
    share = float(of.gamma(size + 2))
    by_token = (np.moveaxis(floats(one.exact), 1, 0) for one in (query, key, value, gate, beta))
    step = delta_rule(*by_token, epsilons=epsilons if attributes["fuse_qk_l2norm"] else ())
    repeats = value.exact.shape[2] // max(key.exact.shape[2], 1)
    q, dq = _norms(of, query, epsilons[0] if attributes["fuse_qk_l2norm"] else None, repeats)
    k, dk = _norms(of, key, epsilons[1] if attributes["fuse_qk_l2norm"] else None, repeats)
    q, dq = q / np.sqrt(max(size, 1)), (dq + 2 * unit * q) / np.sqrt(max(size, 1))
    b, v = beta.magnitude[..., None], value.magnitude
    grows = np.where(floats(beta.low)[..., None] < 0, 1 + b * k * k, np.maximum(1, b * k * k - 1))
    exact, error = floats(state.exact), np.sqrt((state.radius**2).sum(2))
    outputs, errors = [], []
    for t in range(tokens):
        at = (slice(None), t)
        column = np.sqrt((exact**2).sum(2)) + error
        decayed = decay.magnitude[at][..., None] * column
        error = decay.magnitude[at][..., None] * error + decay.radius[at][..., None] * column + unit * decayed
        terms = v[at] + k[at] * decayed
        change = b[at] * (share * k[at] * decayed + dk[at] * decayed + value.radius[at] + 3 * unit * terms)
        change += beta.radius[at][..., None] * terms
        error = grows[at] * error + k[at] * change + dk[at] * b[at] * terms
        error += 2 * unit * (decayed + k[at] * b[at] * terms) + size * of.arithmetic.smallest
        found, exact = step(t, exact)
        outputs.append(found)
        errors.append(q[at] * error + (share * q[at] + dq[at]) * (np.sqrt((exact**2).sum(2)) + error))
    final = of.widened(settled(exact, exact, exact), np.broadcast_to(error[:, :, None], exact.shape))
    if not tokens:
        return Interval.certain(np.zeros(value.exact.shape)), state
    y = np.stack(outputs, 1)
    return of.rounded(of.widened(settled(y, y, y), np.stack(errors, 1))), final


def _norms(of: Algebra, x: Interval, epsilon: float | None, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of the norm of each vector and of that of its error, (N, L, H, 1)."""
    exact = floats(x.exact)
    norm, error = (np.sqrt((part**2).sum(-1, keepdims=True)) for part in (exact, x.radius))
    if epsilon is not None:
        # A vector is divided by at least its norm; the derivative is no larger than the inverse of the divisor.
        scale = np.sqrt(norm**2 + epsilon)
        norm = np.sqrt((l2_normalized(exact, epsilon) ** 2).sum(-1, keepdims=True))
        count = float(of.gamma(exact.shape[-1] + 2))
        error = 2 * error / scale + (count + 6 * of.arithmetic.unit) * norm
    return np.repeat(norm + error, repeats, 2), np.repeat(error, repeats, 2)


@rule("PagedCausalConv1D", "PagedGatedDeltaNet", "PagedSelectiveSSM")
def from_a_table(layer: Layer, *inputs: Interval | None) -> Bound:
    """None: the runtime begins with a state of earlier runs, which is in its table."""
    return Unbounded("the state of earlier runs is in the table of the runtime")
