"""Writes the layers of a graph of IR, that of the model or of a body, as nodes of an ONNX graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Names, OnnxGraph, Tensor, onnx_element
from converters.ir_to_onnx.registry import recognised, translation_of
from irexec.analysis.attributes import typed_attributes
from irexec.dtypes.elements import F4E2M1
from irexec.errors import ConversionError, IrexecError, ModelError, OpError, UnsupportedError, check
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological
from irexec.messages import counted
from irexec.records import Record
from irexec.schema.registry import resolve


@dataclass(frozen=True)
class RefusedLayer(Record):
    """A layer that cannot be written.

    Attributes:
        name, type, version: of the layer.
        line: of the .xml; None for a layer that was not read from a file.
        reason: why, as a sentence.
    """

    name: str
    type: str
    version: str
    line: int | None
    reason: str

    @staticmethod
    def of(node: Node, reason: str) -> RefusedLayer:
        """A layer, and why it cannot be written."""
        return RefusedLayer(node.name, node.type, node.version, node.line, reason)

    def __str__(self) -> str:
        where = "" if self.line is None else f", line {self.line}"
        return f"layer {self.name!r} ({self.type}{where}): {self.reason}"


@dataclass(frozen=True)
class WrittenLayer(Record):
    """A layer that is written.

    Attributes:
        name, type, version: of the layer.
        line: of the .xml; None for a layer that was not read from a file.
        operators: the operators of its nodes, in order; one is exact, none where a node of another layer computes it.
    """

    name: str
    type: str
    version: str
    line: int | None
    operators: tuple[str, ...]

    @staticmethod
    def of(node: Node, operators: Sequence[str]) -> WrittenLayer:
        """A layer and the operators of its nodes."""
        return WrittenLayer(node.name, node.type, node.version, node.line, tuple(operators))


class RefusedBody(OpError):
    """A body with layers that cannot be written, each of which is in the list of refused layers."""


class ExportError(ConversionError):
    """A model that cannot be written as ONNX.

    Attributes:
        layers: every layer that cannot be written, in the order of the model.
    """

    def __init__(self, layers: Sequence[RefusedLayer]) -> None:
        noun = counted(len(layers), "layer")
        super().__init__(f"{noun} cannot be written as ONNX: {'; '.join(map(str, layers))}", unsupported=True)
        self.layers = tuple(layers)


_WRITTEN_BY_CALLER = ("Parameter", "Result")
_MOVES = {
    "Broadcast", "Concat", "Gather", "GatherElements", "GatherND", "Identity", "If", "Loop", "Maximum", "Minimum",
    "Pad", "Reshape", "Reverse", "ScatterNDUpdate", "ScatterUpdate", "Select", "Slice", "Split", "Squeeze",
    "StridedSlice", "TensorIterator", "Tile", "Transpose", "Unsqueeze", "VariadicSplit",
}  # fmt: skip
"""Operations that only move elements, or choose among them: those of a type that ONNX lacks stay in its carrier."""
_ROUNDS = ("Convert", "ConvertLike")
"""Operations whose translators round to f4e2m1 in its carrier."""
_SHOWN_CONSTANT = 1 << 16
"""Elements of a constant up to which its value is at hand for translators."""


@dataclass
class VariableTensors:
    """The tensors of a variable: an input that is its value before a run, and its value after the run.

    Attributes:
        before: the input; None if no layer reads the variable.
        after: the tensor that is assigned; None if there is none.
        assign: the layer that assigns it.
    """

    before: Tensor | None = None
    after: Tensor | None = None
    assign: Node | None = None


@dataclass
class ExportState:
    """State that the graphs of a model share.

    Attributes:
        opset: of ai.onnx.
        facts: of every value, those of bodies included.
        failures: the layers that shape inference objects to, with the reasons.
        used: the values that layers read, with the number of inputs.
        names: of tensors.
        node_names: of nodes.
        refused: the layers that cannot be written.
        written: the layers that are written, with their nodes, of which some may be left out in the end.
        domains: the domains other than ai.onnx of the operators that are written, with their versions.
        variables: the tensors that ReadValue reads and Assign writes, by variable_id.
        remarks: the layers whose nodes may give other values, with the reasons.
        operators: the operators of ai.onnx that are written.
    """

    opset: int
    facts: Mapping[Value, Fact]
    failures: Mapping[Node, IrexecError]
    used: Counter[Value]
    names: Names
    node_names: Names
    refused: list[RefusedLayer] = field(default_factory=list)
    remarks: list[RefusedLayer] = field(default_factory=list)
    written: list[tuple[Node, list[NodeProto]]] = field(default_factory=list)
    variables: dict[str, VariableTensors] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)
    operators: set[str] = field(default_factory=set)

    def variable(self, variable_id: str) -> VariableTensors:
        """The tensors of a variable."""
        return self.variables.setdefault(variable_id, VariableTensors())

    def remark(self, node: Node, text: str) -> None:
        """A layer whose nodes may give other values."""
        remark = RefusedLayer.of(node, text)
        if remark not in self.remarks:
            self.remarks.append(remark)


class GraphWriter:
    """Writes one graph.

    Args:
        state: of the model.
        graph: the graph of IR.
        onnx: the ONNX graph to write to; a new one by default.

    Attributes:
        onnx: the ONNX graph.
        values: the tensors of the values of IR that have been written.
        inexpressible: the values of layers that were refused, and of the layers that depend on them.
    """

    def __init__(self, state: ExportState, graph: Graph, onnx: OnnxGraph | None = None) -> None:
        self.state, self.graph = state, graph
        self.onnx = onnx or OnnxGraph(graph.name, state.names)
        self.ctx = ExportContext(state.opset, self.onnx, self)
        self.values: dict[Value, Tensor] = {}
        self.inexpressible: set[Value] = set()

    def nodes(self) -> None:
        """Write every layer but Parameters and Results; those that cannot be written are collected in the state."""
        order, stuck = topological(self.graph)
        if stuck:
            raise ModelError(f"layers {', '.join(repr(node.name) for node in stuck[:5])} are on or after a cycle")
        for node in order:
            if node.type not in _WRITTEN_BY_CALLER:
                self.layer(node)

    def inside(self, body: Graph, onnx: OnnxGraph) -> GraphWriter:
        """A writer of a body to the ONNX graph of a body."""
        return GraphWriter(self.state, body, onnx)

    def layer(self, node: Node) -> None:
        """Write one layer."""
        if any(value in self.inexpressible for value in node.inputs):
            self._refuse(node, None)
            return
        try:
            self._translate(node)
        except RefusedBody:
            self._refuse(node, None)
        except (OpError, UnsupportedError) as error:
            self._refuse(node, str(error))

    def _refuse(self, node: Node, reason: str | None) -> None:
        self.inexpressible.update(node.outputs)
        if reason is not None:
            self.state.refused.append(RefusedLayer.of(node, reason))

    def _translate(self, node: Node) -> None:
        if node.constant is not None:
            self.values[node.outputs[0]] = self._constant(node)
            return
        failure = self.state.failures.get(node)
        if failure is not None:
            raise UnsupportedError(str(failure))
        definition = resolve(node.type, node.version)
        translation = translation_of(definition)
        if translation is None or translation.function is None:
            raise UnsupportedError(translation.text if translation else "there is no translation of it")
        self.ctx.node = node
        self.ctx.facts = tuple(self.state.facts.get(value, Fact(None, None)) for value in node.outputs)
        attributes = typed_attributes(node, definition).require()
        inputs = [None if value is None else self.tensor(value) for value in node.inputs]
        # Raise OpError for arithmetic on a type that the opset lacks: its carrier would not be rounded.
        for fact in self.ctx.facts:
            kind = fact.element
            is_carried = kind is not None and onnx_element(kind, self.state.opset) is not kind
            is_rounded = kind is F4E2M1 and node.type in _ROUNDS
            check(
                not is_carried or is_rounded or node.type in _MOVES,
                f"ONNX of opset {self.state.opset} does not compute in {kind}",
            )
        first = len(self.onnx.nodes)
        found = recognised(self.ctx)
        if found is None:
            found = translation.function(self.ctx, *inputs, **attributes)
        self._finish(node, found if isinstance(found, tuple) else (found,), first)

    def tensor(self, value: Value) -> Tensor:
        """The tensor of a value of this graph."""
        check(value in self.values, f"reads {value.label!r}, which is not written")
        return self.values[value]

    def _constant(self, node: Node) -> Tensor:
        """The tensor of a Constant: an initializer as soon as a node reads it."""
        constant, value = node.constant, node.outputs[0]
        assert constant is not None
        name = self._claimed(value)
        # Weights are read from their file only when they are written.
        known = constant_value(constant) if constant.count <= _SHOWN_CONSTANT else None
        return Tensor(name, onnx_element(constant.element, self.state.opset), constant.shape, known, constant)

    def _finish(self, node: Node, found: Sequence[Tensor | None], first: int) -> None:
        """Give the results the names, element types and facts of the layer's outputs."""
        check(len(found) >= len(node.outputs), f"{len(found)} of {len(node.outputs)} outputs are expressible")
        made = {name for proto in self.onnx.nodes[first:] for name in proto.output}
        renamed: dict[str, str] = {}
        for value, tensor, fact in zip(node.outputs, found, self.ctx.facts, strict=False):
            if tensor is None:
                # A translator leaves out an output that nothing reads.
                continue
            if fact.element is not None:
                cast = self.ctx.cast(tensor, onnx_element(fact.element, self.state.opset))
                made |= {cast.name} if cast is not tensor else set()
                tensor = cast
            if (tensor.name not in made and value.names) or tensor.name in renamed:
                tensor = self.ctx.emit("Identity", tensor)
                made.add(tensor.name)
            name = tensor.name
            if name in made:
                name = self._claimed(value)
                renamed[tensor.name] = name
            known = fact.known if fact.element is None or fact.element.native or fact.element.kind == "string" else None
            self.values[value] = Tensor(name, tensor.element, fact.shape, known, tensor.constant)
        self.onnx.rename(first, renamed)
        # The last node of a layer has the layer's name.
        if len(self.onnx.nodes) > first:
            self.onnx.nodes[-1].name = self.state.node_names.claim(node.name or node.type)
        self.state.written.append((node, self.onnx.nodes[first:]))

    def _claimed(self, value: Value) -> str:
        """The name of the tensor of a value: its first tensor name, else that of its layer."""
        return self.state.names.claim(value.names[0]) if value.names else self.state.names.unique(value.label)
