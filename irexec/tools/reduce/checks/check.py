"""The interface of checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from irexec.analysis.model import Model
from irexec.ir.graph import Node, Value
from irexec.tools.reduce.blame import Blame
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
        expected: the .npz of the results that another runtime gives; None where there are none.
    """

    model: str
    inputs: str | None
    expected: str | None = None


class Check(ABC):
    """Decides whether a candidate fails, and how.

    A check that needs a process or files of its own has them from the first call to ``close``.

    Attributes:
        takes_damage: whether the model itself may have damage that the reader found. Candidates that are made of it
            have none.
    """

    takes_damage = False

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

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        """What another runtime gives for values of the model itself; parts are then cut at these values only, and get
        them as inputs.

        Empty for a check that asks about each candidate by itself.

        Args:
            model: the model that is reduced.
            inputs: an array for each of its inputs, in order.

        Raises:
            EngineError: the runtime cannot run the model.
            InputError: the model is not of the kind that it runs.
        """
        return {}

    def inputs(self, model: Model, *, others: bool) -> Mapping[str, np.ndarray]:
        """Arrays that the check has for inputs of the model itself, by their names.

        Args:
            model: the model that is reduced.
            others: whether the user gives arrays for the others.

        Raises:
            InputError: it has arrays, but not for all inputs, and the user gives none.
        """
        return {}

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        """The model in the state that a run of it leaves, for a fault that only a later run shows.

        None where there is no state, or where the check asks nothing about a run of irexec.
        """
        return None

    def starts(self, reference: Collection[Value]) -> Sequence[Sequence[Node]]:
        """Layers of the model itself that are tried first as parts of their own; called after ``reference``, with its
        values."""
        return ()

    def blame(self, candidate: Candidate) -> Blame | None:
        """What is known of the layers of the smallest candidate; None if no more than that it fails."""
        return None

    def close(self) -> None:
        """End processes and delete files."""
        return

    def __enter__(self) -> Check:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
