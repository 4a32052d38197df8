"""Size of a model after its own functions are inlined, computed without inlining: chained calls multiply it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto

from converters.onnx.graphs import every_node, graphs_in, subgraphs
from converters.onnx.inlining import Identity, identity_of, name_of
from irexec.errors import ConversionError
from irexec.ir.order import sort_by_producers


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
