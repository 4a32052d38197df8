"""Checks, which decide whether a candidate fails: the interface, findings, values and commands of the user."""

from __future__ import annotations

import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec import io
from irexec.analysis.codes import find_code
from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision, precision_argument
from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import parse_target
from irexec.analysis.validate import validate
from irexec.errors import InputError, IrexecError, ModelError
from irexec.io.files import Closing
from irexec.ir.graph import Node, Value
from irexec.tools.arrays.files import write_npz
from irexec.tools.commands import irexec_command, last_line, run_command, split_command
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.recording import after_run


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


class Check(Closing, ABC):
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


_OF_FILES, _OF_ONNX = "IR0", "ON"
"""Findings of the readers about the file itself; a candidate is a new file."""
_OF_RELEASES = "IR90"
"""Findings about layers that a release of OpenVINO does not read."""


class FindingCheck(Check):
    """Whether validate has a finding of a code, at one of the layers of this finding in the first candidate.

    Args:
        code: the code, such as "IR107"; also one of ``validate --portability``, such as "IR911".
        release: a release of OpenVINO, such as "2023.3", for IR901 to IR903 and for findings of portability.

    Raises:
        InputError: the code or release does not exist, the finding is not about a graph, or a release is missing.
    """

    def __init__(self, code: str, release: str | None = None) -> None:
        row = find_code(code)
        if row is None:
            raise InputError(f"there is no finding code {code!r}; irexec explain lists all codes")
        self.code = row.code
        if self.code.startswith(_OF_ONNX):
            raise InputError(
                f"{self.code} is a finding about an .onnx file, and what is reduced is the IR that it is converted to"
            )
        if self.code.startswith(_OF_FILES):
            raise InputError(
                f"{self.code} is a finding about the file itself, and what is reduced is written anew, without it"
            )
        self.release = release
        self._is_of_portability = self.code in DIFFERENCES
        is_of_releases = self.code.startswith(_OF_RELEASES)
        if release is not None:
            parse_target(release)
            if not is_of_releases and not self._is_of_portability:
                raise InputError(f"{self.code} does not depend on a release of OpenVINO, of which {release} is given")
        elif is_of_releases:
            raise InputError(
                f"{self.code} is a finding about a release of OpenVINO, which is to be given (--for), such as 2023.3"
            )
        self._layers: frozenset[str | None] | None = None

    takes_damage = True

    @property
    def identity(self) -> Sequence[object]:
        return ("finding", self.code, *([self.release] if self.release is not None else []))

    def __call__(self, candidate: Candidate) -> Failure | None:
        findings = validate(
            candidate.model, weights=self._needs_weights, portability=self._is_of_portability, release=self.release
        )
        found = [finding for finding in findings if finding.code == self.code]
        if self._layers is None:
            self._layers = frozenset(finding.layer_name for finding in found)
        same = next((finding for finding in found if finding.layer_name in self._layers), None)
        if same is None:
            return None
        layer = "" if same.layer_name is None else f" layer {same.layer_name!r} ({same.layer_type}):"
        return Failure(self.code, f"{same.code}{layer} {same.message}")

    def command(self, files: Files) -> list[str]:
        options = ["--weights"] if self._needs_weights else ["--portability"] if self._is_of_portability else []
        options += ["--for", self.release] if self.release is not None else []
        return irexec_command("validate", *options, files.model)

    @property
    def _needs_weights(self) -> bool:
        return self.code.startswith("IR4")


KINDS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"nan": np.isnan, "inf": np.isinf}
_WORDS = {"nan": "NaN", "inf": "infinite"}


class ValuesCheck(Check):
    """Whether a result that irexec computes has NaN or infinities, and no input has them.

    Args:
        kinds: names of KINDS.
        timeout: maximum time of a run in seconds.
        precision: precision of f16 and bf16.
    """

    def __init__(
        self, kinds: Sequence[str], timeout: float | None = None, precision: Precision = DEFAULT_PRECISION
    ) -> None:
        self.kinds, self.timeout = tuple(kind for kind in KINDS if kind in kinds), timeout
        self.precision: Precision = precision
        self._of_inputs: frozenset[str] | None = None

    @property
    def identity(self) -> Sequence[object]:
        return ("values", *self.kinds, self.precision)

    def __call__(self, candidate: Candidate) -> Failure | None:
        arrays = candidate.inputs.values()
        given = frozenset(kind for kind in self.kinds if any(_count(array, kind) for array in arrays))
        if self._of_inputs is None:
            # An input of the model itself may have such elements.
            self._of_inputs = given
        if given - self._of_inputs:
            return None
        try:
            results = candidate.results(self.precision, self.timeout)
        except (IrexecError, MemoryError):
            return None
        for kind in self.kinds:
            for name, array in results.items():
                if count := _count(array, kind):
                    return Failure(kind, f"{count} of {array.size} elements of result {name!r} are {_WORDS[kind]}")
        return None

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        return after_run(model, inputs, self.precision, self.timeout)

    def command(self, files: Files) -> list[str]:
        precision = precision_argument(self.precision)
        return irexec_command("infer", files.model, *files.input_options, "--trap", ",".join(self.kinds), *precision)


def _count(array: np.ndarray, kind: str) -> int:
    if array.dtype.kind not in "fc":
        return 0
    return int(KINDS[kind](array).sum())


UNTESTED = {
    2: "which commands give for usage that is wrong",
    125: "which says that the model cannot be tested",
    126: "which a shell gives for a command that it cannot start",
    127: "which a shell gives for a command that it does not find",
}
"""Exit codes of a command that could not test a candidate: 2 of argparse, and of irexec compare without a tensor to
compare; 125 of git bisect run."""
_MODEL, _INPUTS = "{}", "{inputs}"


class CommandCheck(Check):
    """Whether a command fails in the same way as for the model itself.

    Args:
        command: the command, see ``split_command``; no shell runs it. ``{}`` stands for the path of the .xml, and
            ``{inputs}`` for the path of the .npz.
        timeout: maximum time in seconds; a longer run is a failure of its own kind.
        expect_text: text on stdout or stderr that means a failure; the exit code is then ignored.

    Raises:
        InputError: the command is empty, has unbalanced quotes or no ``{}``.
    """

    def __init__(self, command: str, timeout: float | None = None, expect_text: str | None = None) -> None:
        self.timeout, self.expect_text = timeout, expect_text
        try:
            self.arguments = split_command(command)
        except ValueError as error:
            raise InputError(f"--check {command!r} is not a command: {str(error).lower()}") from None
        if not any(_MODEL in argument for argument in self.arguments):
            raise InputError(f"--check {command!r} has no {{}}, which stands for the path of the model that is tried")
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._is_first = True

    @property
    def identity(self) -> Sequence[object]:
        return ("check", *self.arguments, self.expect_text)

    def __call__(self, candidate: Candidate) -> Failure | None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="irexec-reduce-")
        folder = Path(self._folder.name)
        files = Files(str(folder / "candidate.xml"), str(folder / "inputs.npz"))
        try:
            write_candidate(candidate, files)
        except ModelError:
            return None
        try:
            ended = run_command(self.command(files), self.timeout)
        except InputError as error:
            raise InputError(f"--check: {error}") from None
        failure = self._failure(*ended)
        self._is_first = False
        return failure

    def command(self, files: Files) -> list[str]:
        return [
            argument.replace(_INPUTS, files.inputs or "").replace(_MODEL, files.model) for argument in self.arguments
        ]

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _failure(self, code: int | None, output: str) -> Failure | None:
        said = last_line(output)
        if code in UNTESTED and self._is_first and (self.expect_text is None or code in (126, 127)):
            raise InputError(f"--check ended with exit code {code}, {UNTESTED[code]}: {said or self.arguments[0]}")
        if self.expect_text is not None:
            found = self.expect_text in output
            return Failure("text", f"the command says {self.expect_text!r}") if found else None
        if code is None:
            return Failure("timeout", f"the command takes longer than {self.timeout:g} s")
        if code == 0 or code in UNTESTED:
            return None
        kind = f"exit code {code}" if code > 0 else _signal_name(-code)
        return Failure(kind, f"the command ends with {kind}{f': {said}' if said else ''}")


def write_candidate(candidate: Candidate, files: Files) -> None:
    """Write a candidate for a check, over earlier files.

    Raises:
        ModelError: the model cannot be written.
    """
    text, weights = io.write_text(candidate.model)
    try:
        Path(files.model).write_bytes(text)
        Path(files.model).with_suffix(".bin").write_bytes(weights)
        if files.inputs is not None:
            with open(files.inputs, "wb") as file:
                write_npz(file, candidate.inputs)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror or error}") from None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
