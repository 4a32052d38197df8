"""The result of a conformance run: the verdict on each case, and their numbers by operation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from irexec.conformance.verdicts import CLOSE, DIFFERS, INSIDE, OPEN, OUTSIDE
from irexec.display import Column, Content, Table, Text
from irexec.display.hypertext import html
from irexec.display.page import page
from irexec.display.svg import badge
from irexec.messages import counted, visible
from irexec.records import Record, Records, Report

REFUSED, INEXPRESSIBLE, CRASHED = "refused", "inexpressible", "crashed"
VERDICTS = (INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS, REFUSED, INEXPRESSIBLE, CRASHED)
"""Inside and outside: every element is within its bound, or one is not and no correct implementation gives it. Open:
outside, but the portability table has the difference. Close and differs: there is no bound, and the outputs are within
the tolerance of the reference, or not, which is not a failure. Refused: the runtime does not run the case.
Inexpressible: the exporter to ONNX cannot write it. Crashed: the runtime's process ended, or took too long."""

FAILURES = (OUTSIDE, CRASHED)


@dataclass(frozen=True)
class CaseResult(Record):
    """The verdict on one case.

    Attributes:
        type, since: the operation, and the opset of its version.
        case: the seed of the case.
        elements: the element types of the inputs.
        verdict: of VERDICTS.
        why: the reason, where the verdict is neither "inside" nor "close".
        codes: of the portability table, where it is "open".
    """

    type: str
    since: int
    case: str
    elements: tuple[str, ...]
    verdict: str
    why: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conformance(Report):
    """The verdicts on one runtime.

    Attributes:
        runtime: its name.
        version: its version; "" where it has none.
        arithmetic: its stated arithmetic; "" for what it says itself.
        seed: of the first case of each operation.
        cases: the verdicts.
    """

    runtime: str
    version: str
    arithmetic: str
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
        return any(case.verdict in (INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS) for case in self.cases)

    @property
    def has_failed(self) -> bool:
        """Whether an output is outside of its bound, the runtime crashed, or it has run no case."""
        return not self.has_run or any(case.verdict in FAILURES for case in self.cases)

    def by_operation(self) -> dict[str, Counter[str]]:
        """The number of cases by verdict of each operation, such as "Softmax-8"."""
        rows: dict[str, Counter[str]] = {}
        for case in self.cases:
            rows.setdefault(f"{case.type}-{case.since}", Counter())[case.verdict] += 1
        return rows

    @property
    def title(self) -> str:
        """The runtime and the sum of the verdicts."""
        total = ", ".join(f"{number} {verdict}" for verdict, number in self.counts.items() if number)
        name = " ".join(filter(None, (self.runtime, self.version, self.arithmetic)))
        rows = counted(len({(case.type, case.since) for case in self.cases}), "operation")
        return f"{name}: {counted(len(self.cases), 'case')} of {rows}: {total}"

    def sections(self) -> list[Content]:
        """A table by operation, the reasons of cases that are not inside or close, and the sum."""
        return self._sections(_SHOWN)

    def _sections(self, limit: int | None) -> list[Content]:
        used = [verdict for verdict, number in self.counts.items() if number]
        columns = [Column("operation", lambda row: row[0]), *(_column(verdict) for verdict in used)]
        found: list[Content] = [Table(columns, list(self.by_operation().items()), what="operations")]
        reasons = sorted(
            (case for case in self.cases if case.why), key=lambda case: _ORDER.index(case.verdict)
        )  # fmt: skip
        if reasons:
            found.append(Table(_REASONS, reasons, what="cases", limit=limit))
        return [*found, Text(self.title, "title")]

    def html(self) -> str:
        """A page that needs no other file: the verdicts by operation, and all reasons."""
        contents = self._sections(None)
        return page(f"irexec conform {self.runtime}", html([contents[-1], *contents[:-1]]))

    def badge(self) -> str:
        """An SVG of one line: the share of the cases with a bound that are inside, and the number of failures."""
        failed = sum(self.counts[verdict] for verdict in FAILURES)
        bounded = self.counts[INSIDE] + self.counts[OUTSIDE]
        text = f"{failed} wrong" if failed else f"{self.counts[INSIDE]} of {bounded} inside"
        return badge("conformance", text, is_good=not self.has_failed)

    def junit(self) -> str:
        """A JUnit document: an output outside is a failure, a crash an error; cases without a verdict of the bounds are
        skipped, with the reason."""
        suite = Element("testsuite", name=f"irexec conform {self.runtime}", tests=str(len(self.cases)))
        suite.set("failures", str(self.counts[OUTSIDE]))
        suite.set("errors", str(self.counts[CRASHED]))
        suite.set("skipped", str(sum(self.counts[verdict] for verdict in _SKIPPED)))
        for case in self.cases:
            node = SubElement(suite, "testcase", classname=f"{case.type}-{case.since}", name=case.case)
            if case.verdict not in (INSIDE, CLOSE):
                kind = {CRASHED: "error", OUTSIDE: "failure"}.get(case.verdict, "skipped")
                text = " ".join((case.verdict, *case.codes))
                SubElement(node, kind, message=visible(f"{text}: {case.why}"))
        indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'


_SKIPPED = (OPEN, DIFFERS, REFUSED, INEXPRESSIBLE)
_ORDER = (CRASHED, OUTSIDE, DIFFERS, OPEN, REFUSED, INEXPRESSIBLE)
_SHOWN = 20
_REASONS = [
    Column("operation", lambda case: f"{case.type}-{case.since}"),
    Column("case", "case"),
    Column("verdict", lambda case: " ".join((case.verdict, *case.codes))),
    Column("reason", "why", kind="sentence"),
]


def _column(verdict: str) -> Column:
    def number(row: Any) -> int:
        return int(row[1][verdict])

    return Column(verdict, number, "number")
