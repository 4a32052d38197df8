"""Convert and ConvertLike, by blocks."""

from __future__ import annotations

import numpy as np

from irexec.backend.block_types import block_function
from irexec.backend.block_unary import copy
from irexec.backend.kernel import Task
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.reference.integers import truncated


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
def _convert_1(task: Task) -> BlockOperation | None:
    source, target = task.dtype(0), task.outputs[0].element
    if source is None or target is None:
        return None
    dtype = target.carrier
    if dtype.kind == "b":
        return BlockOperation(_is_nonzero, (0,), (None,))
    if source.kind == "f" and dtype.kind in "iu":
        return BlockOperation(_truncate, (0,), (None,), temporaries=1, passes=5)
    if source == np.float64 and dtype == np.float16:
        return BlockOperation(_halve, (0,), (None,), temporaries=1, passes=30)
    halves = source != dtype and np.float16 in (source, dtype)
    return BlockOperation(copy, (0,), (None,), passes=30 if halves else 2)


@block_function("ConvertLike", since=1, kinds="fiub")
def _convert_like_1(task: Task) -> BlockOperation | None:
    return _convert_1(task)
