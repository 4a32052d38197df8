"""The peak memory of this process, on every system that the tests run on."""

from __future__ import annotations

import sys


def peak_kilobytes() -> int:
    """The largest resident size of this process so far, in units of 1,024 bytes."""
    if sys.platform == "win32":
        return _peak_on_windows() // 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux kilobytes.
    return peak // 1024 if sys.platform == "darwin" else peak


def _peak_on_windows() -> int:
    """PeakWorkingSetSize of PROCESS_MEMORY_COUNTERS, in bytes. Source: psapi.h."""
    import ctypes
    from ctypes import wintypes

    sizes = (
        "peak_working_set",
        "working_set",
        "peak_paged_pool",
        "paged_pool",
        "peak_other_pool",
        "other_pool",
        "pagefile",
        "peak_pagefile",
    )

    class Counters(ctypes.Structure):
        _fields_ = [("cb", wintypes.DWORD), ("page_faults", wintypes.DWORD), *((name, ctypes.c_size_t) for name in sizes)]

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.K32GetProcessMemoryInfo.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    counters = Counters(cb=ctypes.sizeof(Counters))
    if not kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.cb):
        raise ctypes.WinError(ctypes.get_last_error())
    return counters.peak_working_set
