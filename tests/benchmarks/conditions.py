"""The conditions of a measurement: cores to run on, busy processes beside it, a quota of processor time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD = 100_000


def available_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def pin(process: int, cores: list[int]) -> None:
    """Let a process run on these cores alone, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process, cores)


@contextmanager
def busy_cores() -> Iterator[list[subprocess.Popen[bytes]]]:
    """One process at normal priority on every core that does nothing but compute."""
    loop = "while True: sum(range(100_000))"
    processes = []
    try:
        for core in available_cores():
            processes.append(subprocess.Popen([sys.executable, "-c", loop]))
            pin(processes[-1].pid, [core])
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


class QuotaUnavailable(Exception):
    """This machine does not let this user limit the processor time of a process."""


@contextmanager
def cpu_quota(cpus: float) -> Iterator[Path]:
    """A control group with a quota of ``cpus`` CPUs; what is in it writes its process id to the file given.

    Version 2 and version 1 of control groups are tried. The group is removed afterwards.

    Raises:
        QuotaUnavailable: neither can be made here.
    """
    quota = int(cpus * _PERIOD)
    attempts = (
        ("version 2", _own_group_2(), {"cpu.max": f"{quota} {_PERIOD}"}),
        ("version 1", _own_group_1(), {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(quota)}),
    )
    group = _first_that_works(attempts)
    try:
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def _own_group_2() -> Path | None:
    """The directory of this process's group in version 2, if there is one with the cpu controller."""
    for root in (_CGROUPS, _CGROUPS / "unified"):
        controllers = root / "cgroup.controllers"
        if controllers.exists() and "cpu" in controllers.read_text().split():
            return root / _group_of_this_process("")
    return None


def _own_group_1() -> Path | None:
    """The directory of this process's group in version 1's cpu hierarchy."""
    for name in ("cpu", "cpu,cpuacct"):
        if (_CGROUPS / name / "cpu.cfs_quota_us").exists() or (_CGROUPS / name / "cpu.shares").exists():
            return _CGROUPS / name / _group_of_this_process("cpu")
    return None


def _group_of_this_process(controller: str) -> str:
    """The path of the group within its hierarchy; the controller is empty for version 2."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    return ""


def _first_that_works(attempts: tuple[tuple[str, Path | None, dict[str, str]], ...]) -> Path:
    reasons = []
    for name, parent, settings in attempts:
        if parent is None:
            reasons.append(f"{name}: no cpu controller")
            continue
        group = parent / f"irexec-benchmark-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            reasons.append(f"{name}: {error}")
            continue
        try:
            for file, text in settings.items():
                (group / file).write_text(text)
        except OSError as error:
            group.rmdir()
            reasons.append(f"{name}: {error}")
        else:
            return group
    raise QuotaUnavailable("no control group with a quota can be made here (" + "; ".join(reasons) + ")")
