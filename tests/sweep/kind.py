"""What a kind of random cases defines, and what comes of a case."""

from __future__ import annotations

import argparse
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What came of a case, or of a part of it.

    Attributes:
        kind: it is counted by this text.
        text: details for people, shown if it fails, if its kind is told, or with ``--verbose``.
        fails: True if the exit code is to be 1.
        data: for ``--json``.
    """

    kind: str
    text: str = ""
    fails: bool = False
    data: dict[str, Any] = field(default_factory=dict)


Case = Callable[[int], Iterable[Outcome]]
"""Runs the case of a number."""


class Kind(ABC):
    """One kind of random cases; the docstring of its module is its help.

    Attributes:
        options: the values of the command line.
        cases: the number of cases of each name, by default.
        told: kinds of outcomes whose texts are shown, counted, although they do not fail.
        is_isolated: cases run in processes of their own, which may crash or hang.
        asking: called before another program is asked, whose fault a crash is then.
    """

    cases = 100
    told: frozenset[str] = frozenset()
    is_isolated = False

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.asking: Callable[[], object] = lambda: None

    @classmethod  # noqa: B027 - most kinds have none
    def add_options(cls, add: Callable[..., Any]) -> None:
        """Add options of this kind with ``add``, the method of a parser."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """What cases are numbered for; all of it is run by default."""

    @abstractmethod
    def opened(self, name: str) -> AbstractContextManager[Case]:
        """What runs the cases of a name."""

    def close(self) -> None:  # noqa: B027 - most kinds start nothing
        """End what was started for all names."""

    def lost(self, asked: bool, why: str) -> Outcome:
        """The outcome of a case whose process died or did not answer."""
        return Outcome("OpenVINO cannot" if asked else "lost", why, not asked)


def tried(case: Case, number: int) -> Iterator[Outcome]:
    """The outcomes of a case. A raised error is a failure, and the sweep continues."""
    try:
        yield from case(number)
    except Exception:
        yield Outcome("raised", traceback.format_exc(limit=-4), fails=True)


@contextmanager
def temporary() -> Iterator[Path]:
    """A folder for the files of a name."""
    with tempfile.TemporaryDirectory(prefix="irexec-sweep-") as folder:
        yield Path(folder)


def chosen(names: Sequence[str], only: str) -> list[str]:
    """The names in a list with commas: each is the name itself, or else the beginning of some.

    Raises:
        SystemExit: there is no such name.
    """
    found = []
    for wanted in filter(None, only.split(",")):
        matching = [name for name in names if name == wanted] or [name for name in names if name.startswith(wanted)]
        if not matching:
            raise SystemExit(f"there is nothing called {wanted!r}; there are {', '.join(names)}")
        found += matching
    return list(dict.fromkeys(found)) if only else list(names)
