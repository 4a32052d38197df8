"""A graph of an ONNX model, node by node, into a builder; a subgraph sees the names around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto

from converters.onnx.context import Capture, Context
from converters.onnx.functions import domain_of
from converters.onnx.held import Growing, Held, Nothing, Stacked, Tensors
from converters.onnx.load import describe, in_order, own_names, translation_of
from converters.onnx.registry import Translation
from converters.onnx.tensors import constant_of
from irexec.analysis.builder import Builder
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.ir.graph import Value


class Scope:
    """What the names of one graph mean.

    Attributes:
        graph: the ONNX graph.
        builder: takes its layers.
        values: the inputs and what nodes have produced, by name.
        names: those of the tensors in the builder. A subgraph that stands in place of its node may have some again.
    """

    def __init__(
        self, graph: onnx.GraphProto, opsets: Mapping[str, int], folder: Path | None, builder: Builder, outer: Scope | None = None,
        capture: Capture | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.opsets, self.folder, self.builder = graph, opsets, folder, builder
        self.values: dict[str, Held] = {}
        self.initialisers = _initialisers(graph)
        self._outer, self._capture = outer, capture
        self._in_place = outer is not None and outer.builder is builder
        self.names: set[str] = outer.names if outer is not None and self._in_place else own_names(graph)

    def nodes(self, inputs: str) -> None:
        """Translate every node, producers first; ``inputs`` says what the values there are already are."""
        taken = dict.fromkeys(self.values, inputs) | dict.fromkeys(self.initialisers, "an initialiser")
        for node in in_order(self.graph.node, taken, self.opsets):
            self._node(node)

    def subgraph(self, b: Context, graph: onnx.GraphProto, inputs: Sequence[Held]) -> list[Held]:
        """The outputs of a graph inside one of this graph's nodes; see Context.subgraph."""
        if len(inputs) != len(graph.input):
            raise OpError(f"subgraph {graph.name!r} has {len(graph.input)} inputs, it is given {len(inputs)}")
        inner = Scope(graph, self.opsets, self.folder, b.builder, self, b.capture)
        inner.values.update(zip((info.name for info in graph.input), inputs, strict=True))
        inner.nodes("an input of the subgraph")
        return [inner.held(output.name, f"output {output.name!r} of subgraph {graph.name!r}") for output in graph.output]

    def value(self, name: str, where: str) -> Value:
        """The tensor of a name, of this graph or of those around it; ``where`` is for the error.

        Raises:
            ConversionError: there is none, or IR does not have its type.
        """
        found = self.held(name, where)
        if not isinstance(found, Value):
            raise ConversionError(f"{where}: {name!r} is no tensor, which is all that IR has", unsupported=True)
        return found

    def held(self, name: str, where: str) -> Held:
        """What a name means, be it a tensor or not; see ``value``."""
        if name not in self.values:
            self.values[name] = self._initialiser(name) if name in self.initialisers else self._from_around(name, where)
        return self.values[name]

    def _initialiser(self, name: str) -> Value:
        try:
            constant = constant_of(self.initialisers[name], self.folder)
        except UnsupportedError as error:
            raise ConversionError(f"initialiser {name!r}: {error}", unsupported=True) from None
        return self.builder.raw_constant(constant, name, [name])

    def _from_around(self, name: str, where: str) -> Held:
        if self._outer is None or self._capture is None:
            raise ConversionError(f"{where}: nothing produces {name!r}")
        found = self._outer.held(name, where)
        if isinstance(found, Nothing) or self._in_place:
            return found
        if isinstance(found, Growing):
            raise ConversionError(f"{where}: {name!r} grows in a loop around the body that uses it", unsupported=True)
        if isinstance(found, Stacked):
            return Stacked(tuple(self._capture(item) for item in found.first), self._capture(found.rest))
        if isinstance(found, Tensors):
            return Tensors(tuple(self._capture(item) for item in found.items))
        return self._capture(found)

    def _node(self, node: onnx.NodeProto) -> None:
        where = describe(node, self.opsets)
        translation = translation_of(node, self.opsets)
        if translation is None:
            raise ConversionError(f"{where}: it cannot be converted", unsupported=True)
        look = self.held if translation.takes_sequences else self.value
        inputs = [look(name, where) if name else None for name in node.input]
        first = len(self.builder.graph.nodes)
        context = Context(self.builder, node, self.opsets.get(domain_of(node), 1), self.subgraph)
        try:
            _check_arity(translation, inputs)
            result = translation.function(context, *inputs, **_attributes(node, translation))
        except (ConversionError, UnsupportedError) as error:
            outside = not isinstance(error, ConversionError) or error.unsupported
            raise ConversionError(f"{where}: {error}", unsupported=outside) from error
        except IrexecError as error:
            raise ConversionError(f"{where}: {error}") from error
        results = result if isinstance(result, tuple) else (result,)
        if results and isinstance(results[0], Value) and results[0].node.id >= first:
            self.builder.rename(results[0].node, context.name)
        self._name_outputs(node, results, where)

    def _name_outputs(self, node: onnx.NodeProto, results: Sequence[Held | None], where: str) -> None:
        for i, name in enumerate(node.output):
            if not name:
                continue
            value = results[i] if i < len(results) else None
            if value is None:
                raise ConversionError(f"{where}: its output {i} cannot be converted", unsupported=True)
            self.values[name] = value
            if isinstance(value, Value) and name not in (self.names if self._in_place else value.names):
                value.names.append(name)
                self.names.add(name)


def _initialisers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto | onnx.SparseTensorProto]:
    found: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {}
    for tensor in [*graph.initializer, *graph.sparse_initializer]:
        name = tensor.name if isinstance(tensor, onnx.TensorProto) else tensor.values.name
        if name in found:
            raise ConversionError(f"two initialisers are called {name!r}")
        found[name] = tensor
    return found


def _check_arity(translation: Translation, inputs: Sequence[Held | None]) -> None:
    given = len(inputs)
    if given < translation.least_inputs or (translation.most_inputs is not None and given > translation.most_inputs):
        raise OpError(f"it has {given} inputs")
    if any(value is None and needed for value, needed in zip_longest(inputs, translation.needed[:given], fillvalue=True)):
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
