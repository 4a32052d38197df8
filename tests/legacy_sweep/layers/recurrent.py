"""Cells, sequences, loops and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network, Port
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _blobs(net: Network, kind: str, hidden: int, features: int, lbr: bool) -> dict[str, np.ndarray]:
    gates = GATES[kind]
    biases = hidden * (gates + (1 if lbr else 0))
    return {
        "weights": values(net, (gates * hidden, features + hidden), -0.6, 0.6), "biases": values(net, (biases,), -0.5, 0.5),
    }  # fmt: skip


def _attributes(net: Network, kind: str, hidden: int) -> tuple[dict[str, Any], bool]:
    """The attributes of a cell, and whether a GRU's reset gate applies after the product."""
    data: dict[str, Any] = {"hidden_size": hidden}
    lbr = kind == "GRU" and chance(net)
    if lbr:
        data["linear_before_reset"] = 1
    if chance(net, 0.2):
        data["clip"] = 0.5
    if kind == "RNN" and chance(net):
        data["activations"] = pick(net, "sigmoid", "relu", "tanh")
    elif chance(net, 0.3):
        data["activations"] = {"LSTM": "sigmoid,tanh,tanh", "GRU": "sigmoid,tanh", "RNN": "tanh"}[kind]
    return data, lbr


def _cell(net: Network, kind: str) -> None:
    batch, features, hidden = shape_of(net, 3, 1, 4)
    data, lbr = _attributes(net, kind, hidden)
    states = 2 if kind == "LSTM" else 1
    inputs = [net.input(values(net, (batch, features)))]
    inputs += [net.input(values(net, (batch, hidden), -1, 1)) for _ in range(states)]
    net.layer(f"{kind}Cell", inputs, [(batch, hidden)] * states, data, _blobs(net, kind, hidden, features, lbr))


def _sequence(net: Network, kind: str) -> None:
    batch, steps, features, hidden = shape_of(net, 4, 1, 4)
    data, lbr = _attributes(net, kind, hidden)
    axis = size(net, 0, 1)
    data |= {"axis": axis, "direction": pick(net, "Forward", "Backward")}
    states = 2 if kind == "LSTM" else 1

    def ordered(last: int) -> tuple[int, ...]:
        return (batch, steps, last) if axis else (steps, batch, last)

    inputs = [net.input(values(net, ordered(features)))]
    inputs += [net.input(values(net, (batch, hidden), -1, 1)) for _ in range(states)]
    outputs = [ordered(hidden), *[(batch, hidden)] * states]
    net.layer(f"{kind}Sequence", inputs, outputs, data, _blobs(net, kind, hidden, features, lbr))


@generates("LSTMCell", versions=RECENT)
def lstm_cell(net: Network) -> None:
    _cell(net, "LSTM")


@generates("GRUCell", versions=RECENT)
def gru_cell(net: Network) -> None:
    _cell(net, "GRU")


@generates("RNNCell", versions=RECENT)
def rnn_cell(net: Network) -> None:
    _cell(net, "RNN")


@generates("LSTMSequence", versions=RECENT)
def lstm_sequence(net: Network) -> None:
    _sequence(net, "LSTM")


@generates("GRUSequence", versions=RECENT)
def gru_sequence(net: Network) -> None:
    _sequence(net, "GRU")


@generates("RNNSequence", versions=RECENT)
def rnn_sequence(net: Network) -> None:
    _sequence(net, "RNN")


@generates("TensorIterator", versions=RECENT)
def tensor_iterator(net: Network) -> None:
    batch, steps, features, hidden = shape_of(net, 4, 1, 4)
    axis, backward = size(net, 0, 1), chance(net, 0.4)
    whole = (batch, steps, features) if axis else (steps, batch, features)
    x, h = net.input(values(net, whole)), net.input(values(net, (batch, hidden), -1, 1))
    body = Network(net.version, net.rng, net.precision, blob=net.blob)
    part = (batch, 1, features) if axis else (1, batch, features)
    kind = net.precision
    if net.version >= 6 and chance(net):
        target = body.const(np.array([batch, features], np.int32))
        (flat,) = body.layer("Reshape", [None, target], [(batch, features)], shapes=[(part, kind)], name="in")
    else:
        (flat,) = body.layer(
            "Reshape", [None], [(batch, features)], {"dim": [batch, features]}, shapes=[(part, kind)], name="in"
        )
    (state,) = body.layer(
        "GRUCell", [flat, None], [(batch, hidden)], {"hidden_size": hidden},
        _blobs(body, "GRU", hidden, features, False), shapes=[((batch, hidden), kind)], name="cell",
    )  # fmt: skip
    out = (batch, 1, hidden) if axis else (1, batch, hidden)
    (step,) = body.layer("Reshape", [state], [out], {"dim": list(out)}, name="out")
    total = (batch, steps, hidden) if axis else (steps, batch, hidden)
    _iterate(net, [x, h], body, (flat, state, step), [total, (batch, hidden)], axis, backward)


def _iterate(
    net: Network,
    inputs: list[Port],
    body: Network,
    ports: tuple[Port, Port, Port],
    outputs: list[Any],
    axis: int,
    backward: bool,
) -> None:
    """A TensorIterator whose body reads slices at ``ports[0]``'s layer and a state at ``ports[1]``'s second input."""
    flat, state, step = ports
    order = ' start="-1" end="0" stride="-1"' if backward else str(pick(net, "", ' start="0" end="-1" stride="1"'))
    part = f'axis="{axis}"{order} part_size="1"' if order or chance(net) else f'axis="{axis}"'
    layers, edges = body.body_text()
    inner = (
        f'<port_map>\n<input external_port_id="0" internal_layer_id="{flat.layer}" internal_port_id="0" {part}/>\n'
        f'<input external_port_id="1" internal_layer_id="{state.layer}" internal_port_id="1"/>\n'
        f'<output external_port_id="2" internal_layer_id="{step.layer}" internal_port_id="{step.id}" {part}/>\n'
        f'<output external_port_id="3" internal_layer_id="{state.layer}" internal_port_id="{state.id}"/>\n</port_map>\n'
        f'<back_edges>\n<edge from-layer="{state.layer}" from-port="{state.id}" to-layer="{state.layer}" to-port="1"/>\n'
        f"</back_edges>\n<body>\n<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n</body>\n"
    )
    net.layer("TensorIterator", inputs, outputs, inner=inner)


@generates("Memory", versions=RECENT)
def memory(net: Network) -> None:
    """Windows over the last calls, as in networks of Kaldi: what is written depends on what is read.

    Otherwise the engines may write before they read. Both start from memory that nobody has written, so that a state
    must depend on the last inputs alone.
    """
    batch, width = shape_of(net, 2, 1, 4)
    net.feeds = [{"x": values(net, (batch, width))} for _ in range(6)]
    given = net.input(net.feeds[0]["x"], name="x")
    for _ in range(size(net, 1, 2)):
        calls, width = size(net, 2, 3), given.shape[1]
        net.first_run += calls - 1
        whole, kept = (batch, calls * width), (batch, (calls - 1) * width)
        # Networks of one process share memory of the same name.
        name = f"{pick(net, 'state/', 'r_')}{size(net, 0, 1 << 40)}"
        (read,) = net.layer("Memory", [], [whole], {"id": name, "index": 1, "size": 2})
        (old,) = net.layer("Crop", [read], [kept], {"axis": 1, "offset": width, "dim": kept[1]})
        (given,) = net.layer("Concat", [old, given], [whole], {"axis": 1})
        net.layer("Memory", [given], [], {"id": name, "index": 0, "size": 2})
    net.layer("ReLU", [given], [given.shape])
