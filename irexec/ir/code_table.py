"""Rows of the table of finding codes, and the table of all rows.

The rows are in irexec.ir.codes, irexec.ir.onnx_codes and irexec.analysis.portability; irexec.analysis.codes imports all
of them. Plug-ins add rows of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irexec.records import Record

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Code(Record):
    """One code.

    Attributes:
        code: "IR103".
        name: two to four words, unique.
        severity: error (the model cannot be run, or its results cannot be trusted), warning (unusual, but it can be
            run) or info.
        meaning: one sentence without a full stop.
        example: XML in which it is found, or ONNX's text of a model, reduced to what matters.
        repair: the cure.
    """

    code: str
    name: str
    severity: Severity
    meaning: str
    example: str
    repair: str


CODES: dict[str, Code] = {}


def add(code: str, severity: Severity, name: str, meaning: str, example: str, repair: str) -> str:
    """Add a row and give its code; raises ValueError for a code or a name that is used already."""
    if code in CODES or any(row.name == name for row in CODES.values()):
        raise ValueError(f"the code {code} or the name {name!r} is used twice")
    CODES[code] = Code(code, name, severity, meaning, example, repair)
    return code


def discard(code: str) -> None:
    """Remove a row that was added."""
    del CODES[code]
