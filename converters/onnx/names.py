"""Texts of an ONNX model that the conversion reads: names, and locations of external data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, TensorProto

from converters.onnx.graphs import every_graph
from irexec.errors import ConversionError
from irexec.ir.xml_text import is_text


def every_name(model: onnx.ModelProto) -> Iterator[str]:
    """All texts as protobuf returns them: bytes in place of text that is not UTF-8."""
    yield from (opset.domain for opset in model.opset_import)
    yield from _of_graphs(model.graph)
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (opset.domain for opset in function.opset_import)
        yield from _of_attributes(function.attribute_proto)
        yield from _of_graphs(function)


def check_written_names(graph: onnx.GraphProto, where: str) -> None:
    """Raise ConversionError for a name of a node or tensor that cannot be written to IR; ``where`` begins the
    message."""
    for name in itertools.chain([graph.name], *map(_written, every_graph(graph))):
        if not is_text(name):
            raise ConversionError(
                f"{where}: the name {name!r} has characters that XML, and therefore IR, cannot contain",
                unsupported=True,
            )


def _written(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for node in graph.node:
        yield from (node.name, *node.output)
    if isinstance(graph, onnx.GraphProto):
        yield from (info.name for info in [*graph.input, *graph.initializer])


def _of_graphs(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for inner in every_graph(graph):
        yield inner.name
        if isinstance(inner, onnx.GraphProto):
            yield from _of_values([*inner.input, *inner.output, *inner.value_info])
            yield from _of_tensors([*inner.initializer, *(sparse.values for sparse in inner.sparse_initializer)])
        for node in inner.node:
            yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
            yield from _of_attributes(node.attribute)


def _of_values(infos: Iterable[onnx.ValueInfoProto]) -> Iterator[str]:
    for info in infos:
        yield info.name
        yield from (dim.dim_param for dim in info.type.tensor_type.shape.dim)


def _of_tensors(tensors: Iterable[TensorProto]) -> Iterator[str]:
    for tensor in tensors:
        yield tensor.name
        for entry in tensor.external_data:
            yield from (entry.key, entry.value)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[str]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        yield from _of_tensors([*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors])
