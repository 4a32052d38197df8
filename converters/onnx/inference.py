"""The shape inference of the package onnx, kept from models on which its C++ does not end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx
from onnx import AttributeProto, shape_inference

from converters.onnx.graphs import domain_of, every_node
from irexec.errors import ConversionError

# Seen with onnx 1.23.2: a character before the arrow that is none of these is looked at for ever.
_READABLE = re.compile(rb"([A-Za-z0-9, ]|\.\.\.)*")


def infer_shapes(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """The model with the shapes that the package onnx infers.

    Args:
        model: one to which onnx.checker has no objection.
        strict: check the types too, and raise for what cannot be inferred.

    Raises:
        ConversionError: an Einsum has an equation on which the package would not end.
        Exception: it is C++ and raises classes of its own, which have no common base.
    """
    for equation in _equations(model):
        if not _READABLE.fullmatch(equation.split(b"->")[0]):
            raise ConversionError(f"Einsum: equation {equation.decode(errors='replace')!r} has terms of other characters than letters")
    return shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict)


def _equations(model: onnx.ModelProto) -> Iterator[bytes]:
    """Of all Einsum nodes, and whatever functions might be given for them by a name of their own."""
    graphs = [model.graph, *model.functions]
    attributes = [attribute for graph in graphs for node in every_node(graph) for attribute in node.attribute]
    attributes += [attribute for function in model.functions for attribute in function.attribute_proto]
    if not any(node.op_type == "Einsum" and not domain_of(node) for graph in graphs for node in every_node(graph)):
        return
    names = {"equation"}
    while more := {each.ref_attr_name for each in attributes if each.name in names and each.ref_attr_name} - names:
        names |= more
    for attribute in attributes:
        if attribute.name in names and attribute.type == AttributeProto.STRING:
            yield attribute.s
