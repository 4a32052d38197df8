"""The driver: an ONNX graph into a Builder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from converters.onnx.functions import opsets_of
from converters.onnx.load import load, unsupported
from converters.onnx.scope import Scope
from converters.onnx.tensors import element_of
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model, partial_shape
from irexec.errors import ConversionError, InputError, UnsupportedError
from irexec.ir.dims import ANY, Dim, PartialShape, Size
from irexec.ir.graph import Value
from irexec.ir.shape_text import ShapeLike


def translate(source: str | Path | onnx.ModelProto, inputs: Mapping[str, ShapeLike]) -> Model:
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


class _Graph(Scope):
    """The graph of a model on its way into a builder."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, inputs: Mapping[str, ShapeLike]) -> None:
        super().__init__(model.graph, opsets_of(model), folder, Builder(model.graph.name or "model"))
        self.inputs = {name: partial_shape(name, shape) for name, shape in inputs.items()}

    def model(self) -> Model:
        self._parameters()
        self.nodes("an input of the graph")
        self._results()
        self.builder.drop_unused()
        return self.builder.model()

    def _parameters(self) -> None:
        """Inputs with a constant of the same name, as old files have them, are no inputs."""
        infos = [info for info in self.graph.input if info.name not in self.initializers]
        for name in self.inputs:
            if all(info.name != name for info in infos):
                raise InputError(f"there is no input {name!r}: the model has {', '.join(repr(i.name) for i in infos) or 'none'}")
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
        inputs = (self.values.get(info.name) for info in self.graph.input)
        taken = {value for value in inputs if isinstance(value, Value)}
        for output in self.graph.output:
            value = self.value(output.name, f"output {output.name!r} of the graph")
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


def _shape(tensor: onnx.TypeProto.Tensor) -> PartialShape:
    if not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return Dim(name=dim.dim_param) if dim.dim_param else ANY
