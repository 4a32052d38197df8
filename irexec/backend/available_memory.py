"""The memory that this process may still allocate, and the memory that it has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from irexec.backend import system_memory
from irexec.backend.control_groups import control_groups, text_of

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
        return system_memory.windows_in_use() or 0
    if len(pages) < 3 or not all(count.isdigit() for count in pages):
        return 0
    return max(0, int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def _of_the_system(root: Path) -> int:
    for line in text_of(root / "proc/meminfo").splitlines():
        name, *values = line.split()
        if name == "MemAvailable:" and values and values[0].isdigit():
            return int(values[0]) << 10
    asked = {"win32": system_memory.windows_available, "darwin": system_memory.mac_available}.get(sys.platform)
    available = None if asked is None else asked()
    if available is not None:
        return available
    try:
        # Half of the memory of a system that does not say how much of it is in use.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return ASSUMED


def _left(folder: Path) -> int | None:
    """The limit of one control group (version 2 or 1) minus its use; None without a limit."""
    for limit_file, use_file in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        limit = text_of(folder / limit_file)
        if not limit.isdigit() or int(limit) > _NO_LIMIT:
            continue
        used = text_of(folder / use_file)
        if used.isdigit():
            return max(0, int(limit) - int(used) + _reclaimable(folder))
    return None


def _reclaimable(folder: Path) -> int:
    """Bytes of files that the group has cached and can drop; they count as used."""
    for line in text_of(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdigit():
            return int(value)
    return 0
