"""The interface of checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from irexec.tools.reduce.candidate import Candidate


@dataclass(frozen=True)
class Failure:
    """How a candidate fails.

    Attributes:
        kind: what two candidates that fail in the same way have in common, such as "exit code 3".
        text: one sentence for people.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Files:
    """Where a candidate is written.

    Attributes:
        model: the .xml.
        inputs: the .npz of its inputs; None where it has none.
    """

    model: str
    inputs: str | None


class Check(ABC):
    """Decides whether a candidate fails, and how.

    A check that needs a process or files of its own has them from the first call to ``close``.
    """

    @property
    @abstractmethod
    def identity(self) -> Sequence[object]:
        """What distinguishes this check from others, for the file of an interrupted reduction."""

    @abstractmethod
    def __call__(self, candidate: Candidate) -> Failure | None:
        """How the candidate fails; None if it does not, or if it cannot be tested.

        Raises:
            InputError: nothing can be tested in this way.
            UnsupportedError: a runtime is not installed.
        """

    @abstractmethod
    def command(self, files: Files) -> list[str]:
        """The arguments of a command that shows the failure of a candidate that is written to these files."""

    def close(self) -> None:
        """End processes and delete files."""
        return

    def __enter__(self) -> Check:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
