"""Files and folders written as a whole: either all are replaced, or all stay as they were.

Temporary folders beside the files that are written. The name of a folder identifies its process: folders of killed
processes are deleted.
"""

from __future__ import annotations

import io
import os
import re
import signal
import stat
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, Self

from irexec.io.reading import NotRegularFileError, file_error, writing

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGBREAK")
_SIGNALS: tuple[int, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

# Python takes their action for the default where a library has installed a handler in C, as faulthandler.register does.
_OFTEN_IN_C = frozenset(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name))

NOTHING_HELD = threading.RLock()
"""Held by the thread that holds signals: what ends the process from another thread waits for it."""


class _Holder:
    """A handler that remembers signals while it holds them; if it is still installed after that, it passes them on."""

    def __init__(self) -> None:
        self.holds = True
        self.arrived: list[int] = []
        self.previous: dict[int, Any] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.holds:
            self.arrived.append(number)
        elif callable(self.previous[number]):
            self.previous[number](number, frame)
        else:
            signal.signal(number, self.previous[number])
            signal.raise_signal(number)

    def install(self) -> None:
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            # None is a handler that was not installed from Python.
            is_in_c = previous is None or (previous is signal.SIG_DFL and number in _OFTEN_IN_C)
            if not is_in_c and previous is not signal.SIG_IGN:
                self.previous[number] = previous
                # Where no handler can be installed (Pyodide), no signal arrives.
                with suppress(AttributeError, ValueError, OSError):
                    signal.signal(number, self)

    def release(self) -> None:
        """Put the handlers back, then let what has arrived take effect."""
        # One assignment for all signals: from here on any of them may raise.
        self.holds = False
        for number, previous in self.previous.items():
            if signal.getsignal(number) is self:
                signal.signal(number, previous)
        for number in dict.fromkeys(self.arrived):
            signal.raise_signal(number)


@contextmanager
def signals_held() -> Iterator[None]:
    """A signal that would end the process, or raise KeyboardInterrupt, in the block does so at its end.

    Only the main thread can hold signals, and handlers of Python run only there; any other thread only waits until no
    thread holds them. A signal that is ignored stays ignored, and one whose handler is not of Python keeps its handler.
    """
    if threading.current_thread() is not threading.main_thread():
        with NOTHING_HELD:
            yield
        return
    holder = _Holder()
    try:
        holder.install()
        with NOTHING_HELD:
            yield
    finally:
        holder.release()


_QUERY, _INVALID_PARAMETER, _STILL_ACTIVE = 0x1000, 87, 259
"""PROCESS_QUERY_LIMITED_INFORMATION, ERROR_INVALID_PARAMETER and STILL_ACTIVE of Windows."""

_NAME_LENGTH = 40
"""Characters of the target's name in that of the folder: a name has at most 255 bytes."""


class Temporary:
    """A folder ``.NAME.irexec-HOST-PROCESS-RANDOM`` beside a target, for what will replace it.

    HOST is a checksum of the machine's name, since the number of a process says nothing about those of another machine,
    and of the target's name, of which NAME is only the start.

    Attributes:
        target: the file or folder that is to be replaced; it need not exist.
        folder: the temporary folder, which only the user may open.
        new: the name in it of what replaces the target.
        old: the name in it of what the target was.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target.with_name(f"{_prefix(target)}{os.getpid()}-{os.urandom(4).hex()}")
        self.new, self.old = self.folder / "new", self.folder / "old"

    def create(self) -> None:
        """Make the folder, and delete the folders of processes that have ended.

        Raises:
            OSError: the folder cannot be made.
        """
        _remove_abandoned(self.target)
        _CREATED.add(self)
        self.folder.mkdir(0o700)

    def keep_old(self) -> None:
        """Keep a hard link to the target, or a copy where the system has none, and give the new file its
        permissions.
        """
        if not self.target.exists():
            return
        # Imported where it is used: reading a model, which is all that most commands do, needs no temporary folder.
        import shutil

        try:
            os.link(self.target, self.old)
        except (AttributeError, OSError):
            shutil.copy2(self.target, self.old)
        shutil.copymode(self.old, self.new)

    def undo(self) -> None:
        """Put back what the target was, if it has been replaced."""
        if os.path.lexists(self.new):
            return
        if os.path.lexists(self.old):
            os.replace(self.old, self.target)
        else:
            self.target.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder; what cannot be deleted stays."""
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)
        _CREATED.discard(self)


_CREATED: set[Temporary] = set()


def remove_all() -> None:
    """Delete every temporary folder of this process, which is about to end."""
    for temporary in list(_CREATED):
        temporary.remove()


def _prefix(target: Path) -> str:
    import platform

    host = zlib.crc32(f"{platform.node()}/{target.name}".encode("utf-8", "surrogateescape"))
    return f".{target.name[:_NAME_LENGTH]}.irexec-{host:08x}-"


def _remove_abandoned(target: Path) -> None:
    prefix = _prefix(target)
    name = re.compile(re.escape(prefix) + r"(\d{1,9})-[0-9a-f]{8}")
    with os.scandir(target.parent) as entries:
        found = [
            (entry.path, named)
            for entry in entries
            if (named := name.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False)
        ]
    for path, named in found:
        if not _is_running(int(named[1])):
            import shutil

            # Without a target, what it was may be all that is left of it: the process was killed between two
            # renames of a folder.
            old = Path(path) / "old"
            if os.path.lexists(old) and not os.path.lexists(target):
                with suppress(FileNotFoundError):
                    os.rename(old, target)
            shutil.rmtree(path, ignore_errors=True)


def _is_running_on_windows(process: int) -> bool:
    """The same by kernel32: a process that has ended, and is open elsewhere, has an exit code other than
    STILL_ACTIVE."""
    import ctypes

    kernel = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_QUERY, False, process)
    if not handle:
        # Any other error, such as one of rights, is that of a process that exists.
        return bool(getattr(ctypes, "get_last_error")() != _INVALID_PARAMETER)  # noqa: B009
    code = ctypes.c_uint32()
    known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
    kernel.CloseHandle(ctypes.c_void_p(handle))
    return not known or code.value == _STILL_ACTIVE


def _is_running(process: int) -> bool:
    """Whether there is a process of this number; where that cannot be asked, there may be."""
    if os.name == "nt":
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


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
    # Most commands exchange nothing, and every command imports this module.
    import ctypes

    library, first, second = ctypes.CDLL(None), os.fsencode(one), os.fsencode(other)
    if rename := getattr(library, "renameat2", None):
        return bool(rename(_CURRENT_FOLDER, first, _CURRENT_FOLDER, second, ctypes.c_uint(_EXCHANGE)) == 0)
    if rename := getattr(library, "renamex_np", None):
        return bool(rename(first, second, ctypes.c_uint(_EXCHANGE)) == 0)
    return False


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
            files = [stack.enter_context(io.BufferedWriter(_NewFile(temporary.new, "xb"))) for temporary in made]
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


class Closing:
    """An object that a ``with`` closes."""

    def close(self) -> None:
        """End what the object needs, such as a process or a file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
