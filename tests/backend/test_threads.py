"""The number of threads by affinity, cores and control groups, how work is cut into shares, and BLAS at one thread during a run."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import irexec
from irexec.backend import system, threads
from irexec.backend.convolution.geometry import split
from irexec.backend.pool import Pool
from irexec.backend.threads import (
    OpenBlas,
    cpu_quota,
    current_core,
    leave_core,
    one_blas_thread,
    openblas,
    thread_count,
    usable_cores,
)
from irexec.errors import InputError
from tests.support.paths import DIGITS, write_tree

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
_GROUP = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files", "quota"),
    [
        ("0::/", V2, {f"{_GROUP}/cpu.max": "100000 100000"}, 1),
        ("0::/", V2, {f"{_GROUP}/cpu.max": "max 100000"}, None),
        ("0::/", V2, {f"{_GROUP}/cpu.max": "250000 100000"}, 2.5),
        ("0::/", V2, {f"{_GROUP}/cpu.max": "10000 100000"}, 0.1),
        ("0::/", V2, {}, None),
        ("0::/a/b", V2, {f"{_GROUP}/a/b/cpu.max": "max 100000", f"{_GROUP}/a/cpu.max": "150000 50000"}, 3),
        ("0::/a/b", V2, {f"{_GROUP}/a/b/cpu.max": "200000 100000", f"{_GROUP}/a/cpu.max": "100000 100000"}, 1),
        ("0::/a/b", V2, {f"{_GROUP}/a/b/cpu.max": "100000 100000", f"{_GROUP}/a/cpu.max": "200000 100000"}, 1),
        # A container that sees the name of its group, but only its own folder.
        ("0::/docker/abc", V2, {f"{_GROUP}/cpu.max": "100000 100000"}, 1),
        ("0::/docker/abc", V2.replace("/ /sys", "/docker/abc /sys"), {f"{_GROUP}/cpu.max": "100000 100000"}, 1),
        ("0::/docker/abc/x", V2.replace("/ /sys", "/docker/abc /sys"), {f"{_GROUP}/x/cpu.max": "100000 100000"}, 1),
        ("0::/../other", V2, {f"{_GROUP}/cpu.max": "100000 100000"}, 1),
        (
            "4:memory:/m\n2:cpu,cpuacct:/a",
            V1,
            {f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_quota_us": "150000", f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            1.5,
        ),
        ("2:cpu,cpuacct:/a", V1, {f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_quota_us": "-1", f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, None),
        ("2:cpu,cpuacct:/a/b", V1, {f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_quota_us": "50000", f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, 0.5),
        # Version 1 for the CPU, version 2 beside it.
        (
            "2:cpu,cpuacct:/\n0::/",
            V1 + "\n" + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
            {f"{_GROUP}/cpu,cpuacct/cpu.cfs_quota_us": "100000", f"{_GROUP}/cpu,cpuacct/cpu.cfs_period_us": "100000"},
            1,
        ),
        ("2:cpuset:/a", V1, {f"{_GROUP}/cpu,cpuacct/a/cpu.cfs_quota_us": "100000"}, None),
        ("0::/", V2, {f"{_GROUP}/cpu.max": "nonsense"}, None),
        ("0::/", V2, {f"{_GROUP}/cpu.max": "100000 0"}, None),
        ("", "", {}, None),
        ("nonsense\n::\n", "nonsense - x\n1 2 3 4 - cgroup2 a b", {}, None),
    ],
)  # fmt: skip
def test_quota(cgroup: str, mounts: str, files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts, **files})
    assert cpu_quota(root) == quota


def test_no_quota_where_there_is_no_proc(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None


@pytest.mark.parametrize(
    ("processors", "siblings", "quota", "count"),
    [
        ({0, 1, 2, 3}, {}, None, 4),
        ({0, 1, 2, 3}, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, None, 2),
        ({0, 2}, {0: "0,2", 2: "0,2"}, None, 1),
        ({0, 1, 2, 3}, {}, "150000 100000", 2),
        ({0, 1, 2, 3}, {}, "10000 100000", 1),
        ({0, 1}, {}, "800000 100000", 2),
    ],
)
def test_usable_cores(
    processors: set[int],
    siblings: dict[int, str],
    quota: str | None,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_affinity", lambda: processors)
    files = {f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": text for n, text in siblings.items()}
    if quota:
        files |= {"proc/self/cgroup": "0::/", "proc/self/mountinfo": V2, f"{_GROUP}/cpu.max": quota}
    assert usable_cores(write_tree(tmp_path, files)) == count
    monkeypatch.delenv("IREXEC_NUM_THREADS", raising=False)
    assert thread_count(root=tmp_path) == count


def test_the_users_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IREXEC_NUM_THREADS", " 3 ")
    assert thread_count() == 3
    assert thread_count(5) == 5


@pytest.mark.parametrize("text", ["0", "-1", "257", "9" * 5000, "two", "1.5", "1_0", "٣", "2 3"])
def test_a_bad_variable(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IREXEC_NUM_THREADS", text)
    with pytest.raises(InputError, match=r"IREXEC_NUM_THREADS is .*, expected a whole number from 1 to 256$"):
        thread_count()
    assert thread_count(2) == 2


@pytest.mark.parametrize("bad", [0, -1, 257, 1.5, "2", True])
def test_a_bad_argument(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^threads is .*, expected a whole number from 1 to 256$"):
        thread_count(bad)


def test_a_variable_without_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IREXEC_NUM_THREADS", "")
    assert thread_count() >= 1


class _Library:
    """Stands for OpenBLAS, and counts how often its number of threads is set."""

    def __init__(self, number: int) -> None:
        self.number, self.calls = number, 0

    def set(self, number: int) -> None:
        self.number = number
        self.calls += 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Library]:
    fake = _Library(6)
    monkeypatch.setattr(threads, "openblas", lambda: OpenBlas(lambda: fake.number, fake.set))
    yield fake
    assert threads._one_blas_thread._runs == 0


def test_blas_has_one_thread_until_the_last_run_ends(library: _Library) -> None:
    with one_blas_thread():
        assert library.number == 1
        with one_blas_thread():
            assert library.number == 1
        assert library.number == 1
    assert (library.number, library.calls) == (6, 2)


def test_runs_that_overlap_do_not_set_it_back_in_between(library: _Library) -> None:
    begun, ended = threading.Event(), threading.Event()

    def other() -> int:
        with one_blas_thread():
            begun.set()
            ended.wait(30)
            return library.number

    with ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            found = pool.submit(other)
            begun.wait(30)
        assert library.number == 1
        ended.set()
        assert found.result() == 1
    assert (library.number, library.calls) == (6, 2)


def test_it_is_set_back_after_an_error(library: _Library) -> None:
    with pytest.raises(ValueError), one_blas_thread():
        raise ValueError
    assert library.number == 6


def test_what_the_user_sets_during_a_run_stays(library: _Library) -> None:
    with one_blas_thread():
        library.set(4)
    assert library.number == 4


def test_another_blas_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "openblas", lambda: None)
    with one_blas_thread():
        assert threads._one_blas_thread._runs == 0


def test_many_threads_at_once(library: _Library) -> None:
    def run(_: int) -> bool:
        seen = True
        for _ in range(200):
            with one_blas_thread():
                seen = seen and library.number == 1
        return seen

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))
    assert library.number == 6


_FORK = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from irexec.backend.threads import openblas
from irexec.backend.threads import one_blas_thread
library = openblas()
library.set(2)
begun, ended = threading.Event(), threading.Event()
def other():
    with one_blas_thread():
        begun.set()
        ended.wait(30)
thread = threading.Thread(target=other)
def status(expected):
    child = os.fork()
    if not child:
        with one_blas_thread():
            inside = library.get()
        os._exit(0 if (library.get(), inside) == (expected, 1) else 1)
    return os.waitpid(child, 0)[1]
thread.start()
begun.wait()
# The child does not have the thread whose run is under way, but it does have its own.
failed = status(2)
with one_blas_thread():
    failed |= status(1)
ended.set()
thread.join()
sys.exit(failed or library.get() != 2)
"""


def test_after_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_numpys_own_openblas_is_found_and_set() -> None:
    library = openblas()
    if library is not None:
        before = library.get()
        with one_blas_thread():
            assert library.get() == 1
        assert library.get() == before


def test_the_system_is_not_asked_again_for_the_next_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one layer compiles in a millisecond, of which reading files of the system was an eighth."""
    model = irexec.read_model(DIGITS / "classifier.xml")
    now = [time.monotonic() + 10]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    opened: list[str] = []

    def counted(path: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(str(path))
        return open(path, *arguments, **options)

    monkeypatch.setattr(system, "open", counted, raising=False)
    irexec.compile_model(model)
    first = len(opened)
    irexec.compile_model(model)
    assert first and len(opened) == first, opened[first:]
    now[0] += 1
    irexec.compile_model(model)
    assert len(opened) > first


# Moving a thread to another core.


needs_two_cores = pytest.mark.skipif(
    sys.platform != "linux" or current_core() is None or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two cores",
)


def _in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@needs_two_cores
def test_a_thread_leaves_a_core_and_stays_off_it() -> None:
    found: list[object] = []

    def work() -> None:
        before, caller = os.sched_getaffinity(0), threading.main_thread().native_id
        core = min(before)
        os.sched_setaffinity(0, {core})
        found.append(current_core() == core)
        leave_core(core, caller or 0)
        found.append(current_core() != core)
        found.append(os.sched_getaffinity(0) == before - {core})

    _in_thread(work)
    assert found == [True, True, True]


@needs_two_cores
def test_a_thread_stays_where_there_is_no_other_core() -> None:
    found: list[object] = []

    def work() -> None:
        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
        leave_core(core, threading.get_native_id())
        found.append(os.sched_getaffinity(0) == {core})

    _in_thread(work)
    assert found == [True]


def test_a_pool_works_where_the_system_tells_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_sched_getcpu", None)
    assert current_core() is None
    done: list[int] = []
    Pool(2).run(5, lambda index, worker: done.append(index))
    assert sorted(done) == [0, 1, 2, 3, 4]


# How work is cut into shares.


@pytest.mark.parametrize("multiple", [1, 2, 3, 4, 7])
def test_every_element_is_in_one_range_and_no_range_is_empty(multiple: int) -> None:
    for count, size in itertools.product([1, 2, 3, 4, 5, 7, 14, 28, 100], [1, 2, 3, 5, 14, 50, 1000]):
        ranges = split(count, size, multiple)
        assert [part.start for part in ranges] == [0, *(part.stop for part in ranges[:-1])]
        assert ranges[-1].stop == count
        assert all(part.start < part.stop for part in ranges)


@pytest.mark.parametrize(
    ("count", "size", "multiple", "lengths"),
    [(10, 10, 2, [10]), (10, 4, 1, [3, 3, 4]), (10, 4, 2, [2, 3, 2, 3]), (14, 7, 2, [7, 7]), (4, 1, 4, [1, 1, 1, 1])],
)
def test_shares_are_about_equal(count: int, size: int, multiple: int, lengths: list[int]) -> None:
    assert [part.stop - part.start for part in split(count, size, multiple)] == lengths
