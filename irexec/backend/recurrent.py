"""Fast kernels of recurrent cells and sequences with the default activations and without clipping."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irexec.backend.recurrent_steps import (
    Pack,
    pack_gru,
    pack_gru_linear_before_reset,
    pack_lstm,
    pack_rnn,
    run_cell,
    run_sequence,
)
from irexec.backend.registry import fast_kernel
from irexec.ir.facts import Fact
from irexec.schema.recurrent import (
    GRU_ACTIVATIONS,
    LSTM_ACTIVATIONS,
    RNN_ACTIVATIONS,
    CellAttributes,
    GRUCellAttributes,
    GRUSequenceAttributes,
    LSTMCell1Attributes,
    Names,
    SequenceAttributes,
)

Kernel = Callable[..., tuple[np.ndarray, ...]]


def _is_default(attributes: CellAttributes, default: Names) -> bool:
    """Whether the activations are the default ones, and nothing is clipped."""
    names = tuple(name.strip().lower() for name in attributes.activations[: len(default)]) or default
    return names == default and (attributes.clip <= 0 or np.isinf(attributes.clip))


def _widen(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _sequence(x: Fact, weights: Sequence[Fact], attributes: SequenceAttributes, pack: Pack) -> Kernel:
    """A kernel of a sequence; W, R and B are packed now if they are known, else on every run."""
    single = x.shape is not None and len(x.shape) == 3 and x.shape[0] == 1
    w, r, b = (fact.known for fact in weights)
    packed = None if w is None or r is None or b is None else pack(_widen(w), _widen(r), _widen(b), single)

    def run(x: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        *states, lengths, w, r, b = inputs
        weights = packed or pack(_widen(w), _widen(r), _widen(b), single)
        limits = np.clip(lengths.astype(np.int64), 0, x.shape[1])
        results = run_sequence(weights, _widen(x), [_widen(state) for state in states], limits, attributes.reversed_directions)
        return tuple(result.astype(x.dtype, copy=False) for result in results)

    return run


def _cell(weights: Sequence[Fact | None], states: int, biases: int, pack: Pack) -> Kernel | None:
    """A kernel of a cell, if W, R and B (None: zeros, ``biases`` of each hidden unit) are known."""
    w, r, b = (None if fact is None else fact.known for fact in weights)
    if w is None or r is None or (b is None and weights[2] is not None):
        return None
    bias = np.zeros(biases * r.shape[1], r.dtype) if b is None else b
    packed = pack(_widen(w)[None], _widen(r)[None], _widen(bias)[None], False)

    def run(x: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        results = run_cell(packed, _widen(x), [_widen(state) for state in inputs[:states]])
        return tuple(result.astype(x.dtype, copy=False) for result in results)

    return run


@fast_kernel("LSTMCell", since=1)
def lstm_cell_1(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, p: Fact | None = None, *,
    attributes: LSTMCell1Attributes,
) -> Kernel | None:  # fmt: skip
    """Without peepholes and a coupled input gate."""
    if p is not None or attributes.input_forget or not _is_default(attributes, LSTM_ACTIVATIONS):
        return None
    return _cell([w, r, b], 2, 4, pack_lstm)


@fast_kernel("LSTMCell", since=4)
def lstm_cell_4(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, attributes: CellAttributes
) -> Kernel | None:
    return _cell([w, r, b], 2, 4, pack_lstm) if _is_default(attributes, LSTM_ACTIVATIONS) else None


@fast_kernel("GRUCell", since=3)
def gru_cell_3(
    x: Fact, initial_hidden_state: Fact, w: Fact, r: Fact, b: Fact | None = None, *, attributes: GRUCellAttributes
) -> Kernel | None:
    return _cell([w, r, b], 1, attributes.bias_count, _gru_packing(attributes)) if _is_default(attributes, GRU_ACTIVATIONS) else None


@fast_kernel("LSTMSequence", since=5)
def lstm_sequence_5(
    x: Fact, initial_hidden_state: Fact, initial_cell_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *,
    attributes: SequenceAttributes,
) -> Kernel | None:  # fmt: skip
    return _sequence(x, [w, r, b], attributes, pack_lstm) if _is_default(attributes, LSTM_ACTIVATIONS) else None


@fast_kernel("GRUSequence", since=5)
def gru_sequence_5(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, attributes: GRUSequenceAttributes
) -> Kernel | None:
    return _sequence(x, [w, r, b], attributes, _gru_packing(attributes)) if _is_default(attributes, GRU_ACTIVATIONS) else None


@fast_kernel("RNNSequence", since=5)
def rnn_sequence_5(
    x: Fact, initial_hidden_state: Fact, sequence_lengths: Fact, w: Fact, r: Fact, b: Fact, *, attributes: SequenceAttributes
) -> Kernel | None:
    return _sequence(x, [w, r, b], attributes, pack_rnn) if _is_default(attributes, RNN_ACTIVATIONS) else None


def _gru_packing(attributes: GRUCellAttributes) -> Pack:
    return pack_gru_linear_before_reset if attributes.linear_before_reset else pack_gru
