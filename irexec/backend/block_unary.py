"""Functions of one tensor that NumPy has, by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.backend.block_arithmetic import by_ufunc
from irexec.backend.block_types import block_function, from_reference
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import negative
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch


def _define(
    type: str,
    since: int,
    ufunc: Callable[..., Any],
    passes: float,
    *,
    integers: str = "reference",
    in_place: bool = True,
) -> None:
    """Register a function of floating-point numbers.

    Args:
        integers: the kind for integers: the same "ufunc", a "copy", or the "reference" kernel.
        in_place: False where NumPy is slower if the result is written over the argument.
    """
    floats = BlockOperation(by_ufunc(ufunc), (0,), (None,), in_place, passes=passes)

    @block_function(type, since, "fiu")
    def operation(task: Task) -> BlockOperation | None:
        if task.kind == "f" or integers == "ufunc":
            return floats
        return _COPY if integers == "copy" else from_reference(task)


def copy(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    """The block itself."""
    if out is not x:
        np.copyto(out, x, casting="unsafe")


_COPY = BlockOperation(copy, (0,), (None,))

_define("Abs", 1, np.abs, 1, integers="ufunc")
_define("Negative", 1, negative, 1, integers="ufunc")
_define("Sign", 1, np.sign, 8, integers="ufunc")
_define("Ceiling", 1, np.ceil, 1, integers="copy")
_define("Floor", 1, np.floor, 1, integers="copy")
_define("Sqrt", 1, np.sqrt, 2.5)
_define("Exp", 1, np.exp, 4.5)
_define("Log", 1, np.log, 4.5)
_define("Sin", 1, np.sin, 6)
_define("Cos", 1, np.cos, 6)
_define("Tan", 1, np.tan, 7, in_place=False)
_define("Asin", 1, np.arcsin, 7, in_place=False)
_define("Acos", 1, np.arccos, 7, in_place=False)
_define("Atan", 1, np.arctan, 7, in_place=False)
_define("Sinh", 1, np.sinh, 7, in_place=False)
_define("Cosh", 1, np.cosh, 7, in_place=False)
_define("Tanh", 1, np.tanh, 3.5)
_define("Asinh", 4, np.arcsinh, 10, in_place=False)
_define("Acosh", 4, np.arccosh, 10, in_place=False)
_define("Atanh", 4, np.arctanh, 10, in_place=False)


@block_function("ErfInv", since=17)
def _erfinv_17(task: Task) -> BlockOperation | None:
    return from_reference(task)


@block_function("Round", since=5, kinds="fiu")
def _round_5(task: Task) -> BlockOperation | None:
    if task.kind != "f":
        return _COPY
    if task.attributes.get("mode", "half_to_even") != "half_to_even":
        return from_reference(task)
    return BlockOperation(by_ufunc(np.rint), (0,), (None,))
