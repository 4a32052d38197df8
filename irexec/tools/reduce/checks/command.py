"""A command of the user as a check."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from irexec import io
from irexec.errors import InputError, ModelError
from irexec.tools.arrays.files import write_npz
from irexec.tools.commands import last_line, run_command, split_command
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files

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
        failure = self._failure(*self._run(self.command(files)))
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

    def _run(self, arguments: Sequence[str]) -> tuple[int | None, str]:
        try:
            return run_command(arguments, self.timeout)
        except InputError as error:
            raise InputError(f"--check: {error}") from None

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
