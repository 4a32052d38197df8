"""Running a page: its commands and Python blocks in order, in a folder of its own.

A page without captions runs in a folder that holds samples/. A page whose blocks have file names as captions is a guide:
it runs in a copy of the source tree, into which those blocks are written, or applied where they are diffs.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.docs.matching import apply, matches
from tests.docs.pages import Block, blocks, commands, output_of
from tests.docs.terminal import show, terminal
from tests.support.paths import ROOT

_TREE = ("irexec", "converters", "tests", "samples", "docs", "pyproject.toml", "README.md")
_STARTED = 60
"""Seconds within which a process in the background has printed what the page shows."""

_LONGEST = 300
"""Seconds that a command takes at most that needs optional software."""

_LEFT_OUT = shutil.ignore_patterns("_build", "generated", ".*")


class NotAnExample(Exception):
    """A block that a page may not have: it could not be checked."""


class FailedExample(Exception):
    """A command failed or a Python block ended in an exception, which no page may show as its output by chance."""


@dataclass(frozen=True)
class Result:
    """The result of one command or Python block.

    Attributes:
        what: the command, or the first line of the Python block.
        line: the number of the line in the page where its output begins.
        shown: the output that the page shows; None where it shows none.
        actual: the output.
        start, stop: the indices of the shown lines in the page.
    """

    what: str
    line: int
    shown: str | None
    actual: str
    start: int
    stop: int


def run_page(text: str, folder: Path, having: Collection[str] = ()) -> Iterator[Result]:
    """Run the blocks of a page in an empty folder.

    Args:
        text: of the page.
        folder: empty.
        having: the optional software that there is: blocks that need other are not run.
    """
    found = [block for block in blocks(text) if set(block.needs) <= set(having)]
    is_guide = any(block.caption for block in found)
    _fill(folder, is_guide)
    runner = _Runner(folder, is_guide)
    lines = text.split("\n")
    with contextlib.chdir(folder), runner:
        for block, following in zip_longest(found, found[1:]):
            if block.caption:
                _write(block, folder)
            elif block.language == "console":
                for command in commands(block):
                    stop = command.start + len(command.output)
                    shown = "\n".join(command.output)
                    actual = runner.optional(command.words, shown) if block.needs else runner.command(command.words)
                    yield Result(command.words, command.start, shown, actual, command.start, stop)
            elif block.language == "python":
                output = output_of(block, following, lines)
                start, stop = (output.start, output.stop) if output else (block.stop, block.stop)
                actual = runner.python(block.text, in_process=not block.needs)
                yield Result(block.lines[0], block.start, output.text if output else None, actual, start, stop)


def _fill(folder: Path, is_guide: bool) -> None:
    for name in _TREE if is_guide else ("samples",):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_LEFT_OUT)
        else:
            shutil.copy(source, folder / name)


def _write(block: Block, folder: Path) -> None:
    """A block with a file name as its caption: a new file, or changes to one where it is a diff."""
    path = folder / block.caption
    if block.language == "diff":
        path.write_text(apply(path.read_text("utf-8"), block.text), "utf-8")
    elif path.exists():
        raise NotAnExample(f"{block.caption} exists; show a diff")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")


class _Runner:
    """Runs commands and Python; what a guide changes must be seen, so a guide runs in processes of its own."""

    def __init__(self, folder: Path, is_guide: bool) -> None:
        self._folder = folder
        self._is_guide = is_guide
        self._background: list[subprocess.Popen[bytes]] = []
        self._names: dict[str, Any] = {"__name__": "__main__"}
        # A guide's tree comes before whatever is installed; the processes of a page import this one.
        self._variables = {"PYTHONPATH": str(folder if is_guide else ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, text: str) -> str:
        """The output of one command; ``; echo $?`` after it adds the exit code.

        Raises:
            NotAnExample: it is not a command that can be run here.
            FailedExample: it failed, and the page does not say that it does.
        """
        line, separator, rest = text.partition("; echo $?")
        if rest.strip():
            raise NotAnExample(f"{text!r}: nothing may follow 'echo $?'")
        name, *arguments = shlex.split(line)
        target = arguments.pop() if arguments[-2:-1] == [">"] else None
        arguments = arguments[:-1] if target else arguments
        runs: dict[str, Callable[[list[str]], tuple[str, int]]] = {
            "irexec": self._irexec,
            "python": self._python_process,
            "pytest": lambda words: self._python_process(["-m", "pytest", *words]),
            "cat": _cat,
            "ls": _ls,
        }
        if name not in runs:
            raise NotAnExample(f"{text!r}: only {', '.join(runs)} are run")
        output, code = runs[name](arguments)
        # 1 means findings or a difference, which pages show; no page shows by chance that a command fails.
        if not separator and code > (name == "irexec"):
            raise FailedExample(
                f"{text!r} ended with exit code {code}; a page that means to show that adds '; echo $?'\n{output}"
            )
        if target:
            Path(target).write_text(output, "utf-8")
            output = ""
        return f"{output}{code}\n" if separator else output

    def __enter__(self) -> _Runner:
        return self

    def __exit__(self, *error: object) -> None:
        """End what runs in the background, the last first."""
        for process in reversed(self._background):
            process.terminate()
            process.wait(timeout=60)

    def optional(self, text: str, shown: str) -> str:
        """The output of a command of a block that needs optional software, which is run as a process.

        One that ends in ``&`` continues until the page ends; its output is complete as soon as it is what the page shows.

        Raises:
            FailedExample: it failed, or does not end, or print what is shown, in time.
        """
        name, *arguments = shlex.split(text.removesuffix(" &"))
        words = {"irexec": [sys.executable, "-m", "irexec"], "python": [sys.executable]}.get(name, [_program(name)])
        if text.endswith(" &"):
            return self._in_background([*words, *arguments], shown)
        return self._optional([*words, *arguments])

    def _optional(self, words: list[str]) -> str:
        """The output of a process on stdout; stderr, where such software has its logs, is shown if the process fails."""
        with terminal(**self._variables):
            try:
                done = subprocess.run(
                    words, cwd=self._folder, capture_output=True, encoding="utf-8", check=False, timeout=_LONGEST
                )
            except subprocess.TimeoutExpired as error:
                printed = b"".join(each or b"" for each in (error.stdout, error.stderr))
                raise FailedExample(
                    f"{shlex.join(words)} has not ended after {_LONGEST} s\n{printed.decode()}"
                ) from None
        if done.returncode:
            raise FailedExample(
                f"{shlex.join(words)} ended with exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def _in_background(self, words: list[str], shown: str) -> str:
        path = self._folder.with_name(f"{self._folder.name}.{len(self._background)}.out")
        with terminal(**self._variables), open(path, "wb") as file:
            process = subprocess.Popen(words, cwd=self._folder, stdout=file, stderr=subprocess.STDOUT)
        self._background.append(process)
        end = time.monotonic() + _STARTED
        # One that prints nothing has begun by then.
        time.sleep(1)
        while not matches(shown, path.read_text("utf-8")):
            if process.poll() is not None or time.monotonic() > end:
                raise FailedExample(
                    f"{shlex.join(words)} has printed, with exit code {process.poll()}:\n{path.read_text('utf-8')}"
                )
            time.sleep(0.1)
        return path.read_text("utf-8")

    def python(self, source: str, in_process: bool = True) -> str:
        """The output of a Python block. Blocks of one page share their names, unless the page is a guide.

        Raises:
            FailedExample: it ended in an exception.
        """
        if not in_process:
            return self._optional([sys.executable, "-c", source])
        if self._is_guide:
            output, code = self._python_process(["-c", source])
            if code:
                raise FailedExample(output)
            return output
        printed = io.StringIO()
        with terminal(**self._variables), contextlib.redirect_stdout(printed):
            try:
                exec(compile(source, "<page>", "exec"), self._names)
            except Exception as error:
                raise FailedExample("".join(traceback.format_exception(error, limit=-2))) from error
        return printed.getvalue()

    def _irexec(self, arguments: list[str]) -> tuple[str, int]:
        if self._is_guide:
            return self._python_process(["-m", "tests.docs.terminal", *arguments])
        return show(arguments)

    def _python_process(self, arguments: list[str]) -> tuple[str, int]:
        with terminal(**self._variables):
            environment = dict(os.environ)
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return done.stdout, done.returncode


def _cat(paths: list[str]) -> tuple[str, int]:
    return "".join(Path(path).read_text("utf-8") for path in paths), 0


def _ls(paths: list[str]) -> tuple[str, int]:
    return "".join(f"{path.name}\n" for folder in paths or ["."] for path in sorted(Path(folder).iterdir())), 0


def _program(name: str) -> str:
    """A program beside this Python, as those of packages are, or of the system."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name
