"""Comparisons, tests for infinities, logical and bitwise operations, and Select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.ir.facts import Fact
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.elementwise import align, define, tested
from irexec.schema.inputs import (
    ANY_TYPE,
    BOOLEAN_TYPE,
    INTEGER,
    INTEGER_OR_BOOLEAN,
    AnyTensor,
    BooleanTensor,
    FloatTensor,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements

define("LogicalAnd", 1, np.logical_and, "a and b.", elements=BOOLEAN_TYPE)
define("LogicalOr", 1, np.logical_or, "a or b.", elements=BOOLEAN_TYPE)
define("LogicalXor", 1, np.logical_xor, "Whether exactly one of a and b is true.", elements=BOOLEAN_TYPE)
define("Xor", 1, np.logical_xor, "Whether exactly one of a and b is true.", elements=BOOLEAN_TYPE)


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(function(a, b), a.dtype)

    return shift


define("BitwiseAnd", 13, np.bitwise_and, "a & b, bit by bit; a and b for booleans.", elements=INTEGER_OR_BOOLEAN)
define("BitwiseOr", 13, np.bitwise_or, "a | b, bit by bit; a or b for booleans.", elements=INTEGER_OR_BOOLEAN)
define("BitwiseXor", 13, np.bitwise_xor, "a ^ b, bit by bit; exclusive or for booleans.", elements=INTEGER_OR_BOOLEAN)
define("BitwiseLeftShift", 15, _shift(np.left_shift), "a << b; bits beyond the type are lost.", elements=INTEGER)
define("BitwiseRightShift", 15, _shift(np.right_shift), "a >> b; the sign is kept.", elements=INTEGER)


@op("Select", since=1, symbolic=True)
def select_1(
    cond: BooleanTensor,
    then: AnyTensor,
    else_: AnyTensor,
    *,
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """``then`` where ``cond`` is true, ``else`` elsewhere.

    With pdpd ``cond`` and ``else`` are broadcast to ``then``, from ``auto_broadcast_axis`` on. Source: Select-1.
    """
    if auto_broadcast == "pdpd":
        cond, else_ = (align(then, one, auto_broadcast, auto_broadcast_axis)[1] for one in (cond, else_))
    return np.where(cond.astype(np.bool_), then, else_)


@select_1.shape_rule
def _select_1_facts(
    cond: Fact, then: Fact, else_: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None
) -> Fact:
    kind = unify_elements(then, else_)
    if auto_broadcast == "pdpd":
        shape = broadcast([then.shape, else_.shape], "pdpd", auto_broadcast_axis)
        return Fact(kind, broadcast([shape, cond.shape], "pdpd", auto_broadcast_axis))
    return Fact(kind, broadcast([cond.shape, then.shape, else_.shape], auto_broadcast))


define("Equal", 1, np.equal, "Whether a = b; false where either is NaN.", elements=ANY_TYPE, result=BOOLEAN)
define("NotEqual", 1, np.not_equal, "Whether a differs from b.", elements=ANY_TYPE, result=BOOLEAN)
define("Less", 1, np.less, "Whether a < b.", elements=ANY_TYPE, result=BOOLEAN)
define("LessEqual", 1, np.less_equal, "Whether a <= b.", elements=ANY_TYPE, result=BOOLEAN)
define("Greater", 1, np.greater, "Whether a > b.", elements=ANY_TYPE, result=BOOLEAN)
define("GreaterEqual", 1, np.greater_equal, "Whether a >= b.", elements=ANY_TYPE, result=BOOLEAN)


@op("IsInf", since=10)
def is_inf_10(data: FloatTensor, *, detect_negative: bool = True, detect_positive: bool = True) -> np.ndarray:
    """Whether each element is infinite, with a sign that is to be detected. Source: IsInf-10."""
    found = np.zeros(data.shape, np.bool_)
    if detect_negative:
        found |= np.isneginf(data)
    if detect_positive:
        found |= np.isposinf(data)
    return found


is_inf_10.shape_rule(tested)
