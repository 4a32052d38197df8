"""Comparison of the declared types and shapes of an ONNX graph with the inferred ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from converters.onnx.load import parse
from converters.onnx.locations import at_value
from converters.onnx.onnx_values import OnnxValue
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import Element
from irexec.errors import OpError, UnsupportedError
from irexec.ir import onnx_codes as codes
from irexec.ir.dims import ANY, Dim, PartialShape, Size, meet_shapes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Value


def declared_shape(tensor: onnx.TypeProto.Tensor) -> PartialShape:
    """The shape of an ONNX tensor type; dimensions with a name are symbols."""
    if not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def declared_shapes(path: str | Path) -> dict[str, PartialShape]:
    """The shapes of the inputs of an .onnx file by name; dimensions with a name are symbols."""
    return {info.name: declared_shape(info.type.tensor_type) for info in parse(path)[0].graph.input}


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return Dim(name=dim.dim_param) if dim.dim_param else ANY


@dataclass(frozen=True)
class Contradiction:
    """A declared type or shape that contradicts the inferred one.

    Attributes:
        kind: "value" for value_info, or "output".
        name: the name of the value.
        declared, inferred: the two facts.
    """

    kind: str
    name: str
    declared: Fact
    inferred: Fact

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} is {self._reason}"

    @property
    def _reason(self) -> str:
        return f"declared as {self.declared}, but its node produces {self.inferred}"

    def finding(self, path: str) -> Finding:
        """The finding at the value, in the graph with that path."""
        is_type = not _same_element(self.declared, self.inferred)
        code = _CODES[self.kind][is_type]
        return at_value(
            code, path, self.name, "output" if self.kind == "output" else "value_info", f"it is {self._reason}"
        )


# The code of a wrong shape and that of a wrong type.
_CODES = {"value": (codes.VALUE_SHAPE, codes.VALUE_TYPE), "output": (codes.OUTPUT_SHAPE, codes.OUTPUT_TYPE)}


def contradictions(
    graph: onnx.GraphProto, values: Mapping[str, OnnxValue], fact: Callable[[Value], Fact]
) -> Iterator[Contradiction]:
    """Each output and intermediate value whose declared type or shape contradicts the inferred one.

    Args:
        graph: the graph; its value_info and outputs are compared.
        values: the translated values by name.
        fact: returns the inferred fact of a value.
    """
    for kind, infos in (("value", graph.value_info), ("output", graph.output)):
        for info in infos:
            value = values.get(info.name)
            if isinstance(value, Value) and info.type.HasField("tensor_type"):
                declared = fact_of(info.type.tensor_type)
                inferred = Fact(fact(value).element, fact(value).shape)
                if not agree(declared, inferred):
                    yield Contradiction(kind, info.name, declared, inferred)


def fact_of(tensor: onnx.TypeProto.Tensor) -> Fact:
    """The fact of an ONNX tensor type; the element type is None if it is missing, or does not exist in IR."""
    return Fact(_element(tensor.elem_type), declared_shape(tensor))


def fact_of_tensor(tensor: onnx.TensorProto) -> Fact:
    """The type and shape of a tensor; the element type is None if it does not exist in IR."""
    return Fact(_element(tensor.data_type), tuple(tensor.dims))


def _element(number: int) -> Element | None:
    try:
        return element_of(number) if number else None
    except UnsupportedError:
        return None


def agree(declared: Fact, inferred: Fact) -> bool:
    """Whether a tensor can satisfy both facts."""
    if not _same_element(declared, inferred):
        return False
    try:
        meet_shapes(declared.shape, inferred.shape)
    except OpError:
        return False
    return True


def _same_element(one: Fact, other: Fact) -> bool:
    """Whether two element types are the same, or one of them is not known."""
    return one.element is None or other.element is None or one.element is other.element
