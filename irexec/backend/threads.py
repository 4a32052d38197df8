"""Threads: their number, whether a step uses all or one, their cores, NumPy's settings, and OpenBLAS at one thread."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.backend.system import Recent, control_groups, text_of
from irexec.errors import InputError

VARIABLE = "IREXEC_NUM_THREADS"
"""The environment variable that sets the default number of threads."""


MAX_THREADS = 256
"""Each thread has workspace of its own in the arena; no step has blocks for more."""
FIRST_RUNS = 4
"""Runs of a step on all threads and on one, in turns, after which all threads are chosen unless one was faster."""

TRIAL_RUNS = 8
"""Runs before one thread is chosen.

Beside busy processes one thread is the faster in four runs up to 16 times of 100, in eight 3 times (MobileNetV2 on two
threads).
"""

RUNS_UNTIL_RETRIED = 200
"""Runs after which both are tried again: other work of the machine may have decided the first trials."""

_SLOWER = 0.93
"""One thread is chosen if its time is at most this fraction of the time of all threads.

A core that was busy during the trials slows all threads as well.
"""


def thread_count(threads: int | None = None, root: Path = Path("/")) -> int:
    """Number of threads: ``threads`` if given, else IREXEC_NUM_THREADS, else the number of available CPUs.

    Raises:
        InputError: either is not a whole number from 1 to ``MAX_THREADS``.
    """
    if threads is not None:
        if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX_THREADS:
            raise InputError(f"threads is {threads!r}, expected a whole number from 1 to {MAX_THREADS}")
        return threads
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(usable_cores(root), MAX_THREADS)
    # Only what int() reads as decimal digits; "1_0" or "٣" are not decimal digits to a reader of the variable.
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_THREADS):
        raise InputError(f"{VARIABLE} is {text!r}, expected a whole number from 1 to {MAX_THREADS}")
    return int(text)


def usable_cores(root: Path = Path("/")) -> int:
    """Number of cores available to this process, limited by the CPU time of its control groups (rounded up).

    The files of the system are read again after a moment, and where the process may run on other processors.
    """
    return _recent_cores((root, frozenset(_affinity())))


def _cores_of(place: tuple[Path, frozenset[int]]) -> int:
    root, processors = place
    # Number of cores of the logical processors; each counts as a core if the system does not tell.
    siblings = {
        text_of(root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") or str(number)
        for number in processors
    }
    quota, cores = cpu_quota(root), max(1, len(siblings))
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


_recent_cores = Recent(_cores_of)


def _affinity() -> set[int]:
    """The logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The CPUs granted by the control groups of this process and their ancestors; None without a limit.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    quotas = [quota for folder in control_groups(root, "cpu") if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    """The quota of one control group: cpu.max of version 2, cpu.cfs_quota_us of version 1."""
    values = text_of(folder / "cpu.max").split()
    if not values:
        values = [*text_of(folder / "cpu.cfs_quota_us").split(), *text_of(folder / "cpu.cfs_period_us").split()]
    try:
        quota, period = map(int, values)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _find() -> Callable[[], int] | None:
    """sched_getcpu of the C library, called without giving up the interpreter lock; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        found = ctypes.PyDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    found.argtypes, found.restype = [], ctypes.c_int
    return found


_sched_getcpu = _find()


def current_core() -> int | None:
    """The index of the core on which the calling thread runs; None where the system does not provide it."""
    if _sched_getcpu is None:
        return None
    core = _sched_getcpu()
    return core if core >= 0 else None


def leave_core(core: int, model: int) -> None:
    """Move the calling thread to another core that thread ``model`` (its native id) may use, and keep it off this one.

    Nothing changes on a single core, or where the system refuses.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        others = os.sched_getaffinity(model) - {core}
        if others:
            os.sched_setaffinity(0, others)


# Elements. NumPy copies every operand of a ufunc that is not contiguous as a whole into buffers of this size, unless
# its rows are more than half as long. With the default of 8192, adding rows of 450 elements takes more than twice as
# long as with 512; conversions of types, which need the buffers, take as long with either.
_BUFFER = 512


def set_for_thread() -> None:
    """NumPy's state for threads of plans: no warnings about infinities and NaN, which are specified; short buffers."""
    np.seterr(all="ignore")
    np.setbufsize(_BUFFER)


@contextmanager
def set_for_run() -> Iterator[None]:
    """The same for the calling thread, until the run is over."""
    with np.errstate(all="ignore"):
        size = np.setbufsize(_BUFFER)
        try:
            yield
        finally:
            np.setbufsize(size)


_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")


@dataclass(frozen=True)
class OpenBlas:
    """An OpenBLAS.

    Attributes:
        get, set: the number of its threads.
        kernels: the processor that its kernels are written for, such as "SkylakeX"; empty where it is not known. It is
            not always that of the machine: the environment variable OPENBLAS_CORETYPE names another one.
    """

    get: Callable[[], int]
    set: Callable[[int], None]
    kernels: str = ""


@functools.cache
def openblas() -> OpenBlas | None:
    """The OpenBLAS that NumPy uses; None where its number of threads cannot be set."""
    for library in _libraries():
        with contextlib.suppress(OSError):
            found = _functions(ctypes.CDLL(str(library)))
            if found is not None:
                return found
    return None


def _libraries() -> Iterator[Path]:
    """Candidates: the library in NumPy's wheel, then libraries loaded by the process (conda, Linux distributions)."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".libs", package / ".dylibs"):
        if folder.is_dir():
            yield from (file for file in sorted(folder.iterdir()) if "openblas" in file.name)
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        paths = {
            line.split(None, 5)[5] for line in maps.splitlines() if "openblas" in line and len(line.split(None, 5)) == 6
        }
        yield from map(Path, sorted(path for path in paths if "scipy.libs" not in path))


def _functions(library: ctypes.CDLL) -> OpenBlas | None:
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            set_ = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and set_ is not None:
                get.restype, set_.argtypes = ctypes.c_int, [ctypes.c_int]
                return OpenBlas(get, set_, _kernels(getattr(library, f"{prefix}get_corename{suffix}", None)))
    return None


def _kernels(name: Any) -> str:
    if name is None:
        return ""
    name.restype = ctypes.c_char_p
    return (name() or b"").decode("ascii", "replace")


class _OneBlasThread:
    """Counts the runs that are under way: the first sets BLAS to one thread, the last one sets it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs, self._before = 0, 1
        self._own = threading.local()

    def enter(self, library: OpenBlas) -> None:
        with self._lock:
            if self._runs == 0:
                self._before = library.get()
                if self._before != 1:
                    library.set(1)
            self._runs += 1
        self._own.runs = getattr(self._own, "runs", 0) + 1

    def leave(self, library: OpenBlas) -> None:
        self._own.runs -= 1
        with self._lock:
            self._runs -= 1
            self._restore(library)

    def _restore(self, library: OpenBlas) -> None:
        # A number other than 1 was set by the user during the run, and stays.
        if self._runs == 0 and self._before != 1 and library.get() == 1:
            library.set(self._before)

    def after_fork(self) -> None:
        """In the child, where only the runs of the thread that forked continue."""
        self._lock = threading.Lock()
        interrupted = self._runs > 0
        self._runs = getattr(self._own, "runs", 0)
        library = openblas() if interrupted else None
        if library is not None:
            self._restore(library)


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's OpenBLAS uses one thread inside the context, in the whole process; another BLAS is left as it is.

    The number of threads that the user set holds again once no such context is open in any thread.
    """
    library = openblas()
    if library is None:
        yield
        return
    _one_blas_thread.enter(library)
    try:
        yield
    finally:
        _one_blas_thread.leave(library)


class ThreadTrials:
    """The trials of one step.

    Attributes:
        alone: True if the step runs on one thread.
    """

    def __init__(self) -> None:
        self.alone = False
        self._runs = 0
        self._fastest = [math.inf, math.inf]

    def run(self, compute: Callable[[], None]) -> None:
        """Call ``compute``, on one thread or on all, and time the call during the trials."""
        if self._runs >= TRIAL_RUNS:
            self._runs += 1
            if self._runs > RUNS_UNTIL_RETRIED:
                self._runs, self._fastest = 0, [math.inf, math.inf]
            compute()
            return
        self.alone = self._runs % 2 == 1
        start = time.perf_counter()
        compute()
        self._fastest[self.alone] = min(self._fastest[self.alone], time.perf_counter() - start)
        self._runs += 1
        if self._runs in (FIRST_RUNS, TRIAL_RUNS):
            self.alone = self._fastest[True] < _SLOWER * self._fastest[False]
            if not self.alone:
                self._runs = TRIAL_RUNS
