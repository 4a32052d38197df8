"""Comparisons of two tensors; tests for NaN and infinities."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.schema.elementwise import define, tested
from irexec.schema.inputs import ANY_TYPE, FloatTensor
from irexec.schema.registry import op

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
