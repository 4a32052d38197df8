"""Recurrent cells and sequences, and the decoders behind them.

Names of sizes: B batch, T time steps, I inputs, S hidden units, D directions, G gates. IR has its tensors by batch and
the gates of LSTM as f, i, c, o; ONNX has them by time and by direction, and the gates as i, o, f, c.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.registry import add, composed, exact
from irexec.dtypes.elements import BF16, F16, F32, F64, I32, I64
from irexec.errors import check
from irexec.ir.constants import constant_value
from irexec.schema.recurrent import (
    CellAttributes,
    GRUCellAttributes,
    LSTMCell1Attributes,
    SequenceAttributes,
)

_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
_LSTM_GATES, _LSTM_PEEPHOLES = (1, 3, 0, 2), (1, 2, 0)
_FUNCTIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "hardsigmoid": "HardSigmoid"}


@exact("LSTMCell", since=1)
def lstm_cell_1(
    ctx: ExportContext, x: Tensor, hidden: Tensor, cell: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None,
    p: Tensor | None = None, *, attributes: LSTMCell1Attributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """LSTM of one time step, with peepholes; of input_forget with the weights of the forget gate, negated, as those of
    the input gate: 1 - sigmoid(x) is sigmoid(-x)."""
    if attributes.input_forget:
        check(_is_odd(attributes), "1 - forget gate is not the activation of the negated value")
        w, r = (_coupled(ctx, tensor, attributes) for tensor in (w, r))
        b, p = (tensor if tensor is None else _coupled(ctx, tensor, attributes) for tensor in (b, p))
    peepholes = None if p is None else ctx.unsqueeze(_gates(ctx, p, 0, _LSTM_PEEPHOLES, attributes.hidden_size), 0)
    return _cell(ctx, x, hidden, cell, w, r, b, type="LSTM", attributes=attributes, peepholes=peepholes)


def _is_odd(attributes: CellAttributes) -> bool:
    """Whether the activation f of the gates has f(-x) = 1 - f(x)."""
    name = attributes.functions[0].strip().lower()
    return name == "sigmoid" or (name == "hardsigmoid" and (*attributes.activations_beta, 0.5)[0] == 0.5)


def _coupled(ctx: ExportContext, weights: Tensor, attributes: CellAttributes) -> Tensor:
    """Weights whose rows of the input gate, the second, are those of the forget gate, the first, negated."""
    size = attributes.hidden_size
    forget = ctx.slice(weights, 0, size, 0)
    return ctx.concat(forget, ctx.emit("Neg", forget), ctx.slice(weights, 2 * size, None, 0))


def _cell(
    ctx: ExportContext, x: Tensor, *inputs: Tensor | None, type: str, attributes: CellAttributes,
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The states [B, S] after one step, of X, the states, W, R and perhaps B."""
    x, *wide = (_widened(ctx, tensor) for tensor in (x, *inputs) if tensor is not None)
    states, (w, r, *b) = wide[: _STATES[type]], wide[_STATES[type] :]
    x, *states = (ctx.unsqueeze(tensor, 0) for tensor in (x, *states))
    w, r = (ctx.unsqueeze(_lstm_gates(ctx, type, tensor, 0, attributes.hidden_size), 0) for tensor in (w, r))
    bias = _bias(ctx, type, ctx.unsqueeze(b[0], 0), attributes) if b else None
    made = _emitted(ctx, type, (x, w, r, bias), None, states, attributes, peepholes)
    return tuple(ctx.squeeze(state, 0) for state in made[1:])


def _sequence(
    ctx: ExportContext, x: Tensor, *inputs: Tensor, type: str, attributes: SequenceAttributes
) -> tuple[Tensor, ...]:
    """Y [B, D, T, S] and the final states [B, D, S], of X, the states, their lengths, W, R and B."""
    *states, lengths, w, r, b = inputs
    x, w, r, b, *states = (_widened(ctx, tensor) for tensor in (x, w, r, b, *states))
    weights = (
        ctx.transpose(x, [1, 0, 2]), *(_lstm_gates(ctx, type, tensor, 1, attributes.hidden_size) for tensor in (w, r)),
        _bias(ctx, type, b, attributes),
    )  # fmt: skip
    by_direction = [ctx.transpose(state, [1, 0, 2]) for state in states]
    y, *final = _emitted(ctx, type, weights, _lengths(ctx, x, lengths), by_direction, attributes)
    if lengths.value is None or not (lengths.value > 0).all():
        # ONNX Runtime gives zeros as the final states of a sequence without steps.
        ran = ctx.unsqueeze(ctx.emit("Greater", lengths, ctx.scalar(0, lengths)), 0, 2)
        final = [ctx.where(ran, after, before) for after, before in zip(final, by_direction, strict=True)]
    return ctx.transpose(y, [2, 1, 0, 3]), *(ctx.transpose(state, [1, 0, 2]) for state in final)


for _type in _STATES:
    _since = 4 if _type == "LSTM" else 1
    add(f"{_type}Cell", "exact", f"{_type} of one time step", functools.partial(_cell, type=_type), _since)
    add(f"{_type}Sequence", "exact", f"{_type} between Transposes", functools.partial(_sequence, type=_type))


def _lengths(ctx: ExportContext, x: Tensor, lengths: Tensor) -> Tensor | None:
    """The lengths as ONNX has them, none of which exceeds the number of steps; None if each is that number."""
    steps = x.require_shape("the data")[1]
    if isinstance(steps, int) and lengths.value is not None and (lengths.value >= steps).all():
        return None
    limit = ctx.ints(steps) if isinstance(steps, int) else ctx.slice(ctx.emit("Shape", x), 1, 2, 0)
    return ctx.emit("Min", ctx.cast(lengths, I32), ctx.cast(limit, I32))


def _emitted(
    ctx: ExportContext, type: str, inputs: tuple[Tensor | None, ...], lengths: Tensor | None, states: Sequence[Tensor],
    attributes: CellAttributes, peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Y and the final states."""
    tail = [*states, peepholes] if peepholes is not None else states
    made: tuple[Tensor, ...] = ctx.emit_all(
        type, 1 + len(states), *inputs, lengths, *tail,
        hidden_size=attributes.hidden_size, direction=getattr(attributes, "direction", "forward"),
        **_functions(attributes), clip=attributes.clip if 0 < attributes.clip < np.inf else None,
        linear_before_reset=int(attributes.linear_before_reset) if isinstance(attributes, GRUCellAttributes) else None,
    )  # fmt: skip
    return made


def _directions(attributes: CellAttributes) -> int:
    return len(attributes.reversed_directions) if isinstance(attributes, SequenceAttributes) else 1


def _widened(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """ONNX Runtime has no kernels in f16 and bf16: they are computed in f32."""
    return ctx.cast(tensor, F32) if tensor.element in (F16, BF16) else tensor


def _functions(attributes: CellAttributes) -> dict[str, Any]:
    """The activations of every direction, with the parameters of those that have some; none if they are the default."""
    directions = _directions(attributes)
    names = [name.strip().lower() for name in attributes.functions]
    if tuple(names) == attributes.default_activations:
        return {}
    alpha, beta = (
        [float(given[i] if i < len(given) else absent) for i, name in enumerate(names) if name == "hardsigmoid"]
        for given, absent in ((attributes.activations_alpha, 0.2), (attributes.activations_beta, 0.5))
    )
    found: dict[str, Any] = {"activations": [_FUNCTIONS[name] for name in names] * directions}
    return found | ({"activation_alpha": alpha * directions, "activation_beta": beta * directions} if alpha else {})


def _lstm_gates(ctx: ExportContext, type: str, weights: Tensor, axis: int, size: int) -> Tensor:
    return _gates(ctx, weights, axis, _LSTM_GATES, size) if type == "LSTM" else weights


def _gates(ctx: ExportContext, weights: Tensor, axis: int, order: Sequence[int], size: int) -> Tensor:
    """Weights of ``size`` hidden units with the gates along an axis in another order."""
    rows = np.arange(len(order) * size).reshape(len(order), size)[list(order)].ravel()

    def gathered(tensor: Tensor) -> Tensor:
        return ctx.emit("Gather", tensor, ctx.constant(rows), axis=axis, shape=tensor.shape)

    return _changed(ctx, weights, lambda array: array.take(rows, axis), gathered)


def _bias(ctx: ExportContext, type: str, b: Tensor, attributes: CellAttributes) -> Tensor:
    """The bias [D, G * S] as that of ONNX [D, 2 * G * S]: the bias of W, and that of R, which is 0 unless
    ``linear_before_reset`` has one."""
    size = attributes.hidden_size
    b = _lstm_gates(ctx, type, b, 1, size)
    directions = _directions(attributes)
    if not (isinstance(attributes, GRUCellAttributes) and attributes.linear_before_reset):
        zeros = ctx.constant(np.zeros((directions, attributes.gates * size)), b.element)
        return _changed(ctx, b, lambda array: np.concatenate([array, np.zeros_like(array)], 1),
                        lambda tensor: ctx.concat(tensor, zeros, axis=1))  # fmt: skip
    none = ctx.constant(np.zeros((directions, 2 * size)), b.element)

    def split(tensor: Tensor) -> Tensor:
        first, last = ctx.slice(tensor, 0, 3 * size, 1), ctx.slice(tensor, 3 * size, None, 1)
        return ctx.concat(first, none, last, axis=1)

    def split_array(array: np.ndarray) -> np.ndarray:
        zeros = np.zeros_like(array[:, : 2 * size])
        return np.concatenate([array[:, : 3 * size], zeros, array[:, 3 * size :]], 1)

    return _changed(ctx, b, split_array, split)


def _changed(
    ctx: ExportContext, weights: Tensor, of_array: Callable[[np.ndarray], np.ndarray],
    of_tensor: Callable[[Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """Weights after a function that moves elements: a constant stays one."""
    if weights.constant is None:
        return of_tensor(weights)
    array = constant_value(weights.constant).reshape(weights.constant.shape)
    return ctx.constant(of_array(array), weights.element)


def _blank(ctx: ExportContext, data: Tensor, index: Tensor | None) -> Tensor:
    if index is not None:
        return ctx.reshape(as_i64(ctx, index), [])
    # The size of the last axis, a scalar.
    return ctx.emit("Sub", ctx.reshape(ctx.slice(ctx.shape_of(data), -1, None, 0), []), ctx.constant(1))


def _steps_below(ctx: ExportContext, like: Tensor, lengths: Tensor) -> Tensor:
    """Whether a step (batch, steps) is before the end of its sequence; ``like`` has these sizes."""
    steps = ctx.reshape(ctx.slice(ctx.shape_of(like), 1, 2, 0), [])
    number = ctx.emit("Range", ctx.constant(0), steps, ctx.constant(1))
    return ctx.emit("Less", number, ctx.unsqueeze(as_i64(ctx, lengths), 1))


def _changes(ctx: ExportContext, values: Tensor) -> Tensor:
    """Whether a value (batch, steps) differs from the one before it; the first one of a row does."""
    rest = ctx.emit("Equal", ctx.slice(values, 1, None, 1), ctx.slice(values, 0, -1, 1))
    same = ctx.emit("Pad", ctx.cast(rest, I64), ctx.ints(0, 1, 0, 0))
    return ctx.emit("Equal", same, ctx.constant(0))


def _to_front(ctx: ExportContext, values: Tensor, keep: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """The kept values of each row (batch, steps) at its front, padded with ``fill``, and their number (batch)."""
    kept = ctx.cast(keep, I64)
    sizes = ctx.shape_of(values)
    # Values that are left out go to a column that is cut off.
    last = ctx.slice(sizes, 1, 2, 0)
    places = ctx.where(keep, ctx.emit("Sub", ctx.emit("CumSum", kept, ctx.constant(1)), ctx.ints(1)), last)
    wide = ctx.emit("Expand", ctx.constant(fill), ctx.emit("Add", sizes, ctx.ints(0, 1)))
    moved = ctx.emit("ScatterElements", wide, places, values, axis=1)
    return ctx.slice(moved, 0, -1, 1), ctx.reduce("ReduceSum", kept, [1])


def _decoded(ctx: ExportContext, classes: Tensor, valid: Tensor, blank: Tensor, merge: bool) -> tuple[Tensor, Tensor]:
    keep = ctx.emit("And", valid, ctx.emit("Not", ctx.emit("Equal", classes, blank)))
    if merge:
        keep = ctx.emit("And", keep, _changes(ctx, classes))
    return _to_front(ctx, classes, keep, -1)


@composed("CTCGreedyDecoder")
def ctc_greedy_decoder(ctx: ExportContext, data: Tensor, sequence_mask: Tensor, *, ctc_merge_repeated: bool) -> Tensor:
    """ArgMax, comparisons with the class before and the blank, CumSum of the mask, ScatterElements."""
    classes = ctx.transpose(ctx.emit("ArgMax", data, axis=2, keepdims=0), [1, 0])
    ended = ctx.cast(ctx.emit("Equal", sequence_mask, ctx.scalar(0, sequence_mask)), I64)
    valid = ctx.emit("Equal", ctx.emit("CumSum", ended, ctx.constant(0)), ctx.constant(0))
    decoded, _ = _decoded(ctx, classes, ctx.transpose(valid, [1, 0]), _blank(ctx, data, None), ctc_merge_repeated)
    return ctx.unsqueeze(ctx.cast(decoded, data.element), 2, 3)


@composed("CTCGreedyDecoderSeqLen")
def ctc_greedy_decoder_seq_len(
    ctx: ExportContext, data: Tensor, sequence_length: Tensor, blank_index: Tensor | None = None, *,
    merge_repeated: bool, **types: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """ArgMax, comparisons with the class before, the blank and the length, CumSum, ScatterElements."""
    classes = ctx.emit("ArgMax", data, axis=2, keepdims=0)
    valid = _steps_below(ctx, data, sequence_length)
    return _decoded(ctx, classes, valid, _blank(ctx, data, blank_index), merge_repeated)


@composed("CTCLoss")
def ctc_loss(
    ctx: ExportContext, logits: Tensor, logit_length: Tensor, labels: Tensor, label_length: Tensor,
    blank_index: Tensor | None = None, *, preprocess_collapse_repeated: bool, ctc_merge_repeated: bool, unique: bool,
) -> Tensor:  # fmt: skip
    """LogSoftmax in f64, and a Loop over the steps, which adds the probabilities of paths by ReduceLogSumExp."""
    targets = as_i64(ctx, labels)
    keep = _steps_below(ctx, targets, label_length)
    if unique:
        # Whether no value before is equal, of (batch, steps).
        same = ctx.cast(ctx.emit("Equal", ctx.unsqueeze(targets, 2), ctx.unsqueeze(targets, 1)), I64)
        before = ctx.emit("Trilu", same, ctx.constant(-1), upper=0)
        keep = ctx.emit("And", keep, ctx.emit("Equal", ctx.reduce("ReduceSum", before, [2]), ctx.constant(0)))
    elif preprocess_collapse_repeated:
        keep = ctx.emit("And", keep, _changes(ctx, targets))
    targets, counts = _to_front(ctx, targets, keep, 0)
    scores = ctx.emit("LogSoftmax", ctx.cast(logits, F64), axis=2)
    states = _with_blanks(ctx, targets, _blank(ctx, logits, blank_index))
    forward = _forward(ctx, scores, as_i64(ctx, logit_length), states, ctc_merge_repeated)
    return ctx.cast(_minus_log_probability(ctx, forward, counts), logits.element)


def _with_blanks(ctx: ExportContext, labels: Tensor, blank: Tensor) -> Tensor:
    """Labels (batch, n) with blanks before, between and after them: (batch, 2 * n + 1)."""
    blanks = ctx.emit("Expand", blank, ctx.emit("Shape", labels))
    pairs = ctx.emit("Concat", ctx.unsqueeze(blanks, 2), ctx.unsqueeze(labels, 2), axis=2)
    flat = ctx.emit(
        "Reshape",
        pairs,
        ctx.emit("Mul", ctx.emit("Shape", labels), ctx.ints(1, 2)),
        allowzero=1 if ctx.opset >= 14 else None,
    )
    first = ctx.emit("Expand", blank, ctx.concat(_batch(ctx, labels), ctx.ints(1)))
    return ctx.emit("Concat", flat, first, axis=1)


def _forward(ctx: ExportContext, scores: Tensor, lengths: Tensor, states: Tensor, merge: bool) -> Tensor:
    """The logarithms of the probabilities of all paths that end in each state (batch, 2 + states).

    Two states come in front, which a path that has begun cannot be in; the second is that before the first step.
    """
    never, zero = ctx.constant(-np.inf, F64), ctx.constant(0, F64)
    count = ctx.reshape(ctx.slice(ctx.emit("Shape", states), 1, 2, 0), [])
    number = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
    is_label = ctx.emit("Equal", ctx.emit("Mod", number, ctx.constant(2)), ctx.constant(1))
    stays = zero if merge else ctx.where(is_label, never, zero)
    may_skip = ctx.emit("And", is_label, ctx.emit("Greater", number, ctx.constant(1)))
    if merge:
        shifted = ctx.emit("Pad", states, ctx.ints(0, 2, 0, -2))
        may_skip = ctx.emit("And", may_skip, ctx.emit("Not", ctx.emit("Equal", states, shifted)))
    skips = ctx.where(may_skip, zero, never)
    lead = ctx.emit("Pad", ctx.emit("Expand", zero, ctx.concat(_batch(ctx, states), ctx.ints(1))),
                    ctx.ints(0, 1, 0, 0), never)  # fmt: skip
    rest = ctx.emit("Expand", never, ctx.emit("Shape", states))
    start = ctx.emit("Concat", lead, rest, axis=1)
    steps = ctx.emit("ReduceMax", ctx.emit("Concat", lengths, ctx.ints(0), axis=0), keepdims=0)

    def step(inner: ExportContext, t: Tensor, forward: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        ways = [
            inner.emit("Add", inner.slice(forward, 2, None, 1), stays),
            inner.slice(forward, 1, -1, 1),
            # A path begins with the first blank, or skips it.
            inner.emit("Add", inner.slice(forward, 0, -2, 1), skips),
        ]
        first = inner.where(inner.emit("Equal", t, inner.constant(0)), inner.slice(forward, 1, 2, 1), never)
        ways.append(inner.where(inner.emit("Equal", number, inner.constant(1)), first, never))
        together = inner.emit("Concat", *(inner.unsqueeze(_like(inner, way, states), 0) for way in ways), axis=0)
        own = inner.emit("GatherElements", inner.emit("Gather", scores, t, axis=1), states, axis=1)
        moved = inner.emit("Add", inner.reduce("ReduceLogSumExp", together, [0]), own)
        after = inner.emit("Pad", moved, inner.ints(0, 2, 0, 0), never)
        is_running = inner.unsqueeze(inner.emit("Greater", lengths, t), 1)
        return [inner.where(is_running, after, forward)], []

    (found,), _ = loop(ctx, steps, [start], step)
    return found


def _batch(ctx: ExportContext, data: Tensor) -> Tensor:
    return ctx.slice(ctx.emit("Shape", data), 0, 1, 0)


def _like(ctx: ExportContext, data: Tensor, other: Tensor) -> Tensor:
    return ctx.emit("Expand", data, ctx.emit("Shape", other))


def _minus_log_probability(ctx: ExportContext, forward: Tensor, counts: Tensor) -> Tensor:
    """A path ends with the last label or the blank after it; before any step it is in the second state."""
    count = ctx.unsqueeze(counts, 1)
    last = ctx.emit("Add", ctx.emit("Mul", count, ctx.ints(2)), ctx.ints(1))
    places = ctx.emit("Concat", ctx.emit("Add", last, ctx.ints(1)), last, axis=1)
    ends = ctx.emit("GatherElements", forward, places, axis=1)
    return ctx.emit("Neg", ctx.reduce("ReduceLogSumExp", ends, [1]))
