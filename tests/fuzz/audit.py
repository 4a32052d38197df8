"""What a case may do with the system: read the interpreter and the project, read and write its own folder, and nothing else."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.findings import frames_here, innermost
from tests.support.paths import ROOT

# Prefixes of events that no case has a reason for.
_FORBIDDEN = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.", "pickle.",
    "ftplib.", "urllib.", "webbrowser.",
)  # fmt: skip
# Other runtimes run in processes of their own, and so do patterns, models of SentencePiece and the engines of bench.
_STARTS_PROCESSES = ("irexec/io/processes.py:__init__", "irexec/tokenizers/isolated.py:__init__")
# Events whose first arguments are paths that are changed.
_CHANGES = {
    "os.chmod": 1, "os.chown": 1, "os.link": 2, "os.mkdir": 1, "os.remove": 1, "os.rename": 2, "os.rmdir": 1, "os.symlink": 2, "os.truncate": 1,
    "os.utime": 1, "shutil.move": 2, "shutil.rmtree": 1,
}  # fmt: skip
_READABLE = (
    "/proc/self/", "/proc/meminfo", "/proc/cpuinfo", "/sys/fs/cgroup/", "/sys/devices/system/cpu/", "/dev/null",
    "/dev/urandom", "/etc/os-release",
)  # fmt: skip

# The fuzzer's own clock reads how long processes that a case has started have waited.
_CLOCK = re.compile(r"/proc/\d+/(schedstat|task/\d+/children)")

Report = Callable[[str, str, str], object]


class Audit:
    """The audit hook of this process, which cannot be taken away; it does nothing while no case runs."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._report: Report | None = None
        roots = [sys.prefix, sys.base_prefix, *(path for path in sys.path if path and "packages" in path)]
        # The samples are what ``irexec demo`` copies; in a wheel they are inside of the package.
        code = [ROOT / name for name in ("irexec", "converters", "tests", "samples")]
        folders = tuple(f"{Path(root).resolve()}/" for root in [*roots, *code])
        # A checkout that is not installed has its own entry points there.
        self._readable = (*folders, str(ROOT / "pyproject.toml"), *_READABLE)
        sys.addaudithook(self._hook)

    def begin(self, folder: Path, report: Report) -> None:
        """From now on ``report(event, argument, where)`` is called for what is done outside of the folder; on Linux, whose paths are known."""
        if sys.platform == "linux":
            self._folder, self._report = str(folder), report

    def end(self) -> None:
        self._folder = self._report = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._report is None:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = (
                bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
                if mode is None
                else not set(mode) <= set("rbtU")
            )
            self._path("open for writing" if writes else "open", path, writes)
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                self._path(event, path, True)
        elif event.startswith(_FORBIDDEN):
            self._violation(event, arguments)

    def _path(self, event: str, path: Any, writes: bool) -> None:
        if isinstance(path, int):
            return
        name = os.fsdecode(path)
        # Not realpath, which would make events of its own.
        full = "" if "\0" in name else os.path.abspath(name)
        inside = not full or full == self._folder or full.startswith(f"{self._folder}/")
        allowed = full == os.devnull if writes else full.startswith(self._readable) or _CLOCK.fullmatch(full)
        if not inside and not allowed:
            self._violation(event, full, refuse=writes)

    def _violation(self, event: str, argument: Any, refuse: bool = True) -> None:
        """Report it; what would change something is not done."""
        report, self._report = self._report, None
        where = innermost(frames_here())
        if report is not None and where not in _STARTS_PROCESSES:
            report(event, str(argument)[:200], where)
            self._report = report
            if refuse:
                raise PermissionError(f"a case may not do this: {event} {argument}"[:200])
        self._report = report
