"""Translation of an ONNX graph, node by node; a subgraph also reads the names of the graphs around it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from converters.onnx.body_builder import BodyBuilder
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import (
    Objections,
    Translations,
    UsedNames,
    WithoutValueError,
    WrongAttributeError,
    describe,
    domain_of,
    every_node,
    module_of,
    opset_of,
    own_names,
    path_of,
    subgraphs,
)
from converters.onnx.load import contradictions, tensor_findings
from converters.onnx.operators import check_types
from converters.onnx.registry import Translation, translation_of
from converters.onnx.tensors import (
    EmptyOptional,
    LoopSequence,
    OnnxValue,
    ScoresByLabel,
    SettledStates,
    StackedSequence,
    TensorSequence,
    constant_of,
)
from irexec.analysis.builder import Builder
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.io.payload import MODULE, mark_layer
from irexec.ir.graph import Value
from irexec.ir.order import sort_by_producers
from irexec.messages import alternatives, counted


class Scope:
    """The names of one graph and their values.

    Attributes:
        graph: the ONNX graph.
        builder: receives the layers.
        values: the inputs, and the outputs of the nodes translated so far, by name.
        warn: called with the text of each warning.
        objections: collects the errors of nodes; None to raise them.
        unknown: the names of values that could not be translated.
        names: the tensor names used in the builder. A branch that replaces its If may reuse some of them.
    """

    def __init__(
        self, graph: onnx.GraphProto, opsets: Mapping[str, int], folder: Path | None, builder: Builder,
        warn: Callable[[str], object], outer: Scope | None = None, inside: TranslationContext | None = None,
        objections: Objections | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.opsets, self.folder, self.builder, self.warn = graph, opsets, folder, builder, warn
        self.values: dict[str, OnnxValue] = {}
        self.objections, self.unknown = objections, set[str]()
        self.initializers = _initializers(graph)
        self._outer, self._capture = outer, None if inside is None else inside.capture
        self._settled = SettledStates() if inside is None else inside.settled
        self._used: UsedNames = UsedNames() if outer is None else outer._used
        self._translations: Translations = (
            Translations(sum(1 for _ in every_node(graph))) if outer is None else outer._translations
        )
        self._in_place = outer is not None and outer.builder is builder
        self.names: set[str] = outer.names if outer is not None and self._in_place else own_names(graph)

    def nodes(self, inputs: str) -> None:
        """Translate every node, producers first; messages call the existing values ``inputs``."""
        taken = dict.fromkeys(self.values, inputs) | dict.fromkeys(self.initializers, "an initializer")
        if self.objections is not None:
            self.objections.begin(self.graph)
            for name, finding in tensor_findings(self.graph, self.folder):
                self.objections.add(self.graph, finding)
                self.assume(name)
        for node in _in_order(self.graph.node, taken, self.opsets, self._used):
            if self.objections is None:
                self._node(node)
            else:
                self._attempt(node, self.objections)

    def subgraph(self, ctx: TranslationContext, graph: onnx.GraphProto, inputs: Sequence[OnnxValue]) -> list[OnnxValue]:
        """The outputs of a graph inside one of this graph's nodes; see TranslationContext.subgraph."""
        if len(inputs) != len(graph.input):
            raise OpError(
                f"subgraph {graph.name!r} has {counted(len(graph.input), 'input')}, but receives {len(inputs)}"
            )
        inner = Scope(graph, self.opsets, self.folder, ctx.builder, self.warn, self, ctx, self.objections)
        inner.values.update(zip((info.name for info in graph.input), inputs, strict=True))
        inner.nodes("an input of the subgraph")
        if inner.objections is not None:
            inner.compare_declared(inner.objections)
            inner.require(output.name for output in graph.output)
        return [
            inner.lookup(output.name, f"output {output.name!r} of subgraph {graph.name!r}") for output in graph.output
        ]

    def compare_declared(self, objections: Objections) -> None:
        """Report the declared types and shapes that contradict the inferred ones."""
        for found in contradictions(self.graph, self.values, self.builder.fact):
            objections.add(self.graph, found.finding(path_of(self.graph)))

    def require(self, names: Iterable[str]) -> None:
        """Raise WithoutValueError if the value of one of these names could not be translated."""
        for name in names:
            if self._is_unknown(name):
                raise WithoutValueError(f"{name!r} cannot be converted")

    def _is_unknown(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None and name not in scope.unknown:
            if name in scope.values or name in scope.initializers:
                return False
            scope = scope._outer
        return scope is not None

    def _attempt(self, node: onnx.NodeProto, objections: Objections) -> None:
        """Translate a node. If that fails, its outputs become the declared ones, or unknown."""
        try:
            self.require(self._used.of(node))
            if translation_of(node, self.opsets) is None:
                raise WithoutValueError("reported with all nodes that have no translator")
            self._node(node)
        except IrexecError as error:
            objections.object(self.graph, node, error)
            # Collect the objections of the second branch of an If whose first branch could not be translated.
            for graph in subgraphs(node):
                if not graph.input and not objections.has_begun(graph):
                    with contextlib.suppress(IrexecError):
                        BodyBuilder(self._context(node, 1), [], 0).inner.subgraph_values(graph)
            for name in filter(None, node.output):
                self.assume(name)

    def assume(self, name: str) -> None:
        """Mark the value of a name as unknown; a subclass may do more."""
        self.values.pop(name, None)
        self.unknown.add(name)

    def value(self, name: str, where: str) -> Value:
        """The tensor of a name; see ``lookup``.

        Raises:
            ConversionError: the value does not exist, or is not a tensor.
        """
        found = self.lookup(name, where)
        if not isinstance(found, Value):
            raise ConversionError(f"{where}: {name!r} is not a tensor, and IR has tensors only", unsupported=True)
        return found

    def lookup(self, name: str, where: str) -> OnnxValue:
        """The value of a name in this graph or the graphs around it; ``where`` begins the error message.

        Raises:
            ConversionError: the value does not exist, or has a type that IR lacks.
        """
        if name not in self.values:
            self.values[name] = self._initializer(name) if name in self.initializers else self._outer_value(name, where)
        return self.values[name]

    def _initializer(self, name: str) -> Value:
        try:
            constant = constant_of(self.initializers[name], self.folder)
        except UnsupportedError as error:
            raise ConversionError(f"initializer {name!r}: {error}", unsupported=True) from None
        except OpError as error:
            raise ConversionError(f"initializer {name!r}: {error}") from None
        return self.builder.raw_constant(constant, name, [name])

    def _outer_value(self, name: str, where: str) -> OnnxValue:
        if self._outer is None or self._capture is None:
            raise WithoutValueError(f"{where}: nothing produces {name!r}")
        found = self._outer.lookup(name, where)
        if isinstance(found, EmptyOptional) or self._in_place:
            return found
        if isinstance(found, LoopSequence):
            raise ConversionError(
                f"{where}: a loop around this body appends to {name!r}, which cannot be converted", unsupported=True
            )
        if isinstance(found, StackedSequence):
            return StackedSequence(tuple(self._capture(item) for item in found.first), self._capture(found.rest))
        if isinstance(found, TensorSequence):
            return TensorSequence(tuple(self._capture(item) for item in found.items))
        if isinstance(found, ScoresByLabel):
            return ScoresByLabel(found.labels, self._capture(found.scores))
        return self._capture(found)

    def _node(self, node: onnx.NodeProto) -> None:
        where = describe(node, self.opsets)
        translation = translation_of(node, self.opsets)
        if translation is None:
            raise ConversionError(f"{where}: it has no translator", unsupported=True)
        look = self.lookup if translation.takes_sequences else self.value
        inputs = [look(name, where) if name else None for name in node.input]
        first_layer = len(self.builder.graph.nodes)
        context = self._context(node, opset_of(node, self.opsets))
        try:
            self._translations.count()
            _check_arity(translation, inputs)
            facts = [self.builder.fact(value) if isinstance(value, Value) else None for value in inputs]
            check_types(node.op_type, domain_of(node), facts)
            translation.check_ranks(facts)
            # NaN and overflow in constants of the model do not concern the user of the converter.
            with np.errstate(all="ignore"):
                result = translation(context, inputs, _attributes(node, translation))
        except (ConversionError, UnsupportedError) as error:
            unsupported = not isinstance(error, ConversionError) or error.unsupported
            raise ConversionError(f"{where}: {error}", unsupported=unsupported) from error
        except IrexecError as error:
            raise ConversionError(f"{where}: {error}") from error
        results = result if isinstance(result, tuple) else (result,)
        if results and isinstance(results[0], Value) and results[0].node.id >= first_layer:
            self.builder.rename(results[0].node, context.name)
        if module := module_of(node):
            for made in self.builder.graph.nodes[first_layer:]:
                mark_layer(made, MODULE, scope=module)
        self._name_outputs(node, results, where)

    def _context(self, node: onnx.NodeProto, opset: int) -> TranslationContext:
        """The context of a node, whose warnings become objections if these are collected."""
        objections = self.objections
        warn = self.warn if objections is None else lambda text: objections.warn(self.graph, node, text)
        return TranslationContext(self.builder, node, opset, self.subgraph, warn, self._settled)

    def _name_outputs(self, node: onnx.NodeProto, results: Sequence[OnnxValue | None], where: str) -> None:
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


def _initializers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto | onnx.SparseTensorProto]:
    found: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {}
    for tensor in [*graph.initializer, *graph.sparse_initializer]:
        name = tensor.name if isinstance(tensor, onnx.TensorProto) else tensor.values.name
        if name in found:
            raise WithoutValueError(f"two initializers have the name {name!r}")
        found[name] = tensor
    return found


def _check_arity(translation: Translation, inputs: Sequence[OnnxValue | None]) -> None:
    given = len(inputs)
    if given < translation.min_inputs or (translation.max_inputs is not None and given > translation.max_inputs):
        raise OpError(f"it has {counted(given, 'input')}, expected {_expected(translation)}")
    if any(
        value is None and required
        for value, required in zip_longest(inputs, translation.required_inputs[:given], fillvalue=True)
    ):
        raise OpError("a required input is missing")


def _expected(translation: Translation) -> str:
    minimum, maximum = translation.min_inputs, translation.max_inputs
    if maximum is None:
        return f"at least {minimum}"
    return str(minimum) if minimum == maximum else f"{minimum} to {maximum}"


# Attributes without an effect on the result.
_IGNORED = {"consumed_inputs"}


def _attributes(node: onnx.NodeProto, translation: Translation) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in translation.attributes:
            value = given[attribute.name] = _attribute(attribute, translation.attributes[attribute.name])
            choices = translation.choices.get(attribute.name, (value,))
            if value not in choices:
                expected = alternatives([choice for choice in choices if choice])
                raise WrongAttributeError(f"{attribute.name} is {value!r}, expected {expected}")
        elif attribute.name not in _IGNORED:
            raise WrongAttributeError(f"attribute {attribute.name!r} is unknown")
    missing = sorted(translation.required - set(given))
    if missing:
        raise WrongAttributeError(f"required attribute {', '.join(missing)} is missing")
    return given


def _attribute(attribute: AttributeProto, kinds: Sequence[str]) -> Any:
    """The value of an attribute. Files of ONNX IR version 1 lack its type."""
    if attribute.ref_attr_name:
        raise WrongAttributeError(
            f"attribute {attribute.name!r} refers to an attribute of a function, but the node is not inside a function"
        )
    if attribute.type == AttributeProto.UNDEFINED:
        given, attribute = attribute, AttributeProto()
        attribute.MergeFrom(given)
        attribute.type = AttributeProto.AttributeType.Value(kinds[0])
    kind = AttributeProto.AttributeType.Name(attribute.type)
    if kind not in kinds:
        raise WrongAttributeError(f"attribute {attribute.name!r} is of type {kind}, expected {' or '.join(kinds)}")
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        return [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value]
    return value


def _in_order(
    nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int], used: UsedNames
) -> list[onnx.NodeProto]:
    """The nodes with every producer before its consumers, whatever their order in the file.

    Args:
        nodes: the nodes of a graph.
        taken: names that are not outputs of a node, and their descriptions in messages.
        opsets: opsets of the domains, for messages.
        used: the names that the nodes read.

    Raises:
        ConversionError: the graph has a cycle, or a value has two producers.
    """
    producers = _producers(nodes, taken, opsets)
    order, stuck = sort_by_producers(
        [{producers[name] for name in used.of(node) if name in producers} for node in nodes]
    )
    if stuck:
        raise WithoutValueError(
            f"{describe(nodes[stuck[0]], opsets)}: it is part of a cycle of nodes, or depends on one"
        )
    return [nodes[i] for i in order]


def _producers(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in taken:
                raise WithoutValueError(f"{describe(node, opsets)}: its output {name!r} is also {taken[name]}")
            if name in producers:
                raise WithoutValueError(f"{describe(node, opsets)}: its output {name!r} is produced twice")
            producers[name] = i
    return producers
