"""Comparisons of two tensors, and tests for what is finite."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import BOOLEAN, Element
from irexec.ir.facts import Fact
from irexec.schema.element_checks import check_float, unify_elements
from irexec.schema.elementwise import define
from irexec.schema.registry import op


def _boolean(a: Fact, b: Fact) -> Element:
    unify_elements(a, b)
    return BOOLEAN


define("Equal", 1, np.equal, "Whether a = b; NaN equals nothing.", _boolean)
define("NotEqual", 1, np.not_equal, "Whether a differs from b.", _boolean)
define("Less", 1, np.less, "Whether a < b.", _boolean)
define("LessEqual", 1, np.less_equal, "Whether a <= b.", _boolean)
define("Greater", 1, np.greater, "Whether a > b.", _boolean)
define("GreaterEqual", 1, np.greater_equal, "Whether a >= b.", _boolean)


def _float(data: Fact) -> Fact:
    check_float(data, "data")
    return Fact(BOOLEAN, data.shape)


@op("IsFinite", since=10)
def is_finite_10(data: np.ndarray) -> np.ndarray:
    """Whether each number is neither NaN nor infinite. Source: IsFinite-10."""
    return np.asarray(np.isfinite(data))


@is_finite_10.shape_rule
def _is_finite_10_facts(data: Fact) -> Fact:
    return _float(data)


@op("IsNaN", since=10)
def is_nan_10(data: np.ndarray) -> np.ndarray:
    """Whether each number is NaN. Source: IsNaN-10."""
    return np.asarray(np.isnan(data))


@is_nan_10.shape_rule
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


@is_inf_10.shape_rule
def _is_inf_10_facts(data: Fact, *, detect_negative: bool = True, detect_positive: bool = True) -> Fact:
    return _float(data)
