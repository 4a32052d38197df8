"""Reading an ONNX model. Files that are not models, and nodes that cannot be translated, are reported before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto

from converters.onnx.functions import domain_of, every_graph, every_node, inlined, opsets_of
from converters.onnx.registry import Translation, find
from irexec.errors import ConversionError
from irexec.ir.order import sort_by_producers

NEWEST_OPSET = 28
"""The newest opset of ai.onnx whose operators are known."""


def load(source: str | Path | onnx.ModelProto, warn: Callable[[str], object]) -> tuple[onnx.ModelProto, Path | None]:
    """The model, its local functions inlined, and the folder in which its external data may lie.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the model", warn), None
    path = Path(source)
    return _checked(_read(path), str(path), warn), path.parent


def external_files(path: Path) -> list[Path]:
    """The files outside the model that hold its tensors.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    tensors = [tensor for graph in every_graph(_read(path).graph) for tensor in graph.initializer]
    locations = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return sorted(file for location in locations if (file := path.parent / location).is_file())


def _read(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise ConversionError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (DecodeError, ValueError) as error:
        reason = "it is XML, probably an IR, which needs no conversion" if path.suffix.lower() == ".xml" else str(error)
        raise ConversionError(f"{path}: not an ONNX model: {reason}") from None


def _checked(model: onnx.ModelProto, where: str, warn: Callable[[str], object]) -> onnx.ModelProto:
    if not model.HasField("graph"):
        raise ConversionError(f"{where}: not an ONNX model: it has no graph")
    if not len(model.opset_import) and model.ir_version >= 3:
        raise ConversionError(f"{where}: not a valid ONNX model: it imports no opset")
    if any(isinstance(name, bytes) for name in _every_name(model)):
        # protobuf returns bytes for text that is not UTF-8.
        raise ConversionError(f"{where}: not an ONNX model: a name in it is not UTF-8 text")
    model = inlined(model, where)
    version = opsets_of(model)[""]
    if version > NEWEST_OPSET:
        warn(f"opset {version} is newer than {NEWEST_OPSET}, the newest supported opset, by whose rules it is converted")
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
    """The translator of a node; None if there is none."""
    domain = domain_of(node)
    return find(node.op_type, domain, opsets.get(domain, 1))


def describe(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    """A node as messages call it: its name, domain, operator and opset."""
    name = node.name or next(filter(None, node.output), "")
    domain = domain_of(node)
    return f"node {name!r} ({domain or 'ai.onnx'}.{node.op_type} of opset {opsets.get(domain, '?')})"


def unsupported(model: onnx.ModelProto) -> list[str]:
    """Every node without a translator, also in subgraphs."""
    opsets = opsets_of(model)
    return [describe(node, opsets) for node in every_node(model.graph) if translation_of(node, opsets) is None]


def in_order(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> list[onnx.NodeProto]:
    """The nodes with every producer before its consumers, whatever their order in the file.

    Args:
        nodes: the nodes of a graph.
        taken: names that are not outputs of a node, and what messages call them.
        opsets: for messages.

    Raises:
        ConversionError: the graph has a cycle, or a value has two producers.
    """
    producers = _producers(nodes, taken, opsets)
    order, stuck = sort_by_producers([{producers[name] for name in _used(node) if name in producers} for node in nodes])
    if stuck:
        raise ConversionError(f"{describe(nodes[stuck[0]], opsets)}: it is part of a cycle of nodes, or depends on one")
    return [nodes[i] for i in order]


def _producers(nodes: Sequence[onnx.NodeProto], taken: Mapping[str, str], opsets: Mapping[str, int]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in taken:
                raise ConversionError(f"{describe(node, opsets)}: its output {name!r} is also {taken[name]}")
            if name in producers:
                raise ConversionError(f"{describe(node, opsets)}: its output {name!r} is produced twice")
            producers[name] = i
    return producers


def _used(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads: its inputs, and what its subgraphs read from outer graphs."""
    yield from node.input
    for attribute in node.attribute:
        for subgraph in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
            needed = {name for inner in subgraph.node for name in _used(inner)} | {output.name for output in subgraph.output}
            yield from needed - own_names(subgraph)


def own_names(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph defines; outer graphs may define some of them again."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    names = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer} | set(sparse)
    return names | {name for node in graph.node for name in node.output}
