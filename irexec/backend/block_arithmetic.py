"""Arithmetic on two tensors, by blocks.

Where NumPy's function differs from the reference kernel, the reference kernel runs on the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.backend.block_types import aligned_shapes, block_function, from_reference, scalar_constant
from irexec.backend.chain import BlockFunction, Formula
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import clip
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
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
    dtype = task.dtype(0)
    assert dtype is not None
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
