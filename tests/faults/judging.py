"""What must hold after an operation has ended, however it did."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import irexec
from tests.faults.children import Child, End, leftovers
from tests.faults.operations import TORN, Damage, Operation

# The exit codes of a command that a signal ends; of the others the system ends it, and it cannot clean up.
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@dataclass
class Tally:
    """The figures of one row of the report.

    Attributes:
        name: of the row.
        cases: how many there were.
        outcomes: how many ended in which way.
        problems: what does not hold.
    """

    name: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The row as text."""
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.name}: {self.cases} cases, {counts or 'none'}; {len(self.problems)} problems"


class Judge:
    """Judges the ends of one operation in a folder whose files show a value.

    Args:
        operation: that runs.
        folder: with its files.
        tally: takes what is found.
    """

    def __init__(self, operation: Operation, folder: Path, tally: Tally) -> None:
        self.operation, self.folder, self.tally = operation, folder, tally
        self.value = operation.read(folder)

    @property
    def next_value(self) -> int:
        """The value to write next: not that of the files."""
        return 3 - self.value

    def ended(self, end: End, number: int, case: str, *, may_tear: bool = False) -> None:
        """Take note of a process that a signal was sent to, and make the next process write the files."""
        self.tally.cases += 1
        wanted, problem = self.next_value, self.tally.problems.append
        outcome, left = self._outcome(case, wanted, may_tear), leftovers(self.operation, self.folder)
        # A command may have been ended before it handled signals, when there was nothing to clean up.
        was_early = end.status == -number and outcome == "old files" and not left
        if not was_early and not self._is_expected(end.status, number):
            problem(f"{case}: ends with {end.status}: {end.errors[-300:]}")
        if self.operation.is_command and ("Traceback" in end.errors or end.errors.count("error:") > 1):
            problem(f"{case}: writes {end.errors[-600:]!r}")
        self.tally.outcomes[outcome] += 1
        cleans = (self.operation.is_command and number in _CODES) or number == signal.SIGINT or end.status == 0
        if any(count != 1 for count in left.values()) or (left and cleans):
            problem(f"{case}: leaves {left}")
        self.tally.outcomes["with temporary folders"] += bool(left)
        again = Child(self.operation, self.folder, wanted).wait()
        if again.status != 0 or leftovers(self.operation, self.folder) or self._read(case) != wanted:
            problem(
                f"{case}: the next run ends with {again.status} and leaves {leftovers(self.operation, self.folder)}: {again.errors}"
            )
        self.value = wanted

    def failed(self, end: End, case: str) -> None:
        """Take note of a run for which there may not have been room: it has written all, or says so and has written nothing."""
        self.tally.cases += 1
        problem = self.tally.problems.append
        if end.status not in (0, 3) or end.errors.count("\n") > 1 or (end.status != 0 and not end.errors):
            problem(f"{case}: ends with {end.status} and writes {end.errors[-600:]!r}")
        value = self._read(case)
        if value != (self.value if end.status else self.next_value):
            problem(f"{case}: ends with {end.status}, the files have the value {value}")
        if leftovers(self.operation, self.folder):
            problem(f"{case}: leaves {leftovers(self.operation, self.folder)}")
        self.tally.outcomes["old files" if end.status else "new files"] += 1
        self.value = value or self.value

    def _is_expected(self, status: int, number: int) -> bool:
        # It may have been done before the signal arrived.
        if status in (0, -number):
            return status == 0 or not (self.operation.is_command and number in _CODES)
        return (
            status == 130
            if number == signal.SIGINT
            else self.operation.is_command and status == _CODES.get(signal.Signals(number))
        )

    def _outcome(self, case: str, wanted: int, may_tear: bool) -> str:
        try:
            value = self.operation.read(self.folder)
        except Damage as error:
            if may_tear and str(error).startswith(TORN):
                return "torn and recognised"
            self.tally.problems.append(f"{case}: {error}")
            return "damaged"
        except (irexec.IrexecError, OSError, ValueError) as error:
            self.tally.problems.append(f"{case}: {type(error).__name__}: {error}")
            return "damaged"
        return "new files" if value == wanted else "old files"

    def _read(self, case: str) -> int:
        try:
            return self.operation.read(self.folder)
        except (Damage, irexec.IrexecError, OSError, ValueError) as error:
            self.tally.problems.append(f"{case}: {type(error).__name__}: {error}")
            return 0
