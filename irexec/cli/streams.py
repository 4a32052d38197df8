"""Writing to stdout and stderr: handles broken pipes, full disks, encodings and the line of progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class ProgressDisplay(Protocol):
    """A display of progress on the terminal; it is removed while something else is written."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


_shown: list[ProgressDisplay] = []
"""The current display of progress."""


def file_of(stderr: bool) -> TextIO:
    return sys.stderr if stderr else sys.stdout


def put(text: str, stderr: bool = False) -> None:
    """Write text as it is.

    A reader that went away is not an error, so that the exit code stays true; neither is a full disk behind stderr,
    where it could not be reported.

    Raises:
        OSError: stdout cannot be written.
    """
    with _paused():
        # Not before: while progress is shown the streams are those of rich, which break lines.
        file = file_of(stderr)
        try:
            file.write(encodable(text, file))
            file.flush()
        except OSError as error:
            _discard(file)
            if not stderr and not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, "stdout") from None


def _discard(file: TextIO) -> None:
    """Send what is left in the buffer to nowhere, so that the interpreter does not fail on it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    except (OSError, ValueError):
        # It has no file descriptor, such as a buffer in memory.
        return


def encodable(text: str, file: TextIO) -> str:
    """The text with escapes for the characters that the file's encoding lacks."""
    encoding = file.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def flush() -> None:
    """Write everything that is still in a buffer."""
    put("")


def close() -> None:
    """Write or drop the remaining output: the interpreter would fail on it at exit."""
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except (OSError, ValueError):
            _discard(file)


@contextmanager
def _paused() -> Iterator[None]:
    """The line of ``progress`` is not shown while the block lasts."""
    for shown in _shown:
        shown.stop()
    try:
        yield
    finally:
        for shown in _shown:
            shown.start()


@contextmanager
def showing(shown: ProgressDisplay) -> Iterator[None]:
    """Register the display of progress while the block lasts."""
    _shown.append(shown)
    try:
        yield
    finally:
        _shown.remove(shown)
