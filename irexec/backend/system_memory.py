"""Memory of systems without /proc: Windows by kernel32, macOS by vm_stat; None if the system does not answer."""

from __future__ import annotations

import ctypes
import re
from typing import Any

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
