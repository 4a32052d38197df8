"""Conversion of a whole model: its inputs, its nodes, its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx

from converters.onnx.blocked_layout import without_blocks
from converters.onnx.graphs import Objections, opsets_of
from converters.onnx.load import Source, contradictions, declared_shape, external_files_of, load, of_window
from converters.onnx.operators import early_operators, refusal, unsupported
from converters.onnx.scope import Scope
from converters.onnx.tensors import ScoresByLabel, element_of
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model, partial_shape
from irexec.errors import ConversionError, InputError, OpError, UnsupportedError
from irexec.ir.dims import PartialShape, meet_shapes, shape_text
from irexec.ir.graph import Value
from irexec.ir.shape_text import ShapeLike

Warn = Callable[[str], object]
Shapes = Mapping[str | None, ShapeLike]
"""Shapes by names of inputs; the name None is the only input."""


def translate(source: Source, inputs: Shapes, strict: bool, warn: Warn) -> Model:
    """Convert an ONNX model; see converters.convert."""
    model, folder = load(source, warn)
    refused = refusal(model)
    if refused is not None:
        raise ConversionError(refused, unsupported=True)
    for text in dict.fromkeys(text for _, text in early_operators(model)):
        warn(text)
    model = without_blocks(model, folder, warn)
    return with_path(MainGraph(model, folder, inputs, warn).model(strict), source, model)


def with_path(converted: Model, source: Source, model: onnx.ModelProto) -> Model:
    """A converted model with the paths of its source files."""
    if isinstance(source, str | Path):
        converted.path = Path(source)
        converted.external_files = tuple(external_files_of(model, converted.path.parent))
    return converted


def unsupported_nodes(source: Source) -> list[str]:
    """Descriptions of the nodes without a translator."""
    return unsupported(load(source, lambda _: None)[0])


class MainGraph(Scope):
    """The main graph of a model."""

    def __init__(
        self, model: onnx.ModelProto, folder: Path | None, inputs: Shapes, warn: Warn,
        objections: Objections | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            model.graph, opsets_of(model), folder, Builder(model.graph.name or "model"), warn, objections=objections
        )
        self._given = inputs
        self.inputs: dict[str, PartialShape] = {}

    def model(self, strict: bool) -> Model:
        if not self.graph.output:
            raise ConversionError(
                f"graph {self.graph.name!r} has no outputs, and a model without a Result computes nothing"
            )
        self._parameters()
        self.nodes("an input of the graph")
        self._check_declared(strict)
        return self.finished()

    def finished(self) -> Model:
        """The model; to be called when all nodes have been translated."""
        self._results()
        self.builder.drop_unused()
        return self.builder.model()

    def _parameters(self) -> None:
        """Create the Parameters. An input that is also an initializer, as in old files, is a constant."""
        infos = [info for info in self.graph.input if info.name not in self.initializers]
        self.take_shapes([info.name for info in infos])
        for info in infos:
            if info.name in self.values:
                raise ConversionError(f"two inputs of the graph have the name {info.name!r}")
            self.values[info.name] = self.parameter(info)

    def take_shapes(self, names: Sequence[str]) -> None:
        """Assign the given shapes to inputs.

        Raises:
            InputError: the input does not exist, a shape without a name meets several inputs, or a shape is invalid.
        """
        known = ", ".join(map(repr, names)) or "none"
        for given, shape in self._given.items():
            name = names[0] if given is None and len(names) == 1 else given
            if name is None:
                text = shape_text(partial_shape("", shape))
                raise InputError(f"the shape {text} needs the name of an input: the model has {known}")
            if name not in names:
                raise InputError(f"input {name!r} does not exist: the model has {known}")
            self.inputs[name] = partial_shape(name, shape)

    def parameter(self, info: onnx.ValueInfoProto) -> Value:
        """The Parameter of an input.

        Raises:
            ConversionError: IR lacks its type.
        """
        name, tensor = info.name, info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            raise ConversionError(f"input {name!r} of the graph is not a tensor", unsupported=True)
        shape = self.inputs[name] if name in self.inputs else of_window(self.graph, name, declared_shape(tensor))
        try:
            return self.builder.parameter(element_of(tensor.elem_type), shape, name, [name])
        except UnsupportedError as error:
            raise ConversionError(f"input {name!r} of the graph: {error}", unsupported=True) from error

    def _check_declared(self, strict: bool) -> None:
        """Report declared types and shapes that contradict the inferred ones, unless inputs have other shapes."""
        if self.is_redeclared:
            return
        found = [str(one) for one in contradictions(self.graph, self.values, self.builder.fact)]
        if strict and found:
            raise ConversionError(f"the model contradicts itself: {'; '.join(found)}")
        for text in found:
            self.warn(text)

    @property
    def is_redeclared(self) -> bool:
        """Whether the given shape of an input contradicts its declared shape."""
        return any(info.name in self.inputs and not self._is_compatible(info) for info in self.graph.input)

    def _is_compatible(self, info: onnx.ValueInfoProto) -> bool:
        """Whether the given shape of an input agrees with its declared shape."""
        try:
            meet_shapes(self.inputs[info.name], declared_shape(info.type.tensor_type))
        except OpError:
            return False
        return True

    def _results(self) -> None:
        """Create the Results. Each output is a tensor of its own with that name: not another input or output."""
        inputs = {info.name: self.values.get(info.name) for info in self.graph.input}
        passed_on = {inputs[output.name] for output in self.graph.output if output.name in inputs}
        taken = {value for value in inputs.values() if isinstance(value, Value) and value not in passed_on}
        for output in self.graph.output:
            for name, value in self._tensors_of(output.name):
                if value in taken or (value in passed_on and inputs.get(name) is not value):
                    value = self._copy(value, name)
                taken.add(value)
                value.names[:] = [name, *(other for other in value.names if other != name)]
                self.builder.result(value, name=f"{name}/sink_port_0")

    def _tensors_of(self, output: str) -> list[tuple[str, Value]]:
        """The tensors of an output with their names; of maps one for each label."""
        where = f"output {output!r} of the graph"
        found = self.lookup(output, where)
        if not isinstance(found, ScoresByLabel):
            return [(output, self.value(output, where))]
        scores = [
            self.builder.emit(
                "Gather", found.scores, self.builder.constant(i), self.builder.constant(-1), name=f"{output}.{label}"
            )
            for i, label in enumerate(found.labels)
        ]
        return [(f"{output}.{label}", score) for label, score in zip(found.labels, scores, strict=True)]

    def _copy(self, value: Value, name: str) -> Value:
        """A copy of a value, which is a tensor of its own."""
        if name in value.names:
            value.names.remove(name)
        element = self.builder.fact(value).element
        if element is None or element.kind == "string":
            return self.builder.emit("Identity", value, name=name)
        return self.builder.emit("Convert", value, name=name, destination_type=element)
