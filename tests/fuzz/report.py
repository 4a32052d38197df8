"""Groups of findings: collected, confirmed alone, minimised and written to files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.case import Case, read_case, write_case
from tests.fuzz.findings import Finding
from tests.fuzz.pool import Pool
from tests.fuzz.shrink import minimise
from tests.fuzz.worker import Job, Result


@dataclass
class Group:
    """Findings that probably have one cause.

    Attributes:
        finding: that of the case with the lowest number.
        target, number: that case.
        case: the case itself; None where the process ended with it.
        count: how many cases have the finding.
    """

    finding: Finding
    target: str
    number: int
    case: Case | None
    count: int = 0


class Report:
    """The groups of a run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.cases: dict[str, int] = {}
        self.groups: dict[tuple[str, ...], Group] = {}
        self._began = time.monotonic()

    def add(self, job: Job, result: Result) -> None:
        self.cases[job.target] = self.cases.get(job.target, 0) + 1
        for finding in result.findings:
            group = self.groups.setdefault(
                (job.target, *finding.group), Group(finding, job.target, job.number, result.case)
            )
            group.count += 1
            if job.number < group.number:
                group.finding, group.number, group.case = finding, job.number, result.case

    def summary(self) -> str:
        """Cases for each target and minute, in one line."""
        minutes = max(time.monotonic() - self._began, 1e-3) / 60
        cases = ", ".join(f"{name} {count}" for name, count in self.cases.items())
        return f"{cases} cases in {minutes:.1f} min ({sum(self.cases.values()) / minutes:.0f} a minute): {len(self.groups)} groups of findings"

    def ordered(self) -> list[Group]:
        return [group for _, group in sorted(self.groups.items())]


def settle(group: Group, seed: int, pool: Pool, folder: Path, runs: int) -> tuple[Path, bool]:
    """Write the smallest case of a group; returns its file, and whether the case has the finding in a process of its own too."""
    case = group.case or pool.one(Job(group.target, seed, group.number, run=False)).case
    assert case is not None
    target, wanted = targets.load(group.target), group.finding.group

    def still(candidate: Case) -> bool:
        return any(finding.group == wanted for finding in pool.one(Job(group.target, case=candidate)).findings)

    confirmed, used = still(case), 0
    if confirmed and runs:
        case, used = minimise(case, still, target.smaller, runs)
    text = f"{group.finding}\nseed {seed}, case {group.number}, {group.count} of this group, minimised in {used} runs"
    if not confirmed:
        text += "\nNot found when the case ran again: it depends on the cases before it, or on time."
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_file_name(group)}.case"
    path.write_text(write_case(case, text), "utf-8")
    return path, confirmed


def _file_name(group: Group) -> str:
    finding = group.finding
    return re.sub(
        r"[^A-Za-z0-9]+", "-", f"{group.target} {finding.kind} {finding.what} {finding.where.removeprefix('irexec/')}"
    ).strip("-")


def replay(paths: Iterable[Path], pool: Pool) -> Iterator[tuple[Path, tuple[Finding, ...]]]:
    """The findings of the cases in files."""
    for path in paths:
        case = read_case(path.read_text("utf-8"))
        yield path, pool.one(Job(case.target, case=case)).findings
