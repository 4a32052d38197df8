"""Products of stacks of matrices, inverses, Softmax, recurrent cells.

The order of the gates along the first axis of the weights is that of IR: f, i, c, o for LSTM, z, r, h for GRU.
Names of sizes: B batch, T time steps, I inputs, S hidden units, G gates. Sources: LSTMCell-4, GRUCell-3, RNNCell-1.

A cell is a function of the projected input X @ W.T (B, G * S) and the states (B, S), and returns the new states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irexec.errors import OpError
from irexec.reference.limits import check_time

_LONG = 10_000_000
"""About how many multiplications and additions are done at once."""

_CALL = 64
"""Multiplications and additions in the time that a matrix takes in which there are none."""


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.matmul; the time of the run is looked at between blocks of matrices, or of rows where NumPy itself computes
    the product."""
    # np.broadcast_shapes takes longer than a small product.
    if min(a.ndim, b.ndim) < 2 or a.size * b.size * _CALL <= _LONG or _work(a, b) <= _LONG:
        return np.asarray(np.matmul(a, b))
    leading = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*leading, a.shape[-2], b.shape[-1]), np.result_type(a, b))
    _multiply(a, b, result)
    return result


def _work(a: np.ndarray, b: np.ndarray) -> int:
    matrices = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return matrices * (_CALL + a.shape[-2] * a.shape[-1] * b.shape[-1])


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Write the product into ``out``, in blocks along its first axis, or the next one where an entry of it takes
    long."""
    check_time()
    work = _work(a, b)
    # BLAS may round otherwise if it is given fewer rows.
    is_whole = out.ndim == 2 and (len(out) == 1 or out.dtype.char in "fd")
    if work <= _LONG or is_whole:
        np.matmul(a, b, out=out)
        return
    step = max(1, len(out) * _LONG // work)
    for start in range(0, len(out), step):
        block = slice(start, start + step) if step > 1 or out.ndim == 2 else start
        if out.ndim == 2:
            _multiply(a[block], b, out[block])
        else:
            _multiply(_entries(a, block, out.ndim), _entries(b, block, out.ndim), out[block])


def _entries(x: np.ndarray, block: slice | int, rank: int) -> np.ndarray:
    """Entries of an operand along the first axis of a result of a rank, to which its leading axes are broadcast."""
    if x.ndim < rank:
        return x
    if len(x) == 1:
        block = slice(None) if isinstance(block, slice) else 0
    return x[block]


def inverse(x: np.ndarray) -> np.ndarray:
    """The inverses of (..., n, n), in the type of ``x``; divisions by 0 of a singular matrix give infinities and
    NaN."""
    try:
        inverses = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return _by_elimination(x)
    # NumPy notices a singular matrix by the processor's flags, which WebAssembly does not have.
    return _by_elimination(x) if np.isnan(inverses).any() else inverses


def _by_elimination(x: np.ndarray) -> np.ndarray:
    """Gauss-Jordan elimination with pivots, column by column, of all matrices at once."""
    size = x.shape[-1]
    upper = x.reshape(-1, size, size).copy()
    right = np.broadcast_to(np.eye(size, dtype=x.dtype), upper.shape).copy()
    matrix_index = np.arange(len(upper))
    with np.errstate(all="ignore"):
        for k in range(size):
            check_time()
            pivot = k + np.abs(upper[:, k:, k]).argmax(1)
            for matrices in (upper, right):
                matrices[matrix_index, k], matrices[matrix_index, pivot] = (
                    matrices[matrix_index, pivot],
                    matrices[matrix_index, k].copy(),
                )
            factor = upper[:, k + 1 :, k] / upper[:, k, k, None]
            upper[:, k + 1 :] -= factor[:, :, None] * upper[:, k, None]
            right[:, k + 1 :] -= factor[:, :, None] * right[:, k, None]
        for k in reversed(range(size)):
            right[:, k] -= (upper[:, k, None, k + 1 :] @ right[:, k + 1 :])[:, 0]
            right[:, k] /= upper[:, k, k, None]
    return right.reshape(x.shape)


def softmax(data: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) / sum(exp(x)) along ``axis``, in the type of floating-point ``data``; 1 for data of rank 0."""
    if data.ndim == 0:
        return np.ones_like(data)
    if data.size == 0:
        return data.copy()
    weights = _minus_maximum(data, axis)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis, keepdims=True)
    return weights


def log_softmax(data: np.ndarray, axis: int) -> np.ndarray:
    """x - log(sum(exp(x))) along ``axis``, in the type of floating-point ``data``; 0 for data of rank 0."""
    if data.ndim == 0:
        return np.zeros_like(data)
    if data.size == 0:
        return data.copy()
    shifted = _minus_maximum(data, axis)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def _minus_maximum(data: np.ndarray, axis: int) -> np.ndarray:
    """x - max(x) along the axis, so that no exponential overflows; data must not be empty."""
    with np.errstate(invalid="ignore"):
        return np.asarray(data - data.max(axis, keepdims=True))


def softmax_with_sink(scores: np.ndarray, sink: np.ndarray | None) -> np.ndarray:
    """softmax over the last axis, where ``sink``, broadcast to (..., 1), is one more score of each row; its share is
    left out."""
    if scores.shape[-1] == 0:
        return scores
    maximum = scores.max(-1, keepdims=True)
    if sink is not None:
        maximum = np.maximum(maximum, sink)
    weights = np.exp(scores - maximum)
    total = weights.sum(-1, keepdims=True)
    weights /= total if sink is None else total + np.exp(sink - maximum)
    return np.asarray(weights)


def score_scale(query: np.ndarray, scale: np.ndarray | None) -> np.floating:
    """The factor of the scores of attention: ``scale``, by default 1 / sqrt(E) for a query of (..., E)."""
    default = 1 / math.sqrt(max(query.shape[-1], 1))
    return query.dtype.type(default if scale is None else scale.reshape(()))


State = tuple[np.ndarray, ...]
Cell = Callable[[np.ndarray, State], State]
Activation = Callable[[np.ndarray], np.ndarray]


def activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """The activation function of a name; ``alpha`` and ``beta`` are the parameters of HardSigmoid, 0.2 and 0.5 by
    default.

    Raises:
        OpError: the name is not known.
    """
    folded = name.strip().lower()
    if folded == "hardsigmoid":
        a, b = 0.2 if alpha is None else alpha, 0.5 if beta is None else beta
        return lambda x: np.clip(x.dtype.type(a) * x + x.dtype.type(b), x.dtype.type(0), x.dtype.type(1))
    if folded not in _ACTIVATIONS:
        raise OpError(f"activation {name!r} is not one of {', '.join([*_ACTIVATIONS, 'hardsigmoid'])}")
    return _ACTIVATIONS[folded]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


_ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
}


def clipped(x: np.ndarray, clip: float) -> np.ndarray:
    """Values limited to -clip..clip; unchanged where ``clip`` is 0 or infinite."""
    if clip <= 0 or np.isinf(clip):
        return x
    return np.clip(x, x.dtype.type(-clip), x.dtype.type(clip))


def lstm(
    recurrence: np.ndarray, bias: np.ndarray, peepholes: np.ndarray | None, functions: Sequence[Activation],
    clip: float, input_forget: bool = False,
) -> Cell:  # fmt: skip
    """An LSTM cell: R (4 * S, S), B (4 * S,), peephole weights (3 * S,) of the gates f, i and o or None.

    The states are the hidden state and the cell state. With ``input_forget`` the input gate is 1 - forget gate.
    """
    f_act, g_act, h_act = functions

    def step(gates: np.ndarray, state: State) -> State:
        hidden, cell = state
        total = gates + hidden @ recurrence.T + bias
        f, i, c, o = np.split(total, 4, 1)
        if peepholes is not None:
            p_f, p_i, p_o = np.split(peepholes, 3)
            f, i = f + p_f * cell, i + p_i * cell
        f = f_act(clipped(f, clip))
        i = 1 - f if input_forget else f_act(clipped(i, clip))
        cell = f * cell + i * g_act(clipped(c, clip))
        o = o if peepholes is None else o + p_o * cell
        return f_act(clipped(o, clip)) * h_act(cell), cell

    return step


def gru(
    recurrence: np.ndarray, bias: np.ndarray, functions: Sequence[Activation], clip: float, linear_before_reset: bool,
    *, attention: bool = False,
) -> Cell:  # fmt: skip
    """A GRU cell: R (3 * S, S), B (3 * S,), or (4 * S,) with ``linear_before_reset``, which applies the reset gate
    after the product. With ``attention`` the update gate is multiplied by 1 - the last column of the gates."""
    f_act, g_act = functions
    size = recurrence.shape[1]
    update_reset, candidate, own = recurrence[: 2 * size], recurrence[2 * size :], slice(2 * size, 3 * size)

    def step(gates: np.ndarray, state: State) -> State:
        (hidden,) = state
        both = f_act(clipped(gates[:, : 2 * size] + hidden @ update_reset.T + bias[: 2 * size], clip))
        z, r = both[:, :size], both[:, size:]
        if attention:
            z = z * (1 - gates[:, 3 * size :])
        if linear_before_reset:
            inner = gates[:, own] + r * (hidden @ candidate.T + bias[3 * size :]) + bias[own]
        else:
            inner = gates[:, own] + (r * hidden) @ candidate.T + bias[own]
        return ((1 - z) * g_act(clipped(inner, clip)) + z * hidden,)

    return step


def rnn(recurrence: np.ndarray, bias: np.ndarray, functions: Sequence[Activation], clip: float) -> Cell:
    """A cell without gates: R (S, S), B (S,)."""

    def step(gates: np.ndarray, state: State) -> State:
        return (functions[0](clipped(gates + state[0] @ recurrence.T + bias, clip)),)

    return step


def over_time(
    gates: np.ndarray, cell: Cell, state: State, lengths: np.ndarray, *, reverse: bool
) -> tuple[np.ndarray, State]:
    """Run a cell over the projected inputs of all steps (B, T, G * S): every hidden state (B, T, S), zeros beyond a
    sequence's length, and the final states.

    With ``reverse`` each sequence is read from its own last step to its first.
    """
    batch, steps, _ = gates.shape
    outputs = np.zeros((batch, steps, state[0].shape[1]), gates.dtype)
    if (lengths >= steps).all():
        return _over_equal_lengths(gates, cell, state, outputs, reverse)
    rows = np.arange(batch)
    for t in range(steps):
        check_time()
        running = t < lengths
        index = np.where(running, lengths - 1 - t, 0) if reverse else np.full(batch, t)
        new = cell(gates[rows, index], state)
        state = tuple(np.where(running[:, None], after, before) for after, before in zip(new, state, strict=True))
        outputs[rows[running], index[running]] = state[0][running]
    return outputs, state


def _over_equal_lengths(
    gates: np.ndarray, cell: Cell, state: State, outputs: np.ndarray, reverse: bool
) -> tuple[np.ndarray, State]:
    """``over_time`` where every sequence has all the steps."""
    steps = outputs.shape[1]
    for t in reversed(range(steps)) if reverse else range(steps):
        check_time()
        state = cell(gates[:, t], state)
        outputs[:, t] = state[0]
    return outputs, state
