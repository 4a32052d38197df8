"""Cells, sequences, TensorIterator and Memory.

Gates: F, I, C, O of LSTM and Z, R, H of GRU, as in the operations.
"""

from __future__ import annotations

from typing import Any, Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.read import GraphTranslation
from converters.legacy_ir.registry import ReportedError, WrongAttributeError, translates
from converters.legacy_ir.syntax import BodyPort, OldBody
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import OpError, check
from irexec.io.ports import parse_integer
from irexec.ir.graph import BackEdge, Body, Node, PortMap, Value
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


PortKey = tuple[int, int | None]


@translates("TensorIterator")
def tensor_iterator(layer: Layer, *inputs: Value) -> tuple[Value, ...]:
    """The operation, with a Parameter for each port of the body that is fed and a Result for each that is read."""
    old: OldBody | None = layer.body
    check(old is not None, "the layer has no body")
    assert old is not None
    body = _BodyTranslation(layer, old, inputs).translated()
    return layer.outputs("TensorIterator", *inputs, version=1, bodies={"body": body})


class _BodyTranslation:
    """A body under translation: its layers, and the Parameters and Results of ports, by ids of layer and port."""

    def __init__(self, layer: Layer, old: OldBody, inputs: tuple[Value, ...]) -> None:
        self._layer, self._old, self._inputs = layer, old, inputs
        self._builder = Builder(old.graph.name, inside=layer.builder)
        self._parameters: dict[PortKey, Value] = {(port.layer, port.port): self._parameter(port) for port in old.inputs}
        self._graph = GraphTranslation(old.graph, self._builder, layer.job, self._parameters)
        self._results: dict[PortKey, Node] = {}

    def translated(self) -> Body:
        """The new body.

        Raises:
            ReportedError: a layer of it cannot be translated.
            OpError: a port map or a back edge names a port that does not exist.
        """
        job = self._layer.job
        before, job.has_failed = job.has_failed, False
        self._graph.translate()
        failed, job.has_failed = job.has_failed, before or job.has_failed
        if failed:
            raise ReportedError("a layer of the body cannot be translated")
        for key in [(port.layer, port.port) for port in self._old.outputs] + [
            edge[:2] for edge in self._old.back_edges
        ]:
            self._add_result(key)
        self._builder.drop_unused()
        self._graph.restore_ids()
        return Body(self._builder.graph, [*self._input_maps(), *self._output_maps()], self._back_edges())

    def _parameter(self, port: BodyPort) -> Value:
        """A Parameter for an input of the layer, or for its slices."""
        value = self._inputs[self._input_index(port)]
        shape = list(self._layer.shape(value))
        if "axis" in port.slices:
            axis = parse_integer(port.slices["axis"])
            size = parse_integer(port.slices.get("part_size", "1"))
            check(axis is not None and -len(shape) <= axis < len(shape), f"axis {port.slices['axis']} does not exist")
            check(size is not None and size > 0, "part_size is not a size")
            assert axis is not None and size is not None
            shape[axis] = size
        return self._builder.parameter(self._layer.kind(value), tuple(shape), f"{port.layer}/input_{port.port}")

    def _input_index(self, port: BodyPort) -> int:
        index = self._layer.node.input_index(port.external)
        check(index is not None, f"the port map names input port {port.external}, which the layer lacks")
        assert index is not None
        return index

    def _add_result(self, key: PortKey) -> None:
        """A Result for an output port of a layer of the body, once."""
        if key in self._results:
            return
        node = next((node for node in self._old.graph.nodes if node.id == key[0]), None)
        index = None if node is None or key[1] is None else node.output_index(key[1])
        check(index is not None, f"port {key[1]} of layer {key[0]} of the body does not exist")
        assert node is not None and index is not None
        self._results[key] = self._builder.result(self._graph.values[node.outputs[index]])

    def _input_maps(self) -> list[PortMap]:
        found = []
        for port in self._old.inputs:
            parameter = self._parameters[port.layer, port.port].node
            found.append(PortMap("input", self._input_index(port), parameter.id, port.slices, port.line))
        return found

    def _output_maps(self) -> list[PortMap]:
        found = []
        for port in self._old.outputs:
            index = self._layer.node.output_index(port.external)
            check(index is not None, f"the port map names output port {port.external}, which the layer lacks")
            assert index is not None
            node = self._results[port.layer, port.port]
            found.append(PortMap("output", len(self._inputs) + index, node.id, port.slices, port.line))
        return found

    def _back_edges(self) -> list[BackEdge]:
        edges = []
        for source_layer, source_port, layer, port in self._old.back_edges:
            target = self._parameters.get((layer, port))
            check(target is not None, f"a back edge goes to port {port} of layer {layer}, which has no first value")
            assert target is not None
            edges.append(BackEdge(self._results[source_layer, source_port].id, target.node.id))
        return edges


@translates("Memory")
def memory(layer: Layer, data: Value | None = None, *, id: str, index: int) -> tuple[Value, ...]:
    """A variable, 0 before the first call."""
    if index not in (0, 1):
        raise WrongAttributeError(f"index {index} is neither 0 nor 1")
    if index == 0:
        check(data is not None, "the layer writes, and has no input")
        assert data is not None
        layer.outputs("Assign", layer.f32(data), version=6, variable_id=id)
        return ()
    check(data is None, "the layer reads, and has an input")
    shape = layer.size()
    zeros = layer.filled(0, shape, F32)
    return layer.outputs("ReadValue", zeros, version=6, variable_id=id, variable_type=F32, variable_shape=shape)
