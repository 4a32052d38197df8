"""Facts: what is known of a tensor before it exists, and tensors that are integers by their meaning.

Axes, sizes, pads and counts are read as Python integers here, by every shape rule (through ``Fact``) and every kernel,
so that no fraction, NaN or text becomes a size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from irexec.dtypes.elements import Element, element_of
from irexec.errors import OpError, check
from irexec.ir.dims import Dim, PartialShape, Shape, Size, admits, is_static, may_equal, shape_text


def integers(array: np.ndarray, what: str) -> tuple[int, ...]:
    """The elements, flattened; ``what`` names the tensor in messages.

    Raises:
        OpError: an element is a fraction, NaN, an infinity or text, or is known only by its bounds.
    """
    return tuple(map(int, integers_or_bounds(array, what)))


def integer(array: np.ndarray, what: str) -> int:
    """The element of a tensor that has one; raises OpError if it has more or none, or as ``integers`` does."""
    check(array.size == 1, f"{what} has {array.size} elements, expected 1")
    return integers(array, what)[0]


def integers_or_bounds(array: np.ndarray, what: str) -> tuple[Size, ...]:
    """The elements, flattened, those of which only the bounds are known as Dim; raises OpError for what is neither."""
    values = array.ravel().tolist()
    return tuple(values) if array.dtype.kind in "iu" else tuple(_integer(value, what) for value in values)


def _integer(value: object, what: str) -> Size:
    if isinstance(value, int | Dim | np.integer | np.bool_):
        return value if isinstance(value, Dim) else int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise OpError(f"{what} has {value!r}, expected integers")


@dataclass(frozen=True, eq=False, slots=True)
class Fact:
    """Element type, partial shape and, where known, the value itself.

    Attributes:
        element: the element type; None if unknown.
        shape: a tuple of int | Dim; None if even the rank is unknown.
        value: the value if known: an array in the element's carrier, or an object array of
            int | Dim where some of its integers are known only by their bounds.
    """

    element: Element | None
    shape: PartialShape
    value: np.ndarray | None = None

    @staticmethod
    def of(array: np.ndarray, element: Element | None = None) -> Fact:
        """The exact fact of an array, its value included."""
        return Fact(element or element_of(array.dtype), array.shape, array)

    @property
    def rank(self) -> int | None:
        """The number of axes; None if it is not known."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size of the shape is known."""
        return is_static(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, every size of which is known; raises ValueError where one is not."""
        if not is_static(self.shape):
            raise ValueError(f"the shape {shape_text(self.shape)} is not known")
        return self.shape

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of the arrays; raises ValueError if the element type is not known."""
        if self.element is None:
            raise ValueError("the element type is not known")
        return np.dtype(self.element.carrier)

    @property
    def nbytes(self) -> int:
        """Bytes of an array; raises ValueError if the shape or the element type is not known."""
        return math.prod(self.static_shape) * self.dtype.itemsize

    @property
    def known_nbytes(self) -> int:
        """Bytes of an array; 0 if the shape or the element type is not known."""
        return self.nbytes if is_static(self.shape) and self.element is not None else 0

    @property
    def addressed_bytes(self) -> int:
        """Bytes that NumPy must be able to address for an array, in which it counts an axis of size 0 as 1; 0 if they
        are not known."""
        if not is_static(self.shape) or self.element is None:
            return 0
        return math.prod(max(1, size) for size in self.shape) * self.dtype.itemsize

    @property
    def known(self) -> np.ndarray | None:
        """The value if every element of it is known, else None."""
        if self.value is None or (
            self.value.dtype == object and self.element is not None and self.element.kind != "string"
        ):
            return None
        return self.value

    def sizes(self, what: str = "the value") -> tuple[Size, ...] | None:
        """The value of an integer tensor, flattened, as int | Dim; None if unknown. ``what`` names it in the OpError of
        other values."""
        return None if self.value is None else integers_or_bounds(self.value, what)

    def ints(self, what: str = "the value") -> tuple[int, ...] | None:
        """The value of an integer tensor, flattened, if every element is known, else None; ``what`` names it as for
        ``sizes``."""
        return None if self.known is None else integers(self.known, what)

    def scalar(self, what: str) -> int | None:
        """The value of a one-element integer tensor; None if unknown; ``what`` names it in the OpError."""
        values = self.ints(what)
        if values is None:
            return None
        check(len(values) == 1, f"{what} has {len(values)} elements, expected 1")
        return values[0]

    def admits(self, array: np.ndarray) -> bool:
        """Whether the array can be the tensor described (carrier type, shape and known value)."""
        if self.element is not None and array.dtype != self.element.carrier:
            return False
        if not admits(self.shape, array.shape):
            return False
        if self.value is None:
            return True
        return self.value.shape == array.shape and all(map(_fits, self.value.ravel().tolist(), array.ravel().tolist()))

    def require_shape(self, what: str) -> Shape:
        """The shape, whose rank must be known; ``what`` names the tensor in the OpError."""
        if self.shape is None:
            raise OpError(f"the rank of {what} is not known")
        return self.shape

    def __str__(self) -> str:
        return f"{self.element or '?'}{shape_text(self.shape)}"

    __repr__ = __str__


@dataclass(frozen=True)
class EveryOutput:
    """Result of a shape rule for an unknown number of outputs: the layer has them, and each has this fact."""

    fact: Fact


def _fits(known: object, actual: object) -> bool:
    if isinstance(known, Dim):
        return isinstance(actual, int) and may_equal(known, actual)
    return known == actual or (known != known and actual != actual)
