"""Comparisons of two tensors, and tests for what is finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.errors import check
from irexec.ir.elements import BOOLEAN
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import align
from irexec.ops.registry import op
from irexec.ops.rules import Broadcasting, broadcast, same_element


def _define(type: str, function: Callable[..., Any], says: str) -> None:
    def kernel(a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy") -> np.ndarray:
        a, b = align(a, b, auto_broadcast, 0)
        return np.asarray(function(a, b), np.bool_)

    kernel.__doc__ = f"{says} Source: {type}-1."
    definition = op(type, 1)(kernel)

    @definition.facts
    def facts(a: Fact, b: Fact, *, auto_broadcast: Broadcasting = "numpy") -> Fact:
        same_element(a, b)
        return Fact(BOOLEAN, broadcast([a.shape, b.shape], auto_broadcast, 0))


_define("Equal", np.equal, "Whether a = b; NaN equals nothing.")
_define("NotEqual", np.not_equal, "Whether a differs from b.")
_define("Less", np.less, "Whether a < b.")
_define("LessEqual", np.less_equal, "Whether a <= b.")
_define("Greater", np.greater, "Whether a > b.")
_define("GreaterEqual", np.greater_equal, "Whether a >= b.")


def _float(data: Fact) -> Fact:
    if data.element is not None:
        check(data.element.is_float, f"element type {data.element} is not a float type")
    return Fact(BOOLEAN, data.shape)


@op("IsFinite", since=10)
def is_finite_10(data: np.ndarray) -> np.ndarray:
    """Whether each number is neither NaN nor infinite. Source: IsFinite-10."""
    return np.asarray(np.isfinite(data))


@is_finite_10.facts
def _is_finite_10_facts(data: Fact) -> Fact:
    return _float(data)


@op("IsNaN", since=10)
def is_nan_10(data: np.ndarray) -> np.ndarray:
    """Whether each number is NaN. Source: IsNaN-10."""
    return np.asarray(np.isnan(data))


@is_nan_10.facts
def _is_nan_10_facts(data: Fact) -> Fact:
    return _float(data)


@op("IsInf", since=10)
def is_inf_10(data: np.ndarray, *, detect_negative: bool = True, detect_positive: bool = True) -> np.ndarray:
    """Whether each number is infinite, of the signs that are to be detected. Source: IsInf-10."""
    found = np.zeros(data.shape, np.bool_)
    if detect_negative:
        found |= np.isneginf(data)
    if detect_positive:
        found |= np.isposinf(data)
    return found


@is_inf_10.facts
def _is_inf_10_facts(data: Fact, *, detect_negative: bool = True, detect_positive: bool = True) -> Fact:
    return _float(data)
