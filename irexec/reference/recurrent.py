"""Recurrent cells on whole batches, and the loop over time that runs them in either direction.

The order of the gates along the first axis of the weights is that of IR: f, i, c, o for LSTM, z, r, h for GRU.
Names of sizes: B batch, T time steps, I inputs, S hidden units, G gates. Sources: LSTMCell-4, GRUCell-3, RNNCell-1.

A cell is a function of the projected input X @ W.T (B, G * S) and the states (B, S), and returns the new states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irexec.errors import OpError
from irexec.reference.limits import check_time

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
    recurrence: np.ndarray, bias: np.ndarray, functions: Sequence[Activation], clip: float, linear_before_reset: bool
) -> Cell:
    """A GRU cell: R (3 * S, S), B (3 * S,), or (4 * S,) with ``linear_before_reset``, which applies the reset gate
    after the product."""
    f_act, g_act = functions
    size = recurrence.shape[1]
    update_reset, candidate = recurrence[: 2 * size], recurrence[2 * size :]

    def step(gates: np.ndarray, state: State) -> State:
        (hidden,) = state
        both = f_act(clipped(gates[:, : 2 * size] + hidden @ update_reset.T + bias[: 2 * size], clip))
        z, r = both[:, :size], both[:, size:]
        if linear_before_reset:
            inner = gates[:, 2 * size :] + r * (hidden @ candidate.T + bias[3 * size :]) + bias[2 * size : 3 * size]
        else:
            inner = gates[:, 2 * size :] + (r * hidden) @ candidate.T + bias[2 * size : 3 * size]
        return ((1 - z) * g_act(clipped(inner, clip)) + z * hidden,)

    return step


def rnn(recurrence: np.ndarray, bias: np.ndarray, functions: Sequence[Activation], clip: float) -> Cell:
    """A cell without gates: R (S, S), B (S,)."""

    def step(gates: np.ndarray, state: State) -> State:
        return (functions[0](clipped(gates + state[0] @ recurrence.T + bias, clip)),)

    return step


def over_time(
    x: np.ndarray, weights: np.ndarray, cell: Cell, state: State, lengths: np.ndarray, *, reverse: bool
) -> tuple[np.ndarray, State]:
    """Run a cell over X (B, T, I): every hidden state (B, T, S), zeros beyond a sequence's length, and the final
    states.

    One product projects the inputs of all steps. With ``reverse`` each sequence is read from its own last step to its
    first.
    """
    batch, steps, _ = x.shape
    gates = x @ weights.T
    outputs = np.zeros((batch, steps, state[0].shape[1]), x.dtype)
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
