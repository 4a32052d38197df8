"""Arithmetic written as Python formulas, and registration of element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from converters.onnx.context import TranslationContext
from converters.onnx.registry import add
from irexec.dtypes.elements import I64, Element
from irexec.ir.graph import Value


@dataclass(frozen=True, eq=False)
class Expression:
    """A value of the graph with arithmetic operators. Python numbers become constants of the value's element type."""

    ctx: TranslationContext
    value: Value

    def _with(self, type: str, left: Expression | float, right: Expression | float, **attributes: object) -> Expression:
        values = [
            side.value if isinstance(side, Expression) else self.ctx.constant(side, self.value)
            for side in (left, right)
        ]
        return Expression(self.ctx, self.ctx.emit(type, *values, **attributes))

    def _of(self, type: str, **attributes: object) -> Expression:
        return Expression(self.ctx, self.ctx.emit(type, self.value, **attributes))

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

    def __xor__(self, other: Expression | float) -> Expression:
        return self._with("BitwiseXor", self, other)

    def __lshift__(self, other: int) -> Expression:
        return self._with("BitwiseLeftShift", self, other)

    def __rshift__(self, other: Expression | int) -> Expression:
        return self._with("BitwiseRightShift", self, other)

    def masked(self, bits: int) -> Expression:
        """The lowest bits of integers."""
        return self._with("BitwiseAnd", self, (1 << bits) - 1)

    def __invert__(self) -> Expression:
        return self._of("LogicalNot")

    def __pow__(self, other: Expression | float) -> Expression:
        return self._with("Power", self, other)

    def __rpow__(self, other: float) -> Expression:
        return self._with("Power", other, self)

    def equals(self, other: Expression | float) -> Expression:
        return self._with("Equal", self, other)

    def minimum(self, other: Expression | float) -> Expression:
        return self._with("Minimum", self, other)

    def maximum(self, other: Expression | float) -> Expression:
        return self._with("Maximum", self, other)

    def modulo(self, other: Expression | float) -> Expression:
        """The remainder, with the sign of ``other``."""
        return self._with("FloorMod", self, other)

    def floor(self) -> Expression:
        return self._of("Floor")

    def ceil(self) -> Expression:
        return self._of("Ceiling")

    def select(self, then: Expression | float, otherwise: Expression | float) -> Expression:
        """``then`` where this boolean is true, else ``otherwise``; one of them is an Expression."""
        sides = (then, otherwise)
        like = next(side.value for side in sides if isinstance(side, Expression))
        values = (side.value if isinstance(side, Expression) else self.ctx.constant(side, like) for side in sides)
        return Expression(self.ctx, self.ctx.emit("Select", self.value, *values))

    def settled(self) -> Expression:
        """A constant if the elements are known during conversion; the layers that computed it are then unused."""
        known = self.ctx.known(self.value)
        return self if known is None else Expression(self.ctx, self.ctx.constant(known, self.value))

    def to(self, element: Element) -> Expression:
        return Expression(self.ctx, self.ctx.convert(self.value, element))

    def sum(self, axis: int, *, keep: bool = True) -> Expression:
        """The sum along an axis, which is kept with size 1 unless ``keep`` is false."""
        return Expression(self.ctx, self.ctx.emit("ReduceSum", self.value, [axis], keep_dims=keep))

    def sqrt(self) -> Expression:
        return self._of("Sqrt")

    def log(self) -> Expression:
        return self._of("Log")

    def exp(self) -> Expression:
        return self._of("Exp")

    def tanh(self) -> Expression:
        return self._of("Tanh")

    def sigmoid(self) -> Expression:
        return self._of("Sigmoid")

    def cos(self) -> Expression:
        return self._of("Cos")

    def round_half_to_even(self) -> Expression:
        """Rounding to the nearest integer, halves to the even one."""
        return self._of("Round", mode="half_to_even")

    def unsqueeze(self, *axes: int) -> Expression:
        """The value with axes of size 1 inserted at these indices of the result."""
        return Expression(self.ctx, self.ctx.unsqueeze(self.value, axes))

    def column(self) -> Expression:
        """A vector as a matrix with one column."""
        return Expression(self.ctx, self.ctx.unsqueeze(self.value, [1]))

    def checked(self, what: str, *conditions: Expression) -> Expression:
        """The same integers. Where a condition, of their shape, is false, a run ends with an error that has ``what``.

        IR has no assertion: each integer is written to its own index, or to one that does not exist.
        """
        ctx, is_sound = self.ctx, conditions[0]
        for condition in conditions[1:]:
            is_sound = is_sound & condition
        known = ctx.known(is_sound.value)
        if known is not None and known.all():
            return self
        axis = max(ctx.rank(self.value) - 1, 0)
        whole = self if ctx.rank(self.value) else self.unsqueeze(0)
        size = Expression(ctx, ctx.size(whole.value, axis))
        index = is_sound.select(arange(ctx, 0, size), size).value
        name = f"{ctx.name}/{what}"
        operands = whole.value, ctx.full(index, ctx.shape_of(whole.value)), whole.value, ctx.constant(axis)
        found = ctx.builder.emit("ScatterElementsUpdate", *operands, version=3, name=name)
        return Expression(ctx, found if whole is self else ctx.scalar(found))

    def __matmul__(self, other: Expression) -> Expression:
        return self._with("MatMul", self, other)


def arange(
    ctx: TranslationContext, start: Expression | int, stop: Expression | int, element: Element = I64
) -> Expression:
    """The integers from ``start`` to ``stop`` (excluded), both i64, converted to ``element``."""
    ends = [end.value if isinstance(end, Expression) else ctx.constant(end) for end in (start, stop)]
    return Expression(ctx, ctx.convert(ctx.emit("Range", *ends, ctx.constant(1), output_type="i64"), element))


def positions(ctx: TranslationContext, x: Value, axis: int) -> Expression:
    """The indices along an axis of ``x``, 0 to its size - 1, as i64."""
    return arange(ctx, 0, Expression(ctx, ctx.size(x, axis)))


Binary = Callable[[TranslationContext, Value, Value], Any]


def add_elementwise(operator: str, since: int, type: str, **attributes: Any) -> None:
    """An operator of ai.onnx on one tensor that is one operation of IR."""

    def translate(ctx: TranslationContext, x: Value) -> Any:
        return ctx.emit(type, x, **attributes)

    add(operator, since, "", translate)


def emit_binary(type: str) -> Binary:
    """Two operands that broadcast, as one operation of IR."""
    return lambda ctx, x, y: ctx.emit(type, x, y)


def add_binary(operator: str, since: int, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that broadcast as in NumPy."""

    def translate(ctx: TranslationContext, x: Value, y: Value) -> Any:
        return emit(ctx, x, y)

    add(operator, since, "", translate)


def add_binary_with_axis(operator: str, emit: Binary) -> None:
    """An operator of ai.onnx on two tensors that had an explicit broadcast axis before opset 7."""

    def translate(ctx: TranslationContext, x: Value, y: Value, *, broadcast: int = 0, axis: int | None = None) -> Any:
        return emit(ctx, x, _aligned(ctx, x, y, axis) if broadcast else y)

    add(operator, 1, "", translate)
    add_binary(operator, 7, emit)


def _aligned(ctx: TranslationContext, x: Value, y: Value, axis: int | None) -> Value:
    """The second operand with axes of size 1 appended: its first axis meets ``axis`` of the first operand."""
    if axis is None:
        return y
    missing = ctx.rank(x) - ctx.axis(axis, x) - ctx.rank(y)
    return ctx.unsqueeze(y, [ctx.rank(y) + i for i in range(missing)])
