"""The driver: an ONNX graph, node by node, into a Builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto

from converters.onnx.context import Context
from converters.onnx.functions import domain_of, opsets_of
from converters.onnx.load import describe, in_order, load, translation_of, unsupported
from converters.onnx.registry import Translation
from converters.onnx.tensors import constant_of, element_of
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.ir.dims import ANY, Dim, PartialShape, Size
from irexec.ir.graph import Value


def translate(source: str | Path | onnx.ModelProto, inputs: Mapping[str, PartialShape]) -> Model:
    """Convert an ONNX model; see converters.convert."""
    model, folder = load(source)
    missing = unsupported(model)
    if missing:
        count = "1 node" if len(missing) == 1 else f"{len(missing)} nodes"
        raise ConversionError(f"{count} cannot be converted: {'; '.join(missing)}", unsupported=True)
    return _Graph(model, folder, inputs).model()


def unsupported_nodes(source: str | Path | onnx.ModelProto) -> list[str]:
    """One sentence for each node that has no translation."""
    return unsupported(load(source)[0])


class _Graph:
    """One graph on its way into a builder."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, inputs: Mapping[str, PartialShape]) -> None:
        self.graph, self.folder, self.inputs = model.graph, folder, inputs
        self.opsets = opsets_of(model)
        self.builder = Builder(model.graph.name or "model")
        self.values: dict[str, Value] = {}
        self.initialisers = _initialisers(model.graph)

    def model(self) -> Model:
        self._parameters()
        taken = dict.fromkeys(self.values, "an input of the graph") | dict.fromkeys(self.initialisers, "an initialiser")
        for node in in_order(self.graph.node, taken, self.opsets):
            self._node(node)
        self._results()
        self.builder.drop_unused()
        return self.builder.model()

    def _parameters(self) -> None:
        """Inputs with a constant of the same name, as old files have them, are no inputs."""
        infos = [info for info in self.graph.input if info.name not in self.initialisers]
        for name in self.inputs:
            if all(info.name != name for info in infos):
                raise ConversionError(f"there is no input {name!r}: the model has {', '.join(repr(i.name) for i in infos) or 'none'}")
        for info in infos:
            if info.name in self.values:
                raise ConversionError(f"two inputs of the graph are called {info.name!r}")
            if not info.type.HasField("tensor_type"):
                raise ConversionError(f"input {info.name!r} of the graph is no tensor", unsupported=True)
            self.values[info.name] = self._parameter(info.name, info.type.tensor_type)

    def _parameter(self, name: str, tensor: onnx.TypeProto.Tensor) -> Value:
        shape = self.inputs[name] if name in self.inputs else _shape(tensor)
        try:
            return self.builder.parameter(element_of(tensor.elem_type), shape, name, [name])
        except UnsupportedError as error:
            raise ConversionError(f"input {name!r} of the graph: {error}", unsupported=True) from None

    def _results(self) -> None:
        """Each output of the graph is a tensor of that name, which no other output and no input has."""
        taken: set[Value] = {self.values[info.name] for info in self.graph.input if info.name in self.values}
        for output in self.graph.output:
            value = self._value(output.name, f"output {output.name!r} of the graph")
            if value in taken:
                value = self._copy(value, output.name)
            taken.add(value)
            value.names[:] = [output.name, *(name for name in value.names if name != output.name)]
            self.builder.result(value, name=f"{output.name}/sink_port_0")

    def _copy(self, value: Value, name: str) -> Value:
        """The same numbers as a tensor of its own."""
        if name in value.names:
            value.names.remove(name)
        element = self.builder.fact(value).element
        if element is None or element.kind == "string":
            return self.builder.emit("Identity", value, name=name)
        return self.builder.emit("Convert", value, name=name, destination_type=element)

    def _value(self, name: str, where: str) -> Value:
        if name not in self.values:
            if name not in self.initialisers:
                raise ConversionError(f"{where}: nothing produces {name!r}")
            try:
                constant = constant_of(self.initialisers[name], self.folder)
            except UnsupportedError as error:
                raise ConversionError(f"initialiser {name!r}: {error}", unsupported=True) from None
            self.values[name] = self.builder.raw_constant(constant, name, [name])
        return self.values[name]

    def _node(self, node: onnx.NodeProto) -> None:
        where = describe(node, self.opsets)
        translation = translation_of(node, self.opsets)
        if translation is None:
            raise ConversionError(f"{where}: it cannot be converted", unsupported=True)
        inputs = [self._value(name, where) if name else None for name in node.input]
        first = len(self.builder.graph.nodes)
        context = Context(self.builder, node, self.opsets.get(domain_of(node), 1))
        try:
            _check_arity(translation, inputs)
            result = translation.function(context, *inputs, **_attributes(node, translation))
        except (ConversionError, UnsupportedError) as error:
            outside = not isinstance(error, ConversionError) or error.unsupported
            raise ConversionError(f"{where}: {error}", unsupported=outside) from error
        except IrexecError as error:
            raise ConversionError(f"{where}: {error}") from error
        results = result if isinstance(result, tuple) else (result,)
        if results and results[0].node.id >= first:
            self.builder.rename(results[0].node, context.name)
        self._name_outputs(node, results, where)

    def _name_outputs(self, node: onnx.NodeProto, results: Sequence[Value | None], where: str) -> None:
        for i, name in enumerate(node.output):
            if not name:
                continue
            value = results[i] if i < len(results) else None
            if value is None:
                raise ConversionError(f"{where}: its output {i} cannot be converted", unsupported=True)
            self.values[name] = value
            if name not in value.names:
                value.names.append(name)


def _initialisers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto | onnx.SparseTensorProto]:
    found: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {}
    for tensor in [*graph.initializer, *graph.sparse_initializer]:
        name = tensor.name if isinstance(tensor, onnx.TensorProto) else tensor.values.name
        if name in found:
            raise ConversionError(f"two initialisers are called {name!r}")
        found[name] = tensor
    return found


def _check_arity(translation: Translation, inputs: Sequence[Value | None]) -> None:
    given = len(inputs)
    if given < translation.least_inputs or (translation.most_inputs is not None and given > translation.most_inputs):
        raise OpError(f"it has {given} inputs")
    needed = inputs if translation.most_inputs is None else inputs[: translation.least_inputs]
    if any(value is None for value in needed):
        raise OpError("an input that it needs is missing")


# Attributes that say nothing of the result.
_IGNORED = {"consumed_inputs"}


def _attributes(node: onnx.NodeProto, translation: Translation) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in translation.attributes:
            given[attribute.name] = _attribute(attribute, translation.attributes[attribute.name])
        elif attribute.name not in _IGNORED:
            raise OpError(f"attribute {attribute.name!r} is not known")
    lacking = sorted(translation.required - set(given))
    if lacking:
        raise OpError(f"required attribute {', '.join(lacking)} is missing")
    return given


def _attribute(attribute: AttributeProto, kinds: Sequence[str]) -> Any:
    """Its value; files of the first IR version do not say of which type it is."""
    if attribute.ref_attr_name:
        raise OpError(f"attribute {attribute.name!r} is one of a function's, but the node is in no function")
    if attribute.type == AttributeProto.UNDEFINED:
        given, attribute = attribute, AttributeProto()
        attribute.MergeFrom(given)
        attribute.type = AttributeProto.AttributeType.Value(kinds[0])
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if kind not in kinds:
        raise OpError(f"attribute {attribute.name!r} is of type {kind}, expected {' or '.join(kinds)}")
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        return [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value]
    return value


def _shape(tensor: onnx.TypeProto.Tensor) -> PartialShape:
    if not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return Dim(name=dim.dim_param) if dim.dim_param else ANY
