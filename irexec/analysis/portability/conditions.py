"""Conditions of differences: one for each row of irexec.ir.portability, by its code."""

from __future__ import annotations

from collections.abc import Callable

from irexec.analysis.portability.layer import Layer
from irexec.ir.portability import DIFFERENCES

Condition = Callable[[Layer], bool]

CONDITIONS: dict[str, Condition] = {}


def applies(code: str) -> Callable[[Condition], Condition]:
    """Register the condition of a difference; raises ValueError for a code without one, or with two."""
    if code not in DIFFERENCES or code in CONDITIONS:
        raise ValueError(f"there is no difference {code}, or two conditions for it")

    def register(condition: Condition) -> Condition:
        CONDITIONS[code] = condition
        return condition

    return register


def always(layer: Layer) -> bool:
    """Every layer of the types of a difference has it."""
    return True
