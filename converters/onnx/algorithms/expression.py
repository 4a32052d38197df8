"""Arithmetic written as Python formulas, and registration of element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from converters.onnx.context import TranslationContext
from converters.onnx.registry import add
from irexec.dtypes.elements import I64, Element
from irexec.ir.graph import Value


def _binary(type: str) -> Callable[[Expression, Expression | float], Expression]:
    """An operator that is this operation of both operands."""
    return lambda self, other: self._with(type, self, other)


def _swapped(type: str) -> Callable[[Expression, float], Expression]:
    """An operator whose expression is the second operand."""
    return lambda self, other: self._with(type, other, self)


def _unary(type: str, **attributes: object) -> Callable[[Expression], Expression]:
    return lambda self: Expression(self.ctx, self.ctx.emit(type, self.value, **attributes))


@dataclass(frozen=True, eq=False)
class Expression:
    """A value of the graph with arithmetic operators. Python numbers become constants of the value's element type."""

    ctx: TranslationContext
    value: Value

    def _with(self, type: str, left: Expression | float, right: Expression | float) -> Expression:
        values = [
            side.value if isinstance(side, Expression) else self.ctx.constant(side, self.value)
            for side in (left, right)
        ]
        return Expression(self.ctx, self.ctx.emit(type, *values))

    __add__ = __radd__ = _binary("Add")
    __sub__ = _binary("Subtract")
    __rsub__ = _swapped("Subtract")
    __mul__ = __rmul__ = _binary("Multiply")
    __truediv__ = _binary("Divide")
    __rtruediv__ = _swapped("Divide")
    __pow__ = _binary("Power")
    __rpow__ = _swapped("Power")
    __matmul__ = _binary("MatMul")
    __lt__ = _binary("Less")
    __gt__ = _binary("Greater")
    __le__ = _binary("LessEqual")
    __ge__ = _binary("GreaterEqual")
    __or__ = _binary("LogicalOr")
    __and__ = _binary("LogicalAnd")
    __xor__ = _binary("BitwiseXor")
    __lshift__ = _binary("BitwiseLeftShift")
    __rshift__ = _binary("BitwiseRightShift")
    equals = _binary("Equal")
    minimum = _binary("Minimum")
    maximum = _binary("Maximum")
    # The remainder has the sign of the divisor.
    modulo = _binary("FloorMod")
    __neg__ = _unary("Negative")
    __abs__ = _unary("Abs")
    __invert__ = _unary("LogicalNot")
    floor = _unary("Floor")
    ceil = _unary("Ceiling")
    round_half_to_even = _unary("Round", mode="half_to_even")
    sqrt = _unary("Sqrt")
    exp = _unary("Exp")
    log = _unary("Log")
    tanh = _unary("Tanh")
    sigmoid = _unary("Sigmoid")
    cos = _unary("Cos")

    def masked(self, bits: int) -> Expression:
        """The lowest bits of integers."""
        return self._with("BitwiseAnd", self, (1 << bits) - 1)

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
