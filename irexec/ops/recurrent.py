"""Recurrent cells and sequences: LSTM, GRU and plain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from irexec.backend import recurrent as fast_recurrent
from irexec.backend.recurrent import Packed
from irexec.errors import check
from irexec.ir.dims import ANY, Size, meet
from irexec.ir.facts import Fact
from irexec.reference import recurrent
from irexec.reference.recurrent import Activation, Cell, State
from irexec.schema.attributes import Floats, Positive
from irexec.schema.registry import op
from irexec.schema.rules import check_float, same_element

Names = tuple[str, ...]
Format = Literal["fico", "ifco", "icof", "ifoc", "iofc"]
Direction = Literal["forward", "reverse", "bidirectional"]


def _functions(names: Names, default: Names, alpha: Floats, beta: Floats) -> list[Activation]:
    chosen = names or default
    check(len(chosen) >= len(default), f"activations are {', '.join(chosen)}, expected {len(default)}")
    return [
        recurrent.activation(name, alpha[i] if i < len(alpha) else None, beta[i] if i < len(beta) else None)
        for i, name in enumerate(chosen[: len(default)])
    ]


def _bias(bias: np.ndarray | None, size: int, like: np.ndarray) -> np.ndarray:
    return np.zeros(size, like.dtype) if bias is None else bias


def _step(x: np.ndarray, weights: np.ndarray, cell: Cell, *state: np.ndarray) -> State:
    return cell(x @ weights.T, state)


LSTM = ("sigmoid", "tanh", "tanh")
GRU = ("sigmoid", "tanh")
RNN = ("tanh",)


def _cell_facts(
    x: Fact, states: Sequence[Fact], weights: Fact, recurrence: Fact, bias: Fact | None, size: int, gates: int, biases: int
) -> list[Fact]:
    """The states that follow: (batch, hidden_size) each."""
    parts = [fact for fact in (x, *states, weights, recurrence, bias) if fact is not None]
    kind = same_element(*parts)
    check_float(Fact(kind, None), "X")
    inner: Size = ANY
    batch: Size = ANY
    for fact, what, rank in [(x, "X", 2), *((s, "a state", 2) for s in states), (weights, "W", 2), (recurrence, "R", 2)]:
        check(fact.rank in (None, rank), f"{what} has shape {fact}, expected rank {rank}")
    if x.shape is not None:
        batch, inner = x.shape
    for state in states:
        if state.shape is not None:
            batch = meet(batch, state.shape[0])
            meet(state.shape[1], size)
    if weights.shape is not None:
        meet(weights.shape[0], gates * size)
        meet(weights.shape[1], inner)
    if recurrence.shape is not None:
        meet(recurrence.shape[0], gates * size)
        meet(recurrence.shape[1], size)
    if bias is not None:
        check(bias.rank in (None, 1), f"B has shape {bias}, expected rank 1")
        if bias.shape is not None:
            meet(bias.shape[0], biases * size)
    return [Fact(kind, (batch, size)) for _ in states]


@op("LSTMCell", since=1, widen=True, tolerance=1e-5)
def lstm_cell_1(
    x: np.ndarray, initial_hidden_state: np.ndarray, initial_cell_state: np.ndarray, w: np.ndarray, r: np.ndarray,
    b: np.ndarray | None = None, p: np.ndarray | None = None, *, hidden_size: Positive, activations: Names = (),
    activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0, input_forget: bool = False,
    weights_format: Format = "fico",
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """One step of an LSTM with peepholes (of f, i and o); with ``input_forget`` the input gate is what the forget gate leaves of 1.

    The gates stand in the order fico whatever ``weights_format`` says: OpenVINO writes "ifco" and reads none.
    Source: LSTMCell-1, and OpenVINO's reference.
    """
    functions = _functions(activations, LSTM, activations_alpha, activations_beta)
    cell = recurrent.lstm(r, _bias(b, 4 * hidden_size, x), p, functions, clip, input_forget)
    return _step(x, w, cell, initial_hidden_state, initial_cell_state)


@lstm_cell_1.shape_rule
def _lstm_cell_1_facts(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, p: Fact | None = None, *,
    hidden_size: int, activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
    input_forget: bool = False, weights_format: str = "fico",
) -> tuple[Fact, ...]:  # fmt: skip
    _functions(activations, LSTM, activations_alpha, activations_beta)
    return tuple(_cell_facts(x, [initial_hidden_state, initial_cell_state], w, r, b, hidden_size, 4, 4))


@op("LSTMCell", since=4, widen=True, tolerance=1e-5)
def lstm_cell_4(
    x: np.ndarray, initial_hidden_state: np.ndarray, initial_cell_state: np.ndarray, w: np.ndarray, r: np.ndarray,
    b: np.ndarray | None = None, *, hidden_size: Positive, activations: Names = (), activations_alpha: Floats = (),
    activations_beta: Floats = (), clip: float = 0.0,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """One step of an LSTM. Source: LSTMCell-4."""
    functions = _functions(activations, LSTM, activations_alpha, activations_beta)
    cell = recurrent.lstm(r, _bias(b, 4 * hidden_size, x), None, functions, clip)
    return _step(x, w, cell, initial_hidden_state, initial_cell_state)


@lstm_cell_4.shape_rule
def _lstm_cell_4_facts(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, hidden_size: int,
    activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
) -> tuple[Fact, ...]:  # fmt: skip
    _functions(activations, LSTM, activations_alpha, activations_beta)
    return tuple(_cell_facts(x, [initial_hidden_state, initial_cell_state], w, r, b, hidden_size, 4, 4))


@op("GRUCell", since=3, widen=True, tolerance=1e-5)
def gru_cell_3(
    x: np.ndarray, initial_hidden_state: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None, *, hidden_size: Positive,
    activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
    linear_before_reset: bool = False,
) -> np.ndarray:  # fmt: skip
    """One step of a GRU; with linear_before_reset the reset gate comes after the product. Source: GRUCell-3."""
    functions = _functions(activations, GRU, activations_alpha, activations_beta)
    bias = _bias(b, (4 if linear_before_reset else 3) * hidden_size, x)
    return _step(x, w, recurrent.gru(r, bias, functions, clip, linear_before_reset), initial_hidden_state)[0]


@gru_cell_3.shape_rule
def _gru_cell_3_facts(
    x: Fact, initial_hidden_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, hidden_size: int, activations: Names = (),
    activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0, linear_before_reset: bool = False,
) -> Fact:  # fmt: skip
    _functions(activations, GRU, activations_alpha, activations_beta)
    return _cell_facts(x, [initial_hidden_state], w, r, b, hidden_size, 3, 4 if linear_before_reset else 3)[0]


@op("RNNCell", since=1, widen=True, tolerance=1e-5)
def rnn_cell_1(
    x: np.ndarray, initial_hidden_state: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray | None = None, *, hidden_size: Positive,
    activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """One step of a plain recurrent network. Source: RNNCell-1."""
    functions = _functions(activations, RNN, activations_alpha, activations_beta)
    return _step(x, w, recurrent.rnn(r, _bias(b, hidden_size, x), functions, clip), initial_hidden_state)[0]


@rnn_cell_1.shape_rule
def _rnn_cell_1_facts(
    x: Fact, initial_hidden_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, hidden_size: int, activations: Names = (),
    activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
) -> Fact:  # fmt: skip
    _functions(activations, RNN, activations_alpha, activations_beta)
    return _cell_facts(x, [initial_hidden_state], w, r, b, hidden_size, 1, 1)[0]


_WAYS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def _sequence(
    x: np.ndarray, states: Sequence[np.ndarray], lengths: np.ndarray, w: np.ndarray, direction: str, cell: Callable[[int], Cell]
) -> tuple[np.ndarray, ...]:
    """Every direction over time: Y (B, D, T, S) and the last states (B, D, S)."""
    count = np.minimum(lengths.astype(np.int64), x.shape[1])
    outputs, ends = [], []
    for i, reverse in enumerate(_WAYS[direction]):
        y, last = recurrent.over_time(x, w[i], cell(i), tuple(state[:, i] for state in states), count, reverse=reverse)
        outputs.append(y)
        ends.append(last)
    return (np.stack(outputs, 1), *(np.stack([end[k] for end in ends], 1) for k in range(len(states))))


def _sequence_facts(
    x: Fact, states: Sequence[Fact], lengths: Fact, w: Fact, r: Fact, b: Fact, size: int, gates: int, biases: int, direction: str
) -> tuple[Fact, ...]:
    count = 2 if direction == "bidirectional" else 1
    kind = same_element(x, *states, w, r, b)
    check_float(Fact(kind, None), "X")
    if lengths.element is not None:
        check(lengths.element.is_integer, f"sequence_lengths have element type {lengths.element}, expected integers")
    batch, steps, inner = x.shape if x.rank == 3 and x.shape is not None else (ANY, ANY, ANY)
    check(x.rank in (None, 3), f"X has shape {x}, expected rank 3")
    check(lengths.rank in (None, 1), f"sequence_lengths have shape {lengths}, expected rank 1")
    if lengths.shape is not None:
        batch = meet(batch, lengths.shape[0])
    for state in states:
        check(state.rank in (None, 3), f"a state has shape {state}, expected rank 3")
        if state.shape is not None:
            batch = meet(batch, state.shape[0])
            meet(state.shape[1], count)
            meet(state.shape[2], size)
    for fact, what, sizes in (
        (w, "W", (count, gates * size, inner)),
        (r, "R", (count, gates * size, size)),
        (b, "B", (count, biases * size)),
    ):
        check(fact.rank in (None, len(sizes)), f"{what} has shape {fact}, expected rank {len(sizes)}")
        for have, want in zip(fact.shape or (), sizes, strict=False):
            meet(have, want)
    return (Fact(kind, (batch, count, steps, size)), *(Fact(kind, (batch, count, size)) for _ in states))


@op("LSTMSequence", since=5, widen=True, tolerance=1e-5)
def lstm_sequence_5(
    x: np.ndarray, initial_hidden_state: np.ndarray, initial_cell_state: np.ndarray, sequence_lengths: np.ndarray, w: np.ndarray,
    r: np.ndarray, b: np.ndarray, *, hidden_size: Positive, direction: Direction, activations: Names = (), activations_alpha: Floats = (),
    activations_beta: Floats = (), clip: float = 0.0,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """An LSTM over sequences of their own lengths. Source: LSTMSequence-5."""
    functions = _functions(activations, LSTM, activations_alpha, activations_beta)
    states = (initial_hidden_state, initial_cell_state)
    return _sequence(x, states, sequence_lengths, w, direction, lambda i: recurrent.lstm(r[i], b[i], None, functions, clip))


@lstm_sequence_5.shape_rule
def _lstm_sequence_5_facts(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, hidden_size: int,
    direction: str, activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
) -> tuple[Fact, ...]:  # fmt: skip
    _functions(activations, LSTM, activations_alpha, activations_beta)
    return _sequence_facts(x, [initial_hidden_state, initial_cell_state], sequence_lengths, w, r, b, hidden_size, 4, 4, direction)


@op("GRUSequence", since=5, widen=True, tolerance=1e-5)
def gru_sequence_5(
    x: np.ndarray, initial_hidden_state: np.ndarray, sequence_lengths: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray, *,
    hidden_size: Positive, direction: Direction, activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (),
    clip: float = 0.0, linear_before_reset: bool = False,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """A GRU over sequences of their own lengths. Source: GRUSequence-5."""
    functions = _functions(activations, GRU, activations_alpha, activations_beta)
    cell = lambda i: recurrent.gru(r[i], b[i], functions, clip, linear_before_reset)  # noqa: E731
    return _sequence(x, (initial_hidden_state,), sequence_lengths, w, direction, cell)


@gru_sequence_5.shape_rule
def _gru_sequence_5_facts(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, hidden_size: int, direction: str,
    activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
    linear_before_reset: bool = False,
) -> tuple[Fact, ...]:  # fmt: skip
    _functions(activations, GRU, activations_alpha, activations_beta)
    biases = 4 if linear_before_reset else 3
    return _sequence_facts(x, [initial_hidden_state], sequence_lengths, w, r, b, hidden_size, 3, biases, direction)


@op("RNNSequence", since=5, widen=True, tolerance=1e-5)
def rnn_sequence_5(
    x: np.ndarray, initial_hidden_state: np.ndarray, sequence_lengths: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray, *,
    hidden_size: Positive, direction: Direction, activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (),
    clip: float = 0.0,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """A plain recurrent network over sequences of their own lengths. Source: RNNSequence-5."""
    functions = _functions(activations, RNN, activations_alpha, activations_beta)
    return _sequence(x, (initial_hidden_state,), sequence_lengths, w, direction, lambda i: recurrent.rnn(r[i], b[i], functions, clip))


@rnn_sequence_5.shape_rule
def _rnn_sequence_5_facts(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, hidden_size: int, direction: str,
    activations: Names = (), activations_alpha: Floats = (), activations_beta: Floats = (), clip: float = 0.0,
) -> tuple[Fact, ...]:  # fmt: skip
    _functions(activations, RNN, activations_alpha, activations_beta)
    return _sequence_facts(x, [initial_hidden_state], sequence_lengths, w, r, b, hidden_size, 1, 1, direction)


Pack = Callable[..., Packed]


def _are(names: Names, default: Names, clip: float) -> bool:
    """Whether the activations are what the fast ways compute, and nothing is clipped."""
    chosen = tuple(name.strip().lower() for name in names[: len(default)]) or default
    return chosen == default and (clip <= 0 or np.isinf(clip))


def _fast_sequence(x: Fact, weights: Sequence[Fact], direction: str, pack: Pack) -> Callable[..., Any]:
    """A sequence by packed weights: packed now if they are known, else on every run."""
    one = x.shape is not None and len(x.shape) == 3 and x.shape[0] == 1
    known = [_wide(fact.known) for fact in weights if fact.known is not None]
    packed = pack(*known, one) if len(known) == len(weights) else None

    def run(x: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        *states, lengths, w, r, b = inputs
        weights = packed or pack(_wide(w), _wide(r), _wide(b), one)
        count = np.clip(lengths.astype(np.int64), 0, x.shape[1])
        results = fast_recurrent.over_time(weights, _wide(x), [_wide(state) for state in states], count, _WAYS[direction])
        return tuple(result.astype(x.dtype, copy=False) for result in results)

    return run


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _fast_cell(weights: Sequence[Fact | None], states: int, biases: int, pack: Pack) -> Callable[..., Any] | None:
    """A cell by packed weights, if they are known."""
    w, r, b = (None if fact is None else fact.known for fact in weights)
    if w is None or r is None or (b is None and weights[2] is not None):
        return None
    bias = np.zeros(biases * r.shape[1], r.dtype) if b is None else b
    packed = pack(*(_wide(array)[None] for array in (w, r, bias)), False)

    def run(x: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        results = fast_recurrent.one_step(packed, _wide(x), [_wide(state) for state in inputs[:states]])
        return tuple(result.astype(x.dtype, copy=False) for result in results)

    return run


@lstm_cell_1.bind
def _bind_lstm_cell_1(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, p: Fact | None = None, *,
    activations: Names, clip: float, input_forget: bool, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    plain = p is not None or input_forget or not _are(activations, LSTM, clip)
    return None if plain else _fast_cell([w, r, b], 2, 4, fast_recurrent.lstm)


@lstm_cell_4.bind
def _bind_lstm_cell_4(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, activations: Names,
    clip: float, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    return _fast_cell([w, r, b], 2, 4, fast_recurrent.lstm) if _are(activations, LSTM, clip) else None


@gru_cell_3.bind
def _bind_gru_cell_3(
    x: Fact, initial_hidden_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, activations: Names, clip: float,
    linear_before_reset: bool, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    biases, pack = (4, fast_recurrent.gru_after) if linear_before_reset else (3, fast_recurrent.gru)
    return _fast_cell([w, r, b], 1, biases, pack) if _are(activations, GRU, clip) else None


@lstm_sequence_5.bind
def _bind_lstm_sequence_5(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *,
    direction: str, activations: Names, clip: float, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    return _fast_sequence(x, [w, r, b], direction, fast_recurrent.lstm) if _are(activations, LSTM, clip) else None


@gru_sequence_5.bind
def _bind_gru_sequence_5(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, direction: str, activations: Names,
    clip: float, linear_before_reset: bool, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    pack = fast_recurrent.gru_after if linear_before_reset else fast_recurrent.gru
    return _fast_sequence(x, [w, r, b], direction, pack) if _are(activations, GRU, clip) else None


@rnn_sequence_5.bind
def _bind_rnn_sequence_5(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, direction: str, activations: Names,
    clip: float, **rest: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    return _fast_sequence(x, [w, r, b], direction, fast_recurrent.rnn) if _are(activations, RNN, clip) else None
