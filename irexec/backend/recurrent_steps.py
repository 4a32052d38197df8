"""LSTM, GRU and RNN over whole sequences with packed weights.

A step of a small network is a dozen NumPy calls, each of which costs more than what it computes. Therefore the inputs
of all steps are projected in one product, gates with the same activation are computed by one call, and every call
writes to preallocated memory. Arrays have the gates first and the batch last (G, D, S, B), so that a gate is
contiguous, and both directions run together. The weights are packed once for that: the gates with a sigmoid come first
and are negated, because they enter 1 / (1 + exp(-x)).

Names of sizes: B batch, T time steps, I inputs, S hidden units, G gates, D directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# Imported by name: the steps of a small network are so short that looking up np.add shows.
from numpy import add, divide, exp, multiply, subtract, tanh

from irexec.backend.scratch import Scratch
from irexec.reference.limits import check_time

Product = Callable[[np.ndarray], object]

# Rows (batch * steps) of one input projection: enough for BLAS, few enough that the result stays in cache.
_PROJECTED_ROWS = 256

# Up to this many hidden units, a product with a single vector is faster with a Fortran-ordered matrix.
_COLUMN_MAJOR_UNITS = 256


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """Weights in the order and with the signs that the steps expect.

    Attributes:
        run: computes consecutive steps.
        inputs: (D, I, G * S), by which X is multiplied.
        bias: (D, G * S), added to that product.
        recurrence: for each product of a step (G, D, S, S), without D where it is 1.
        hidden_bias: (D, S), added to the product with the hidden state; None for none.
    """

    run: RunSteps
    inputs: np.ndarray
    bias: np.ndarray
    recurrence: tuple[np.ndarray, ...]
    hidden_bias: np.ndarray | None = None


# Takes projected inputs (T, G, D, S, B), hidden states (T + 1, D, S, B) of which all but the first are written,
# and the cell state (D, S, B), which is updated in place.
RunSteps = Callable[[PackedWeights, np.ndarray, np.ndarray, np.ndarray | None], None]

# (weights W, R, B of all directions, whether the batch is 1) to packed weights.
Pack = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], PackedWeights]

# Index of each gate in IR's order, in the order of the packed weights, with its sign.
_FIOC = {0: -1, 1: -1, 3: -1, 2: 1}
_ZRH = {0: -1, 1: -1, 2: 1}
_ZR = {0: -1, 1: -1}
_SINGLE = {0: 1}


def pack_lstm(w: np.ndarray, r: np.ndarray, b: np.ndarray, single: bool) -> PackedWeights:
    """W (D, 4 * S, I), R (D, 4 * S, S), B (D, 4 * S) of gates f, i, c, o; ``single``: for a batch of 1."""
    return PackedWeights(_run_lstm, _pack_inputs(w, _FIOC), _reorder(b, _FIOC), (_pack_recurrence(r, _FIOC, single),))


def pack_gru(w: np.ndarray, r: np.ndarray, b: np.ndarray, single: bool) -> PackedWeights:
    """W (D, 3 * S, I), R (D, 3 * S, S), B (D, 3 * S) of gates z, r, h; the reset gate is applied before the product."""
    size = r.shape[2]
    recurrence = (_pack_recurrence(r[:, : 2 * size], _ZR, single), _pack_recurrence(r[:, 2 * size :], _SINGLE, single))
    return PackedWeights(_run_gru, _pack_inputs(w, _ZRH), _reorder(b, _ZRH), recurrence)


def pack_gru_linear_before_reset(w: np.ndarray, r: np.ndarray, b: np.ndarray, single: bool) -> PackedWeights:
    """The same with B (D, 4 * S): the reset gate is applied after the product, to which the fourth bias is added."""
    size = r.shape[2]
    recurrence = (_pack_recurrence(r, _ZRH, single),)
    return PackedWeights(
        _run_gru_linear_before_reset,
        _pack_inputs(w, _ZRH),
        _reorder(b[:, : 3 * size], _ZRH),
        recurrence,
        b[:, 3 * size :],
    )


def pack_rnn(w: np.ndarray, r: np.ndarray, b: np.ndarray, single: bool) -> PackedWeights:
    """W (D, S, I), R (D, S, S), B (D, S)."""
    return PackedWeights(_run_rnn, _pack_inputs(w, _SINGLE), b, (_pack_recurrence(r, _SINGLE, single),))


def _reorder(weights: np.ndarray, signs: dict[int, int]) -> np.ndarray:
    count, rows, *rest = weights.shape
    gates = weights.reshape(count, len(signs), rows // len(signs), *rest)
    return np.concatenate([gates[:, gate] * weights.dtype.type(sign) for gate, sign in signs.items()], 1)


def _pack_inputs(w: np.ndarray, signs: dict[int, int]) -> np.ndarray:
    return np.ascontiguousarray(_reorder(w, signs).swapaxes(1, 2))


def _pack_recurrence(r: np.ndarray, signs: dict[int, int], single: bool) -> np.ndarray:
    count, _, size = r.shape
    ordered = _reorder(r, signs)
    if count > 1:
        return np.ascontiguousarray(ordered.reshape(count, len(signs), size, size).swapaxes(0, 1))
    return np.asfortranarray(ordered[0]) if single and size <= _COLUMN_MAJOR_UNITS else ordered[0]


def run_sequence(
    packed: PackedWeights,
    x: np.ndarray,
    states: Sequence[np.ndarray],
    lengths: np.ndarray,
    reversed_directions: Sequence[bool],
    outputs: Sequence[np.ndarray | None],
    scratch: Scratch,
) -> None:
    """X (B, T, I) and states (B, D, S) to all hidden states (B, D, T, S), zero-padded, and the final states.

    ``lengths`` are at most T; ``reversed_directions`` says of each direction whether it reads a sequence from its last
    step.
    """
    batch = len(x)
    count, size = len(reversed_directions), states[0].shape[2]
    steps = int(lengths.max(initial=0))
    indices = None if (lengths == steps).all() else np.maximum(lengths[:, None] - 1 - np.arange(steps), 0)
    inputs = [_reverse(x[:, :steps], indices) if reverse else x[:, :steps] for reverse in reversed_directions]
    inner = (count, size, batch) if count > 1 else (size, batch)
    hidden = scratch.take((steps + 1, *inner), x.dtype)
    hidden[0], *cells = (state.transpose(1, 2, 0).reshape(inner) for state in states)
    finals = _run_all(packed, inputs, hidden, cells[0].copy() if cells else None, lengths, scratch)
    if outputs[0] is not None:
        computed = hidden[1:].reshape(steps, count, size, batch).transpose(3, 1, 0, 2)
        _write_steps(outputs[0], computed, lengths, reversed_directions, indices)
    for state, final in zip(finals, outputs[1:], strict=True):
        if final is not None:
            final[...] = state.reshape(count, size, batch).transpose(2, 0, 1)


def workspace(packed_rows: int, batch: int, steps: int, count: int, size: int, itemsize: int) -> int:
    """Bytes of scratch for ``run_sequence``; ``packed_rows`` is G * S."""
    at_once = min(steps, max(1, _PROJECTED_ROWS // max(1, batch)))
    elements = count * size * batch * (steps + 3) + batch * at_once * packed_rows * (count + 1)
    return elements * itemsize + 64 * 8


def run_cell(
    packed: PackedWeights, x: np.ndarray, states: Sequence[np.ndarray], outputs: Sequence[np.ndarray | None]
) -> None:
    """One step: X (B, I) and states (B, S) to the new states (B, S)."""
    hidden = np.empty((2, *states[0].T.shape), x.dtype)
    hidden[0], *cells = (state.T for state in states)
    gates = np.dot(packed.inputs[0].T, x.T)
    gates += packed.bias[0][:, None]
    cell = cells[0].copy() if cells else None
    packed.run(packed, gates.reshape(1, len(gates) // hidden.shape[1], *hidden[0].shape), hidden, cell)
    for state, out in zip((hidden[1], cell), outputs, strict=False):
        if out is not None and state is not None:
            out[...] = state.T


def _reverse(x: np.ndarray, indices: np.ndarray | None) -> np.ndarray:
    """Sequences (B, T, ...) in reverse; by ``indices`` (B, T) where their lengths differ."""
    return x[:, ::-1] if indices is None else np.take_along_axis(x, indices[:, :, None], 1)


def _write_steps(
    out: np.ndarray,
    computed: np.ndarray,
    lengths: np.ndarray,
    reversed_directions: Sequence[bool],
    indices: np.ndarray | None,
) -> None:
    """Write the hidden states (B, D, steps, S) to ``out`` (B, D, T, S), with zeros beyond each sequence."""
    steps = computed.shape[2]
    for d, reverse in enumerate(reversed_directions):
        out[:, d, :steps] = _reverse(computed[:, d], indices) if reverse else computed[:, d]
    out[:, :, steps:] = 0
    if indices is not None:
        np.copyto(out, 0, where=(np.arange(out.shape[2]) >= lengths[:, None])[:, None, :, None])


def _run_all(
    packed: PackedWeights,
    inputs: Sequence[np.ndarray],
    hidden: np.ndarray,
    cell: np.ndarray | None,
    lengths: np.ndarray,
    scratch: Scratch,
) -> list[np.ndarray]:
    """Run every step; the states of each sequence after its own last step. Later values of a sequence are ignored."""
    steps_at_once = max(1, _PROJECTED_ROWS // max(1, len(lengths)))
    stops = set(lengths.tolist())
    finals = [scratch.take(hidden[0].shape, hidden.dtype) for _ in range(1 if cell is None else 2)]
    start = 0
    for stop in sorted(stops | set(range(0, len(hidden), steps_at_once))):
        check_time()
        if stop > start:
            mark = scratch.mark()
            packed.run(packed, _project(packed, inputs, start, stop, scratch), hidden[start : stop + 1], cell)
            scratch.release(mark)
        rows = lengths == stop if stop in stops else slice(0)
        for state, final in zip((hidden[stop], cell), finals, strict=False):
            if state is not None:
                final[..., rows] = state[..., rows]
        start = stop
    return finals


def _project(
    packed: PackedWeights, inputs: Sequence[np.ndarray], start: int, stop: int, scratch: Scratch
) -> np.ndarray:
    """The inputs of steps ``start`` to ``stop`` multiplied by their weights (T, G, D, S, B)."""
    batch, _, size = inputs[0].shape
    steps = stop - start
    rows, width = packed.inputs.shape[2], packed.recurrence[0].shape[-1]
    gates = scratch.take((steps, rows // width, len(inputs), width, batch), inputs[0].dtype)
    product = scratch.take((batch * steps, rows), inputs[0].dtype)
    for d, x in enumerate(inputs):
        np.matmul(x[:, start:stop].reshape(batch * steps, size), packed.inputs[d], out=product)
        np.add(product, packed.bias[d], out=product)
        gates[:, :, d] = product.reshape(batch, steps, -1, width).transpose(1, 2, 3, 0)
    return gates[:, :, 0] if len(inputs) == 1 else gates


def _product(weights: np.ndarray, out: np.ndarray) -> Product:
    """A function that writes the product of the weights and a hidden state to ``out`` (G, D, S, B)."""
    if weights.ndim == 2:
        flat = out.reshape(weights.shape[0], -1)
        return lambda hidden: np.dot(weights, hidden, flat)
    return lambda hidden: np.matmul(weights, hidden, out)


def _run_lstm(packed: PackedWeights, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    # Forget, input and output gate; the first two multiply (cell state, candidate) in one call.
    sigmoids, forget_input, output, candidate = total[:3], total[:2], total[2], total[3]
    state_and_candidate, products, ones = (
        np.empty_like(forget_input),
        np.empty_like(forget_input),
        np.ones_like(sigmoids),
    )
    (state, activated), (kept, added) = state_and_candidate, products
    state[...] = cell
    multiply_hidden = _product(packed.recurrence[0], total)
    for gate, before, after in zip(gates, hidden, hidden[1:], strict=False):
        multiply_hidden(before)
        add(total, gate, total)
        exp(sigmoids, sigmoids)
        add(sigmoids, ones, sigmoids)
        divide(ones, sigmoids, sigmoids)
        tanh(candidate, activated)
        multiply(forget_input, state_and_candidate, products)
        add(kept, added, state)
        tanh(state, kept)
        multiply(output, kept, after)
    if cell is not None:
        cell[...] = state


def _run_gru_linear_before_reset(
    packed: PackedWeights, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None
) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    update_reset, update, reset, candidate = total[:2], total[0], total[1], total[2]
    ones, bias = np.ones_like(update_reset), np.empty_like(candidate)
    bias[...] = 0 if packed.hidden_bias is None else packed.hidden_bias.reshape(*candidate.shape[:-1], 1)
    multiply_hidden = _product(packed.recurrence[0], total)
    for gate, projected, before, after in zip(gates[:, :2], gates[:, 2], hidden, hidden[1:], strict=False):
        multiply_hidden(before)
        _add_and_activate(update_reset, gate, ones)
        add(candidate, bias, candidate)
        multiply(candidate, reset, candidate)
        _next_hidden(candidate, projected, update, before, after)


def _run_gru(packed: PackedWeights, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    update_reset, update, reset, candidate = total[:2], total[0], total[1], total[2]
    ones, reset_hidden = np.ones_like(update_reset), np.empty_like(candidate)
    multiply_hidden, multiply_reset = (
        _product(packed.recurrence[0], update_reset),
        _product(packed.recurrence[1], total[2:]),
    )
    for gate, projected, before, after in zip(gates[:, :2], gates[:, 2], hidden, hidden[1:], strict=False):
        multiply_hidden(before)
        _add_and_activate(update_reset, gate, ones)
        multiply(before, reset, reset_hidden)
        multiply_reset(reset_hidden)
        _next_hidden(candidate, projected, update, before, after)


def _add_and_activate(gates: np.ndarray, projected: np.ndarray, ones: np.ndarray) -> None:
    """gates = sigmoid(-(gates + projected)), in place; both are negated by the packing."""
    add(gates, projected, gates)
    exp(gates, gates)
    add(gates, ones, gates)
    divide(ones, gates, gates)


def _next_hidden(
    candidate: np.ndarray, projected: np.ndarray, update: np.ndarray, before: np.ndarray, after: np.ndarray
) -> None:
    """after = update * before + (1 - update) * tanh(candidate + projected)."""
    add(candidate, projected, candidate)
    tanh(candidate, candidate)
    subtract(before, candidate, after)
    multiply(after, update, after)
    add(after, candidate, after)


def _run_rnn(packed: PackedWeights, gates: np.ndarray, hidden: np.ndarray, cell: np.ndarray | None) -> None:
    total = np.empty(gates.shape[1:], gates.dtype)
    sums, multiply_hidden = total[0], _product(packed.recurrence[0], total)
    for gate, before, after in zip(gates[:, 0], hidden, hidden[1:], strict=False):
        multiply_hidden(before)
        add(sums, gate, sums)
        tanh(sums, after)
