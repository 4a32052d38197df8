"""The driver: an ONNX graph, node by node, into a Builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, inliner

from converters.onnx.registry import Translation, find
from converters.onnx.tensors import array_of, constant_of, dense_of, element_of
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.errors import ConversionError, IrexecError, OpError
from irexec.ir.dims import ANY, Dim, PartialShape, Size
from irexec.ir.elements import Element
from irexec.ir.facts import Fact
from irexec.ir.graph import Value

_DOMAINS = {"ai.onnx": ""}


class Context:
    """What a translation sees: the builder, what is known of values, and the node it translates.

    Attributes:
        builder: takes the layers.
        node: the ONNX node.
        opset: the version of its domain.
        domain: its domain, "" for ai.onnx.
        outputs: whether each output of the node is wanted.
    """

    def __init__(self, builder: Builder, node: onnx.NodeProto, opset: int) -> None:
        self.builder, self.node, self.opset = builder, node, opset
        self.domain = _DOMAINS.get(node.domain, node.domain)
        self.outputs = [bool(name) for name in node.output]
        self._name = node.name or (node.output[0] if node.output else node.op_type)

    def emit(self, type: str, *inputs: Any, **attributes: Any) -> Any:
        """Add an IR operation; layers are named after the ONNX node."""
        return self.builder.emit(type, *inputs, name=self._name, **attributes)

    def constant(self, value: Any, like: Value | Element | None = None) -> Value:
        """A constant, of the element type of ``like`` if given."""
        kind = self.element(like) if isinstance(like, Value) else like
        return self.builder.constant(value, kind, name=f"{self._name}/constant")

    def fact(self, value: Value) -> Fact:
        """What is known of a value."""
        return self.builder.fact(value)

    def element(self, value: Value) -> Element:
        """The element type of a value, which must be known."""
        found = self.fact(value).element
        if found is None:
            raise OpError("the element type is not known")
        return found

    def rank(self, value: Value) -> int:
        """The rank of a value, which must be known."""
        found = self.fact(value).rank
        if found is None:
            raise OpError("the rank of an input is not known")
        return found

    def sizes(self, value: Value) -> tuple[Size, ...]:
        """The shape of a value, whose rank must be known."""
        return self.fact(value).require_shape("an input")

    def static(self, value: Value, what: str = "an input") -> tuple[int, ...]:
        """The shape of a value, every size of which must be known."""
        sizes = self.sizes(value)
        found = tuple(size for size in sizes if isinstance(size, int))
        if len(found) != len(sizes):
            raise OpError(f"the shape {self.fact(value)} of {what} must be known")
        return found

    def known(self, value: Value | None) -> np.ndarray | None:
        """The number of a value, if it is known now; a large constant is unpacked for it."""
        if value is None:
            return None
        found = self.fact(value).known
        return found if found is not None else self.builder.constant_array(value)

    def ints(self, value: Value | None, what: str) -> tuple[int, ...]:
        """The number of an integer value, which must be known."""
        found = self.known(value)
        if found is None:
            raise OpError(f"{what} must be known when the model is converted")
        return tuple(int(v) for v in found.ravel().tolist())


def translate(source: str | Path | onnx.ModelProto, inputs: Mapping[str, PartialShape]) -> Model:
    """Convert an ONNX model; see converters.convert."""
    model, folder = _load(source)
    missing = _unsupported(model)
    if missing:
        raise ConversionError(f"{len(missing)} nodes cannot be converted: {'; '.join(missing)}", unsupported=True)
    return _Graph(model, folder, inputs).model()


def unsupported_nodes(source: str | Path | onnx.ModelProto) -> list[str]:
    """One sentence for each node that has no translation."""
    return _unsupported(_load(source)[0])


def _load(source: str | Path | onnx.ModelProto) -> tuple[onnx.ModelProto, Path | None]:
    folder = None
    if isinstance(source, str | Path):
        path = Path(source)
        folder = path.parent
        try:
            model = onnx.load(str(path), load_external_data=False)
        except OSError as error:
            raise ConversionError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (DecodeError, ValueError) as error:
            raise ConversionError(f"{path}: not an ONNX model: {error}") from None
    else:
        model = source
    if not model.HasField("graph"):
        raise ConversionError(f"{source if folder else 'the model'}: not an ONNX model: it has no graph")
    if len(model.functions):
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:
            raise ConversionError(f"the model's own functions cannot be inlined: {error}") from None
    return model, folder


def _opsets(model: onnx.ModelProto) -> dict[str, int]:
    found = {_DOMAINS.get(o.domain, o.domain): o.version for o in model.opset_import}
    # Domains of ONNX Runtime are often used without being imported.
    return {"com.microsoft": 1, "com.ms.internal.nhwc": 1 << 30, "": 1} | found


def _translation(node: onnx.NodeProto, opsets: Mapping[str, int]) -> Translation | None:
    domain = _DOMAINS.get(node.domain, node.domain)
    return find(node.op_type, domain, opsets.get(domain, 1))


def _unsupported(model: onnx.ModelProto) -> list[str]:
    opsets = _opsets(model)
    return [_where(node, opsets) for node in _nodes(model.graph) if _translation(node, opsets) is None]


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


class _Graph:
    """One graph on its way into a builder."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, inputs: Mapping[str, PartialShape]) -> None:
        self.graph, self.folder, self.inputs = model.graph, folder, inputs
        self.opsets = _opsets(model)
        self.builder = Builder(model.graph.name or "model")
        self.values: dict[str, Value] = {}
        self.initialisers: dict[str, Any] = {tensor.name: tensor for tensor in model.graph.initializer}
        self.initialisers |= {sparse.values.name: sparse for sparse in model.graph.sparse_initializer}

    def model(self) -> Model:
        self._parameters()
        for node in self._ordered():
            self._node(node)
        for output in self.graph.output:
            self.builder.result(self._value(output.name, f"output {output.name!r} of the graph"), name=f"{output.name}/sink_port_0")
        self.builder.drop_unused()
        return self.builder.model()

    def _parameters(self) -> None:
        known = {info.name for info in self.graph.input}
        for name in self.inputs:
            if name not in known or name in self.initialisers:
                expected = ", ".join(repr(n) for n in known if n not in self.initialisers)
                raise ConversionError(f"there is no input {name!r}: the model has {expected}")
        for info in self.graph.input:
            if info.name in self.initialisers:
                continue
            if info.name in self.values:
                raise ConversionError(f"two inputs are called {info.name!r}")
            if not info.type.HasField("tensor_type"):
                raise ConversionError(f"input {info.name!r} is no tensor", unsupported=True)
            tensor = info.type.tensor_type
            shape = self.inputs[info.name] if info.name in self.inputs else _shape(tensor)
            self.values[info.name] = self.builder.parameter(element_of(tensor.elem_type), shape, info.name, [info.name])

    def _ordered(self) -> list[onnx.NodeProto]:
        """The nodes, producers first, whatever the order in the file.

        Raises:
            ConversionError: nodes feed each other in a circle, or a value has two producers.
        """
        producers: dict[str, int] = {}
        nodes = list(self.graph.node)
        for i, node in enumerate(nodes):
            for name in filter(None, node.output):
                if name in producers or name in self.values or name in self.initialisers:
                    raise ConversionError(f"{_where(node, self.opsets)}: its output {name!r} is produced twice")
                producers[name] = i
        waiting = [len({producers[name] for name in node.input if name in producers}) for node in nodes]
        consumers: list[list[int]] = [[] for _ in nodes]
        for i, node in enumerate(nodes):
            for producer in {producers[name] for name in node.input if name in producers}:
                consumers[producer].append(i)
        ready = [i for i, count in enumerate(waiting) if count == 0]
        for i in ready:
            for consumer in consumers[i]:
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    ready.append(consumer)
        if len(ready) < len(nodes):
            stuck = next(i for i, count in enumerate(waiting) if count)
            raise ConversionError(f"{_where(nodes[stuck], self.opsets)}: it is on or behind a circle of nodes")
        return [nodes[i] for i in ready]

    def _value(self, name: str, where: str) -> Value:
        if name not in self.values:
            if name not in self.initialisers:
                raise ConversionError(f"{where}: nothing produces {name!r}")
            self.values[name] = self._initialiser(name)
        return self.values[name]

    def _initialiser(self, name: str) -> Value:
        tensor = self.initialisers[name]
        if isinstance(tensor, onnx.SparseTensorProto):
            array, kind = dense_of(tensor)
            return self.builder.constant(array, kind, name, [name])
        mapped = constant_of(tensor, self.folder)
        if mapped is not None:
            return self.builder.raw_constant(mapped, name, [name])
        array, kind = array_of(tensor)
        return self.builder.constant(array, kind, name, [name])

    def _node(self, node: onnx.NodeProto) -> None:
        where = _where(node, self.opsets)
        translation = _translation(node, self.opsets)
        if translation is None:
            raise ConversionError(f"{where}: it cannot be converted", unsupported=True)
        domain = _DOMAINS.get(node.domain, node.domain)
        try:
            inputs = [self._value(name, where) if name else None for name in node.input]
            self._check_arity(translation, inputs)
            context = Context(self.builder, node, self.opsets.get(domain, 1))
            result = translation.function(context, *inputs, **self._attributes(node, translation))
        except ConversionError as error:
            raise error if str(error).startswith("node ") else ConversionError(f"{where}: {error}", unsupported=error.unsupported) from None
        except IrexecError as error:
            raise ConversionError(f"{where}: {error}") from error
        self._name_outputs(node, result if isinstance(result, tuple) else (result,), where)

    @staticmethod
    def _check_arity(translation: Translation, inputs: Sequence[Value | None]) -> None:
        given = len(inputs)
        if given < translation.least_inputs or (translation.most_inputs is not None and given > translation.most_inputs):
            raise OpError(f"has {given} inputs")

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

    def _attributes(self, node: onnx.NodeProto, translation: Translation) -> dict[str, Any]:
        given = {}
        for attribute in node.attribute:
            if attribute.name in translation.attributes or translation.takes_any:
                given[attribute.name] = _attribute(attribute)
            elif attribute.name not in _IGNORED:
                raise OpError(f"attribute {attribute.name!r} is not known")
        lacking = sorted(translation.required - set(given))
        if lacking:
            raise OpError(f"required attribute {', '.join(lacking)} is missing")
        return given


# Attributes that say nothing of the result.
_IGNORED = {"consumed_inputs"}


def _attribute(attribute: AttributeProto) -> Any:
    if attribute.type in (AttributeProto.TENSOR, AttributeProto.SPARSE_TENSOR, AttributeProto.GRAPH):
        return {AttributeProto.TENSOR: attribute.t, AttributeProto.SPARSE_TENSOR: attribute.sparse_tensor}.get(attribute.type, attribute.g)
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


def _where(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    name = node.name or (node.output[0] if node.output else "")
    domain = _DOMAINS.get(node.domain, node.domain)
    return f"node {name!r} ({node.domain or 'ai.onnx'}.{node.op_type} of opset {opsets.get(domain, '?')})"
