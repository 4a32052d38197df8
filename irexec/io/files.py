"""Files written together: either all are replaced, or all stay as they were."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from irexec.io.held_signals import signals_held
from irexec.io.reading import NotRegularFileError, file_error, writing
from irexec.io.temporary import Temporary

_WRITTEN, _FLUSHED = 16 << 20, 64 << 20
"""Bytes that are written at once, and between two flushes to the disk: neither can be interrupted, so that none may
take long.
"""


@contextmanager
def replacing(*targets: Path, flushes: bool = True) -> Iterator[Sequence[IO[bytes]]]:
    """New files, open for writing, that replace ``targets`` when the block is left without an error.

    A target that is a link stays one: what it leads to is replaced. Each file is written to a temporary folder beside
    its target, flushed to the disk and renamed, in the order given. Old files that are open or mapped keep their
    contents. If a rename fails, those before it are undone, and signals that end the process are held until all files
    are renamed; only a process that is killed between two renames leaves a new file beside an old one. A killed process
    leaves one folder for each target; the next process that writes the target deletes the folder.

    With ``flushes`` false the files are not flushed to the disk, so that a power cut may damage new files until
    ``flush_file``.

    Raises:
        OSError: a file cannot be written or renamed, or a target is not a regular file; the targets are then as they
            were.
    """
    made = [Temporary(target) for target in _resolved(targets)]
    try:
        for temporary in made:
            temporary.create()
        with ExitStack() as stack:
            files = [stack.enter_context(_open_new(temporary.new)) for temporary in made]
            yield files
            for file in files:
                file.flush()
                if flushes:
                    os.fsync(file.fileno())
        with signals_held():
            _rename_all(made)
            _remove_all(made)
    except BaseException:
        with signals_held():
            _remove_all(made)
        raise


@contextmanager
def new_file(target: str | Path, *, flushes: bool = True) -> Iterator[IO[bytes]]:
    """A new file, open for writing, that replaces ``target`` as ``replacing`` does.

    Raises:
        ModelError: the file cannot be written; the target is then as it was.
    """
    with writing(target), replacing(Path(target), flushes=flushes) as (file,):
        yield file


def flush_file(path: Path) -> None:
    """Flush a file to the disk.

    Raises:
        OSError: it cannot be opened or flushed.
    """
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def resolved_target(target: Path) -> Path:
    """The regular file, which need not exist, that is written for ``target``: links are followed.

    Raises:
        OSError: it is something else, such as a folder, a device or a FIFO, or its links form a cycle.
    """
    try:
        resolved = target.resolve()
        mode = resolved.lstat().st_mode
    except FileNotFoundError:
        return resolved
    except RuntimeError:
        # Python 3.13 resolves such links to themselves.
        raise file_error(target, "its links form a cycle") from None
    except ValueError as error:
        raise file_error(target, str(error)) from None
    if stat.S_ISLNK(mode):
        raise file_error(target, "its links form a cycle")
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(target, mode)
    return resolved


def _resolved(targets: Sequence[Path]) -> list[Path]:
    found: dict[Path, Path] = {}
    for target in targets:
        resolved = resolved_target(target)
        if resolved in found:
            raise file_error(target, f"{found[resolved]} leads to the same file")
        found[resolved] = target
    return list(found)


class _NewFile(io.FileIO):
    """A file that is flushed to the disk while it is written."""

    _pending = 0

    def write(self, data: Any, /) -> int:
        """Write the first bytes of ``data`` and return how many."""
        written = super().write(memoryview(data).cast("B")[:_WRITTEN])
        self._pending += written
        if self._pending >= _FLUSHED:
            os.fsync(self.fileno())
            self._pending = 0
        return written


def _open_new(path: Path) -> IO[bytes]:
    return io.BufferedWriter(_NewFile(path, "xb"))


def _rename_all(made: Sequence[Temporary]) -> None:
    for temporary in made:
        temporary.keep_old()
    try:
        for temporary in made:
            os.replace(temporary.new, temporary.target)
    except BaseException:
        # Whether a file is renamed is asked of the disk: the exception may be that of a handler that ran right after a
        # rename.
        if any(os.path.lexists(temporary.new) for temporary in made):
            for temporary in reversed(made):
                temporary.undo()
        raise


def _remove_all(made: Sequence[Temporary]) -> None:
    for temporary in made:
        temporary.remove()
