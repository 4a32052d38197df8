"""Tensors of the ONNX graph being built, and constants of IR as ONNX tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

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
