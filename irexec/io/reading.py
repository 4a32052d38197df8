"""Reading files: regular ones alone, since a FIFO may block for ever and a device may never end; errors of the system
as errors of irexec that name the file; JSON files that may have been damaged."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from irexec.errors import ModelError

_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip
# Where a path leads to something else after it was checked, opening it does not block.
_FLAGS = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file, or a link to one, for reading bytes; it never blocks.

    Raises:
        OSError: it cannot be opened, or is something else: a folder, a FIFO, a device or a socket.
        ValueError: the path has a NUL.
    """
    check_regular(path)
    file = open(path, "rb", opener=_open)  # noqa: SIM115 - the caller closes it
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        raise NotRegularFileError(path, mode)
    return file


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


def check_regular(path: str | Path) -> None:
    """Raise OSError unless the path leads to a regular file; before it is opened, which may have an effect on a
    device."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(path, mode)


def is_same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to the same file, also by links."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        # One of them does not exist.
        return os.path.realpath(one) == os.path.realpath(other)
    except ValueError:
        # A path has a NUL.
        return False


class NotRegularFileError(OSError):
    """A path does not lead to a regular file.

    Attributes:
        kind: the kind of its target, such as "a folder".
    """

    def __init__(self, path: str | Path, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EINVAL, f"it is {self.kind}, not a regular file", str(path))


def file_error(path: str | Path, sentence: str) -> OSError:
    """An OSError whose ``strerror`` is a sentence of our own."""
    return OSError(errno.EINVAL, sentence, str(path))


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Raise an OSError of the block as ModelError: the file cannot be read."""
    with _named(path, "read"):
        yield


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise an OSError of the block as ModelError: the file cannot be written."""
    with _named(path, "written"):
        yield


@contextmanager
def _named(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}: cannot be {what}: {error.strerror or error}") from None


def read_json(path: str | Path) -> Any:
    """The document in a file.

    Raises:
        OSError: the file cannot be read, or is not a regular one.
        ValueError: it is not JSON in a Unicode encoding, or is nested deeper than Python reads.
    """
    with open_regular(path) as file:
        return parse_json(file.read())


def parse_json(text: bytes) -> Any:
    """The document of a text; raises ValueError as ``read_json`` does."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
