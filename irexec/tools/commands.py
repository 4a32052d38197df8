"""Commands of irexec that are shown to the user, to continue with, and commands of the user that irexec runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from irexec.errors import InputError
from irexec.schema.plugins import plugins

_READ = 4 << 20


def irexec_command(*arguments: str) -> list[str]:
    """The arguments of a command of irexec, with the ``--plugin`` of the command that shows it."""
    return ["irexec", *arguments, *(f"--plugin={name}" for name in plugins.given)]


def split_command(command: str) -> list[str]:
    """The arguments of a command, with quotes of a POSIX shell; on Windows a backslash separates folders.

    Raises:
        ValueError: a quote is not closed.
    """
    words = shlex.shlex(command, posix=True, punctuation_chars=False)
    words.whitespace_split, words.commenters = True, ""
    if os.name == "nt":
        words.escape = ""
    return list(words)


def run_command(arguments: Sequence[str], timeout: float | None = None) -> tuple[int | None, str]:
    """Run a command without a shell; its child processes end with it.

    Returns:
        The exit code, None after a timeout, and the end of what it wrote to stdout and stderr.

    Raises:
        InputError: it cannot be started.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise InputError(f"{arguments[0]!r} cannot be started: {error.strerror or error}") from None
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _READ))
        return code, output.read().decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a running command and its child processes."""
    if process.poll() is None:
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def last_line(output: str) -> str:
    """The last line of an output that is not empty; "" if there is none."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
