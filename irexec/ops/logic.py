"""Logical and bitwise operations, and Select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.dtypes.elements import BOOLEAN, Element
from irexec.errors import check
from irexec.ir.facts import Fact
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.element_checks import unify_elements
from irexec.schema.elementwise import align, define
from irexec.schema.registry import op


def _check_boolean(*facts: Fact) -> None:
    for fact in facts:
        check(fact.element in (None, BOOLEAN), f"element type {fact.element} is not boolean")


def _boolean(a: Fact, b: Fact) -> Element:
    _check_boolean(a, b)
    return BOOLEAN


define("LogicalAnd", 1, np.logical_and, "Whether both hold.", _boolean)
define("LogicalOr", 1, np.logical_or, "Whether either holds.", _boolean)
define("LogicalXor", 1, np.logical_xor, "Whether just one holds.", _boolean)
define("Xor", 1, np.logical_xor, "Whether just one holds.", _boolean)


@op("LogicalNot", since=1)
def logical_not_1(data: np.ndarray) -> np.ndarray:
    """Whether it does not hold. Source: LogicalNot-1."""
    return np.asarray(np.logical_not(data))


@logical_not_1.shape_rule
def _logical_not_1_facts(data: Fact) -> Fact:
    _check_boolean(data)
    return Fact(BOOLEAN, data.shape)


def _check_bits(fact: Fact) -> None:
    if fact.element is not None:
        check(not fact.element.is_float and fact.element.kind != "string", f"element type {fact.element} is neither integer nor boolean")


def _bits(a: Fact, b: Fact) -> Element | None:
    _check_bits(a)
    _check_bits(b)
    return unify_elements(a, b)


def _moved(a: Fact, b: Fact) -> Element | None:
    check(BOOLEAN not in (a.element, b.element), "booleans cannot be shifted")
    return _bits(a, b)


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(function(a, b), a.dtype)

    return shift


define("BitwiseAnd", 13, np.bitwise_and, "Both, bit by bit; of booleans, logically.", _bits)
define("BitwiseOr", 13, np.bitwise_or, "Either, bit by bit; of booleans, logically.", _bits)
define("BitwiseXor", 13, np.bitwise_xor, "Just one, bit by bit; of booleans, logically.", _bits)
define("BitwiseLeftShift", 15, _shift(np.left_shift), "The bits of a moved up by b; what leaves the type is lost.", _moved)
define("BitwiseRightShift", 15, _shift(np.right_shift), "The bits of a moved down by b; the sign stays.", _moved)


@op("BitwiseNot", since=13)
def bitwise_not_13(data: np.ndarray) -> np.ndarray:
    """Every bit turned over; of booleans, logically. Source: BitwiseNot-13."""
    return np.asarray(np.invert(data))


@bitwise_not_13.shape_rule
def _bitwise_not_13_facts(data: Fact) -> Fact:
    _check_bits(data)
    return Fact(data.element, data.shape)


@op("Select", since=1, symbolic=True)
def select_1(cond: np.ndarray, then: np.ndarray, else_: np.ndarray, *, auto_broadcast: Broadcasting = "numpy") -> np.ndarray:
    """``then`` where ``cond`` holds, ``else`` elsewhere.

    With pdpd ``cond`` and ``else`` are broadcast to ``then`` from its first axis on. Source: Select-1.
    """
    if auto_broadcast == "pdpd":
        cond, else_ = align(then, cond, "pdpd", 0)[1], align(then, else_, "pdpd", 0)[1]
    return np.where(cond.astype(np.bool_), then, else_)


@select_1.shape_rule
def _select_1_facts(cond: Fact, then: Fact, else_: Fact, *, auto_broadcast: Broadcasting = "numpy") -> Fact:
    check(cond.element in (None, BOOLEAN), f"cond has element type {cond.element}, expected boolean")
    kind = unify_elements(then, else_)
    if auto_broadcast == "pdpd":
        shape = broadcast([then.shape, else_.shape], "pdpd", 0)
        return Fact(kind, broadcast([shape, cond.shape], "pdpd", 0))
    return Fact(kind, broadcast([cond.shape, then.shape, else_.shape], auto_broadcast))
