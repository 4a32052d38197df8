"""The result of a conformance run: the verdict on each case, and their numbers by operation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from irexec.display import Column, Content, Table, Text
from irexec.messages import counted, visible
from irexec.records import Record, Records, Report

CLOSE, DIFFERS, REFUSED, CRASHED = "close", "differs", "refused", "crashed"
VERDICTS = (CLOSE, DIFFERS, REFUSED, CRASHED)
"""Close and differs: within the tolerance of the reference, or not, which is no failure: there is no bound. Refused:
the runtime or the exporter to ONNX does not run the case. Crashed: its process ended, or took too long."""


@dataclass(frozen=True)
class CaseResult(Record):
    """The verdict on one case.

    Attributes:
        type, since: the operation, and the opset of its version.
        case: the seed of the case.
        elements: the element types of the inputs.
        verdict: of VERDICTS.
        why: the reason, where the verdict is not "close".
    """

    type: str
    since: int
    case: str
    elements: tuple[str, ...]
    verdict: str
    why: str


@dataclass(frozen=True)
class Conformance(Report):
    """The verdicts on one runtime.

    Attributes:
        runtime: its name.
        version: its version; "" where it has none.
        seed: of the first case of each operation.
        cases: the verdicts.
    """

    runtime: str
    version: str
    seed: int
    cases: Records[CaseResult]
    _json_properties = ("counts",)

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases by verdict."""
        found = Counter(case.verdict for case in self.cases)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def has_run(self) -> bool:
        """Whether the runtime has run any case."""
        return any(case.verdict in (CLOSE, DIFFERS) for case in self.cases)

    def sections(self) -> list[Content]:
        """A table by operation, the reasons of cases that are not close, and the sum."""
        rows: dict[str, Counter[str]] = {}
        for case in self.cases:
            rows.setdefault(f"{case.type}-{case.since}", Counter())[case.verdict] += 1
        columns = [Column("operation", lambda row: row[0]), *(_column(verdict) for verdict in VERDICTS)]
        total = ", ".join(f"{number} {verdict}" for verdict, number in self.counts.items())
        name = f"{self.runtime} {self.version}".strip()
        text = f"{name}: {counted(len(self.cases), 'case')} of {counted(len(rows), 'operation')}: {total}"
        reasons = sorted(
            (case for case in self.cases if case.verdict != CLOSE), key=lambda case: -VERDICTS.index(case.verdict)
        )
        found: list[Content] = [Table(columns, list(rows.items()), what="operations")]
        if reasons:
            found.append(Table(_REASONS, reasons, what="cases", limit=_SHOWN))
        return [*found, Text(text, "title")]

    def junit(self) -> str:
        """A JUnit document: a crash is an error; a case that differs or is refused is skipped, with the reason."""
        suite = Element("testsuite", name=f"irexec conform {self.runtime}", tests=str(len(self.cases)), failures="0")
        suite.set("errors", str(self.counts[CRASHED]))
        suite.set("skipped", str(self.counts[DIFFERS] + self.counts[REFUSED]))
        for case in self.cases:
            node = SubElement(suite, "testcase", classname=f"{case.type}-{case.since}", name=case.case)
            if case.verdict != CLOSE:
                kind = "error" if case.verdict == CRASHED else "skipped"
                SubElement(node, kind, message=visible(f"{case.verdict}: {case.why}"))
        indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'


_SHOWN = 20
_REASONS = [
    Column("operation", lambda case: f"{case.type}-{case.since}"),
    Column("case", "case"),
    Column("verdict", "verdict"),
    Column("reason", "why", kind="sentence"),
]


def _column(verdict: str) -> Column:
    def number(row: Any) -> int:
        return int(row[1][verdict])

    return Column(verdict, number, "number")
