"""Form in which weights that are stored as small integers are held."""

from __future__ import annotations

from typing import Literal, get_args

from irexec.backend.constants import Holding
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import I4, U4
from irexec.errors import InputError
from irexec.ir.graph import ModelGraph

WeightsMode = Literal["auto", "packed", "unpacked"]

SHARE = 4
"""Weights unpacked to bytes may use one part in SHARE of the available memory."""


def holding_of(mode: WeightsMode, model: ModelGraph, memory: MemoryLimit) -> Holding:
    """Form of the weights for a mode: "auto" spends one byte on each weight if the memory allows it.

    Args:
        memory: the memory that is left.

    Raises:
        InputError: ``mode`` is not a WeightsMode.
    """
    if mode not in get_args(WeightsMode):
        given = "a path or bytes" if not isinstance(mode, str) else repr(mode)
        raise InputError(
            f"weights is {given}, expected 'auto', 'packed' or 'unpacked'; the .bin is the argument before it, bin"
        )
    if mode == "auto":
        return "bytes" if byte_size(model) * SHARE <= memory.left(recently=True) else "packed"
    return mode


def byte_size(model: ModelGraph) -> int:
    """Bytes of the 4-bit constants with one byte for each weight; 8-bit constants are used as stored."""
    constants = (node.constant for node in model.walk() if node.constant is not None)
    return sum(constant.count for constant in constants if constant.element in (I4, U4))
