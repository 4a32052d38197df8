"""Findings: the one record of what is wrong, or unusual, in a model. The reader makes them, and so does validate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from irexec.ir.codes import CODES, Severity
from irexec.messages import sentence


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or unusual, in a model.

    Attributes:
        code: stable; irexec.ir.codes says what it means and how to repair it.
        severity: that of the code: error (it cannot be run or trusted), warning (unusual, but it can be run) or info.
        layer_id, layer_name, layer_type: the layer; None where the finding is that of the whole model.
        port: the id of the port, as written.
        line: the XML line.
        message: one sentence with the values; names in it are cut where they are very long.
    """

    code: str
    severity: Severity
    layer_id: int | None
    layer_name: str | None
    layer_type: str | None
    port: int | None
    line: int | None
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", sentence(self.message))

    def at(self, file: str = "") -> str:
        """Where it is, as messages say it: the file, the XML line and the layer, as far as they are known."""
        line = "" if self.line is None else f"line {self.line}"
        number = "" if self.layer_id is None else f"{self.layer_id} "
        kind = f" ({self.layer_type})" if self.layer_type else ""
        layer = "" if self.layer_name is None else f"layer {number}{self.layer_name!r}{kind}"
        return ", ".join(part for part in (file, line, layer) if part)

    def as_dict(self) -> dict[str, Any]:
        """The finding as the JSON format has it."""
        return asdict(self)


def in_model(code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
    """A finding that belongs to no layer."""
    return Finding(code, CODES[code].severity, None, None, None, port, line, message)
