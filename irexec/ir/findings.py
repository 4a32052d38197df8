"""Findings: the one record of what is wrong, or unusual, in a model. The reader makes them, and so does validate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from irexec.html import Column, Content, Html, Record, Records, display, element, table
from irexec.ir.codes import CODES, Severity
from irexec.messages import sentence


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Record):
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

    def __repr__(self) -> str:
        where = self.at()
        return f"<Finding {self.code} {self.severity}{f', {where}' if where else ''}: {self.message}>"

    def _repr_html_(self) -> str:
        return display(None, findings_table([self]))

    def as_dict(self) -> dict[str, Any]:
        """The finding as the JSON format has it."""
        return asdict(self)


def in_model(code: str, message: str, *, port: int | None = None, line: int | None = None) -> Finding:
    """A finding that belongs to no layer."""
    return Finding(code, CODES[code].severity, None, None, None, port, line, message)


class Findings(Records[Finding]):
    """The findings about a model: a list that displays in a notebook as a table."""

    def _repr_html_(self) -> str:
        return display(count_text(self), findings_table(self, limit=200))


def count_text(findings: Iterable[Finding]) -> str:
    """How many findings there are of each severity: "2 errors, 1 warning"."""
    counts = Counter(finding.severity for finding in findings)
    parts = [
        f"{counts[name]:,} {name}{'s' if counts[name] > 1 and name != 'info' else ''}"
        for name in _SEVERITIES
        if counts[name]
    ]
    return ", ".join(parts) or "no findings"


Link = Callable[[Finding, str], Content]


def findings_table(findings: Sequence[Finding], *, limit: int | None = None, link: Link | None = None) -> Html:
    """The findings as a table; the meaning of a code is shown where the pointer rests on it.

    ``link`` gives what is shown for the layer of a finding, of which it gets the text.
    """
    if not findings:
        return Html()
    columns = [Column("line", is_number=True), "severity", "code", "layer", Column("port", is_number=True), "finding"]
    return table(
        columns, [_cells(finding, link) for finding in findings], limit=limit, hide_empty=True, class_="stacked"
    )


def _cells(finding: Finding, link: Link | None) -> list[Content]:
    name = "" if finding.layer_name is None else f"{finding.layer_id} {finding.layer_name} ({finding.layer_type})"
    meaning = CODES[finding.code].meaning if finding.code in CODES else None
    severity = element("span", finding.severity, class_=finding.severity)
    layer = name if link is None or not name else link(finding, name)
    return [finding.line, severity, element("abbr", finding.code, title=meaning), layer, finding.port, finding.message]


_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
