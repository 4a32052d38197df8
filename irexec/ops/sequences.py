"""Connectionist temporal classification, and recurrent cells and sequences.

Names of sizes: B batch, T time steps, I inputs, S hidden_size, D directions (1 or 2), G gates (LSTM 4, GRU 3, RNN 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Size, meet, shape_text
from irexec.ir.facts import Fact, integer
from irexec.reference import indexing, products
from irexec.reference.products import Activation, Cell
from irexec.schema.opdef import FloatTensor, IntegerElement, IntegerScalar, IntegerTensor, Rank
from irexec.schema.recurrent import (
    AUGRUSequenceAttributes,
    CellAttributes,
    GRUCellAttributes,
    GRUSequenceAttributes,
    LSTMCell1Attributes,
    LSTMCellAttributes,
    LSTMSequenceAttributes,
    SequenceAttributes,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements, unify_sizes

Vector = Annotated[FloatTensor, Rank(1)]
Matrix = Annotated[FloatTensor, Rank(2)]
Stack = Annotated[FloatTensor, Rank(3)]
Lengths = Annotated[IntegerTensor, Rank(1)]

TOLERANCE = 1e-5

Inputs = Mapping[str, Fact | None]


def activations(attributes: CellAttributes) -> list[Activation]:
    """The activations of a cell; OpError where there are too few of them."""
    names, count = attributes.functions, len(attributes.default_activations)
    check(len(names) == count, f"activations are {', '.join(names)}, expected {count}")
    alpha, beta = attributes.activations_alpha, attributes.activations_beta
    return [
        products.activation(name, alpha[i] if i < len(alpha) else None, beta[i] if i < len(beta) else None)
        for i, name in enumerate(names)
    ]


def _cell(
    attributes: CellAttributes, r: np.ndarray, b: np.ndarray | None, p: np.ndarray | None = None, *,
    attention: bool = False,
) -> Cell:  # fmt: skip
    """One step of a cell or of a sequence; ``attention`` is that of a GRU."""
    functions, clip = activations(attributes), attributes.clip
    bias = np.zeros(attributes.bias_count * attributes.hidden_size, r.dtype) if b is None else b
    if isinstance(attributes, GRUCellAttributes):
        return products.gru(r, bias, functions, clip, attributes.linear_before_reset, attention=attention)
    if isinstance(attributes, LSTMCellAttributes):
        is_coupled = isinstance(attributes, LSTMCell1Attributes) and attributes.input_forget
        return products.lstm(r, bias, p, functions, clip, is_coupled)
    return products.rnn(r, bias, functions, clip)


def _expect(inputs: Inputs, name: str, *sizes: Size) -> tuple[Size, ...]:
    """Sizes of an input, checked against the expected ``sizes``; OpError if they differ."""
    fact = inputs[name]
    if fact is None or fact.shape is None:
        return sizes
    try:
        return tuple(meet(size, expected) for size, expected in zip(fact.shape, sizes, strict=True))
    except OpError:
        raise OpError(f"{name} has shape {shape_text(fact.shape)}, expected {shape_text(sizes)}") from None


def _checked(facts: Sequence[Fact | None], attributes: CellAttributes) -> tuple[Inputs, Element | None, list[str]]:
    """The inputs of a cell or sequence by name, the element type of its floats, and the names of the states; OpError
    for wrong activations."""
    activations(attributes)
    is_lstm, lengths = isinstance(attributes, LSTMCellAttributes), "sequence_lengths"
    states = ["initial_hidden_state", "initial_cell_state"][: 1 + is_lstm]
    middle = [*states, lengths] if isinstance(attributes, SequenceAttributes) else states
    inputs = dict(zip_longest(["x", *middle, "w", "r", "b", "p" if is_lstm else "attention"], facts))
    return inputs, unify_elements(*(fact for name, fact in inputs.items() if name != lengths)), states


def _cell_facts(facts: Sequence[Fact | None], attributes: CellAttributes) -> tuple[Fact, Inputs]:
    """A state [B, S] after the step, and the inputs by name."""
    size, gates = attributes.hidden_size, attributes.gates
    inputs, element, states = _checked(facts, attributes)
    batch, features = _expect(inputs, "x", ANY, ANY)
    for state in states:
        batch, _ = _expect(inputs, state, batch, size)
    _expect(inputs, "w", gates * size, features)
    _expect(inputs, "r", gates * size, size)
    _expect(inputs, "b", attributes.bias_count * size)
    return Fact(element, (batch, size)), inputs


# Misspelt by Model Optimizer, and read by nobody.
_OLD = ("activation_alpha", "activation_beta")


@op("LSTMCell", since=1, widen=True, tolerance=TOLERANCE, ignores=_OLD)
def lstm_cell_1(
    x: Matrix, initial_hidden_state: Matrix, initial_cell_state: Matrix, w: Matrix, r: Matrix, b: Vector | None = None,
    p: Vector | None = None, *, attributes: LSTMCell1Attributes,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """One step of an LSTM with peepholes P [3 * S] (of the gates f, i and o): the hidden state and the cell state, [B,
    S] each.

    With ``input_forget`` the input gate is 1 - forget gate. The gates are in the order fico whatever ``weights_format``
    says: OpenVINO writes "ifco" and ignores it when it reads. Source: LSTMCell-1, and OpenVINO's reference.
    """
    return _cell(attributes, r, b, p)(x @ w.T, (initial_hidden_state, initial_cell_state))


@op("LSTMCell", since=4, widen=True, tolerance=TOLERANCE, ignores=_OLD)
def lstm_cell_4(
    x: Matrix, initial_hidden_state: Matrix, initial_cell_state: Matrix, w: Matrix, r: Matrix, b: Vector | None = None,
    *, attributes: LSTMCellAttributes,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """One step of an LSTM: the hidden state and the cell state, [B, S] each. Source: LSTMCell-4."""
    return _cell(attributes, r, b)(x @ w.T, (initial_hidden_state, initial_cell_state))


@op("GRUCell", since=3, widen=True, tolerance=TOLERANCE, ignores=_OLD)
def gru_cell_3(
    x: Matrix,
    initial_hidden_state: Matrix,
    w: Matrix,
    r: Matrix,
    b: Vector | None = None,
    *,
    attributes: GRUCellAttributes,
) -> np.ndarray:
    """One step of a GRU: the hidden state [B, S]. Source: GRUCell-3."""
    return _cell(attributes, r, b)(x @ w.T, (initial_hidden_state,))[0]


@op("RNNCell", since=1, widen=True, tolerance=TOLERANCE, ignores=_OLD)
def rnn_cell_1(
    x: Matrix,
    initial_hidden_state: Matrix,
    w: Matrix,
    r: Matrix,
    b: Vector | None = None,
    *,
    attributes: CellAttributes,
) -> np.ndarray:
    """One step of a recurrent network without gates: the hidden state [B, S]. Source: RNNCell-1."""
    return _cell(attributes, r, b)(x @ w.T, (initial_hidden_state,))[0]


@lstm_cell_1.shape_rule
@lstm_cell_4.shape_rule
def _lstm_cell_facts(*facts: Fact | None, attributes: LSTMCellAttributes) -> tuple[Fact, Fact]:
    state, inputs = _cell_facts(facts, attributes)
    _expect(inputs, "p", 3 * attributes.hidden_size)
    return state, state


@gru_cell_3.shape_rule
@rnn_cell_1.shape_rule
def _state_facts(*facts: Fact | None, attributes: CellAttributes) -> Fact:
    return _cell_facts(facts, attributes)[0]


def _sequence(
    x: np.ndarray, states: Sequence[np.ndarray], lengths: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray,
    attributes: SequenceAttributes, attention: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Every direction over time: hidden states [B, D, T, S] and final states [B, D, S]."""
    limits = np.minimum(lengths.astype(np.int64), x.shape[1])
    outputs, finals = [], []
    for d, reverse in enumerate(attributes.reversed_directions):
        gates = x @ w[d].T if attention is None else np.concatenate([x @ w[d].T, attention], 2)
        cell = _cell(attributes, r[d], b[d], attention=attention is not None)
        y, final = products.over_time(gates, cell, tuple(state[:, d] for state in states), limits, reverse=reverse)
        outputs.append(y)
        finals.append(final)
    return np.stack(outputs, 1), *(np.stack([final[k] for final in finals], 1) for k in range(len(states)))


def _sequence_facts(facts: Sequence[Fact], attributes: SequenceAttributes) -> tuple[Fact, Fact, Inputs]:
    """Y [B, D, T, S], a final state [B, D, S], and the inputs by name."""
    size, gates, count = attributes.hidden_size, attributes.gates, len(attributes.reversed_directions)
    inputs, element, states = _checked(facts, attributes)
    batch, steps, features = _expect(inputs, "x", ANY, ANY, ANY)
    (batch,) = _expect(inputs, "sequence_lengths", batch)
    for state in states:
        batch, _, _ = _expect(inputs, state, batch, count, size)
    _expect(inputs, "w", count, gates * size, features)
    _expect(inputs, "r", count, gates * size, size)
    _expect(inputs, "b", count, attributes.bias_count * size)
    return Fact(element, (batch, count, steps, size)), Fact(element, (batch, count, size)), inputs


@op("LSTMSequence", since=5, widen=True, tolerance=TOLERANCE)
def lstm_sequence_5(
    x: Stack, initial_hidden_state: Stack, initial_cell_state: Stack, sequence_lengths: Lengths, w: Stack, r: Stack,
    b: Matrix, *, attributes: LSTMSequenceAttributes,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """An LSTM over X [B, T, I], each sequence of its own length: Y [B, D, T, S] and both final states. Source:
    LSTMSequence-5."""
    states = (initial_hidden_state, initial_cell_state)
    return _sequence(x, states, sequence_lengths, w, r, b, attributes)


@op("GRUSequence", since=5, widen=True, tolerance=TOLERANCE)
def gru_sequence_5(
    x: Stack,
    initial_hidden_state: Stack,
    sequence_lengths: Lengths,
    w: Stack,
    r: Stack,
    b: Matrix,
    *,
    attributes: GRUSequenceAttributes,
) -> tuple[np.ndarray, ...]:
    """A GRU over X [B, T, I], each sequence of its own length: Y [B, D, T, S] and the final state. Source:
    GRUSequence-5."""
    return _sequence(x, (initial_hidden_state,), sequence_lengths, w, r, b, attributes)


@op("AUGRUCell", since="ie_internal_opset", unread=True, widen=True, tolerance=TOLERANCE)
def augru_cell(
    x: Matrix, initial_hidden_state: Matrix, w: Matrix, r: Matrix, b: Vector, attention: Matrix, *,
    attributes: GRUCellAttributes,
) -> np.ndarray:  # fmt: skip
    """One step of a GRU whose update gate is multiplied by 1 - attention [B, 1]: the hidden state [B, S]. Source:
    AUGRUCell, arXiv:1809.03672."""
    cell = _cell(attributes, r, b, attention=True)
    return cell(np.concatenate([x @ w.T, attention], 1), (initial_hidden_state,))[0]


@augru_cell.shape_rule
def _augru_cell_shapes(*facts: Fact, attributes: GRUCellAttributes) -> Fact:
    _check_attentional(attributes)
    state, inputs = _cell_facts(facts, attributes)
    _expect(inputs, "attention", sizes_of(state, 2, "state")[0], 1)
    return state


@op("AUGRUSequence", since="ie_internal_opset", unread=True, widen=True, tolerance=TOLERANCE)
def augru_sequence(
    x: Stack, initial_hidden_state: Stack, sequence_lengths: Lengths, w: Stack, r: Stack, b: Matrix, attention: Stack,
    *, attributes: AUGRUSequenceAttributes,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """AUGRUCell over X [B, T, I] with attention [B, T, 1], each sequence of its own length: Y [B, 1, T, S] and the
    final state. Source: AUGRUSequence."""
    return _sequence(x, (initial_hidden_state,), sequence_lengths, w, r, b, attributes, attention)


@augru_sequence.shape_rule
def _augru_sequence_shapes(*facts: Fact, attributes: AUGRUSequenceAttributes) -> tuple[Fact, Fact]:
    _check_attentional(attributes)
    y, state, inputs = _sequence_facts(facts, attributes)
    batch, _, steps, _ = sizes_of(y, 4, "y")
    _expect(inputs, "attention", batch, steps, 1)
    return y, state


def _check_attentional(attributes: GRUCellAttributes) -> None:
    names = tuple(name.lower() for name in attributes.activations)
    check(names == attributes.default_activations, f"activations are {', '.join(names)}, expected sigmoid, tanh")
    check(attributes.clip == 0, f"clip is {attributes.clip}, expected 0")
    check(not attributes.linear_before_reset, "linear_before_reset is true, expected false")


@op("RNNSequence", since=5, widen=True, tolerance=TOLERANCE)
def rnn_sequence_5(
    x: Stack,
    initial_hidden_state: Stack,
    sequence_lengths: Lengths,
    w: Stack,
    r: Stack,
    b: Matrix,
    *,
    attributes: SequenceAttributes,
) -> tuple[np.ndarray, ...]:
    """A recurrent network without gates over X [B, T, I], each sequence of its own length: Y [B, D, T, S] and the final
    state.

    Source: RNNSequence-5.
    """
    return _sequence(x, (initial_hidden_state,), sequence_lengths, w, r, b, attributes)


@lstm_sequence_5.shape_rule
def _lstm_sequence_5_facts(*facts: Fact, attributes: LSTMSequenceAttributes) -> tuple[Fact, Fact, Fact]:
    y, state, _ = _sequence_facts(facts, attributes)
    return y, state, state


@gru_sequence_5.shape_rule
@rnn_sequence_5.shape_rule
def _output_and_state_facts(*facts: Fact, attributes: SequenceAttributes) -> tuple[Fact, Fact]:
    return _sequence_facts(facts, attributes)[:2]


Probabilities = Annotated[FloatTensor, Rank(3)]
Labels = Annotated[IntegerTensor, Rank(2)]
IndexType = Literal["i32", "i64"]


@op("CTCGreedyDecoder", since=1)
def ctc_greedy_decoder_1(
    data: Probabilities, sequence_mask: Annotated[FloatTensor, Rank(2)], *, ctc_merge_repeated: bool = True
) -> np.ndarray:
    """The most probable class of each step without blanks, (steps, batch, classes) to (batch, steps, 1, 1), padded with
    -1.

    The blank is the last class; a sequence ends at the first 0 of its mask (steps, batch). Source: CTCGreedyDecoder-1.
    """
    classes = data.argmax(2).T if data.shape[2] else np.zeros(data.shape[1::-1], np.int64)
    valid = np.logical_and.accumulate(sequence_mask != 0, 0).T
    decoded, _ = indexing.decode(classes, valid, data.shape[2] - 1, ctc_merge_repeated)
    return decoded.astype(data.dtype)[:, :, None, None]


@ctc_greedy_decoder_1.shape_rule
def _ctc_greedy_decoder_1_shapes(data: Fact, sequence_mask: Fact) -> Fact:
    element = unify_elements(data, sequence_mask)
    (steps, batch, _), (mask_steps, mask_batch) = sizes_of(data, 3, "data"), sizes_of(sequence_mask, 2, "sequence_mask")
    batch = unify_sizes("batch", batch, mask_batch)
    return Fact(element, (batch, unify_sizes("number of steps", steps, mask_steps), 1, 1))


@op("CTCGreedyDecoderSeqLen", since=6)
def ctc_greedy_decoder_seq_len_6(
    data: Probabilities,
    sequence_length: Lengths,
    blank_index: IntegerElement | None = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: IndexType = "i32",
    sequence_length_type: IndexType = "i32",
) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of each step without blanks, (batch, steps, classes) to (batch, steps), and their number
    (batch).

    Rows are padded with -1. The blank is the last class by default. Source: CTCGreedyDecoderSeqLen-6.
    """
    batch, steps, class_count = data.shape
    _check_lengths(sequence_length, steps, "sequence_length")
    classes = data.argmax(2) if class_count else np.zeros((batch, steps), np.int64)
    valid = np.arange(steps) < sequence_length[:, None]
    decoded, counts = indexing.decode(classes, valid, _blank(blank_index, class_count), merge_repeated)
    return decoded.astype(element(classes_index_type).carrier), counts.astype(element(sequence_length_type).carrier)


def _blank(index: np.ndarray | None, classes: int) -> int:
    return classes - 1 if index is None else integer(index, "index")


def _check_lengths(lengths: np.ndarray, maximum: int, name: str) -> None:
    wrong = lengths[(lengths < 0) | (lengths > maximum)]
    if wrong.size:
        raise OpError(f"{name} has {int(wrong[0])}, expected 0 to {maximum}")


@ctc_greedy_decoder_seq_len_6.shape_rule
def _ctc_greedy_decoder_seq_len_6_shapes(
    data: Fact,
    sequence_length: Fact,
    blank_index: Fact | None = None,
    *,
    classes_index_type: IndexType,
    sequence_length_type: IndexType,
) -> tuple[Fact, Fact]:
    (batch, steps, _), (lengths,) = sizes_of(data, 3, "data"), sizes_of(sequence_length, 1, "sequence_length")
    batch = unify_sizes("batch", batch, lengths)
    return Fact(element(classes_index_type), (batch, steps)), Fact(element(sequence_length_type), (batch,))


@op("CTCLoss", since=4, widen=True, tolerance=1e-5)
def ctc_loss_4(
    logits: Probabilities,
    logit_length: Lengths,
    labels: Labels,
    label_length: Lengths,
    blank_index: IntegerScalar | None = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    unique: bool = False,
) -> np.ndarray:
    """Minus the logarithm of the probability that the logits read as the labels, (batch, steps, classes) to (batch).

    Where no path does, it is infinite. ``unique`` keeps the first of equal labels, ``preprocess_collapse_repeated``
    one of consecutive equal ones. Source: CTCLoss-4.
    """
    steps, classes = logits.shape[1:]
    _check_lengths(logit_length, steps, "logit_length")
    _check_lengths(label_length, steps, "label_length")
    blank = _blank(blank_index, classes)
    found, counts = indexing.targets(labels.astype(np.int64), label_length, preprocess_collapse_repeated, unique)
    found = found[:, : int(counts.max(initial=0))]
    inside = (found >= 0) & (found < classes)
    check(bool(inside.all()) and 0 <= blank < classes, f"a label or the blank {blank} is not one of {classes} classes")
    return indexing.loss(logits, logit_length, found, counts, blank, ctc_merge_repeated).astype(logits.dtype)


@ctc_loss_4.shape_rule
def _ctc_loss_4_shapes(
    logits: Fact, logit_length: Fact, labels: Fact, label_length: Fact, blank_index: Fact | None = None
) -> Fact:
    (batch, steps, _), (rows, columns) = sizes_of(logits, 3, "logits"), sizes_of(labels, 2, "labels")
    unify_sizes("number of steps", steps, columns)
    lengths = (*sizes_of(logit_length, 1, "logit_length"), *sizes_of(label_length, 1, "label_length"))
    batch = unify_sizes("batch", batch, rows, *lengths)
    return Fact(logits.element, (batch,))
