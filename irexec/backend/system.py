"""The limits of this process: its control groups, free memory and memory in use.

Linux limits containers and services by control groups. Windows is asked by kernel32, macOS by vm_stat.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

ASSUMED = 4 << 30
"""Bytes assumed if the system does not tell."""

_NO_LIMIT = 1 << 60
"""A larger limit is none: version 1 writes the largest integer where nothing limits the group."""


def available_memory(root: Path = Path("/")) -> int:
    """Bytes available without swapping, limited by the system and by each control group of the process.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    left = (_left(folder) for folder in control_groups(root, "memory"))
    return min([_of_the_system(root), *(size for size in left if size is not None)])


def memory_in_use(root: Path = Path("/")) -> int:
    """Bytes of private memory of the process, without mapped files; 0 where the system does not tell.

    Args:
        root: where ``proc`` is.
    """
    pages = text_of(root / "proc/self/statm").split()
    if not pages and sys.platform == "win32":
        return windows_in_use() or 0
    if len(pages) < 3 or not all(count.isdigit() for count in pages):
        return 0
    return max(0, int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def _of_the_system(root: Path) -> int:
    kilobytes = _field(root / "proc/meminfo", "MemAvailable:")
    if kilobytes is not None:
        return kilobytes << 10
    asked = {"win32": windows_available, "darwin": mac_available}.get(sys.platform)
    available = None if asked is None else asked()
    if available is not None:
        return available
    try:
        pages = os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ASSUMED
    # Half of the memory of a system that does not say how much of it is in use. A negative number is none, as of WASI.
    return pages * os.sysconf("SC_PAGE_SIZE") // 2 if pages > 0 else ASSUMED


def _left(folder: Path) -> int | None:
    """The limit of one control group (version 2 or 1) minus its use; None without a limit."""
    for limit_file, use_file in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        limit = text_of(folder / limit_file)
        if not limit.isdigit() or int(limit) > _NO_LIMIT:
            continue
        used = text_of(folder / use_file)
        if used.isdigit():
            # Files that the group has cached and can drop count as used.
            return max(0, int(limit) - int(used) + (_field(folder / "memory.stat", "inactive_file") or 0))
    return None


def _field(path: Path, name: str) -> int | None:
    """The number that follows a name at the beginning of a line of a file; None if there is none."""
    for line in text_of(path).splitlines():
        first, value, *_ = (*line.split(), "", "")
        if first == name and value.isdigit():
            return int(value)
    return None


_AVAILABLE_PAGES = ("free", "inactive", "speculative", "purgeable")


def windows_available() -> int | None:
    """Bytes of physical memory that are available: ullAvailPhys of GlobalMemoryStatusEx."""

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((name, ctypes.c_uint64) for name in ("total", "available", "total_page_file", "available_page_file")),
            *((name, ctypes.c_uint64) for name in ("total_virtual", "available_virtual", "available_extended")),
        ]

    status = Status(length=ctypes.sizeof(Status))
    if not _kernel32().GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.available)


def windows_in_use() -> int | None:
    """Bytes that the process has committed for itself: PagefileUsage of PROCESS_MEMORY_COUNTERS."""

    class Counters(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("page_faults", ctypes.c_uint32),
            *((name, ctypes.c_size_t) for name in ("peak_working_set", "working_set", "peak_paged", "paged")),
            *((name, ctypes.c_size_t) for name in ("peak_other", "other", "page_file", "peak_page_file")),
        ]

    kernel = _kernel32()
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    counters = Counters(length=ctypes.sizeof(Counters))
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    if not kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), ctypes.c_uint32(counters.length)):
        return None
    return int(counters.page_file)


def _kernel32() -> Any:
    return getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009


def mac_available() -> int | None:
    """Bytes of pages that are free, or that macOS frees when they are asked for, as vm_stat reports them."""
    # Only here: loading it takes a hundredth of the start of a command.
    import subprocess

    try:
        done = subprocess.run(["vm_stat"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    page = re.search(r"page size of (\d+) bytes", done.stdout)
    counts = dict(re.findall(r"^Pages ([a-z]+): +(\d+)\.$", done.stdout, re.MULTILINE))
    if page is None or not all(name in counts for name in _AVAILABLE_PAGES):
        return None
    return sum(int(counts[name]) for name in _AVAILABLE_PAGES) * int(page[1])


_LIMITS = {"memory": ("memory.max", "memory.limit_in_bytes"), "cpu": ("cpu.max", "cpu.cfs_quota_us")}
"""The files of a group, of version 2 and of version 1, that may limit a controller."""


def control_groups(root: Path, controller: str) -> tuple[Path, ...]:
    """The control groups of the process that may limit ``controller``, each followed by its ancestors.

    Args:
        root: where ``proc`` and ``sys`` are.
        controller: "cpu" or "memory".
    """
    groups = text_of(root / "proc/self/cgroup")
    return _with_limits(root, controller, groups)


@functools.lru_cache(8)
def _with_limits(root: Path, controller: str, groups: str) -> tuple[Path, ...]:
    """The folders that have files of limits. They are found once: each model that is compiled asks for its memory."""
    found = dict.fromkeys(_folders(root, controller, groups))
    return tuple(folder for folder in found if any((folder / name).exists() for name in _LIMITS[controller]))


def _folders(root: Path, controller: str, groups: str) -> Iterator[Path]:
    for line in groups.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        for mounted, mount in _mounts(root, controller if controllers else ""):
            parts = [part for part in _below(path, mounted).split("/") if part not in ("", ".", "..")]
            for count in range(len(parts), -1, -1):
                yield mount.joinpath(*parts[:count])


def _below(path: str, mounted: str) -> str:
    """The path of a group relative to the mounted group; a container often has its own group mounted as root."""
    if mounted == "/":
        return path.strip("/")
    return path.removeprefix(mounted).strip("/") if path == mounted or path.startswith(f"{mounted}/") else ""


def _mounts(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """The group that is mounted and where, of version 1 for a controller, of version 2 for ""."""
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" if not controller else kind[0] == "cgroup" and controller in kind[2].split(","):
            yield fields[3], root / fields[4].replace("\\040", " ").lstrip("/")


def text_of(path: Path) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def return_free_memory() -> None:
    """Give back what the allocator holds of freed memory, where it is glibc's; nothing elsewhere.

    Packing a model's weights frees arrays of many sizes. From some megabytes on glibc keeps such memory for the next
    request, and it would count as the process's for as long as the model lives.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """``malloc_trim`` of the C library that the process uses; None without one."""
    if sys.platform != "linux":
        return None
    function: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return function


FRESH = 0.1
"""Seconds for which an answer is reused unless the caller says otherwise."""

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")


class Recent(Generic[_Key, _Answer]):
    """The answers of a function, each with the time at which it was asked.

    Args:
        ask: the function.
    """

    def __init__(self, ask: Callable[[_Key], _Answer]) -> None:
        self._ask = ask
        self._answers: dict[_Key, tuple[float, _Answer]] = {}

    def __call__(self, key: _Key, seconds: float = FRESH) -> _Answer:
        """The answer for a key, at most ``seconds`` old."""
        now = time.monotonic()
        asked, answer = self._answers.get(key, (-math.inf, None))
        if answer is None or now - asked >= seconds:
            answer = self._ask(key)
            self._answers[key] = now, answer
        return answer
