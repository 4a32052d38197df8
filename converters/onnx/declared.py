"""Comparison of the types and shapes that an ONNX graph declares with those that its nodes give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import onnx

from converters.onnx.tensors import element_of
from converters.onnx.values import OnnxValue
from irexec.errors import OpError, UnsupportedError
from irexec.ir.dims import ANY, Dim, PartialShape, Size, meet_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import Value


def declared_shape(tensor: onnx.TypeProto.Tensor) -> PartialShape:
    """The shape of an ONNX tensor type; dimensions with a name are symbols."""
    if not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return Dim(name=dim.dim_param) if dim.dim_param else ANY


def contradictions(graph: onnx.GraphProto, values: Mapping[str, OnnxValue], fact: Callable[[Value], Fact]) -> Iterator[str]:
    """One sentence for each output and intermediate value whose declared type or shape its node cannot give.

    Args:
        graph: the graph, whose value_info and outputs are compared.
        values: what has been translated, by name.
        fact: what is inferred of a value.
    """
    for kind, infos in (("value", graph.value_info), ("output", graph.output)):
        for info in infos:
            value = values.get(info.name)
            if isinstance(value, Value) and info.type.HasField("tensor_type"):
                declared = _declared(info.type.tensor_type)
                inferred = Fact(fact(value).element, fact(value).shape)
                if not _agree(declared, inferred):
                    yield f"{kind} {info.name!r} is declared as {declared}, but its node gives {inferred}"


def _declared(tensor: onnx.TypeProto.Tensor) -> Fact:
    """An element type that is missing, or that IR does not have, is not compared."""
    try:
        element = element_of(tensor.elem_type) if tensor.elem_type else None
    except UnsupportedError:
        element = None
    return Fact(element, declared_shape(tensor))


def _agree(declared: Fact, inferred: Fact) -> bool:
    if declared.element is not None and inferred.element is not None and declared.element is not inferred.element:
        return False
    try:
        meet_shapes(declared.shape, inferred.shape)
    except OpError:
        return False
    return True
