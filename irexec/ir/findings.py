"""Findings: the one record of what is wrong, or unusual, in a model. The reader makes them, and so does validate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from irexec.ir.codes import CODES, Severity


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or unusual, in a model.

    Attributes:
        code: stable; irexec.ir.codes says what it means and how to repair it.
        severity: that of the code: error (it cannot be run or trusted), warning (unusual, but it can be run) or info.
        layer_id, layer_name, layer_type: the layer; None where the finding is that of the whole model.
        port: the id of the port, as written.
        line: the XML line.
        message: one sentence with the values.
    """

    code: str
    severity: Severity
    layer_id: int | None
    layer_name: str | None
    layer_type: str | None
    port: int | None
    line: int | None
    message: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as the JSON format has it."""
        return asdict(self)


def in_model(code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
    """A finding that belongs to no layer."""
    return Finding(code, CODES[code].severity, None, None, None, port, line, message)
