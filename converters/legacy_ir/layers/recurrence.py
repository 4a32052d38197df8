"""Cells and sequences: the weights are one blob, [gates * H, D + H], the part of the input first.

Gates: F, I, C, O of LSTM and Z, R, H of GRU, as in the operations.
"""

from __future__ import annotations

from typing import Any, Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.attributes import Floats, Positive, parser_of

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": "sigmoid,tanh,tanh", "GRU": "sigmoid,tanh", "RNN": "tanh"}
_VERSIONS = {"LSTM": 4, "GRU": 3, "RNN": 1}


_FLOATS = parser_of(Floats)[0]


@translates("LSTMCell")
def lstm_cell(
    layer: Layer, x: Value, h: Value, c: Value, *, hidden_size: Positive, clip: float = 0.0
) -> tuple[Value, ...]:
    """Outputs: the new hidden state and the new cell state."""
    return _cell(layer, "LSTM", x, [h, c], hidden_size, clip=clip)


@translates("GRUCell")
def gru_cell(
    layer: Layer, x: Value, h: Value, *, hidden_size: Positive, clip: float = 0.0, linear_before_reset: bool = False
) -> tuple[Value, ...]:
    """Output: the new hidden state."""
    return _cell(layer, "GRU", x, [h], hidden_size, clip=clip, linear_before_reset=linear_before_reset)


@translates("RNNCell")
def rnn_cell(layer: Layer, x: Value, h: Value, *, hidden_size: Positive, clip: float = 0.0) -> tuple[Value, ...]:
    """Output: the new hidden state."""
    return _cell(layer, "RNN", x, [h], hidden_size, clip=clip)


def _activations(layer: Layer, kind: str) -> dict[str, Any]:
    """The names of the activations and their numbers, which some versions spell otherwise."""
    names = layer.attributes.get("activations") or _ACTIVATIONS[kind]
    found: dict[str, Any] = {"activations": tuple(name.strip().lower() for name in names.split(","))}
    for key in ("alpha", "beta"):
        text = layer.attributes.get(f"activations_{key}") or layer.attributes.get(f"activation_{key}") or ""
        try:
            found[f"activations_{key}"] = _FLOATS(text)
        except OpError as error:
            raise WrongAttributeError(f"activations_{key}: {error}") from None
    return found


def _cell(layer: Layer, kind: str, x: Value, states: list[Value], hidden: int, **options: Any) -> tuple[Value, ...]:
    x = layer.f32(x)
    weights = _weights(layer, kind, layer.shape(x)[-1], hidden, lbr=options.get("linear_before_reset", False))
    return layer.outputs(
        f"{kind}Cell", x, *(layer.f32(state) for state in states), *weights, version=_VERSIONS[kind],
        hidden_size=hidden, **_activations(layer, kind), **options,
    )  # fmt: skip


def _weights(layer: Layer, kind: str, size: int, hidden: int, *, lbr: bool) -> list[Value]:
    """W [gates * H, D], R [gates * H, H] and B; without biases B is 0."""
    rows = _GATES[kind] * hidden
    both = layer.blob("weights", (rows, size + hidden))
    parts = layer.outputs("VariadicSplit", both, layer.constant(1, I64), layer.constant([size, hidden], I64), version=1)
    length = rows + hidden if lbr else rows
    biases = layer.blob("biases", (length,)) if layer.has_blob("biases") else layer.filled(0, (length,), F32)
    return [*parts, biases]


@translates("LSTMSequence", "GRUSequence", "RNNSequence")
def sequence(
    layer: Layer, x: Value, h: Value | None = None, c: Value | None = None, lengths: Value | None = None, *,
    hidden_size: Positive, axis: int = 1, direction: Literal["Forward", "Backward"] = "Forward", clip: float = 0.0,
    linear_before_reset: bool = False,
) -> tuple[Value, ...]:  # fmt: skip
    """Outputs: the hidden states of all steps, at their positions in time, and the last states.

    The input is [N, T, D] or, with axis 0, [T, N, D]; states are [N, H].
    """
    kind = layer.node.type.upper().removesuffix("SEQUENCE")
    if axis not in (0, 1):
        raise WrongAttributeError(f"axis {axis} is neither 0 nor 1")
    x = _swapped(layer, layer.f32(x), axis)
    check(layer.rank(x) == 3, f"the input has rank {layer.rank(x)}, expected 3")
    batch, steps, size = layer.shape(x)
    states = [h, c] if kind == "LSTM" else [h]
    given = [_state(layer, state, batch, hidden_size) for state in states]
    check(lengths is None or kind == "LSTM", "the layer has an input too many")
    count = layer.filled(steps, (batch,), I32) if lengths is None else layer.i64(lengths)
    weights = _weights(layer, kind, size, hidden_size, lbr=linear_before_reset)
    more = {"linear_before_reset": linear_before_reset} if kind == "GRU" else {}
    axes = layer.constant([0], I64)
    outputs = layer.outputs(
        f"{kind}Sequence", x, *given, count, *(layer.emit("Unsqueeze", each, axes, version=1) for each in weights),
        version=5, hidden_size=hidden_size, direction={"Forward": "forward", "Backward": "reverse"}[direction],
        clip=clip, **_activations(layer, kind), **more,
    )  # fmt: skip
    squeezed = [layer.emit("Squeeze", each, layer.constant([1], I64), version=1) for each in outputs]
    return (_swapped(layer, squeezed[0], axis), *squeezed[1:])


def _swapped(layer: Layer, value: Value, axis: int) -> Value:
    """The value with time on axis 1 in place of ``axis``, or back."""
    if axis == 1:
        return value
    return layer.emit("Transpose", value, layer.constant([1, 0, 2], I64), version=1)


def _state(layer: Layer, state: Value | None, batch: int, hidden: int) -> Value:
    """A state as [N, 1, H]; 0 where it is not given."""
    if state is None:
        return layer.filled(0, (batch, 1, hidden), F32)
    return layer.reshaped(layer.f32(state), (batch, 1, hidden))
