"""LSTM, GRU and plain recurrent networks over whole sequences, for speed.

A step of a small network is a dozen calls of NumPy, each of which costs more than what it computes. So the inputs of all
steps are multiplied in one product, what is computed alike of several gates is computed by one call, and every call
writes to memory that is there already. Arrays stand with the gates first and the batch last (G, D, S, B), so that a gate
is a contiguous piece, and both directions take their steps together. The weights are packed for that once: the gates of
which a sigmoid is taken come first and bear the other sign, as 1 / (1 + exp(-x)) wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# By names of their own: the steps of a small network are so short that looking up np.add shows.
from numpy import add, divide, exp, multiply, subtract, tanh

from irexec.backend.workspace import scratch

Product = Callable[[np.ndarray], object]

# So many rows are multiplied at a time: enough for BLAS, and what comes of them stays in cache.
_ROWS = 256

# Up to this many hidden units a product with one vector is faster by columns.
_BY_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights in the order and with the signs of the steps that read them.

    Attributes:
        take: the steps.
        inputs: (D, I, G * S), what X is multiplied by.
        bias: (D, G * S), added to that; ``hidden_bias`` (S,) for each direction to the product with the hidden state.
        recurrence: for each product of a step (G, D, S, S), without D where it is 1.
    """

    take: Steps
    inputs: np.ndarray
    bias: np.ndarray
    recurrence: tuple[np.ndarray, ...]
    hidden_bias: np.ndarray | None = None


# Gates (T, G, D, S, B), hidden states (T + 1, D, S, B) to fill from the first, and the cell state to keep up to date.
Steps = Callable[[Packed, np.ndarray, np.ndarray, np.ndarray | None], None]


# Which gates in which order, with which sign.
_FIOC = {0: -1, 1: -1, 3: -1, 2: 1}
_ZRH = {0: -1, 1: -1, 2: 1}
_ZR = {0: -1, 1: -1}


def lstm(w: np.ndarray, r: np.ndarray, b: np.ndarray, one: bool) -> Packed:
    """Weights (D, 4S, ...) of gates f, i, c, o; ``one``: for a batch of one."""
    return Packed(_lstm, _inputs(w, _FIOC), _ordered(b, _FIOC), (_recurrence(r, _FIOC, one),))


def gru(w: np.ndarray, r: np.ndarray, b: np.ndarray, one: bool) -> Packed:
    """Weights (D, 3S, ...) of gates z, r, h, the reset before the product."""
    size = r.shape[2]
    parts = (_recurrence(r[:, : 2 * size], _ZR, one), _recurrence(r[:, 2 * size :], {0: 1}, one))
    return Packed(_gru, _inputs(w, _ZRH), _ordered(b, _ZRH), parts)


def gru_after(w: np.ndarray, r: np.ndarray, b: np.ndarray, one: bool) -> Packed:
    """Weights (D, 3S, ...) of gates z, r, h, the reset after the product, which has a bias of its own: the fourth."""
    size = r.shape[2]
    return Packed(_gru_after, _inputs(w, _ZRH), _ordered(b[:, : 3 * size], _ZRH), (_recurrence(r, _ZRH, one),), b[:, 3 * size :])


def rnn(w: np.ndarray, r: np.ndarray, b: np.ndarray, one: bool) -> Packed:
    """Weights (D, S, ...)."""
    return Packed(_rnn, _inputs(w, {0: 1}), b, (_recurrence(r, {0: 1}, one),))


def _ordered(weights: np.ndarray, signs: dict[int, int]) -> np.ndarray:
    count, rows, *rest = weights.shape
    gates = weights.reshape(count, len(signs), rows // len(signs), *rest)
    return np.concatenate([gates[:, place] * weights.dtype.type(sign) for place, sign in signs.items()], 1)


def _inputs(w: np.ndarray, signs: dict[int, int]) -> np.ndarray:
    return np.ascontiguousarray(_ordered(w, signs).swapaxes(1, 2))


def _recurrence(r: np.ndarray, signs: dict[int, int], one: bool) -> np.ndarray:
    count, _, size = r.shape
    ordered = _ordered(r, signs)
    if count > 1:
        return np.ascontiguousarray(ordered.reshape(count, len(signs), size, size).swapaxes(0, 1))
    return np.asfortranarray(ordered[0]) if one and size <= _BY_COLUMNS else ordered[0]


def over_time(
    packed: Packed, x: np.ndarray, states: Sequence[np.ndarray], lengths: np.ndarray, reverse: Sequence[bool]
) -> tuple[np.ndarray, ...]:
    """X (B, T, I) and states (B, D, S) to every hidden state (B, D, T, S), zeros beyond a sequence's length, and the last states.

    ``lengths`` are at most T; ``reverse`` tells for each direction whether it reads each sequence from its own end.
    """
    batch, most, _ = x.shape
    count, size = len(reverse), states[0].shape[2]
    steps = int(lengths.max(initial=0))
    places = None if (lengths == steps).all() else np.maximum(lengths[:, None] - 1 - np.arange(steps), 0)
    read = [_turned(x[:, :steps], backwards, places) for backwards in reverse]
    inner = (count, size, batch) if count > 1 else (size, batch)
    hidden = np.empty((steps + 1, *inner), x.dtype)
    hidden[0], *cells = (state.transpose(1, 2, 0).reshape(inner) for state in states)
    last = _taken(packed, read, hidden, cells[0].copy() if cells else None, lengths)
    outputs = np.zeros((batch, count, most, size), x.dtype)
    seen = hidden[1:].reshape(steps, count, size, batch)
    for i, backwards in enumerate(reverse):
        outputs[:, i, :steps] = _turned(seen[:, i].transpose(2, 0, 1), backwards, places)
    if places is not None:
        np.copyto(outputs, 0, where=(np.arange(most) >= lengths[:, None])[:, None, :, None])
    return outputs, *(state.reshape(count, size, batch).transpose(2, 0, 1) for state in last)


def one_step(packed: Packed, x: np.ndarray, states: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """X (B, I) and states (B, S) to the states (B, S) that follow."""
    hidden = np.empty((2, *states[0].T.shape), x.dtype)
    hidden[0], *cells = (state.T for state in states)
    gates = np.dot(packed.inputs[0].T, x.T)
    gates += packed.bias[0][:, None]
    cell = cells[0].copy() if cells else None
    packed.take(packed, gates.reshape(1, len(gates) // hidden.shape[1], *hidden[0].shape), hidden, cell)
    return (hidden[1].T,) if cell is None else (hidden[1].T, cell.T)


def _turned(x: np.ndarray, backwards: bool, places: np.ndarray | None) -> np.ndarray:
    """Sequences (B, T, ...) from the end to the start if ``backwards``; where their ends differ, by ``places``."""
    if not backwards:
        return x
    return x[:, ::-1] if places is None else np.take_along_axis(x, places[:, :, None], 1)


def _taken(packed: Packed, x: Sequence[np.ndarray], hidden: np.ndarray, cell: np.ndarray | None, lengths: np.ndarray) -> list[np.ndarray]:
    """Take all steps; the states of each sequence at its own end. Beyond it its numbers mean nothing, and touch no other's."""
    apart = max(1, _ROWS // max(1, len(lengths)))
    ends = set(lengths.tolist())
    last = [np.empty_like(hidden[0]) for _ in range(1 if cell is None else 2)]
    start = 0
    with np.errstate(all="ignore"):
        for end in sorted(ends | set(range(0, len(hidden), apart))):
            if end > start:
                packed.take(packed, _projected(packed, x, start, end), hidden[start : end + 1], cell)
            rows = lengths == end if end in ends else slice(0)
            for state, kept in zip((hidden[end], cell), last, strict=False):
                if state is not None:
                    kept[..., rows] = state[..., rows]
            start = end
    return last


def _projected(packed: Packed, x: Sequence[np.ndarray], start: int, end: int) -> np.ndarray:
    """The inputs of some steps multiplied by their weights (T, G, D, S, B), in scratch memory."""
    batch, _, size = x[0].shape
    steps = end - start
    rows, width = packed.inputs.shape[2], packed.recurrence[0].shape[-1]
    gates = scratch("gates", (steps, rows // width, len(x), width, batch), x[0].dtype)
    product = scratch("projection", (batch * steps, rows), x[0].dtype)
    for i, read in enumerate(x):
        np.matmul(read[:, start:end].reshape(batch * steps, size), packed.inputs[i], out=product)
        np.add(product, packed.bias[i], out=product)
        gates[:, :, i] = product.reshape(batch, steps, -1, width).transpose(1, 2, 3, 0)
    return gates[:, :, 0] if len(x) == 1 else gates


def _product(weights: np.ndarray, out: np.ndarray) -> Product:
    """What multiplies a hidden state into ``out`` (G, D, S, B)."""
    if weights.ndim == 2:
        flat = out.reshape(weights.shape[0], -1)
        return lambda hidden: np.dot(weights, hidden, flat)
    return lambda hidden: np.matmul(weights, hidden, out)


def _lstm(packed: Packed, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    sigmoids, both, output, candidate = total[:3], total[:2], total[2], total[3]
    pair, parts, ones = np.empty_like(both), np.empty_like(both), np.ones_like(sigmoids)
    (state, fresh), (kept, added) = pair, parts
    state[...] = cell
    multiplied = _product(packed.recurrence[0], total)
    for gate, before, after in zip(gates, hidden, hidden[1:], strict=False):
        multiplied(before)
        add(total, gate, total)
        exp(sigmoids, sigmoids)
        add(sigmoids, ones, sigmoids)
        divide(ones, sigmoids, sigmoids)
        tanh(candidate, fresh)
        multiply(both, pair, parts)
        add(kept, added, state)
        tanh(state, kept)
        multiply(output, kept, after)
    if cell is not None:
        cell[...] = state


def _gru_after(packed: Packed, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    both, update, reset, candidate = total[:2], total[0], total[1], total[2]
    ones, bias = np.ones_like(both), np.empty_like(candidate)
    bias[...] = 0 if packed.hidden_bias is None else packed.hidden_bias.reshape(*candidate.shape[:-1], 1)
    multiplied = _product(packed.recurrence[0], total)
    for gate, new, before, after in zip(gates[:, :2], gates[:, 2], hidden, hidden[1:], strict=False):
        multiplied(before)
        _gated(both, gate, ones)
        add(candidate, bias, candidate)
        multiply(candidate, reset, candidate)
        _blended(candidate, new, update, before, after)


def _gru(packed: Packed, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    both, update, reset, candidate = total[:2], total[0], total[1], total[2]
    ones, part = np.ones_like(both), np.empty_like(candidate)
    multiplied, again = _product(packed.recurrence[0], both), _product(packed.recurrence[1], total[2:])
    for gate, new, before, after in zip(gates[:, :2], gates[:, 2], hidden, hidden[1:], strict=False):
        multiplied(before)
        _gated(both, gate, ones)
        multiply(before, reset, part)
        again(part)
        _blended(candidate, new, update, before, after)


def _gated(numbers: np.ndarray, gate: np.ndarray, ones: np.ndarray) -> None:
    """What a gate lets through, in place; numbers and gate bear the other sign."""
    add(numbers, gate, numbers)
    exp(numbers, numbers)
    add(numbers, ones, numbers)
    divide(ones, numbers, numbers)


def _blended(candidate: np.ndarray, new: np.ndarray, update: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
    """The hidden state of a GRU that follows: of the one before as much as ``update`` says, else the candidate."""
    add(candidate, new, candidate)
    tanh(candidate, candidate)
    subtract(before, candidate, after)
    multiply(after, update, after)
    add(after, candidate, after)


def _rnn(packed: Packed, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    sums, multiplied = total[0], _product(packed.recurrence[0], total)
    for gate, before, after in zip(gates[:, 0], hidden, hidden[1:], strict=False):
        multiplied(before)
        add(sums, gate, sums)
        tanh(sums, after)
