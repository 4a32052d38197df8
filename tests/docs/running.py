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
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.docs.diffs import apply
from tests.docs.pages import ROOT, Block, blocks, commands, output_of
from tests.docs.terminal import show, terminal

_TREE = ("irexec", "converters", "tests", "samples", "pyproject.toml", "README.md")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "networks", ".*")


class NotAnExample(Exception):
    """A block that a page may not have: it could not be checked."""


class FailedExample(Exception):
    """A command failed or a Python block ended in an exception, which no page may show as its output by chance."""


@dataclass(frozen=True)
class Result:
    """What came of one command or Python block.

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


def run_page(text: str, folder: Path) -> Iterator[Result]:
    """Run the blocks of a page in an empty folder."""
    found = blocks(text)
    is_guide = any(block.caption for block in found)
    _fill(folder, is_guide)
    runner = _Runner(folder, is_guide)
    lines = text.split("\n")
    with contextlib.chdir(folder):
        for block, following in zip_longest(found, found[1:]):
            if block.caption:
                _write(block, folder)
            elif block.language == "console":
                for command in commands(block):
                    stop = command.start + len(command.output)
                    yield Result(
                        command.words, command.start, "\n".join(command.output), runner.command(command.words), command.start, stop
                    )
            elif block.language == "python":
                shown = output_of(block, following, lines)
                start, stop = (shown.start, shown.stop) if shown else (block.stop, block.stop)
                yield Result(block.lines[0], block.start, shown.text if shown else None, runner.python(block.text), start, stop)


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
        self._names: dict[str, Any] = {"__name__": "__main__"}
        # A guide's tree comes before whatever is installed; the processes of a page import this one.
        self._variables = {"PYTHONPATH": str(folder if is_guide else ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, text: str) -> str:
        """The output of one command; ``; echo $?`` behind it adds the exit code.

        Raises:
            NotAnExample: it is not a command that can be run here.
            FailedExample: it failed, and the page does not say that it does.
        """
        line, separator, rest = text.partition("; echo $?")
        if rest.strip():
            raise NotAnExample(f"{text!r}: nothing may follow 'echo $?'")
        name, *arguments = shlex.split(line)
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
            raise FailedExample(f"{text!r} ended with exit code {code}; a page that means to show that adds '; echo $?'\n{output}")
        return f"{output}{code}\n" if separator else output

    def python(self, source: str) -> str:
        """What a Python block prints; blocks of one page share their names, but for those of a guide.

        Raises:
            FailedExample: it ended in an exception.
        """
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
