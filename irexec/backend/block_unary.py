"""Functions of one tensor that NumPy has, and conversions, by blocks."""

from __future__ import annotations

import numpy as np

from irexec.backend.block_arithmetic import by_ufunc
from irexec.backend.block_types import block_formula, block_function, from_reference
from irexec.backend.chain import Formula
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import is_finite, is_nan, negative
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.reference.integers import truncated


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
