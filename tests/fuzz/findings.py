"""What is wrong with how a case ended, what counts as the same; the steps of a case that are watched for it."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from irexec.errors import IrexecError
from tests.support.paths import ROOT

PROJECT = (f"{ROOT}/irexec/", f"{ROOT}/converters/")
NOWHERE = "outside of the project"


@dataclass(frozen=True)
class Finding:
    """One thing that must not happen.

    Attributes:
        kind: "exception", "warning", "hang", "crash", "memory", "audit", "output" or "contradiction".
        what: the type of the exception or warning, the signal, or the event of the audit hook.
        where: the innermost frame of the project, as "irexec/ops/gather.py:gather_8".
        detail: the message, for people: two findings that differ in it alone are the same.
        step: what was being done.
    """

    kind: str
    what: str
    where: str
    detail: str = ""
    step: str = ""

    @property
    def group(self) -> tuple[str, str, str]:
        """Findings of one group probably have one cause."""
        return self.kind, self.what, self.where

    def __str__(self) -> str:
        return " ".join(f"{self.kind}: {self.what} in {self.where} ({self.step}): {self.detail}".split())


def is_of_project(file: str) -> bool:
    return file.startswith(PROJECT)


def innermost(frames: Iterable[tuple[str, str]]) -> str:
    """The last of the frames (file and function, the outermost first) that is of the project."""
    found = [(file, function) for file, function in frames if is_of_project(file)]
    return NOWHERE if not found else f"{Path(found[-1][0]).relative_to(ROOT).as_posix()}:{found[-1][1]}"


def frames_of(trace: TracebackType | None) -> list[tuple[str, str]]:
    return [(frame.f_code.co_filename, frame.f_code.co_name) for frame, _ in traceback.walk_tb(trace)]


def frames_here() -> list[tuple[str, str]]:
    """The frames of the caller and of those that called it, the outermost first."""
    return [(frame.filename, frame.name) for frame in traceback.extract_stack()[:-1]]


_DUMPED = re.compile(r'File "(.+?)", line \d+ in (.+)')


def frames_dumped(text: str) -> list[tuple[str, str]]:
    """The frames of what faulthandler wrote of the main thread, the outermost first."""
    threads = re.split(r"^(?=(?:Current thread|Thread) )", text, flags=re.MULTILINE)
    # Only the main thread runs cases, and faulthandler writes it last.
    return [(file, function) for file, function in _DUMPED.findall(threads[-1])][::-1]


# The steps of a case, and what is wrong with how each of them ended.


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
