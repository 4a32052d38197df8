"""The steps of a case, and what is wrong with how each of them ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from irexec.errors import IrexecError
from tests.fuzz.findings import Finding, frames_here, frames_of, innermost

_LONGEST_DETAIL = 400


class TimeUp(BaseException):
    """The time of a case is over; not an Exception, so that nothing takes it for one of its own."""


class Observer:
    """Collects the findings of one case."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.current = ""

    def step(
        self, name: str, function: Callable[[], Any], *, allowed: tuple[type[BaseException], ...] = (IrexecError,)
    ) -> Any:
        """What the function returns; None where it ended in one of the exceptions that are documented, or in a finding."""
        self.current = name
        try:
            return function()
        except allowed:
            return None
        except TimeUp as error:
            self.found(
                "hang",
                "processor time" if not error.args else error.args[0],
                innermost(frames_of(error.__traceback__)),
                "",
            )
            raise
        except (Exception, SystemExit) as error:
            self.exception(error)
        return None

    def exception(self, error: BaseException) -> None:
        kind = "memory" if isinstance(error, MemoryError) else "exception"
        self.found(kind, type(error).__name__, innermost(frames_of(error.__traceback__)), str(error))

    def found(self, kind: str, what: str, where: str, detail: str) -> None:
        """Keep a finding, once."""
        finding = Finding(kind, what, where, detail[:_LONGEST_DETAIL], self.current)
        if finding.group not in [other.group for other in self.findings]:
            self.findings.append(finding)

    def watch_warnings(self) -> None:
        """Make a finding of every warning, within ``warnings.catch_warnings``."""

        def show(message: Any, category: type[Warning], filename: str, line: int, *others: Any) -> None:
            self.found("warning", category.__name__, innermost(frames_here()), f"{message} [{filename}:{line}]")

        warnings.simplefilter("always")
        warnings.showwarning = show
