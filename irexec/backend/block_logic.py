"""Comparisons, logical and bitwise operations and Select, by blocks."""

from __future__ import annotations

import numpy as np

from irexec.backend.block_arithmetic import by_ufunc, define_binary
from irexec.backend.block_types import block_function, from_reference
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import is_inf
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch

_COMPARISONS: dict[str, np.ufunc] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}
_LOGICAL: dict[str, np.ufunc] = {
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalXor": np.logical_xor,
    "Xor": np.logical_xor,
}
_BITWISE: dict[str, np.ufunc] = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
_SHIFTS: dict[str, np.ufunc] = {"BitwiseLeftShift": np.left_shift, "BitwiseRightShift": np.right_shift}

for _ufuncs, _since, _kinds in (
    (_COMPARISONS, 1, "fiub"),
    (_LOGICAL, 1, "b"),
    (_BITWISE, 13, "iub"),
    (_SHIFTS, 15, "iu"),
):
    for _type, _ufunc in _ufuncs.items():
        define_binary(_type, _since, by_ufunc(_ufunc), kinds=_kinds)


@block_function("IsInf", since=10)
def _is_inf_10(task: Task) -> BlockOperation | None:
    if task.attributes.get("detect_negative", True) and task.attributes.get("detect_positive", True):
        return BlockOperation(by_ufunc(is_inf))
    return from_reference(task)


@block_function("Select", since=1, kinds="b")
def _select_1(task: Task) -> BlockOperation | None:
    if task.attributes.get("auto_broadcast", "numpy") == "pdpd":
        return None
    return BlockOperation(_select, (0, 1, 2), temporaries=1, passes=7)


def _select(scratch: Scratch, out: np.ndarray, condition: np.ndarray, then: np.ndarray, otherwise: np.ndarray) -> None:
    """``otherwise ^ ((then ^ otherwise) & mask)``, because NumPy's selection branches for each element."""
    if then is otherwise:
        # Both may be the memory of ``out``, which the bits of one of them would be lost from.
        if out is not then:
            np.copyto(out, then)
        return
    integers = _INTEGERS[out.dtype.itemsize]
    mask = scratch.take(condition.shape, integers)
    np.copyto(mask, condition, casting="unsafe")
    if out is otherwise:
        # The mask of what is taken from ``otherwise``, whose memory is written first.
        np.subtract(mask, 1, out=mask, dtype=integers)
        then, otherwise = otherwise, then
    else:
        np.negative(mask, out=mask)
    bits, kept = out.view(integers), otherwise.view(integers)
    np.bitwise_xor(then.view(integers), kept, out=bits)
    np.bitwise_and(bits, mask, out=bits)
    np.bitwise_xor(bits, kept, out=bits)


_INTEGERS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
