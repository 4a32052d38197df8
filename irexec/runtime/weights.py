"""Whether weights that are stored as small integers are held unpacked."""

from __future__ import annotations

from typing import Literal, get_args

from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F32, I4, I8, U4, U8
from irexec.errors import InputError
from irexec.ir.graph import ModelGraph

WeightsMode = Literal["auto", "packed", "unpacked"]

SHARE = 4
"""Unpacked weights may take this part of the available memory: one over SHARE."""


def are_unpacked(mode: WeightsMode, model: ModelGraph, memory: MemoryLimit) -> bool:
    """Whether kernels may hold compressed weights as f32.

    Args:
        memory: says how much is left.

    Raises:
        InputError: ``mode`` is another word.
    """
    if mode not in get_args(WeightsMode):
        given = "a path or bytes" if not isinstance(mode, str) else repr(mode)
        raise InputError(
            f"weights is {given}, expected 'auto', 'packed' or 'unpacked'; the .bin is the argument before it, bin"
        )
    if mode == "auto":
        return unpacked_size(model) * SHARE <= memory.left()
    return mode == "unpacked"


def unpacked_size(model: ModelGraph) -> int:
    """Bytes that the constants of 4 and 8 bits take as f32."""
    constants = (node.constant for node in model.walk() if node.constant is not None)
    return sum(constant.count * F32.carrier.itemsize for constant in constants if constant.element in (I4, U4, I8, U8))
