"""Recurrent cells and sequences as LSTM, GRU and RNN.

Names of sizes: B batch, T time steps, I inputs, S hidden units, D directions, G gates. IR has its tensors by batch and
the gates of LSTM as f, i, c, o; ONNX has them by time and by direction, and the gates as i, o, f, c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BF16, F16, F32, I32
from irexec.errors import check
from irexec.ir.constants import constant_value
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
    return _cell(ctx, "LSTM", x, [hidden, cell], w, r, b, attributes, peepholes)


def _is_odd(attributes: CellAttributes) -> bool:
    """Whether the activation f of the gates has f(-x) = 1 - f(x)."""
    name = (attributes.activations or LSTM_ACTIVATIONS)[0].strip().lower()
    return name == "sigmoid" or (name == "hardsigmoid" and (*attributes.activations_beta, 0.5)[0] == 0.5)


def _coupled(ctx: ExportContext, weights: Tensor, attributes: CellAttributes) -> Tensor:
    """Weights whose rows of the input gate, the second, are those of the forget gate, the first, negated."""
    size = attributes.hidden_size
    forget = ctx.slice(weights, 0, size, 0)
    return ctx.concat(forget, ctx.emit("Neg", forget), ctx.slice(weights, 2 * size, None, 0))


@exact("LSTMCell", since=4)
def lstm_cell_4(
    ctx: ExportContext, x: Tensor, hidden: Tensor, cell: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *,
    attributes: CellAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """LSTM of one time step."""
    return _cell(ctx, "LSTM", x, [hidden, cell], w, r, b, attributes)


@exact("GRUCell")
def gru_cell(
    ctx: ExportContext, x: Tensor, hidden: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *,
    attributes: GRUCellAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """GRU of one time step."""
    options = {"linear_before_reset": int(attributes.linear_before_reset)}
    return _cell(ctx, "GRU", x, [hidden], w, r, b, attributes, options=options)


@exact("RNNCell")
def rnn_cell(
    ctx: ExportContext, x: Tensor, hidden: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *,
    attributes: CellAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """RNN of one time step."""
    return _cell(ctx, "RNN", x, [hidden], w, r, b, attributes)


@exact("LSTMSequence")
def lstm_sequence(
    ctx: ExportContext, x: Tensor, hidden: Tensor, cell: Tensor, lengths: Tensor, w: Tensor, r: Tensor, b: Tensor, *,
    attributes: SequenceAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """LSTM between Transposes."""
    return _sequence(ctx, "LSTM", x, [hidden, cell], lengths, w, r, b, attributes)


@exact("GRUSequence")
def gru_sequence(
    ctx: ExportContext, x: Tensor, hidden: Tensor, lengths: Tensor, w: Tensor, r: Tensor, b: Tensor, *,
    attributes: GRUSequenceAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """GRU between Transposes."""
    options = {"linear_before_reset": int(attributes.linear_before_reset)}
    return _sequence(ctx, "GRU", x, [hidden], lengths, w, r, b, attributes, options)


@exact("RNNSequence")
def rnn_sequence(
    ctx: ExportContext, x: Tensor, hidden: Tensor, lengths: Tensor, w: Tensor, r: Tensor, b: Tensor, *,
    attributes: SequenceAttributes,
) -> tuple[Tensor, ...]:  # fmt: skip
    """RNN between Transposes."""
    return _sequence(ctx, "RNN", x, [hidden], lengths, w, r, b, attributes)


def _cell(
    ctx: ExportContext, type: str, x: Tensor, states: Sequence[Tensor], w: Tensor, r: Tensor, b: Tensor | None,
    attributes: CellAttributes, peepholes: Tensor | None = None, options: dict[str, Any] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The states [B, S] after one step."""
    x, w, r, *states = (_widened(ctx, tensor) for tensor in (x, w, r, *states))
    b = b if b is None else _widened(ctx, b)
    x, *states = (ctx.unsqueeze(tensor, 0) for tensor in (x, *states))
    w, r = (ctx.unsqueeze(_lstm_gates(ctx, type, tensor, 0, attributes.hidden_size), 0) for tensor in (w, r))
    bias = None if b is None else _bias(ctx, type, ctx.unsqueeze(b, 0), attributes)
    made = _emitted(ctx, type, 1, (x, w, r, bias), None, states, attributes, "forward", peepholes, options)
    return tuple(ctx.squeeze(state, 0) for state in made[1:])


def _sequence(
    ctx: ExportContext, type: str, x: Tensor, states: Sequence[Tensor], lengths: Tensor, w: Tensor, r: Tensor,
    b: Tensor, attributes: SequenceAttributes, options: dict[str, Any] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Y [B, D, T, S] and the final states [B, D, S]."""
    x, w, r, b, *states = (_widened(ctx, tensor) for tensor in (x, w, r, b, *states))
    inputs = (
        ctx.transpose(x, [1, 0, 2]), *(_lstm_gates(ctx, type, tensor, 1, attributes.hidden_size) for tensor in (w, r)),
        _bias(ctx, type, b, attributes),
    )  # fmt: skip
    by_direction = [ctx.transpose(state, [1, 0, 2]) for state in states]
    count = len(attributes.reversed_directions)
    y, *final = _emitted(ctx, type, count, inputs, _lengths(ctx, x, lengths), by_direction, attributes,
                         attributes.direction, None, options)  # fmt: skip
    if lengths.value is None or not (lengths.value > 0).all():
        # ONNX Runtime gives zeros as the final states of a sequence without steps.
        ran = ctx.unsqueeze(ctx.emit("Greater", lengths, ctx.scalar(0, lengths)), 0, 2)
        final = [ctx.where(ran, after, before) for after, before in zip(final, by_direction, strict=True)]
    return ctx.transpose(y, [2, 1, 0, 3]), *(ctx.transpose(state, [1, 0, 2]) for state in final)


def _lengths(ctx: ExportContext, x: Tensor, lengths: Tensor) -> Tensor | None:
    """The lengths as ONNX has them, none of which exceeds the number of steps; None if each is that number."""
    steps = x.require_shape("the data")[1]
    if isinstance(steps, int) and lengths.value is not None and (lengths.value >= steps).all():
        return None
    limit = ctx.ints(steps) if isinstance(steps, int) else ctx.slice(ctx.emit("Shape", x), 1, 2, 0)
    return ctx.emit("Min", ctx.cast(lengths, I32), ctx.cast(limit, I32))


def _emitted(
    ctx: ExportContext, type: str, directions: int, inputs: tuple[Tensor | None, ...], lengths: Tensor | None,
    states: Sequence[Tensor], attributes: CellAttributes, direction: str, peepholes: Tensor | None,
    options: dict[str, Any] | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Y and the final states."""
    tail = [*states, peepholes] if peepholes is not None else states
    made: tuple[Tensor, ...] = ctx.emit_all(
        type, 1 + len(states), *inputs, lengths, *tail,
        hidden_size=attributes.hidden_size, direction=direction, **_functions(type, attributes, directions),
        clip=attributes.clip if 0 < attributes.clip < np.inf else None, **(options or {}),
    )  # fmt: skip
    return made


def _widened(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """ONNX Runtime has no kernels in f16 and bf16: they are computed in f32."""
    return ctx.cast(tensor, F32) if tensor.element in (F16, BF16) else tensor


def _functions(type: str, attributes: CellAttributes, directions: int) -> dict[str, Any]:
    """The activations of every direction, with the parameters of those that have some; none if they are the default."""
    default: Names = {"LSTM": LSTM_ACTIVATIONS, "GRU": GRU_ACTIVATIONS, "RNN": RNN_ACTIVATIONS}[type]
    names = [name.strip().lower() for name in attributes.activations[: len(default)]]
    if not names or tuple(names) == default:
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
    directions = len(attributes.reversed_directions) if isinstance(attributes, SequenceAttributes) else 1
    if not (isinstance(attributes, GRUCellAttributes) and attributes.linear_before_reset):
        count = {"LSTM": 4, "GRU": 3, "RNN": 1}[type] * size
        zeros = ctx.constant(np.zeros((directions, count)), b.element)
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
