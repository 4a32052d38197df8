"""Differences between irexec and OpenVINO that are known, and why irexec is right or the question is moot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.support.cases import Case


@dataclass(frozen=True)
class Known:
    """A difference: the types, what of a row and of the message it applies to, and the reason."""

    types: tuple[str, ...]
    applies: Callable[[Case, str], bool]
    why: str


def _infinite(row: Case, difference: str) -> bool:
    return any(x.array.dtype.kind == "f" and np.isinf(x.array).any() for x in row.inputs)


KNOWN: tuple[Known, ...] = (
    Known(("Gelu",), _infinite, "the plugin's error function gives NaN for infinities; the product of inf and 2 is inf"),
)


def reason(row: Case, difference: str) -> str:
    """Why the row may differ so; nothing if that is not known."""
    return next((known.why for known in KNOWN if row.type in known.types and known.applies(row, difference)), "")
