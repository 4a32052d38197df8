"""How element-wise arithmetic, comparisons and logic run on blocks of a chain.

Where NumPy's function differs from the reference kernel, the reference kernel runs on the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.backend.block_types import aligned_shapes, block_formula, block_function, from_reference, scalar_constant
from irexec.backend.chain import BlockFunction, Formula
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import clip, is_finite, is_inf, is_nan, negative
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.reference.integers import truncated
from irexec.reference.special import power


def by_ufunc(ufunc: Callable[..., Any]) -> BlockFunction:
    """The block function of a NumPy function that takes ``out``."""

    def function(scratch: Scratch, out: np.ndarray, *arguments: np.ndarray) -> None:
        ufunc(*arguments, out=out)

    return function


_FORMULAS = {"Add", "Subtract", "Multiply", "Maximum", "Minimum", "SquaredDifference"}
"""The operations that the C library has under the same names."""


def define_binary(type: str, since: int, function: BlockFunction, *, kinds: str, **flags: Any) -> None:
    """Register the block operation of two broadcast tensors."""
    formula = Formula(type) if type in _FORMULAS else None

    @block_function(type, since, kinds)
    def operation(task: Task) -> BlockOperation | None:
        return BlockOperation(function, (0, 1), aligned_shapes(task, (0, 1)), formula=formula, **flags)


def _maximum(scratch: Scratch, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """NumPy's maximum with a scalar does not use vector instructions, its ``clip`` does."""
    if out.dtype.kind == "f" and b.size == 1:
        clip(a, b, math.inf, out=out)
    elif out.dtype.kind == "f" and a.size == 1:
        clip(b, a, math.inf, out=out)
    else:
        np.maximum(a, b, out=out)


def _minimum(scratch: Scratch, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind == "f" and b.size == 1:
        clip(a, -math.inf, b, out=out)
    elif out.dtype.kind == "f" and a.size == 1:
        clip(b, -math.inf, a, out=out)
    else:
        np.minimum(a, b, out=out)


def _squared_difference(scratch: Scratch, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    np.subtract(a, b, out=out)
    np.multiply(out, out, out=out)


define_binary("Add", 1, by_ufunc(np.add), kinds="fiu")
define_binary("Subtract", 1, by_ufunc(np.subtract), kinds="fiu")
define_binary("Multiply", 1, by_ufunc(np.multiply), kinds="fiu")
define_binary("Maximum", 1, _maximum, kinds="fiu", passes=1.7)
define_binary("Minimum", 1, _minimum, kinds="fiu", passes=1.7)
define_binary("SquaredDifference", 1, _squared_difference, kinds="fiu", passes=2)
define_binary("Mod", 1, by_ufunc(np.fmod), kinds="fiu", passes=40)
define_binary("FloorMod", 1, by_ufunc(np.mod), kinds="fiu", passes=40)


@block_function("Divide", since=1, kinds="fiu")
def _divide_1(task: Task) -> BlockOperation | None:
    """A floating-point division by a power of two is a multiplication."""
    dtype = task.inputs[0].dtype
    if dtype.kind != "f":
        floors = task.attributes.get("m_pythondiv", True) or dtype.kind == "u"
        shapes = aligned_shapes(task, (0, 1))
        return BlockOperation(by_ufunc(np.floor_divide), (0, 1), shapes, passes=20) if floors else from_reference(task)
    divisor = scalar_constant(task, 1)
    if divisor is None or not _has_exact_inverse(divisor):
        return BlockOperation(
            by_ufunc(np.divide), (0, 1), aligned_shapes(task, (0, 1)), passes=2.3, formula=Formula("Divide")
        )
    factor = dtype.type(1) / divisor

    def multiply(scratch: Scratch, out: np.ndarray, a: np.ndarray) -> None:
        np.multiply(a, factor, out=out)

    return BlockOperation(multiply, formula=Formula("MultiplyP", float(factor)))


def _has_exact_inverse(value: np.floating) -> bool:
    """Whether it is a power of two whose inverse is a normal number."""
    number = float(value)
    return math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5 and 2.0**-10 <= abs(number) <= 2.0**10


@block_function("Power", since=1, kinds="fiu")
def _power_1(task: Task) -> BlockOperation | None:
    """Constant exponents by multiplication and square root; NumPy needs about 20 ns for a power."""
    if task.inputs[0].element is not task.inputs[1].element:
        return None
    if task.kind != "f":
        return from_reference(task)
    exponent = scalar_constant(task, 1)
    known = None if exponent is None else _POWERS.get(float(exponent))
    if known is None:
        return BlockOperation(by_ufunc(power), (0, 1), aligned_shapes(task, (0, 1)), in_place=False, passes=150)
    function, temporaries, passes, formula = known
    return BlockOperation(function, temporaries=temporaries, passes=passes, formula=formula)


def _square(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.multiply(x, x, out=out)


def _cube(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    square = scratch.take(x.shape, x.dtype)
    np.multiply(x, x, out=square)
    np.multiply(square, x, out=out)


def _square_root(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """Unlike np.sqrt, a power of 0.5 is 0 for -0, and infinite for negative infinity."""
    np.add(x, 0, out=out)
    if not x.min() > -math.inf:
        np.copyto(out, math.inf, where=np.isneginf(x))
    np.sqrt(out, out=out)


def _inverse_square_root(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    _square_root(scratch, out, x)
    np.divide(1, out, out=out)


def _inverse(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.divide(1, x, out=out)


def _same(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.copyto(out, x)


_POWERS: dict[float, tuple[BlockFunction, int, float, Formula | None]] = {
    2.0: (_square, 0, 1, Formula("Square")),
    3.0: (_cube, 1, 2, Formula("Cube")),
    1.0: (_same, 0, 1, Formula("Copy")),
    -1.0: (_inverse, 0, 2.5, Formula("DividePBy", 1.0)),
    0.5: (_square_root, 0, 5, Formula("Root")),
    -0.5: (_inverse_square_root, 0, 7, Formula("InverseRoot")),
}


def copy(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """The block itself."""
    if out is not x:
        np.copyto(out, x, casting="unsafe")


def _copied(task: Task) -> BlockOperation:
    return BlockOperation(copy)


block_formula("Abs", 1, "fiu", formula=Formula("Abs"))(by_ufunc(np.abs))
block_formula("Negative", 1, "fiu", formula=Formula("Negative"))(by_ufunc(negative))
block_formula("Sign", 1, "fiu", passes=8)(by_ufunc(np.sign))
block_formula("Ceiling", 1, "fiu", integers=_copied, formula=Formula("Ceiling"))(by_ufunc(np.ceil))
block_formula("Floor", 1, "fiu", integers=_copied, formula=Formula("Floor"))(by_ufunc(np.floor))
block_formula("Sqrt", 1, "fiu", integers=from_reference, passes=2.5, formula=Formula("Sqrt"))(by_ufunc(np.sqrt))
block_formula("Exp", 1, "fiu", integers=from_reference, passes=4.5, formula=Formula("Exp"))(by_ufunc(np.exp))
block_formula("Log", 1, "fiu", integers=from_reference, passes=4.5, formula=Formula("Log"))(by_ufunc(np.log))
block_formula("Sin", 1, "fiu", integers=from_reference, passes=6)(by_ufunc(np.sin))
block_formula("Cos", 1, "fiu", integers=from_reference, passes=6)(by_ufunc(np.cos))
block_formula("Tan", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.tan))
block_formula("Asin", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.arcsin))
block_formula("Acos", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.arccos))
block_formula("Atan", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.arctan))
block_formula("Sinh", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.sinh))
block_formula("Cosh", 1, "fiu", integers=from_reference, passes=7, in_place=False)(by_ufunc(np.cosh))
block_formula("Tanh", 1, "fiu", integers=from_reference, passes=3.5, formula=Formula("Tanh"))(by_ufunc(np.tanh))
block_formula("Asinh", 4, "fiu", integers=from_reference, passes=10, in_place=False)(by_ufunc(np.arcsinh))
block_formula("Acosh", 4, "fiu", integers=from_reference, passes=10, in_place=False)(by_ufunc(np.arccosh))
block_formula("Atanh", 4, "fiu", integers=from_reference, passes=10, in_place=False)(by_ufunc(np.arctanh))

block_function("ErfInv", since=17)(from_reference)
block_formula("LogicalNot", 1, "b")(by_ufunc(np.logical_not))
block_formula("BitwiseNot", 13, "iub")(by_ufunc(np.invert))
block_formula("IsFinite", 10)(by_ufunc(is_finite))
block_formula("IsNaN", 10)(by_ufunc(is_nan))


@block_function("Round", since=5, kinds="fiu")
def _round_5(task: Task) -> BlockOperation | None:
    if task.kind != "f":
        return _copied(task)
    if task.attributes.get("mode", "half_to_even") != "half_to_even":
        return from_reference(task)
    return BlockOperation(by_ufunc(np.rint), formula=Formula("Round"))


def _is_nonzero(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.not_equal(x, 0, out=out)


def _truncate(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """NumPy's cast where every value fits 32 bits, else the reference kernel; NumPy's cast of others is undefined."""
    if x.min() >= -(2.0**31) and x.max() < 2.0**31:
        integers = scratch.take(x.shape, _I32)
        np.copyto(integers, x, casting="unsafe")
        np.copyto(out, integers, casting="unsafe")
    else:
        np.copyto(out, truncated(x, out.dtype))


_I32 = np.dtype(np.int32)


def _halve(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """From f64 to f16 by way of f32, rounded twice."""
    singles = scratch.take(x.shape, np.dtype(np.float32))
    np.copyto(singles, x, casting="same_kind")
    np.copyto(out, singles, casting="same_kind")


@block_function("Convert", since=1, kinds="fiub")
@block_function("ConvertLike", since=1, kinds="fiub")
def _convert(task: Task) -> BlockOperation | None:
    source, target = task.dtype(0), task.outputs[0].element
    if source is None or target is None:
        return None
    dtype = target.carrier
    if dtype.kind == "b":
        return BlockOperation(_is_nonzero)
    if source.kind == "f" and dtype.kind in "iu":
        return BlockOperation(_truncate, temporaries=1, passes=5)
    if source == np.float64 and dtype == np.float16:
        return BlockOperation(_halve, temporaries=1, passes=30)
    halves = source != dtype and np.float16 in (source, dtype)
    return BlockOperation(copy, passes=30 if halves else 2)


define_binary("Equal", 1, by_ufunc(np.equal), kinds="fiub")
define_binary("NotEqual", 1, by_ufunc(np.not_equal), kinds="fiub")
define_binary("Less", 1, by_ufunc(np.less), kinds="fiub")
define_binary("LessEqual", 1, by_ufunc(np.less_equal), kinds="fiub")
define_binary("Greater", 1, by_ufunc(np.greater), kinds="fiub")
define_binary("GreaterEqual", 1, by_ufunc(np.greater_equal), kinds="fiub")
define_binary("LogicalAnd", 1, by_ufunc(np.logical_and), kinds="b")
define_binary("LogicalOr", 1, by_ufunc(np.logical_or), kinds="b")
define_binary("LogicalXor", 1, by_ufunc(np.logical_xor), kinds="b")
define_binary("Xor", 1, by_ufunc(np.logical_xor), kinds="b")
define_binary("BitwiseAnd", 13, by_ufunc(np.bitwise_and), kinds="iub")
define_binary("BitwiseOr", 13, by_ufunc(np.bitwise_or), kinds="iub")
define_binary("BitwiseXor", 13, by_ufunc(np.bitwise_xor), kinds="iub")
define_binary("BitwiseLeftShift", 15, by_ufunc(np.left_shift), kinds="iu")
define_binary("BitwiseRightShift", 15, by_ufunc(np.right_shift), kinds="iu")


@block_function("IsInf", since=10)
def _is_inf_10(task: Task) -> BlockOperation | None:
    if task.attributes.get("detect_negative", True) and task.attributes.get("detect_positive", True):
        return BlockOperation(by_ufunc(is_inf))
    return from_reference(task)


@block_function("Select", since=1, kinds="b")
def _select_1(task: Task) -> BlockOperation | None:
    if task.attributes.get("auto_broadcast", "numpy") == "pdpd":
        return None
    return BlockOperation(_select, (0, 1, 2), temporaries=1, passes=7)


def _select(scratch: Scratch, out: np.ndarray, condition: np.ndarray, then: np.ndarray, otherwise: np.ndarray) -> None:
    """``otherwise ^ ((then ^ otherwise) & mask)``, because NumPy's selection branches for each element."""
    if then is otherwise:
        # Both may be the memory of ``out``, which the bits of one of them would be lost from.
        if out is not then:
            np.copyto(out, then)
        return
    integers = _INTEGERS[out.dtype.itemsize]
    mask = scratch.take(condition.shape, integers)
    np.copyto(mask, condition, casting="unsafe")
    if out is otherwise:
        # The mask of what is taken from ``otherwise``, whose memory is written first.
        np.subtract(mask, 1, out=mask, dtype=integers)
        then, otherwise = otherwise, then
    else:
        np.negative(mask, out=mask)
    bits, kept = out.view(integers), otherwise.view(integers)
    np.bitwise_xor(then.view(integers), kept, out=bits)
    np.bitwise_and(bits, mask, out=bits)
    np.bitwise_xor(bits, kept, out=bits)


_INTEGERS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
