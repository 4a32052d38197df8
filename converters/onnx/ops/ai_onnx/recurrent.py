"""LSTM, GRU and RNN over sequences: IR's sequence operations, or loops over time for options that IR lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from converters.onnx.algorithms.recurrent_cells import (
    Cell,
    Function,
    functions_of,
    gru_cell,
    loop_over_time,
    lstm_cell,
    rnn_cell,
)
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated
from converters.onnx.registry import translates
from irexec.dtypes.elements import F64
from irexec.errors import OpError
from irexec.ir.dims import may_equal, shape_text
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

Tensor3 = Annotated[Value, Rank(3)]

# Activations of IR's sequences; others need a loop. IR specifies HardSigmoid too, which OpenVINO cannot run.
_IN_IR = {"sigmoid", "tanh", "relu"}


@dataclass(frozen=True)
class Kind:
    """One of the three operators.

    Attributes:
        type: the operation of IR.
        gates: the index in ONNX of each gate of IR.
        functions: the default activations of one direction.
        cell: one time step, in single operations.
    """

    type: str
    gates: tuple[int, ...]
    functions: tuple[str, ...]
    cell: Cell


_LSTM = Kind("LSTMSequence", (2, 0, 3, 1), ("Sigmoid", "Tanh", "Tanh"), lstm_cell)
_GRU = Kind("GRUSequence", (0, 1, 2), ("Sigmoid", "Tanh"), gru_cell)
_RNN = Kind("RNNSequence", (0,), ("Tanh",), rnn_cell)


@dataclass(frozen=True, kw_only=True)
class RecurrentAttributes:
    """The attributes that RNN, GRU and LSTM share.

    ``output_sequence``, an attribute of opset 1, follows from the first output; opset 14 added ``layout``.
    """

    activation_alpha: list[float] | None = None
    activation_beta: list[float] | None = None
    activations: list[str] | None = None
    clip: float = 0.0
    direction: Literal["forward", "reverse", "bidirectional"] = "forward"
    hidden_size: int | None = None
    layout: int = 0
    output_sequence: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """Inputs and settings in IR's layout: batches first.

    Attributes:
        x: (B, T, I).
        lengths: (B); None if every sequence has length T.
        w, r, bias, peepholes: as in ONNX, one row per direction.
        states: (B, D, H) each.
        functions: the activations of each direction.
        clip, linear_before_reset, input_forget: as in ONNX.
    """

    kind: Kind
    x: Value
    lengths: Value | None
    w: Value
    r: Value
    bias: Value | None
    peepholes: Value | None
    states: tuple[Value, ...]
    direction: str
    functions: tuple[tuple[Function, ...], ...]
    hidden_size: int
    clip: float = 0.0
    linear_before_reset: bool = False
    input_forget: bool = False


@translates("RNN")
def rnn(
    ctx: TranslationContext, x: Tensor3, w: Tensor3, r: Tensor3, bias: Annotated[Value, Rank(2)] | None = None,
    sequence_lens: Annotated[Value, Rank(1)] | None = None, initial_h: Tensor3 | None = None, *,
    given: RecurrentAttributes,
) -> tuple[Value, ...]:  # fmt: skip
    return _translated(ctx, _RNN, x, w, r, bias, None, sequence_lens, (initial_h,), given)


@translates("GRU")
def gru(
    ctx: TranslationContext, x: Tensor3, w: Tensor3, r: Tensor3, bias: Annotated[Value, Rank(2)] | None = None,
    sequence_lens: Annotated[Value, Rank(1)] | None = None, initial_h: Tensor3 | None = None, *,
    given: RecurrentAttributes, linear_before_reset: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """Opset 3 added ``linear_before_reset``."""
    inputs = x, w, r, bias, None, sequence_lens, (initial_h,)
    return _translated(ctx, _GRU, *inputs, given, linear_before_reset=bool(linear_before_reset))


@translates("LSTM")
def lstm(
    ctx: TranslationContext, x: Tensor3, w: Tensor3, r: Tensor3, bias: Annotated[Value, Rank(2)] | None = None,
    sequence_lens: Annotated[Value, Rank(1)] | None = None, initial_h: Tensor3 | None = None,
    initial_c: Tensor3 | None = None, p: Annotated[Value, Rank(2)] | None = None, *, given: RecurrentAttributes,
    input_forget: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """Peepholes and a coupled forget gate need a loop over time."""
    inputs = x, w, r, bias, p, sequence_lens, (initial_h, initial_c)
    return _translated(ctx, _LSTM, *inputs, given, input_forget=bool(input_forget))


def _translated(
    ctx: TranslationContext, kind: Kind, x: Value, w: Value, r: Value, bias: Value | None, p: Value | None,
    lengths: Value | None, initial: Sequence[Value | None], given: RecurrentAttributes, *,
    linear_before_reset: bool = False, input_forget: bool = False,
) -> tuple[Value, ...]:  # fmt: skip
    direction, layout = given.direction, given.layout
    functions = functions_of(
        kind.functions, direction, given.activations, given.activation_alpha, given.activation_beta
    )
    size = ctx.sizes(r, "R")[-1] if given.hidden_size is None else given.hidden_size
    if not isinstance(size, int):
        raise OpError("hidden_size is not given, and not known from R")
    if size < 1:
        raise OpError(f"hidden_size is {size}, expected 1 or more")
    if layout not in (0, 1):
        raise OpError(f"layout is {layout}, expected 0 or 1")
    rows = len(kind.gates) * size
    expected = {"W": (w, (rows, None)), "R": (r, (rows, size)), "B": (bias, (2 * rows,)), "P": (p, (3 * size,))}
    for what, (weights, sizes) in expected.items():
        _check_weights(ctx, weights, what, (len(functions), *sizes))
    x = x if layout else ctx.transpose(x, [1, 0, 2])
    states = tuple(initial_state(ctx, state, x, len(functions), size, layout) for state in initial)
    y, *last = _directions(ctx, Network(
        kind, x, lengths, w, r, bias, p, states, direction, functions, size, given.clip, linear_before_reset,
        input_forget
    ))  # fmt: skip
    last_states = [zero_if_empty(ctx, state, lengths) for state in last]
    return (
        ctx.transpose(y, [0, 2, 1, 3] if layout else [2, 1, 0, 3]),
        *(state if layout else ctx.transpose(state, [1, 0, 2]) for state in last_states),
    )


def _check_weights(ctx: TranslationContext, weights: Value | None, what: str, expected: tuple[int | None, ...]) -> None:
    """Raise OpError unless the weights of all directions may have this shape; None is any size."""
    shape = None if weights is None else ctx.fact(weights).shape
    if shape is not None and not all(
        wanted is None or may_equal(size, wanted) for size, wanted in zip(shape, expected, strict=True)
    ):
        text = ", ".join("any" if size is None else str(size) for size in expected)
        raise OpError(f"{what} has the shape {shape_text(shape)}, expected [{text}]")


def initial_state(
    ctx: TranslationContext, state: Value | None, x: Value, directions: int, size: int, layout: int
) -> Value:
    """An initial state, (B, D, H); zeros unless given."""
    if state is not None:
        return state if layout else ctx.transpose(state, [1, 0, 2])
    batch = ctx.reshape(ctx.size(x, 0), [1])
    return ctx.full(ctx.constant(0, x), ctx.emit("Concat", batch, ctx.constant([directions, size]), axis=0))


def zero_if_empty(ctx: TranslationContext, state: Value, lengths: Value | None) -> Value:
    """The last state; 0 for an empty sequence, as in ONNX Runtime, where IR returns the initial state."""
    known = ctx.ints_if_known(lengths)
    if lengths is None or (known is not None and all(length > 0 for length in known)):
        return state
    some = ctx.unsqueeze(ctx.emit("Greater", lengths, ctx.constant(0, lengths)), [1, 2])
    return ctx.emit("Select", some, state, ctx.constant(0, state))


def _directions(ctx: TranslationContext, network: Network) -> tuple[Value, ...]:
    """Y (B, D, T, H) and the last states (B, D, H); one layer per direction if IR cannot express both in one."""
    alike = all(functions == network.functions[0] for functions in network.functions)
    in_ir = all(function.name in _IN_IR for functions in network.functions for function in functions)
    in_ir = in_ir and network.peepholes is None and not network.input_forget
    if in_ir and alike:
        return _sequence(ctx, network)
    directions = ["forward", "reverse"] if network.direction == "bidirectional" else [network.direction]
    results = []
    for i, direction in enumerate(directions):
        one = _one_direction(ctx, network, i, direction) if len(directions) > 1 else network
        results.append(_sequence(ctx, one) if in_ir else _loop(ctx, one))
    if len(directions) == 1:
        return results[0]
    return tuple(ctx.emit("Concat", *parts, axis=1) for parts in zip(*results, strict=True))


def _one_direction(ctx: TranslationContext, network: Network, i: int, direction: str) -> Network:
    def row(value: Value, axis: int = 0) -> Value:
        constant = ctx.builder.constant_array(value)
        if constant is not None:
            return ctx.constant(constant.take([i], axis), value)
        return ctx.emit("Slice", value, [i], [i + 1], [1], [axis])

    return replace(
        network, w=row(network.w), r=row(network.r), bias=None if network.bias is None else row(network.bias),
        peepholes=None if network.peepholes is None else row(network.peepholes), direction=direction,
        states=tuple(row(state, 1) for state in network.states), functions=(network.functions[i],),
    )  # fmt: skip


def _sequence(ctx: TranslationContext, one: Network) -> tuple[Value, ...]:
    batch = ctx.reshape(ctx.size(one.x, 0), [1])
    lengths = ctx.full(ctx.size(one.x, 1), batch) if one.lengths is None else one.lengths
    weights = [_rearranged(ctx, value, one.kind.gates) for value in (one.w, one.r)]
    functions = one.functions[0]
    more: dict[str, object] = {"linear_before_reset": one.linear_before_reset} if one.kind is _GRU else {}
    outputs: tuple[Value, ...] = ctx.emit(
        one.kind.type, one.x, *one.states, lengths, *weights, _bias(ctx, one), hidden_size=one.hidden_size,
        direction=one.direction, activations=tuple(function.name for function in functions), clip=one.clip, **more,
    )  # fmt: skip
    return outputs


def _rearranged(ctx: TranslationContext, value: Value, order: tuple[int, ...]) -> Value:
    """The gates of a tensor, along axis 1, in another order."""
    if order == tuple(range(len(order))):
        return value
    constant = ctx.builder.constant_array(value)
    if constant is not None and constant.ndim > 1 and constant.shape[1] % len(order) == 0:
        gates = np.split(constant, len(order), 1)
        return ctx.constant(np.concatenate([gates[i] for i in order], 1), value)
    parts = ctx.emit("Split", value, ctx.constant(1), num_splits=len(order))
    return ctx.emit("Concat", *(parts[i] for i in order), axis=1)


def _bias(ctx: TranslationContext, one: Network) -> Value:
    """The sum of the two biases of every gate; with linear_before_reset the candidate keeps both."""
    gates, size = len(one.kind.gates), one.hidden_size
    rows = len(one.functions) if one.direction == "bidirectional" else 1
    if one.bias is None:
        check_generated((rows, (gates + one.linear_before_reset) * size), F64, "the bias")
        return ctx.constant(np.zeros((rows, (gates + one.linear_before_reset) * size)), one.x)
    lengths = [2 * size, size] * 2 if one.linear_before_reset else [gates * size] * 2
    constant = ctx.builder.constant_array(one.bias)
    if constant is not None and constant.ndim == 2 and constant.shape[1] == sum(lengths):
        pieces = np.split(constant, np.cumsum(lengths)[:-1], 1)
        joined = pieces[0] + pieces[len(pieces) // 2]
        if one.linear_before_reset:
            joined = np.concatenate([joined, pieces[1], pieces[3]], 1)
        return _rearranged(ctx, ctx.constant(joined, one.bias), one.kind.gates)
    parts = ctx.emit("VariadicSplit", one.bias, ctx.constant(1), lengths)
    if one.linear_before_reset:
        return ctx.emit("Concat", ctx.emit("Add", parts[0], parts[2]), parts[1], parts[3], axis=1)
    return _rearranged(ctx, ctx.emit("Add", *parts), one.kind.gates)


def _loop(ctx: TranslationContext, one: Network) -> tuple[Value, ...]:
    """One direction as a loop over time, with the gates in ONNX's order."""
    in_onnx_order = replace(one, kind=replace(one.kind, gates=tuple(range(len(one.kind.gates)))))
    bias = _bias(ctx, in_onnx_order)
    last = None
    if one.linear_before_reset:
        bias, last = ctx.emit("VariadicSplit", bias, ctx.constant(1), [3 * one.hidden_size, one.hidden_size])
    rows, last_of_w = len(one.kind.gates) * one.hidden_size, ctx.sizes(one.w, "W")[-1]
    w = ctx.reshape(one.w, [1, rows, last_of_w if isinstance(last_of_w, int) else -1])
    r = ctx.reshape(one.r, [1, rows, one.hidden_size])
    product = ctx.emit("MatMul", one.x, ctx.emit("Squeeze", w, [0]), transpose_b=True)
    return loop_over_time(
        ctx, one.kind.cell, one.functions[0], product, one.lengths, r, bias, last, one.peepholes, one.states,
        reverse=one.direction == "reverse", clip=one.clip, input_forget=one.input_forget,
    )  # fmt: skip
