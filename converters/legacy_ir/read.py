"""Reading a file of version 2 to 7 as a model of version 11: the graph, layer by layer, and ``<pre-process>``.

Source: measured on Inference Engine 2020.1 and 2020.4: the mean of a channel is a number or an image of H x W; scale
values are ignored; without ``reference-layer-name`` the first input of rank 4 is meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from converters.legacy_ir.layer import Job, Layer
from converters.legacy_ir.registry import ReportedError, UnknownLayerError, WrongAttributeError, find, finding_of
from converters.legacy_ir.syntax import OldModel, read_syntax
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.analysis.version_10 import output_name
from irexec.dtypes.elements import F32, I32, I64, Element, unpack
from irexec.errors import ConversionError, IrexecError, OpError, check
from irexec.io.payload import set_metadata
from irexec.io.ports import parse_integer, weights_problems
from irexec.io.sources import Source, Weights
from irexec.io.xml import Progress, XmlElement, named_element
from irexec.ir import codes, legacy_codes
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological
from irexec.ir.process import collection_paused
from irexec.messages import counted

# When Model Optimizer wrote each version, for files that do not name the one that wrote them.
_TIMES = {
    2: "in 2017", 3: "in 2018", 4: "in 2018 (R3, R4)", 5: "in 2018 and 2019 (2018 R5, 2019 R1)", 6: "in 2019 (R2)",
    7: "in 2019 (R3) and, on request, in 2020",
}  # fmt: skip


def written_by(model: OldModel) -> str:
    """The version of the file, and the Model Optimizer that it names, or else when this version was written."""
    return f"IR version {model.version}, written by Model Optimizer {model.writer or _TIMES[model.version]}"


class MeanSubtraction:
    """The mean values of a file.

    Attributes:
        node: the input layer that they are for.
        element: the <pre-process> element.
    """

    def __init__(self, node: Node, element: XmlElement) -> None:
        self.node, self.element = node, element

    def __call__(self, layer: Layer, value: Value) -> Value:
        """The input minus its mean; OpError if the values do not fit the input."""
        shape = layer.shape(value)
        check(len(shape) > 1, f"the input has rank {len(shape)}, mean values need channels")
        channels = sorted(
            self.element.all("channel"), key=lambda each: parse_integer(each.attributes.get("id", "")) or 0
        )
        if any(float(scale.attributes.get("value", "1")) != 1 for each in channels for scale in each.all("scale")):
            layer.note(legacy_codes.IGNORED_SCALE, "scale values of the pre-processing are ignored")
        means = [mean for each in channels for mean in each.all("mean")]
        if not means:
            return value
        check(len(means) == shape[1], f"{len(means)} channels have a mean, the input has {shape[1]}")
        array = np.stack(np.broadcast_arrays(*[self._mean(layer, mean, shape[2:]) for mean in means]))[None]
        return layer.emit("Subtract", layer.f32(value), layer.constant(array), version=1)

    def _mean(self, layer: Layer, mean: XmlElement, image: tuple[int, ...]) -> np.ndarray:
        """The mean of a channel: as an image, or with sizes of 1."""
        if "value" in mean.attributes:
            try:
                return np.full([1] * len(image), float(mean.attributes["value"]), np.float32)
            except ValueError:
                raise WrongAttributeError(f"the mean {mean.attributes['value']!r} is not a number") from None
        offset, size = (parse_integer(mean.attributes.get(key, "")) for key in ("offset", "size"))
        if offset is None or size is None:
            raise WrongAttributeError("a mean has neither a value nor an offset and a size")
        element = named_element(self.element.attributes.get("mean-precision", "FP32")) or F32
        count = math.prod(image)
        check(
            size * 8 == count * element.bits, f"the mean image has {size} bytes, the input {count} elements a channel"
        )
        return unpack(element, layer.job.weights.read(offset, size), count).reshape(image).astype(np.float32)


def mean_subtraction(old: OldModel) -> MeanSubtraction | None:
    """The mean values of a file; None if it has none."""
    if old.pre_process is None:
        return None
    inputs = [node for node in old.graph.nodes if node.type.lower() == "input"]
    name = old.pre_process.attributes.get("reference-layer-name")
    for node in inputs:
        fact = node.outputs[0].fact if node.outputs else None
        if node.name == name or (not name and fact is not None and fact.rank == 4):
            return MeanSubtraction(node, old.pre_process)
    raise OpError(f"the pre-processing is for the layer {name!r}, which is not an input")


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
            inferred = self.builder.fact(fitted)
            if port.fact is not None and (not inferred.is_static or contradict(port.fact.shape, inferred.shape)):
                fitted.fact = Fact(inferred.element, port.fact.shape)
            fitted.line = port.line
            fitted.names = [output_name(port)]
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


_SHOWN = 8


@dataclass(frozen=True)
class Examination:
    """The model and the findings of a file.

    Attributes:
        model: the model; None if a layer cannot be translated. Its problems are the warnings and
            infos, and the finding of an unreadable .bin.
        findings: all findings, in the order of the file.
        writer: who wrote the file, for messages.
    """

    model: Model | None
    findings: tuple[Finding, ...]
    writer: str


def read(source: Source, weights: Weights, *, progress: Progress | None = None, warn: Callable[[str], object]) -> Model:
    """Read a file.

    Args:
        source: the .xml.
        weights: the .bin.
        progress: called with the fraction of the .xml that each step has read.
        warn: called with one sentence for each warning.

    Raises:
        ModelError: the file is not XML, or not an IR of version 2 to 7.
        ConversionError: layers cannot be translated; the message has each with its line.
    """
    found = translated(source, weights, progress=progress)
    for finding in found.findings:
        if finding.severity == "warning":
            warn(f"{finding.at(source.name)}: {finding.message}")
    assert found.model is not None
    return found.model


def translated(source: Source, weights: Weights, *, progress: Progress | None = None) -> Examination:
    """The examination of a file that can be translated.

    Raises:
        ModelError, ConversionError: as for read.
    """
    found = examine(source, weights, progress=progress)
    if found.model is None:
        errors = [finding for finding in found.findings if finding.severity == "error"]
        unsupported = all(one.code in (legacy_codes.UNKNOWN_LAYER, legacy_codes.NO_EQUIVALENT) for one in errors)
        raise ConversionError(f"{source.name} ({found.writer}): {_listed(errors)}", unsupported=unsupported)
    return found


def _listed(errors: list[Finding]) -> str:
    texts = [f"{one.at()}: {one.message}" if one.at() else one.message for one in errors[:_SHOWN]]
    more = len(errors) - len(texts)
    return "; ".join(texts) + (f"; and {counted(more, 'further error')} (irexec validate lists all)" if more else "")


@collection_paused()
def examine(source: Source, weights: Weights, *, progress: Progress | None = None) -> Examination:
    """Translate a file as far as possible, and find everything that is wrong with it at once.

    Raises:
        ModelError: the file is not XML, or not an IR of version 2 to 7.
    """
    old = read_syntax(source, weights, progress)
    builder, job = Builder(old.graph.name), Job(old.version, weights)
    main = GraphTranslation(old.graph, builder, job)
    try:
        main.mean = mean_subtraction(old)
    except OpError as error:
        job.fail(in_model(legacy_codes.DOES_NOT_FIT, str(error)))
    main.translate()
    if old.has_statistics:
        job.findings.append(in_model(legacy_codes.IGNORED_STATISTICS, "the statistics of activations are ignored"))
    _results(main)
    model = None if job.has_failed else _model(old, main, source, weights)
    return Examination(model, tuple(sorted(job.findings, key=lambda one: one.line or 0)), written_by(old))


def _results(main: GraphTranslation) -> None:
    """A Result for each port that no layer reads; of i64, engines give i32."""
    for port in main.unread():
        value = main.values.get(port)
        if value is not None:
            value = _given_out(main.builder, value, output_name(port))
            # The declared sizes are checked at the port of the layer.
            main.builder.result(value).ports[0].fact = main.builder.fact(value)


def _given_out(builder: Builder, value: Value, name: str) -> Value:
    if builder.fact(value).element is not I64:
        return value
    builder.rename(value.node, f"{name}/i64")
    value.names = []
    converted: Value = builder.emit("Convert", value, name=name, names=[name], destination_type=I32)
    return converted


def _model(old: OldModel, main: GraphTranslation, source: Source, weights: Weights) -> Model:
    builder, findings = main.builder, main.job.findings
    builder.drop_unused()
    main.restore_ids()
    model = builder.model()
    unreadable = [node for node in model.walk() if node.constant is not None and not node.constant.is_readable]
    findings += weights_problems(weights, unreadable)
    model.problems = list(findings)
    model.path, model.origin = source.path, written_by(old)
    if weights.path is not None and weights.defect is None:
        # Not bin_path: blobs may be in any order, leave gaps and share bytes.
        model.external_files = (weights.path,)
    set_metadata(model, elements=old.metadata)
    return model
