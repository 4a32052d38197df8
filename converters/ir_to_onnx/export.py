"""Export of a whole model: its inputs, its layers, its outputs, its metadata, its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper

from converters.ir_to_onnx.graph import Names, Tensor, onnx_element, value_info
from converters.ir_to_onnx.graph_writer import ExportError, ExportState, GraphWriter, RefusedLayer, WrittenLayer
from converters.ir_to_onnx.opsets import checked_opset, newest_with
from irexec.analysis import version_10
from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import ConversionError, ModelError
from irexec.io.files import replacing
from irexec.io.payload import rt_info
from irexec.io.reading import writing
from irexec.io.writer import check_file
from irexec.ir.dims import Dim, PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Node
from irexec.ir.writable import refuse_damage
from irexec.records import Record

_LARGEST = 1_900_000_000
"""Bytes of weights up to which a model is one file: a protobuf message has at most 2 GiB."""
_SMALL = 1024
"""Bytes up to which a tensor stays in the .onnx: shapes and axes, which readers need at once."""
_ALIGNMENT = 4096
"""Alignment of tensors in the file of weights, so that readers can map them."""


def data_path(target: Path) -> Path:
    """The file of weights of a model."""
    return target.with_name(f"{target.name}.data")


def check_onnx_target(source: Model, target: Path, option: str) -> None:
    """Raise InputError unless the .onnx and its file of weights can be written without overwriting the model's files.

    Args:
        source: the model that is written.
        target: the .onnx.
        option: the option or argument that names the file, for messages.
    """
    for path in (target, data_path(target)):
        check_file(option, path, source.files)


def save_onnx(model: ModelProto, target: Path, external: bool = False) -> list[Path]:
    """Write a model; weights go to a file of their own if asked for, or if the model would be larger than 2 GB.

    Args:
        model: its weights are moved out of it into the file.
        target: the .onnx; the file of weights is beside it, with ``.data`` after its name.
        external: whether the weights go to the other file.

    Returns:
        The files that were written.

    Raises:
        ModelError: a file cannot be written; both are as they were.
    """
    if not external and sum(len(tensor.raw_data) for tensor in _tensors(model.graph)) <= _LARGEST:
        with writing(target), replacing(target) as (file,):
            file.write(model.SerializeToString())
        return [target]
    weights = data_path(target)
    with writing(target), replacing(weights, target) as (data, file):
        for tensor in _tensors(model.graph):
            if len(tensor.raw_data) > _SMALL:
                _move(tensor, data, weights.name)
        try:
            file.write(model.SerializeToString())
        except ValueError as error:
            raise ModelError(f"{target} cannot be written: {error}") from None
    return [target, weights]


def _move(tensor: TensorProto, data: IO[bytes], location: str) -> None:
    """Move the bytes of a tensor into the file of weights."""
    data.write(bytes(-data.tell() % _ALIGNMENT))
    entries = {"location": location, "offset": str(data.tell()), "length": str(len(tensor.raw_data))}
    data.write(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and the graphs in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from _graphs(inner)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """The initializers of a graph and of the graphs in its nodes."""
    return (tensor for one in _graphs(graph) for tensor in one.initializer)


_TENSOR_NAMES = "irexec.tensor_names"
"""Key of the further tensor names of a tensor, in its metadata."""


@dataclass(frozen=True)
class ExportedState(Record):
    """A variable of ReadValue and Assign.

    Attributes:
        variable: its variable_id.
        input: the input that takes its value before a run; None if no layer reads it.
        output: the output with its value after the run; None if no layer assigns it.
    """

    variable: str
    input: str | None
    output: str | None


@dataclass(frozen=True)
class Exported:
    """A model written as ONNX.

    Attributes:
        proto: the ONNX model.
        inputs, outputs: the names of the tensors of its inputs and outputs, in the order of the Parameters and Results.
        states: the variables, with the names of their inputs and outputs.
        remarks: the layers whose nodes may give other values than the layer.
        layers: the layers that are written, with the operators of their nodes.
    """

    proto: ModelProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    remarks: tuple[RefusedLayer, ...]
    layers: tuple[WrittenLayer, ...]
    states: tuple[ExportedState, ...]

    @property
    def opset(self) -> int:
        """The version of ai.onnx."""
        return next(int(entry.version) for entry in self.proto.opset_import if not entry.domain)


def export(model: Model, opset: int | None = None, strict: bool = False) -> Exported:
    """Write a model as ONNX.

    Args:
        model: the model, which is not changed.
        opset: of ai.onnx; by default the newest in which ONNX Runtime has a kernel for every operator of the model.
        strict: refuse a layer whose nodes may give other values than the layer, such as random ones.

    Raises:
        ExportError: layers cannot be written; the error lists all of them.
        InputError: the opset is not one that is written.
        ConversionError: the type of an input, or the rank of an input or output, is not known.
        ModelError: the model is damaged, or the graph has a cycle.
    """
    chosen = checked_opset(opset)
    refuse_damage(model)
    if not any(node.type in ("Result", "Assign") for node in model.nodes):
        raise ConversionError("the model has no Result, and an ONNX model without outputs computes nothing")
    if model.version == version_10.VERSION:
        model = model.clone()
        version_10.adapt(model)
    while True:
        writer = _ModelWriter(model, chosen)
        exported = writer.exported(strict)
        known = (newest_with(operator, chosen) for operator in writer.state.operators)
        older = min((newest for newest in known if newest is not None), default=chosen)
        if opset is not None or older == chosen:
            return exported
        # An older opset has other operators, some of which ONNX Runtime may lack there.
        chosen = older


class _ModelWriter:
    def __init__(self, model: Model, opset: int) -> None:
        self.model, self.inputs = model, model.inputs
        given = {port.node: Fact(port.element, _with_symbols(port)) for port in self.inputs}
        inference = infer_shapes(model, given, tolerant=True)
        names = Names(name for node in model.walk() for value in node.outputs for name in value.names)
        used = Counter(value for node in model.walk() for value in node.inputs if value is not None)
        node_names = Names(node.name for node in model.walk())
        self.state = ExportState(opset, inference.facts, inference.failures, used, names, node_names)
        self.writer = GraphWriter(self.state, model)

    def exported(self, strict: bool) -> Exported:
        inputs = [self._parameter(port) for port in self.inputs]
        self.writer.nodes()
        refused = [*self.state.refused, *(self.state.remarks if strict else ())]
        if refused:
            raise ExportError(refused)
        outputs = self._results([tensor.name for tensor in inputs])
        states = tuple(self._state(variable) for variable in self.state.variables)
        proto = self._model()
        names = [tuple(tensor.name for tensor in tensors) for tensors in (inputs, outputs)]
        kept = {node.name for one in _graphs(proto.graph) for node in one.node}
        layers = tuple(
            WrittenLayer.of(node, [one.op_type for one in protos if one.name in kept])
            for node, protos in self.state.written
        )
        return Exported(proto, names[0], names[1], tuple(self.state.remarks), layers, states)

    def _parameter(self, port: Port) -> Tensor:
        value = port.node.outputs[0]
        fact = self.state.facts[value]
        if fact.element is None:
            raise ConversionError(f"the element type of input {port.name!r} is not known")
        _check_rank(fact, f"input {port.name!r}")
        tensor = Tensor(self.state.names.claim(port.name), onnx_element(fact.element, self.state.opset), fact.shape)
        self.writer.onnx.input(tensor)
        self.writer.values[value] = tensor
        return tensor

    def _results(self, inputs: Sequence[str]) -> list[Tensor]:
        """The outputs. Each has a name of its own, which is that of an input or constant where its tensor is one."""
        taken: set[str] = set()
        found = []
        for port in self.model.outputs:
            value = port.node.inputs[0]
            assert value is not None
            tensor = self.writer.values[value]
            is_passed_on = tensor.name in inputs or tensor.constant is not None
            if tensor.name in taken or (is_passed_on and tensor.name != port.name):
                tensor = self._copy(port.node, tensor, port.name)
            _check_rank(tensor, f"output {port.name!r}")
            taken.add(tensor.name)
            found.append(tensor)
            self.writer.onnx.read(tensor)
            self.writer.onnx.output(tensor)
        return found

    def _state(self, variable: str) -> ExportedState:
        """Add the output of a variable, a tensor of its own."""
        tensors, written = self.state.variables[variable], None
        if tensors.after is not None and tensors.assign is not None:
            written = self._copy(tensors.assign, tensors.after, f"{variable}/next")
            _check_rank(written, f"variable {variable!r}")
            self.writer.onnx.output(written)
        return ExportedState(
            variable, None if tensors.before is None else tensors.before.name, None if written is None else written.name
        )

    def _copy(self, node: Node, tensor: Tensor, name: str) -> Tensor:
        self.writer.ctx.node = node
        first = len(self.writer.onnx.nodes)
        copied = self.writer.ctx.emit("Identity", tensor)
        wanted = self.state.names.claim(name)
        self.writer.onnx.rename(first, {copied.name: wanted})
        return Tensor(wanted, tensor.element, tensor.shape)

    def _model(self) -> ModelProto:
        domains = {"": self.state.opset, **self.state.domains}
        imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        version = max(helper.find_min_ir_version_for(imports, ignore_unknown=True), 8)
        self._describe_names(version)
        graph = self.writer.onnx.finished()
        proto = helper.make_model(graph, opset_imports=imports, ir_version=version, producer_name="irexec")
        helper.set_model_props(proto, rt_info(self.model))
        return proto

    def _describe_names(self, ir_version: int) -> None:
        """Keep tensor names beyond the first: they are metadata of the tensor, which ONNX has since IR version 10."""
        if ir_version < 10:
            return
        for value, tensor in self.writer.values.items():
            others = [name for name in value.names if name != tensor.name]
            if others and tensor.constant is None:
                info = value_info(tensor.name, tensor.element, tensor.shape)
                info.metadata_props.append(onnx.StringStringEntryProto(key=_TENSOR_NAMES, value="\n".join(others)))
                self.writer.onnx.describe(info)


def _check_rank(described: Fact | Tensor, what: str) -> None:
    """Raise ConversionError for an input or output of unknown rank, which ONNX does not have. Source: ONNX's IR.md."""
    if described.shape is None:
        raise ConversionError(f"the rank of {what} is not known, and ONNX needs it: give the model shapes of inputs")


def _with_symbols(port: Port) -> PartialShape:
    """The shape of an input, in which every unknown size has a symbol: equal symbols are equal sizes."""
    if port.shape is None:
        return None
    return tuple(
        size if isinstance(size, int) else Dim(size.lo, size.hi, size.name or f"{port.name}.{axis}")
        for axis, size in enumerate(port.shape)
    )
