"""The ONNX graph of a model or of a body while it is built: nodes, initializers, names, tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from irexec.dtypes.elements import F4E2M1, F8E4M3, F8E5M2, F8E8M0, F32, I4, I8, U2, U4, U8, Element
from irexec.errors import UnsupportedError, check
from irexec.ir.constants import Constant, constant_value
from irexec.ir.dims import PartialShape, Shape


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of the ONNX graph.

    Attributes:
        name: unique in the model.
        element: the element type in ONNX.
        shape: as far as known; None if the rank is unknown.
        value: the elements if they are known, in the carrier of the element type.
        constant: the content of an initializer, which is written when a node first reads it.
    """

    name: str
    element: Element
    shape: PartialShape = None
    value: np.ndarray | None = None
    constant: Constant | None = None

    @property
    def rank(self) -> int | None:
        """The number of axes; None if it is not known."""
        return None if self.shape is None else len(self.shape)

    def require_shape(self, what: str) -> Shape:
        """The shape; raises OpError where the rank, of what ``what`` names, is not known."""
        check(self.shape is not None, f"the rank of {what} is not known")
        assert self.shape is not None
        return self.shape

    def require_rank(self, what: str) -> int:
        """The rank; raises OpError where that of what ``what`` names is not known."""
        return len(self.require_shape(what))

    def require_known(self, axis: int, what: str) -> int:
        """The size of an axis, of what ``what`` names; raises OpError where it is not known."""
        size = self.require_shape(what)[axis]
        check(isinstance(size, int), f"{what} is not known")
        assert isinstance(size, int)
        return size

    def is_known_empty(self) -> bool:
        """Whether an axis is known to be of size 0: some operators of ONNX Runtime refuse such a tensor."""
        return self.shape is not None and 0 in self.shape

    def require_value(self, what: str) -> np.ndarray:
        """The elements; raises OpError where those of what ``what`` names are computed when the model runs."""
        check(self.value is not None, f"{what} is computed when the model runs, and ONNX needs it as an attribute")
        assert self.value is not None
        return self.value

    def require_ints(self, what: str) -> tuple[int, ...]:
        """The elements of an integer tensor, flattened; raises OpError as ``require_value``."""
        return tuple(int(value) for value in self.require_value(what).ravel().tolist())


_SINCE = {U2: 25, F8E8M0: 24, I4: 21, U4: 21, F8E4M3: 19, F8E5M2: 19}
"""The first opset with operators on these types."""


def onnx_element(element: Element, opset: int) -> Element:
    """The element type in which an opset holds values of a type: one that it lacks as its carrier, f32, u8 or i8.

    So is f4e2m1 in every opset: ONNX Runtime 1.32 has no Cast of it.
    """
    if element is not F4E2M1 and element.onnx is not None and opset >= _SINCE.get(element, 0):
        return element
    return F32 if element.is_float else I8 if element.kind == "signed" else U8


def type_name(element: Element) -> str:
    """The type as schemas of ONNX spell it: ``tensor(float)``."""
    assert element.onnx is not None
    return f"tensor({element.onnx.name.lower()})"


def tensor_proto(name: str, constant: Constant, element: Element) -> TensorProto:
    """A constant as an initializer of an ``onnx_element``; bytes are packed in the same way, so they are copied.

    Raises:
        ModelError: its bytes cannot be read.
    """
    if element.onnx is None:
        raise UnsupportedError(f"ONNX lacks the type {element}")
    proto = TensorProto(name=name, data_type=element.onnx.number, dims=constant.shape)
    if element.kind == "string":
        proto.string_data.extend(text.encode() for text in constant_value(constant).ravel().tolist())
    elif element is not constant.element:
        proto.raw_data = constant_value(constant).astype(element.carrier).tobytes()
    else:
        proto.raw_data = constant.contents.tobytes()
    return proto


class Names:
    """Names that are used once in a model.

    Args:
        reserved: tensor names of the model, which only ``claim`` returns.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = set(reserved)
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def claim(self, wanted: str) -> str:
        """The name itself for whom first asks for it, else a unique one."""
        if wanted and wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        return self.unique(wanted)

    def unique(self, wanted: str) -> str:
        """The name, with a number if it is reserved or taken."""
        name = wanted
        while not name or name in self._taken or name in self._reserved:
            self._counts[wanted] = self._counts.get(wanted, 0) + 1
            name = f"{wanted}_{self._counts[wanted]}"
        self._taken.add(name)
        return name


class OnnxGraph:
    """Collects nodes and initializers.

    Attributes:
        names: of the whole model; graphs of bodies share them.
        around: the graph around a body, whose tensors the body may read; None for the model.
        nodes: written so far.
    """

    def __init__(self, name: str, names: Names, around: OnnxGraph | None = None) -> None:
        self.names, self.around = names, around
        self.nodes: list[NodeProto] = []
        self._graph = GraphProto(name=name or "model")
        self._written: set[str] = set()

    def node(self, type: str, inputs: Sequence[Tensor | None], outputs: Sequence[str], name: str, domain: str,
             attributes: dict[str, Any]) -> None:  # fmt: skip
        """Add a node; the initializers that it reads are written if no node before has read them."""
        for tensor in inputs:
            self.read(tensor)
        names = ["" if tensor is None else tensor.name for tensor in inputs]
        while names and not names[-1]:
            names.pop()
        proto = NodeProto(op_type=type, input=names, output=outputs, name=name, domain=domain)
        proto.attribute.extend(_attribute(key, value) for key, value in attributes.items() if value is not None)
        self.nodes.append(proto)

    def read(self, tensor: Tensor | None) -> None:
        """Write the initializer of a constant that is not written yet; a body has none of its own."""
        if self.around is not None:
            self.around.read(tensor)
        elif tensor is not None and tensor.constant is not None and tensor.name not in self._written:
            self._written.add(tensor.name)
            self._graph.initializer.append(tensor_proto(tensor.name, tensor.constant, tensor.element))

    def rename(self, first: int, names: dict[str, str]) -> None:
        """Rename tensors in the nodes from index ``first`` on, and in their bodies."""
        if names:
            for node in self.nodes[first:]:
                _rename(node, names)

    def input(self, tensor: Tensor) -> None:
        """Add an input."""
        self._graph.input.append(value_info(tensor.name, tensor.element, tensor.shape))

    def default(self, tensor: Tensor) -> None:
        """Give an input the value of a constant as its default: an initializer of its name."""
        assert tensor.constant is not None
        self._graph.initializer.append(tensor_proto(tensor.name, tensor.constant, tensor.element))

    def output(self, tensor: Tensor) -> None:
        """Add an output."""
        self._graph.output.append(value_info(tensor.name, tensor.element, tensor.shape))

    def describe(self, info: ValueInfoProto) -> None:
        """Add what is known of a tensor inside."""
        self._graph.value_info.append(info)

    def finished(self) -> GraphProto:
        """The graph, without nodes and initializers that nothing reads."""
        needed = {info.name for info in self._graph.output}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(_read_by(node))
        self._graph.node.extend(reversed(kept))
        for i in reversed(range(len(self._graph.initializer))):
            if self._graph.initializer[i].name not in needed:
                del self._graph.initializer[i]
        return self._graph


def _read_by(node: NodeProto) -> Iterator[str]:
    """The tensors that a node and the graphs in it read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            yield from (info.name for info in graph.output)
            for inner in graph.node:
                yield from _read_by(inner)


def _rename(node: NodeProto, names: dict[str, str]) -> None:
    for names_of in (node.input, node.output):
        for i, name in enumerate(names_of):
            if name in names:
                names_of[i] = names[name]
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            for inner in attribute.g.node:
                _rename(inner, names)


def _attribute(key: str, value: Any) -> AttributeProto:
    if isinstance(value, tuple | list) and not value:
        # make_attribute needs the type of an empty list: all that are written are lists of integers.
        return AttributeProto(name=key, type=AttributeProto.INTS)
    return helper.make_attribute(key, list(value) if isinstance(value, tuple) else value)


def value_info(name: str, element: Element, shape: PartialShape) -> ValueInfoProto:
    """The description of a tensor; sizes with a symbol keep it, other unknown sizes have none."""
    assert element.onnx is not None
    sizes = None if shape is None else [size if isinstance(size, int) else size.name for size in shape]
    return helper.make_tensor_value_info(name, element.onnx.number, sizes)
