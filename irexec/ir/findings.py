"""Findings: records of faults and oddities of a model, made by the reader and by validate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from irexec.ir.codes import CODES, Severity
from irexec.messages import counted, sentence
from irexec.records import Record, Records


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Record):
    """One thing that is wrong, or unusual, in a model.

    Attributes:
        code: stable; irexec.analysis.codes says what it means and how to repair it.
        severity: the severity of the code: error (it cannot be run or trusted), warning (unusual, but it can be run) or
            info.
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

    @property
    def placed_message(self) -> str:
        """The message after its line and layer, as errors say it."""
        where = self.at()
        return f"{where}{': ' if where else ''}{self.message}"

    def __repr__(self) -> str:
        where = self.at()
        return f"<Finding {self.code} {self.severity}{f', {where}' if where else ''}: {self.message}>"


def in_model(code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
    """A finding that belongs to no layer."""
    return Finding(code, CODES[code].severity, None, None, None, port, line, message)


def at_the_first(findings: Sequence[Finding]) -> Finding:
    """One finding for equal ones: the first, with the number of the other layers."""
    first, *others = findings
    more = f"; so it is in {counted(len(others), 'more layer')}" if others else ""
    return replace(first, message=f"{first.message}{more}")


class Findings(Records[Finding]):
    """The findings about a model: a list that displays in a notebook as a table."""


def counts_of(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings by severity, the worst first; severities that do not occur are left out."""
    counts = Counter(finding.severity for finding in findings)
    return {name: counts[name] for name in _SEVERITIES if counts[name]}


def layer_text(finding: Finding) -> str:
    """The layer of a finding: "2 conv (Convolution)"; empty for a finding about the whole model."""
    if finding.layer_id is None and finding.layer_name is None:
        return ""
    number = "" if finding.layer_id is None else f"{finding.layer_id} "
    kind = f" ({finding.layer_type})" if finding.layer_type else ""
    return f"{number}{finding.layer_name or ''}{kind}"


def count_text(findings: Iterable[Finding], **others: int) -> str:
    """Number of findings of each severity, and of others by what they are: "2 errors, 1 warning, 3 ignored"."""
    parts = [
        f"{count:,} {name}{'s' if count > 1 and name != 'info' else ''}" for name, count in counts_of(findings).items()
    ]
    parts += [f"{count:,} {what}" for what, count in others.items() if count]
    return ", ".join(parts) or "no findings"


_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
