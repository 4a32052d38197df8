"""The interface of checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.ir.graph import Node, Value
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.candidate import Candidate


@dataclass(frozen=True)
class Failure:
    """The failure of a candidate.

    Attributes:
        kind: the kind of failure, such as "exit code 3"; equal for candidates that fail in the same way.
        text: one sentence for people.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Files:
    """The files of a candidate.

    Attributes:
        model: the .xml.
        inputs: the .npz of its inputs; None without inputs.
        expected: the .npz with results of another runtime; None without such results.
    """

    model: str
    inputs: str | None
    expected: str | None = None

    @property
    def input_options(self) -> list[str]:
        """The options of a command that reads the inputs."""
        return [] if self.inputs is None else ["-i", self.inputs]


def given_options(**values: float | None) -> list[str]:
    """Options of a command for the given values, by their names."""
    return [f"--{name}={value:g}" for name, value in values.items() if value is not None]


class Check(ABC):
    """Decides whether a candidate fails, and how.

    A check may own a process or files from its first call to ``close``.

    Attributes:
        takes_damage: whether the model itself may have damage found by the reader. Its candidates have none.
    """

    takes_damage = False

    @property
    @abstractmethod
    def identity(self) -> Sequence[object]:
        """Identity of the check, for the file of an interrupted reduction."""

    @abstractmethod
    def __call__(self, candidate: Candidate) -> Failure | None:
        """The failure of the candidate; None if it passes or cannot be tested.

        Raises:
            InputError: nothing can be tested in this way.
            UnsupportedError: a runtime is not installed.
        """

    @abstractmethod
    def command(self, files: Files) -> list[str]:
        """The arguments of a command that shows the failure of the candidate in these files."""

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        """Values of the model itself in another runtime; parts are cut at these values only, and have them as inputs.

        Empty for a check of single candidates.

        Args:
            model: the original model.
            inputs: an array for each of its inputs, in order.

        Raises:
            EngineError: the runtime cannot run the model.
            InputError: the runtime does not run this kind of model.
        """
        return {}

    def inputs(self, model: Model, *, others: bool) -> Mapping[str, np.ndarray]:
        """Arrays of the check for inputs of the model itself, by their names.

        Args:
            model: the original model.
            others: whether the user gives arrays for the other inputs.

        Raises:
            InputError: the check has arrays for some inputs only, and the user gives none.
        """
        return {}

    def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
        """Give another version of the model, if the check has one, the variables that the model begins with."""
        return

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        """The model in the state after a run, for a fault of a later run.

        None without state, or if the check does not run irexec.
        """
        return None

    def starts(self, reference: Collection[Value]) -> Sequence[Sequence[Node]]:
        """Groups of layers that are checked first as parts; called after ``reference``, with its values."""
        return ()

    def blame(self, candidate: Candidate) -> Blame | None:
        """Layers at fault in the smallest candidate; None if unknown."""
        return None

    def close(self) -> None:
        """End processes and delete files."""
        return

    def __enter__(self) -> Check:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
