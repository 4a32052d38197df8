"""Functions: those of the model, and function bodies by which ONNX defines operators; all are inlined.

The function body of an operator is inlined only if every node of it has a translator: otherwise messages would name
operators that are not in the model.

onnx.inliner drops the default values of a function's attributes (``FunctionProto.attribute_proto``) and leaves calls of
functions whose opset is not the model's. Source: ``onnx.proto`` of ONNX 1.23, FunctionProto and AttributeProto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx
from onnx import AttributeProto, defs, helper, inliner

from converters.onnx.graphs import (
    MAX_INLINED_BYTES,
    MAX_INLINED_NODES,
    MAX_NESTED_GRAPHS,
    carry_marks,
    domain_of,
    every_graph,
    every_node,
    graphs_in,
    mark_opset,
    opset_of,
    opsets_of,
    own_names,
    subgraphs,
)
from converters.onnx.registry import AI_ONNX_ML, COM_MICROSOFT, find
from irexec.errors import ConversionError
from irexec.ir.order import sort_by_producers

# The maximum number of nodes in a function body of ONNX.
_NODES_OF_A_SCHEMA_FUNCTION = 100


def inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with its own functions inlined, and the function bodies of operators without a translator.

    Raises:
        ConversionError: the model's own functions cannot be inlined, or inlining would produce too many nodes.
    """
    if len(model.functions):
        model = _without_overrides(model)
        # Raise ConversionError if functions call each other in a cycle, or if the inlined model exceeds the limits.
        whole = size_when_inlined(model, where)
        for size, limit, what in ((whole.nodes, MAX_INLINED_NODES, "nodes"), (whole.bytes, MAX_INLINED_BYTES, "bytes")):
            if size > limit:
                shown = size if size < 10**18 else "over 10**18"
                raise ConversionError(
                    f"{where}: inlining its functions produces {shown} {what}, more than the {limit} allowed"
                )
        try:
            model = with_functions_inlined(model)
        except ConversionError as error:
            raise ConversionError(f"{where}: the model's own functions cannot be inlined: {error}") from None
    for operator in sorted(_untranslated(model)):
        model = _expanded(model, operator, where)
    return model


def overriding(model: onnx.ModelProto) -> list[onnx.FunctionProto]:
    """The functions of a model that have the name of an operator: the operator is computed."""
    opsets = opsets_of(model)
    return [function for function in model.functions if overrides_an_operator(function, opsets)]


def _without_overrides(model: onnx.ModelProto) -> onnx.ModelProto:
    names = {identity_of(function) for function in overriding(model)}
    if not names:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.functions[:]
    copy.functions.extend(function for function in model.functions if identity_of(function) not in names)
    return copy


def _untranslated(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """The operators without a translator, each with its domain."""
    opsets = opsets_of(model)
    return {
        (domain_of(node), node.op_type)
        for node in every_node(model.graph)
        if find(node.op_type, domain_of(node), opset_of(node, opsets)) is None
    }


def _with_body(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    """The schema of an operator that ONNX defines by a function body; None for others."""
    if not has_schema(operator, domain, opset):
        return None
    schema = defs.get_schema(operator, opset, domain)
    # The type stubs of onnx lack both attributes.
    lists = ("function_opset_versions", "context_dependent_function_opset_versions")
    return schema if any(getattr(schema, name) for name in lists) else None


def _expanded(model: onnx.ModelProto, operator: tuple[str, str], where: str) -> onnx.ModelProto:
    """The model with an operator replaced by its function body; unchanged if no body can be translated."""
    schema = _with_body(*operator, opsets_of(model).get(operator[0], 1))
    if schema is None:
        return model
    calls = sum((domain_of(node), node.op_type) == operator for node in every_node(model.graph))
    if calls * _NODES_OF_A_SCHEMA_FUNCTION > MAX_INLINED_NODES:
        allowed = MAX_INLINED_NODES // _NODES_OF_A_SCHEMA_FUNCTION
        raise ConversionError(
            f"{where}: it has {calls} nodes of {schema.name}, which is a function; at most {allowed} can be inlined"
        )
    # Whether all nodes of an operator have its minimum numbers of inputs and outputs.
    nodes = [
        node for node in every_node(model.graph) if (domain_of(node), node.op_type) == (schema.domain, schema.name)
    ]
    if not all(len(node.input) >= schema.min_input and len(node.output) >= schema.min_output for node in nodes):
        # The builder of the body would read missing inputs; the check of nodes reports them.
        return model
    try:
        expanded = inliner.inline_selected_functions(_prepared(model, schema), [operator], inline_schema_functions=True)
    except Exception:
        # C++, as above; the operator is then reported as one without a translator.
        return model
    carry_marks(model, expanded)
    before = _untranslated(model)
    for inner in sorted(_untranslated(expanded) - before):
        expanded = _expanded(expanded, inner, where)
    return expanded if _untranslated(expanded) < before else model


def _prepared(model: onnx.ModelProto, schema: defs.OpSchema) -> onnx.ModelProto:
    """The model prepared for the inlining of an operator's bodies.

    Default attributes are written out: bodies refer to them, and the inliner drops them otherwise. Initializers become
    value_info, the only place apart from inputs where the inliner finds types.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in every_graph(copy.graph):
        if isinstance(graph, onnx.GraphProto):
            typed = {info.name for info in (*graph.input, *graph.value_info)}
            fixed = (tensor for tensor in graph.initializer if tensor.name not in typed)
            graph.value_info.extend(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in fixed
            )
    for node in every_node(copy.graph):
        if (domain_of(node), node.op_type) != (schema.domain, schema.name):
            continue
        given = {attribute.name for attribute in node.attribute}
        defaults = (attribute.default_value for name, attribute in schema.attributes.items() if name not in given)
        node.attribute.extend(default for default in defaults if default.name)
    return copy


Identity: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function."""

_STANDARD = ("", AI_ONNX_ML, COM_MICROSOFT)


def identity_of(called: onnx.NodeProto | onnx.FunctionProto) -> Identity:
    """The function that a node calls, if there is one, or the identity of a function."""
    name = called.op_type if isinstance(called, onnx.NodeProto) else called.name
    return domain_of(called), name, called.overload


def name_of(function: onnx.FunctionProto) -> str:
    """The name of a function in messages, with its domain unless that is ai.onnx."""
    domain = domain_of(function)
    return f"{domain}.{function.name}" if domain else function.name


def overrides_an_operator(function: onnx.FunctionProto, opsets: Mapping[str, int]) -> bool:
    """True if a function has the name of an operator of a standard domain.

    The operator is computed then, as by ONNX Runtime 1.32 and OpenVINO 2026.4 (onnx.reference 1.23 knows no operator of
    com.microsoft). ONNX leaves the choice to the runtime.
    """
    domain = domain_of(function)
    if domain not in _STANDARD:
        return False
    opset = opsets.get(domain, 1)
    return find(function.name, domain, opset) is not None or has_schema(function.name, domain, opset)


def has_schema(operator: str, domain: str, opset: int) -> bool:
    """True if ONNX defines an operator in an opset."""
    try:
        return not defs.get_schema(operator, opset, domain).deprecated
    except defs.SchemaError:
        return False


class _Names:
    """Names that are taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, with a number if it is taken; the result is taken from then on."""
        found = name
        while found in self._taken:
            number = self._numbers[name] = self._numbers.get(name, 1) + 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found


# Names of calls nested deep would become arbitrarily long.
_LONGEST_PREFIX = 500


@dataclass(frozen=True)
class _Frame:
    """The meaning of names and attributes in a graph that is copied.

    Attributes:
        names: the new name of each value; None in the main graph and its subgraphs, which keep their names.
        attributes: the attributes of the function's call, and the default values of the others.
        prefix: the beginning of new names: the name of the call, with a slash.
        opsets: the opsets of the function or of the model.
        depth: the number of graphs around this one.
    """

    names: Mapping[str, str] | None
    attributes: Mapping[str, onnx.AttributeProto]
    prefix: str
    opsets: Mapping[str, int]
    depth: int = 0


def with_functions_inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model without functions: each call is replaced by the nodes of the function.

    Values and nodes of a function have the name of the call before theirs. Nodes of another opset than the model's are
    marked with their own.

    Raises:
        ConversionError: a call does not have the inputs or outputs of its function, or graphs are nested too deep.
    """
    return _Inlining(model).model


class _Inlining:
    """One inlining; no function calls itself.

    Attributes:
        model: the copy.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self._functions = {identity_of(function): _with_distinct_outputs(function) for function in model.functions}
        del self.model.functions[:]
        self._import_domains(model.functions)
        self._opsets = opsets_of(self.model)
        graphs = [graph for graph in every_graph(self.model.graph) if isinstance(graph, onnx.GraphProto)]
        self._names = _Names(name for graph in graphs for name in own_names(graph))
        self._node_names = _Names(node.name for graph in graphs for node in graph.node)
        self._fill(self.model.graph, _Frame(None, {}, "", self._opsets))

    def _import_domains(self, functions: Iterable[onnx.FunctionProto]) -> None:
        """Import the domains that only functions import."""
        known = {domain_of(opset) for opset in self.model.opset_import}
        for function in functions:
            for opset in function.opset_import:
                if domain_of(opset) not in known:
                    known.add(domain_of(opset))
                    self.model.opset_import.append(opset)

    def _fill(self, graph: onnx.GraphProto, frame: _Frame) -> None:
        """Replace the nodes of a graph by the inlined ones."""
        if frame.depth > MAX_NESTED_GRAPHS:
            raise ConversionError(f"graph {graph.name!r} has subgraphs nested more than {MAX_NESTED_GRAPHS} deep")
        nodes = list(self._inlined(graph.node, frame))
        del graph.node[:]
        graph.node.extend(nodes)

    def _inlined(self, nodes: Iterable[onnx.NodeProto], frame: _Frame) -> Iterator[onnx.NodeProto]:
        """Copies of nodes, with calls replaced. Calls may be nested deeper than Python's stack."""
        stack = [(iter(nodes), frame)]
        while stack:
            remaining, frame = stack[-1]
            node = next(remaining, None)
            if node is None:
                stack.pop()
                continue
            copy = self._copy(node, frame)
            function = self._functions.get(identity_of(node))
            if function is None:
                yield copy
            else:
                stack.append((iter(function.node), self._frame(copy, function, frame.depth)))

    def _copy(self, node: onnx.NodeProto, frame: _Frame) -> onnx.NodeProto:
        """A node with its names, attributes and subgraphs as they are in the frame."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.attribute[:]
        copy.attribute.extend(filter(None, (self._attribute(attribute, frame) for attribute in node.attribute)))
        domain = domain_of(node)
        own, known = frame.opsets.get(domain, self._opsets.get(domain)), self._opsets.get(domain)
        if own is not None and own != known and not _is_expanded_alike(node.op_type, domain, own, known or 1):
            mark_opset(copy, own)
        if frame.names is None:
            return copy
        copy.input[:] = [self._renamed(name, frame) for name in node.input]
        copy.output[:] = [self._renamed(name, frame) for name in node.output]
        if node.name:
            copy.name = self._node_names.unique(frame.prefix + node.name)
        return copy

    def _renamed(self, name: str, frame: _Frame) -> str:
        if frame.names is None or not name:
            return name
        # A name that nothing defines must not meet one of the calling graph.
        return frame.names[name] if name in frame.names else self._names.unique(frame.prefix + name)

    def _attribute(self, attribute: onnx.AttributeProto, frame: _Frame) -> onnx.AttributeProto | None:
        """A copy of an attribute; None if it refers to an attribute of the function that has no value."""
        copy = onnx.AttributeProto()
        if attribute.ref_attr_name and frame.names is not None:
            value = frame.attributes.get(attribute.ref_attr_name)
            if value is None:
                return None
            copy.CopyFrom(value)
            copy.name = attribute.name
            return copy
        copy.CopyFrom(attribute)
        for graph in [*([copy.g] if copy.HasField("g") else ()), *copy.graphs]:
            self._fill(graph, self._subgraph(graph, frame))
        return copy

    def _subgraph(self, graph: onnx.GraphProto, frame: _Frame) -> _Frame:
        """The frame of a subgraph, whose own values get new names inside a function."""
        if frame.names is None:
            return _Frame(None, {}, "", frame.opsets, frame.depth + 1)
        own = {name: self._names.unique(frame.prefix + name) for name in sorted(own_names(graph))}
        inner = _Frame({**frame.names, **own}, frame.attributes, frame.prefix, frame.opsets, frame.depth + 1)
        for thing in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
            thing.name = self._renamed(thing.name, inner)
        for sparse in graph.sparse_initializer:
            sparse.values.name = self._renamed(sparse.values.name, inner)
        return inner

    def _frame(self, call: onnx.NodeProto, function: onnx.FunctionProto, depth: int) -> _Frame:
        """The frame of a function's nodes; ``call`` is the copy of the calling node."""
        for what, given, own in (("inputs", call.input, function.input), ("outputs", call.output, function.output)):
            if len(given) > len(own):
                raise ConversionError(
                    f"node {call.name or next(iter(call.output), '')!r} has {len(given)} {what}, but the function "
                    f"{name_of(function)!r} has {len(own)}"
                )
        called = call.name or next(filter(None, call.output), function.name)
        prefix = f"{called if len(called) < _LONGEST_PREFIX else function.name}/"
        outputs = dict(zip(function.output, call.output, strict=False))
        names = {
            inner: outputs.get(inner) or self._names.unique(prefix + inner)
            for node in function.node
            for inner in node.output
            if inner
        }
        names |= dict.fromkeys(function.input, "") | dict(zip(function.input, call.input, strict=False))
        opsets = self._opsets | {domain_of(opset): opset.version for opset in function.opset_import}
        given = {attribute.name: attribute for attribute in call.attribute}
        frame = _Frame(names, given, prefix, opsets, depth)
        defaults = (each for each in function.attribute_proto if each.name not in given)
        values = {each.name: value for each in defaults if (value := self._attribute(each, frame)) is not None}
        return _Frame(names, given | values, prefix, opsets, depth)


def _is_expanded_alike(operator: str, domain: str, one: int, other: int) -> bool:
    """True for an operator without a translator that ONNX defines in the same way in both opsets."""
    if find(operator, domain, one) is not None or find(operator, domain, other) is not None:
        return False
    if not has_schema(operator, domain, one) or not has_schema(operator, domain, other):
        return False
    return (
        defs.get_schema(operator, one, domain).since_version == defs.get_schema(operator, other, domain).since_version
    )


def _with_distinct_outputs(function: onnx.FunctionProto) -> onnx.FunctionProto:
    """The function with an Identity for each output that is an input or an earlier output."""
    taken = set(function.input)
    if len(taken | set(function.output)) == len(function.input) + len(function.output):
        return function
    copy = onnx.FunctionProto()
    copy.CopyFrom(function)
    names = _Names(taken.union(*(node.output for graph in every_graph(function) for node in graph.node)))
    for i, name in enumerate(function.output):
        if name in taken:
            copy.output[i] = names.unique(name)
            copy.node.append(onnx.helper.make_node("Identity", [name], [copy.output[i]]))
        taken.add(name)
    return copy


@dataclass
class InlinedSize:
    """Size of nodes after every call among them and in their subgraphs is replaced by the function's nodes.

    Attributes:
        nodes: the number of nodes, subgraphs included.
        bytes: their approximate size.
        attributes: for nodes of a function, the number of copies of each attribute of the function in them.
    """

    nodes: int = 0
    bytes: int = 0
    attributes: Counter[str] = field(default_factory=Counter)

    def add(self, other: InlinedSize, times: int = 1) -> None:
        """Add another size ``times`` times."""
        self.nodes += times * other.nodes
        self.bytes += times * other.bytes
        for name, count in other.attributes.items():
            self.attributes[name] += times * count


def size_when_inlined(model: onnx.ModelProto, where: str) -> InlinedSize:
    """The size of the main graph with all functions inlined. Each function is measured once.

    Raises:
        ConversionError: a function calls itself, directly or through others, or two functions have the same name;
            ``where`` begins the message.
    """
    functions = {identity_of(function): function for function in model.functions}
    if len(functions) < len(model.functions):
        raise ConversionError(f"{where}: two of the model's own functions have the same name")
    numbers = {key: i for i, key in enumerate(functions)}
    called = [
        {numbers[key] for key in map(identity_of, every_node(function)) if key in numbers}
        for function in model.functions
    ]
    order, stuck = sort_by_producers(called)
    if stuck:
        function = model.functions[stuck[0]]
        raise ConversionError(
            f"{where}: the model's own function {name_of(function)!r} calls itself, directly or through others"
        )
    sizes: dict[Identity, InlinedSize] = {}
    for i in order:
        sizes[identity_of(model.functions[i])] = _of_function(model.functions[i], sizes)
    return _of_nodes(model.graph.node, sizes)


def _of_function(function: onnx.FunctionProto, sizes: Mapping[Identity, InlinedSize]) -> InlinedSize:
    """The size of a function's nodes with the default values of its attributes; calls may override them."""
    size = _of_nodes(function.node, sizes)
    for default in function.attribute_proto:
        value = _of_attribute(default, sizes)
        size.add(InlinedSize(value.nodes, value.bytes), size.attributes[default.name])
    return size


def _of_nodes(nodes: Iterable[onnx.NodeProto], sizes: Mapping[Identity, InlinedSize]) -> InlinedSize:
    total = InlinedSize()
    for node in nodes:
        function = sizes.get(identity_of(node))
        if function is not None:
            total.add(InlinedSize(function.nodes, function.bytes))
        elif any(True for _ in subgraphs(node)) or any(attribute.ref_attr_name for attribute in node.attribute):
            total.nodes += 1
        else:
            total.add(InlinedSize(1, node.ByteSize()))
            continue
        for attribute in node.attribute:
            total.add(_of_attribute(attribute, sizes), 1 if function is None else function.attributes[attribute.name])
    return total


def _of_attribute(attribute: AttributeProto, sizes: Mapping[Identity, InlinedSize]) -> InlinedSize:
    if attribute.ref_attr_name:
        return InlinedSize(attributes=Counter([attribute.ref_attr_name]))
    graphs = graphs_in(attribute)
    if not graphs:
        return InlinedSize(bytes=attribute.ByteSize())
    total = InlinedSize()
    for graph in graphs:
        total.add(_of_nodes(graph.node, sizes))
        total.bytes += sum(tensor.ByteSize() for tensor in graph.initializer)
    return total
