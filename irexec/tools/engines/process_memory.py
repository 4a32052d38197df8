"""The peak memory of this process, on Linux, macOS and Windows."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_bytes() -> int:
    """The largest resident size of this process so far; 0 where the system does not report it."""
    if sys.platform == "win32":
        return _peak_on_windows()
    status = Path("/proc/self/status")
    if status.exists():
        # VmHWM starts anew with every program; ru_maxrss may be that of the process that started this one.
        lines = status.read_text().splitlines()
        peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        # Sandboxes such as gVisor have the file without this line.
        if peaks:
            return peaks[0] * 1024
    try:
        import resource
    except ImportError:
        # Pyodide.
        return 0

    # In bytes on macOS, in kilobytes elsewhere.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _peak_on_windows() -> int:
    """PeakWorkingSetSize of PROCESS_MEMORY_COUNTERS. Source: psapi.h."""
    import ctypes
    from ctypes import wintypes

    # These exist on Windows only.
    windows = {name: getattr(ctypes, name) for name in ("WinDLL", "WinError", "get_last_error")}
    sizes = (
        "peak_working_set", "working_set", "peak_paged_pool", "paged_pool", "peak_other_pool", "other_pool", "pagefile",
        "peak_pagefile",
    )  # fmt: skip

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", wintypes.DWORD),
            ("page_faults", wintypes.DWORD),
            *((name, ctypes.c_size_t) for name in sizes),
        ]

    kernel = windows["WinDLL"]("kernel32", use_last_error=True)
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.K32GetProcessMemoryInfo.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    counters = Counters(cb=ctypes.sizeof(Counters))
    if not kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.cb):
        raise windows["WinError"](windows["get_last_error"]())
    return int(counters.peak_working_set)
