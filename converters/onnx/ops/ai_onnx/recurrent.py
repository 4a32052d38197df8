"""LSTM, GRU and RNN over sequences: IR's sequences, or loops over time where these cannot say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from converters.onnx.algorithms.recurrent_cells import Cell, Function, functions_of, gru_cell, lstm_cell, rnn_cell, unrolled
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value

# What IR's sequences can compute; the others take a loop. The specification has HardSigmoid too, but OpenVINO cannot run it.
_IN_IR = {"sigmoid", "tanh", "relu"}


@dataclass(frozen=True)
class Kind:
    """One of the three operators.

    Attributes:
        type: the operation of IR.
        gates: for each gate of IR its place in ONNX.
        functions: the activations of one direction, unless told.
        cell: one step of it, written out.
    """

    type: str
    gates: tuple[int, ...]
    functions: tuple[str, ...]
    cell: Cell


_LSTM = Kind("LSTMSequence", (2, 0, 3, 1), ("Sigmoid", "Tanh", "Tanh"), lstm_cell)
_GRU = Kind("GRUSequence", (0, 1, 2), ("Sigmoid", "Tanh"), gru_cell)
_RNN = Kind("RNNSequence", (0,), ("Tanh",), rnn_cell)


@dataclass(frozen=True, eq=False)
class Network:
    """Inputs and settings in IR's layout: batches first.

    Attributes:
        x: (B, T, I).
        lengths: (B) if they are given.
        w, r, bias, peepholes: as ONNX has them, one row for each direction.
        states: (B, D, H) each.
        functions: for each direction.
        more: clip, linear_before_reset, input_forget.
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
    b: Context, x: Value, w: Value, r: Value, bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    *, activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None, activations: list[str] | None = None,
    clip: float = 0.0, direction: str = "forward", hidden_size: int | None = None, layout: int = 0, output_sequence: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """``output_sequence`` of opset 1 says that the first output is wanted, ``layout`` came in opset 14."""
    functions = functions_of(_RNN.functions, direction, activations, activation_alpha, activation_beta)
    return _translated(b, _RNN, x, w, r, bias, None, sequence_lens, (initial_h,), direction, functions, hidden_size, layout, clip=clip)


@translates("GRU")
def gru(
    b: Context, x: Value, w: Value, r: Value, bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    *, activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None, activations: list[str] | None = None,
    clip: float = 0.0, direction: str = "forward", hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """``linear_before_reset`` came in opset 3; the rest as for RNN."""
    functions = functions_of(_GRU.functions, direction, activations, activation_alpha, activation_beta)
    return _translated(
        b, _GRU, x, w, r, bias, None, sequence_lens, (initial_h,), direction, functions, hidden_size, layout, clip=clip,
        linear_before_reset=bool(linear_before_reset),
    )  # fmt: skip


@translates("LSTM")
def lstm(
    b: Context, x: Value, w: Value, r: Value, bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    initial_c: Value | None = None, p: Value | None = None, *, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, activations: list[str] | None = None, clip: float = 0.0, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0, layout: int = 0, output_sequence: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """As for RNN; with peepholes or a coupled forget gate it is a loop over time."""
    functions = functions_of(_LSTM.functions, direction, activations, activation_alpha, activation_beta)
    return _translated(
        b, _LSTM, x, w, r, bias, p, sequence_lens, (initial_h, initial_c), direction, functions, hidden_size, layout, clip=clip,
        input_forget=bool(input_forget),
    )  # fmt: skip


def _translated(
    b: Context, kind: Kind, x: Value, w: Value, r: Value, bias: Value | None, p: Value | None, lengths: Value | None,
    initial: Sequence[Value | None], direction: str, functions: tuple[tuple[Function, ...], ...], hidden_size: int | None, layout: int, *,
    clip: float, linear_before_reset: bool = False, input_forget: bool = False,
) -> tuple[Value, ...]:  # fmt: skip
    size = b.sizes(r, "R")[-1] if hidden_size is None else hidden_size
    if not isinstance(size, int):
        raise OpError("hidden_size is not given, and R does not tell it")
    if layout not in (0, 1):
        raise OpError(f"layout is {layout}, expected 0 or 1")
    x = x if layout else b.transpose(x, [1, 0, 2])
    states = tuple(_state(b, state, x, len(functions), size, layout) for state in initial)
    whole = Network(
        kind, x, lengths, w, r, bias, p, states, direction, functions, size, clip, linear_before_reset, input_forget
    )  # fmt: skip
    y, *last = _directions(b, whole)
    ends = [_where_any(b, state, lengths) for state in last]
    return (b.transpose(y, [0, 2, 1, 3] if layout else [2, 1, 0, 3]), *(end if layout else b.transpose(end, [1, 0, 2]) for end in ends))


def _state(b: Context, state: Value | None, x: Value, directions: int, size: int, layout: int) -> Value:
    """An initial state as (B, D, H); zeros where none is given."""
    if state is not None:
        return state if layout else b.transpose(state, [1, 0, 2])
    batch = b.reshape(b.size(x, 0), [1])
    return b.full(b.constant(0, x), b.emit("Concat", batch, b.constant([directions, size]), axis=0))


def _where_any(b: Context, state: Value, lengths: Value | None) -> Value:
    """After no step at all ONNX Runtime gives 0, where IR gives the initial state."""
    known = b.ints_if_known(lengths)
    if lengths is None or (known is not None and all(length > 0 for length in known)):
        return state
    some = b.unsqueeze(b.emit("Greater", lengths, b.constant(0, lengths)), [1, 2])
    return b.emit("Select", some, state, b.constant(0, state))


def _directions(b: Context, whole: Network) -> tuple[Value, ...]:
    """Y (B, D, T, H) and the last states (B, D, H); each direction on its own where IR cannot have both in one."""
    alike = all(functions == whole.functions[0] for functions in whole.functions)
    in_ir = all(function.name in _IN_IR for functions in whole.functions for function in functions)
    in_ir = in_ir and whole.peepholes is None and not whole.input_forget
    if in_ir and alike:
        return _sequence(b, whole)
    ways = ["forward", "reverse"] if whole.direction == "bidirectional" else [whole.direction]
    results = []
    for i, way in enumerate(ways):
        one = _one_direction(b, whole, i, way) if len(ways) > 1 else whole
        results.append(_sequence(b, one) if in_ir else _loop(b, one))
    return results[0] if len(ways) == 1 else tuple(b.emit("Concat", *parts, axis=1) for parts in zip(*results, strict=True))


def _one_direction(b: Context, whole: Network, i: int, way: str) -> Network:
    def row(value: Value, axis: int = 0) -> Value:
        constant = b.builder.constant_array(value)
        if constant is not None:
            return b.constant(constant.take([i], axis), value)
        return b.emit("Slice", value, [i], [i + 1], [1], [axis])

    return replace(
        whole, w=row(whole.w), r=row(whole.r), bias=None if whole.bias is None else row(whole.bias),
        peepholes=None if whole.peepholes is None else row(whole.peepholes), states=tuple(row(state, 1) for state in whole.states),
        direction=way, functions=(whole.functions[i],),
    )  # fmt: skip


def _sequence(b: Context, one: Network) -> tuple[Value, ...]:
    batch = b.reshape(b.size(one.x, 0), [1])
    lengths = b.full(b.size(one.x, 1), batch) if one.lengths is None else one.lengths
    weights = [_rearranged(b, value, one.kind.gates) for value in (one.w, one.r)]
    functions = one.functions[0]
    more: dict[str, object] = {"linear_before_reset": one.linear_before_reset} if one.kind is _GRU else {}
    outputs: tuple[Value, ...] = b.emit(
        one.kind.type, one.x, *one.states, lengths, *weights, _bias(b, one), hidden_size=one.hidden_size, direction=one.direction,
        activations=tuple(function.name for function in functions), clip=one.clip, **more,
    )  # fmt: skip
    return outputs


def _rearranged(b: Context, value: Value, order: tuple[int, ...]) -> Value:
    """The gates of a tensor along axis 1 in another order."""
    if order == tuple(range(len(order))):
        return value
    constant = b.builder.constant_array(value)
    if constant is not None and constant.ndim > 1 and constant.shape[1] % len(order) == 0:
        gates = np.split(constant, len(order), 1)
        return b.constant(np.concatenate([gates[i] for i in order], 1), value)
    parts = b.emit("Split", value, b.constant(1), num_splits=len(order))
    return b.emit("Concat", *(parts[i] for i in order), axis=1)


def _bias(b: Context, one: Network) -> Value:
    """The two biases of every gate as one; those of the candidate stay two if its reset gate comes between them."""
    gates, size = len(one.kind.gates), one.hidden_size
    rows = len(one.functions) if one.direction == "bidirectional" else 1
    if one.bias is None:
        return b.constant(np.zeros((rows, (gates + one.linear_before_reset) * size)), one.x)
    lengths = [2 * size, size] * 2 if one.linear_before_reset else [gates * size] * 2
    constant = b.builder.constant_array(one.bias)
    if constant is not None and constant.ndim == 2 and constant.shape[1] == sum(lengths):
        cut = np.split(constant, np.cumsum(lengths)[:-1], 1)
        joined = np.concatenate([cut[0] + cut[2], cut[1], cut[3]], 1) if one.linear_before_reset else cut[0] + cut[1]
        return _rearranged(b, b.constant(joined, one.bias), one.kind.gates)
    parts = b.emit("VariadicSplit", one.bias, b.constant(1), lengths)
    if one.linear_before_reset:
        return b.emit("Concat", b.emit("Add", parts[0], parts[2]), parts[1], parts[3], axis=1)
    return _rearranged(b, b.emit("Add", *parts), one.kind.gates)


def _loop(b: Context, one: Network) -> tuple[Value, ...]:
    """One direction as a loop over time; the gates stay in ONNX's order."""
    straight = replace(one, kind=replace(one.kind, gates=tuple(range(len(one.kind.gates)))))
    bias = _bias(b, straight)
    last = None
    if one.linear_before_reset:
        bias, last = b.emit("VariadicSplit", bias, b.constant(1), [3 * one.hidden_size, one.hidden_size])
    return unrolled(
        b, one.kind.cell, one.functions[0], one.x, one.lengths, one.w, one.r, bias, last, one.peepholes, one.states,
        reverse=one.direction == "reverse", clip=one.clip, input_forget=one.input_forget,
    )  # fmt: skip
