"""Opening an ONNX model: what is no model, and what cannot be translated, is said before anything is built."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto

from converters.onnx.functions import domain_of, every_node, inlined, opsets_of
from converters.onnx.registry import Translation, find
from irexec.errors import ConversionError

NEWEST_OPSET = 28
"""The newest opset of ai.onnx whose operators are known."""


def load(source: str | Path | onnx.ModelProto) -> tuple[onnx.ModelProto, Path | None]:
    """The model, its local functions inlined, and the folder in which its external data may lie.

    Raises:
        ConversionError: the file cannot be read or is no ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the model"), None
    path = Path(source)
    try:
        model = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise ConversionError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (DecodeError, ValueError) as error:
        said = "it is XML, an IR perhaps, which needs no converting" if path.suffix.lower() == ".xml" else str(error)
        raise ConversionError(f"{path}: not an ONNX model: {said}") from None
    return _checked(model, str(path)), path.parent


def _checked(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    if not model.HasField("graph"):
        raise ConversionError(f"{where}: not an ONNX model: it has no graph")
    if not len(model.opset_import) and model.ir_version >= 3:
        raise ConversionError(f"{where}: no sound ONNX model: it imports no opset")
    if any(isinstance(name, bytes) for name in _every_name(model)):
        # That is what protobuf gives for text that is not UTF-8.
        raise ConversionError(f"{where}: not an ONNX model: a name in it is no text")
    model = inlined(model, where)
    version = opsets_of(model)[""]
    if version > NEWEST_OPSET:
        warnings.warn(f"opset {version} is newer than {NEWEST_OPSET}, the newest known; it is taken for that", stacklevel=2)
    return model


def _every_name(model: onnx.ModelProto) -> Iterator[str]:
    graph = model.graph
    yield graph.name
    yield from (opset.domain for opset in model.opset_import)
    yield from (info.name for info in [*graph.input, *graph.output, *graph.initializer])
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    yield from (dim.dim_param for info in graph.input for dim in info.type.tensor_type.shape.dim)
    for node in every_node(graph):
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def translation_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> Translation | None:
    """How to translate a node; None if that is not known."""
    domain = domain_of(node)
    return find(node.op_type, domain, opsets.get(domain, 1))


def describe(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    """A node for a message: its name, domain, operator and opset."""
    name = node.name or next(filter(None, node.output), "")
    domain = domain_of(node)
    return f"node {name!r} ({domain or 'ai.onnx'}.{node.op_type} of opset {opsets.get(domain, '?')})"


def unsupported(model: onnx.ModelProto) -> list[str]:
    """Every node, those of subgraphs too, that has no translation."""
    opsets = opsets_of(model)
    return [describe(node, opsets) for node in every_node(model.graph) if translation_of(node, opsets) is None]


def in_order(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> list[onnx.NodeProto]:
    """The nodes, producers before their consumers, whatever the order in the file.

    Args:
        nodes: the nodes of a graph.
        taken: names that are no node's output, and what they are.
        opsets: for messages.

    Raises:
        ConversionError: nodes feed each other in a circle, or a value has two producers.
    """
    producers = _producers(nodes, taken, opsets)
    needs = [{producers[name] for name in _used(node) if name in producers} for node in nodes]
    waiting = [len(need) for need in needs]
    consumers: list[list[int]] = [[] for _ in nodes]
    for i, need in enumerate(needs):
        for producer in need:
            consumers[producer].append(i)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    for i in ready:
        for consumer in consumers[i]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                ready.append(consumer)
    if len(ready) < len(nodes):
        stuck = next(i for i, count in enumerate(waiting) if count)
        raise ConversionError(f"{describe(nodes[stuck], opsets)}: it is on or behind a circle of nodes")
    return [nodes[i] for i in ready]


def _producers(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in taken:
                raise ConversionError(f"{describe(node, opsets)}: its output {name!r} is {taken[name]} too")
            if name in producers:
                raise ConversionError(f"{describe(node, opsets)}: its output {name!r} is produced twice")
            producers[name] = i
    return producers


def _used(node: onnx.NodeProto) -> Iterator[str]:
    """What a node needs: its inputs, and what its subgraphs take from around them."""
    yield from node.input
    for attribute in node.attribute:
        for subgraph in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
            needed = {name for inner in subgraph.node for name in _used(inner)} | {output.name for output in subgraph.output}
            yield from needed - own_names(subgraph)


def own_names(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph gives itself; those around it may have them too."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    names = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer} | set(sparse)
    return names | {name for node in graph.node for name in node.output}
