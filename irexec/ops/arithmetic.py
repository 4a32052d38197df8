"""Element-wise arithmetic on two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.dtypes.elements import element_of
from irexec.errors import check
from irexec.ir.dims import Size, low
from irexec.ir.facts import Fact
from irexec.ops.conversion import converted
from irexec.reference.special import power
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.elementwise import align, define
from irexec.schema.inputs import NumericTensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements


def _squared_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = np.subtract(a, b)
    return np.multiply(difference, difference)


def _mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainder with the sign of ``a``, as in C; an integer modulo 0 is 0."""
    return np.fmod(a, b)


def _floor_mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == object or b.dtype == object:
        return _each(a, b, lambda x, y: 0 if y == 0 else x % y)
    return np.mod(a, b)


def _each(a: np.ndarray, b: np.ndarray, function: Callable[[Any, Any], Size]) -> np.ndarray:
    """The function of each pair of an object array of int | Dim, for divisions by 0, where Python raises."""
    return np.asarray(np.frompyfunc(function, 2, 1)(a, b), object)


def _truncated(a: Size, b: Size) -> Size:
    """The quotient rounded towards zero; of bounds only where that is also the quotient rounded down."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    check(low(a) >= 0 and low(b) >= 0, f"{a} / {b} rounded towards zero is not known")
    return a // b


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are computed in double precision and converted as Convert does, as OpenVINO's reference does by
    std::pow."""
    if a.dtype.kind in "iu":
        return converted(np.power(a.astype(np.float64), b.astype(np.float64)), element_of(a.dtype))
    return power(a, b)


def divide(a: np.ndarray, b: np.ndarray, floor: bool) -> np.ndarray:
    """a / b; of integers rounded down if ``floor``, else towards zero, and 0 where b is 0."""
    if a.dtype == object or b.dtype == object:
        return _each(a, b, lambda x, y: 0 if y == 0 else x // y if floor else _truncated(x, y))
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    if floor or a.dtype.kind == "u":
        return quotient
    return (quotient + ((quotient < 0) & (quotient * b != a) & (b != 0))).astype(a.dtype)


define("Add", 1, np.add, "a + b; integers wrap.", symbolic=True)
define("Subtract", 1, np.subtract, "a - b; integers wrap.", symbolic=True)
define("Multiply", 1, np.multiply, "a * b; integers wrap.", symbolic=True)
define("Maximum", 1, np.maximum, "max(a, b).", symbolic=True)
define("Minimum", 1, np.minimum, "min(a, b).", symbolic=True)
define("Mod", 1, _mod, "The remainder of a / b, with the sign of a.")
define("FloorMod", 1, _floor_mod, "The remainder of a / b, with the sign of b.", symbolic=True)
define("Power", 1, _power, "a to the power of b.", tolerance=2e-6)
define("SquaredDifference", 1, _squared_difference, "(a - b) squared; integers wrap.")


@op("Divide", since=1, symbolic=True)
def divide_1(
    a: NumericTensor,
    b: NumericTensor,
    *,
    m_pythondiv: bool = True,
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """a / b. Integers are rounded down, or towards zero if ``m_pythondiv`` is false.

    Source: Divide-1. OpenVINO's reference rounds down where m_pythondiv is true, its CPU plugin truncates.
    The result of dividing an integer by 0 is not specified; here it is 0.
    """
    a, b = align(a, b, auto_broadcast, auto_broadcast_axis)
    with np.errstate(all="ignore"):
        return divide(a, b, m_pythondiv)


@divide_1.shape_rule
def _divide_1_facts(a: Fact, b: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None) -> Fact:
    return Fact(unify_elements(a, b), broadcast([a.shape, b.shape], auto_broadcast, auto_broadcast_axis))
