"""Logical and bitwise operations, and Select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.ir.facts import Fact
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.element_checks import unify_elements
from irexec.schema.elementwise import align, define
from irexec.schema.inputs import BOOLEAN_TYPE, INTEGER, INTEGER_OR_BOOLEAN, AnyTensor, BooleanTensor
from irexec.schema.registry import op

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
    cond: BooleanTensor, then: AnyTensor, else_: AnyTensor, *, auto_broadcast: Broadcasting = "numpy"
) -> np.ndarray:
    """``then`` where ``cond`` is true, ``else`` elsewhere.

    With pdpd ``cond`` and ``else`` are broadcast to ``then`` from its first axis on. Source: Select-1.
    """
    if auto_broadcast == "pdpd":
        cond, else_ = align(then, cond, "pdpd", 0)[1], align(then, else_, "pdpd", 0)[1]
    return np.where(cond.astype(np.bool_), then, else_)


@select_1.shape_rule
def _select_1_facts(cond: Fact, then: Fact, else_: Fact, *, auto_broadcast: Broadcasting) -> Fact:
    kind = unify_elements(then, else_)
    if auto_broadcast == "pdpd":
        shape = broadcast([then.shape, else_.shape], "pdpd", 0)
        return Fact(kind, broadcast([shape, cond.shape], "pdpd", 0))
    return Fact(kind, broadcast([cond.shape, then.shape, else_.shape], auto_broadcast))
