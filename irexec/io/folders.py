"""Folders written as a whole: the folder is replaced, or stays as it was."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irexec.io.held_signals import signals_held
from irexec.io.temporary import Temporary

_CURRENT_FOLDER, _EXCHANGE = -100, 2
"""AT_FDCWD of Linux; RENAME_EXCHANGE of Linux, which has the value of RENAME_SWAP of macOS."""


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A new, empty folder that replaces ``target`` when the block is left without an error; what was in ``target`` is
    deleted.

    The new folder is made in a temporary folder beside the target, as ``replacing`` makes files. Linux and macOS
    exchange the two folders in one step. Elsewhere a process that is killed between two renames leaves no folder of the
    name, and both folders in the temporary one; the next process that writes the target restores the old folder first.

    Raises:
        OSError: the folder cannot be made or renamed; the target is then as it was.
    """
    # Path.resolve raises RuntimeError for links in a cycle.
    temporary = Temporary(Path(os.path.realpath(target)))
    try:
        temporary.target.parent.mkdir(parents=True, exist_ok=True)
        temporary.create()
        temporary.new.mkdir()
        yield temporary.new
        with signals_held():
            _rename(temporary)
            temporary.remove()
    except BaseException:
        with signals_held():
            temporary.remove()
        raise


def _rename(temporary: Temporary) -> None:
    if not os.path.lexists(temporary.target):
        os.rename(temporary.new, temporary.target)
    elif not _exchange(temporary.new, temporary.target):
        os.rename(temporary.target, temporary.old)
        try:
            os.rename(temporary.new, temporary.target)
        except BaseException:
            os.rename(temporary.old, temporary.target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """True if the two exchanged their names, which takes Linux or macOS, and a file system that can exchange names."""
    if os.name != "posix":
        return False
    library, first, second = ctypes.CDLL(None), os.fsencode(one), os.fsencode(other)
    if rename := getattr(library, "renameat2", None):
        return bool(rename(_CURRENT_FOLDER, first, _CURRENT_FOLDER, second, ctypes.c_uint(_EXCHANGE)) == 0)
    if rename := getattr(library, "renamex_np", None):
        return bool(rename(first, second, ctypes.c_uint(_EXCHANGE)) == 0)
    return False
