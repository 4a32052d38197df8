"""The graph of an old model, layer by layer: results are the output ports that no layer reads."""

from __future__ import annotations

from collections.abc import Mapping

from converters.legacy_ir.layer import Job, Layer
from converters.legacy_ir.objections import ReportedError, UnknownLayerError, finding_of
from converters.legacy_ir.pre_process import MeanSubtraction
from converters.legacy_ir.registry import find
from irexec.analysis.builder import Builder
from irexec.analysis.version_10 import output_name
from irexec.dtypes.elements import F32, Element
from irexec.errors import IrexecError, OpError
from irexec.ir import codes
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological

PortKey = tuple[int, int | None]


class GraphTranslation:
    """One graph under translation: that of the model, or that of a body.

    Args:
        graph: the old graph.
        builder: builds the new one.
        job: the conversion.
        given: the values of input ports of a body that its port map feeds, by layer and port id.

    Attributes:
        values: the new value of each output port.
        mean: the mean values of an input, if any.
    """

    def __init__(self, graph: Graph, builder: Builder, job: Job, given: Mapping[PortKey, Value] | None = None) -> None:
        self.graph, self.builder, self.job = graph, builder, job
        self.values: dict[Value, Value] = {}
        self.mean: MeanSubtraction | None = None
        self._given = given or {}
        self._ids: dict[Node, int] = {}

    def translate(self) -> None:
        """Translate every layer; what cannot be becomes a finding."""
        self.job.findings += self.graph.problems
        self.job.has_failed |= any(problem.severity == "error" for problem in self.graph.problems)
        order, stuck = topological(self.graph)
        for node in order:
            self._layer(node)
        if stuck:
            names = " -> ".join(repr(node.name) for node in stuck[:8])
            self.job.fail(stuck[0].finding(codes.CYCLE, f"the graph has a cycle: {names}"))

    def unread(self) -> list[Value]:
        """The output ports that no layer reads, in the order of the file."""
        read = {value for node in self.graph.nodes for value in node.inputs if value is not None}
        return [value for node in self.graph.nodes for value in node.outputs if value not in read]

    def restore_ids(self) -> None:
        """Give the last operation of each layer the id of the layer, and the others ids above all of these."""
        taken = set(self._ids.values())
        following = max(taken, default=-1) + 1
        for node in self.builder.graph.nodes:
            node.id = self._ids.get(node, -1)
            if node.id < 0:
                node.id, following = following, following + 1

    def _layer(self, node: Node) -> None:
        before = len(self.builder.graph.nodes)
        layer = Layer(node, self.builder, self.job)
        inputs = self._inputs(node)
        try:
            if inputs is None:
                self._assume(node)
                return
            values = self._translated(layer, inputs)
            self._finish(layer, values, before)
            if self.mean is not None and node is self.mean.node:
                self.values[node.outputs[0]] = self.mean(layer, self.values[node.outputs[0]])
            self._mark(node, inputs, self.builder.graph.nodes[before:])
        except IrexecError as error:
            self._failed(node, error)

    def _inputs(self, node: Node) -> list[Value] | None:
        """The new values that arrive at a layer; None if one does not exist, which is a finding already."""
        found = []
        for port in node.ports:
            value = self._given.get((node.id, port.port)) if port.source is None else self.values.get(port.source)
            if value is None:
                return None
            found.append(value)
        return found

    def _translated(self, layer: Layer, inputs: list[Value]) -> tuple[Value, ...]:
        translator = find(layer.node.type)
        if translator is None:
            raise UnknownLayerError(f"{layer.node.type!r} is not a layer type of versions 2 to 7")
        values = translator(layer, inputs, layer.attributes)
        return values if isinstance(values, tuple) else (values,)

    def _finish(self, layer: Layer, values: tuple[Value, ...], before: int) -> None:
        """Give the values of a layer the types, names and sizes that its ports declare; ``before`` is the number of
        operations without those of the layer.
        """
        ports = layer.node.outputs
        if len(ports) > len(values):
            raise OpError(f"the layer has {len(ports)} output ports, its operation gives {len(values)}")
        found = []
        for port, value in zip(ports, values, strict=False):
            fitted = self._fitted(layer, value, port)
            if fitted.node not in self.builder.graph.nodes[before:]:
                # The value of another layer keeps the name that it has.
                fitted = layer.emit("Convert", fitted, destination_type=layer.kind(fitted))
            self._declare(fitted, port)
            found.append(fitted)
        self.values.update(zip(ports, found, strict=True))
        self._name(layer.node, [value.node for value in found] or self.builder.graph.nodes[before:][-1:])

    def _name(self, node: Node, last: list[Node]) -> None:
        """Give the operations that produce the outputs of a layer its name; the first one is to have its id."""
        for new in dict.fromkeys(last):
            self.builder.rename(new, node.name if len(set(last)) == 1 else f"{node.name}.{last.index(new)}")
        if last:
            self._ids[last[0]] = node.id

    def _fitted(self, layer: Layer, value: Value, port: Value) -> Value:
        """The value with the declared type, and with the declared sizes if only axes of size 1 are missing or added."""
        declared = port.fact
        value = layer.cast(value, layer.element(port.index))
        shape = layer.builder.fact(value).shape
        if declared is None or not declared.is_static or shape is None or len(shape) == len(declared.static_shape):
            return value
        if [size for size in shape if size != 1] == [size for size in declared.static_shape if size != 1]:
            return layer.reshaped(value, declared.static_shape)
        return value

    def _declare(self, value: Value, port: Value) -> None:
        inferred = self.builder.fact(value)
        if port.fact is not None and (not inferred.is_static or contradict(port.fact.shape, inferred.shape)):
            value.fact = Fact(inferred.element, port.fact.shape)
        value.line = port.line
        value.names = [output_name(port)]

    def _mark(self, node: Node, inputs: list[Value], made: list[Node]) -> None:
        """Give operations the line of their layer, and the inputs that the layer reads what its ports declare."""
        declared = dict(zip(inputs, node.ports, strict=True))
        for new in made:
            new.line = node.line
            for port in new.ports:
                old = declared.get(port.source) if port.source is not None else None
                if old is not None and old.fact is not None and port.fact is not None:
                    port.fact, port.line = Fact(port.fact.element, old.fact.shape), old.line

    def _failed(self, node: Node, error: IrexecError) -> None:
        if not isinstance(error, ReportedError):
            self.job.fail(finding_of(node, error))
        self._assume(node)

    def _assume(self, node: Node) -> None:
        """Stand-ins for the outputs of a layer without translation, so that later layers are examined."""
        for port in node.outputs:
            if port.fact is not None and port.fact.is_static:
                element: Element = Layer(node, self.builder, self.job).element(port.index) or F32
                self.values[port] = self.builder.parameter(element, port.fact.shape, f"{node.name}/unknown")
