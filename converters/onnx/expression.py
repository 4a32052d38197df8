"""Arithmetic that is written down as formulas and becomes IR operations."""

from __future__ import annotations

from dataclasses import dataclass

from converters.onnx.context import Context
from irexec.dtypes.elements import I64, Element
from irexec.ir.graph import Value


@dataclass(frozen=True, eq=False)
class Expression:
    """A value in the graph, with arithmetic. Numbers beside it become constants of its element type."""

    b: Context
    value: Value

    def _with(self, type: str, left: Expression | float, right: Expression | float, **attributes: object) -> Expression:
        values = [side.value if isinstance(side, Expression) else self.b.constant(side, self.value) for side in (left, right)]
        return Expression(self.b, self.b.emit(type, *values, **attributes))

    def _of(self, type: str, **attributes: object) -> Expression:
        return Expression(self.b, self.b.emit(type, self.value, **attributes))

    def __add__(self, other: Expression | float) -> Expression:
        return self._with("Add", self, other)

    def __sub__(self, other: Expression | float) -> Expression:
        return self._with("Subtract", self, other)

    def __rsub__(self, other: float) -> Expression:
        return self._with("Subtract", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return self._with("Multiply", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._with("Divide", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return self._with("Divide", other, self)

    def __neg__(self) -> Expression:
        return self._of("Negative")

    def __abs__(self) -> Expression:
        return self._of("Abs")

    def __lt__(self, other: Expression | float) -> Expression:
        return self._with("Less", self, other)

    def __gt__(self, other: Expression | float) -> Expression:
        return self._with("Greater", self, other)

    def __le__(self, other: Expression | float) -> Expression:
        return self._with("LessEqual", self, other)

    def __ge__(self, other: Expression | float) -> Expression:
        return self._with("GreaterEqual", self, other)

    def __or__(self, other: Expression) -> Expression:
        return self._with("LogicalOr", self, other)

    def __and__(self, other: Expression) -> Expression:
        return self._with("LogicalAnd", self, other)

    def __invert__(self) -> Expression:
        return self._of("LogicalNot")

    def __pow__(self, other: Expression | float) -> Expression:
        return self._with("Power", self, other)

    def __rpow__(self, other: float) -> Expression:
        return self._with("Power", other, self)

    def equals(self, other: Expression | float) -> Expression:
        return self._with("Equal", self, other)

    def least(self, other: Expression | float) -> Expression:
        return self._with("Minimum", self, other)

    def most(self, other: Expression | float) -> Expression:
        return self._with("Maximum", self, other)

    def modulo(self, other: Expression | float) -> Expression:
        """What is left of it, with the sign of ``other``."""
        return self._with("FloorMod", self, other)

    def floor(self) -> Expression:
        return self._of("Floor")

    def ceil(self) -> Expression:
        return self._of("Ceiling")

    def choose(self, then: Expression | float, otherwise: Expression) -> Expression:
        """``then`` where this boolean holds, else ``otherwise``."""
        first = then.value if isinstance(then, Expression) else self.b.constant(then, otherwise.value)
        return Expression(self.b, self.b.emit("Select", self.value, first, otherwise.value))

    def to(self, element: Element) -> Expression:
        return Expression(self.b, self.b.convert(self.value, element))

    def total(self, axis: int) -> Expression:
        """The sum along an axis, which stays with size 1."""
        return Expression(self.b, self.b.emit("ReduceSum", self.value, [axis], keep_dims=True))

    def sqrt(self) -> Expression:
        return self._of("Sqrt")

    def log(self) -> Expression:
        return self._of("Log")

    def exp(self) -> Expression:
        return self._of("Exp")

    def tanh(self) -> Expression:
        return self._of("Tanh")

    def cos(self) -> Expression:
        return self._of("Cos")

    def rounded(self) -> Expression:
        """To the nearest whole number, of two the even one."""
        return self._of("Round", mode="half_to_even")

    def unsqueezed(self, *axes: int) -> Expression:
        """With axes of size 1 put in."""
        return Expression(self.b, self.b.unsqueeze(self.value, axes))

    def column(self) -> Expression:
        """A vector as a matrix of one column."""
        return Expression(self.b, self.b.unsqueeze(self.value, [1]))

    def __matmul__(self, other: Expression) -> Expression:
        return self._with("MatMul", self, other)


def counting(b: Context, start: Expression | int, stop: Expression, element: Element) -> Expression:
    """The integers from ``start`` up to, without, ``stop``, both i64, as numbers of an element type."""
    first = start.value if isinstance(start, Expression) else b.constant(start)
    return Expression(b, b.convert(b.emit("Range", first, stop.value, b.constant(1), output_type="i64"), element))


def places(b: Context, x: Value, axis: int) -> Expression:
    """The places along an axis, 0 to its size less 1, as i64."""
    return counting(b, 0, Expression(b, b.size(x, axis)), I64)
