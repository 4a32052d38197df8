"""TensorIterator: its body has no Parameter and Result; the port map names ports of its layers."""

from __future__ import annotations

from converters.legacy_ir.graph import GraphTranslation
from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import ReportedError
from converters.legacy_ir.registry import translates
from converters.legacy_ir.syntax import BodyPort, OldBody
from irexec.analysis.builder import Builder
from irexec.errors import check
from irexec.io.context import parse_integer
from irexec.ir.graph import BackEdge, Body, Node, PortMap, Value

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
