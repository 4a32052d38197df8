"""Temporary folders beside the files that are written. The name of a folder identifies its process: folders of killed
processes are deleted.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from pathlib import Path

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

            _put_back(Path(path) / "old", target)
            shutil.rmtree(path, ignore_errors=True)


def _put_back(old: Path, target: Path) -> None:
    """Where there is no target, what it was may be all that is left of it: the process was killed between two renames
    of a folder.
    """
    if os.path.lexists(old) and not os.path.lexists(target):
        with contextlib.suppress(FileNotFoundError):
            os.rename(old, target)


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
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
