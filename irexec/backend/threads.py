"""Number of threads to use, and NumPy's BLAS at one thread while blocks are spread over threads."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irexec.backend.control_groups import control_groups, text_of
from irexec.backend.openblas import OpenBlas, openblas
from irexec.backend.recent import Recent
from irexec.errors import InputError

VARIABLE = "IREXEC_NUM_THREADS"
"""The environment variable that sets the default number of threads."""


MAX_THREADS = 256
"""Each thread has workspace of its own in the arena; no step has blocks for more."""


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
    quota, cores = cpu_quota(root), _cores(processors, root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


_recent_cores = Recent(_cores_of)


def _affinity() -> set[int]:
    """The logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _cores(processors: frozenset[int], root: Path) -> int:
    """Number of cores of the logical processors; each counts as a core if the system does not tell."""
    siblings = {
        text_of(root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") or str(number)
        for number in processors
    }
    return max(1, len(siblings))


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
        """In the child, where only the runs of the thread that forked go on."""
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
