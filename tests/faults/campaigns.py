"""The tests of ``python -m tests.faults``: each gives a row of figures for every operation."""

from __future__ import annotations

import gc
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults import children
from tests.faults.children import (
    ENDING,
    Child,
    calls_of,
    fresh_folder,
    new_interpreter,
    signal_at,
    timed_run,
    wait_for_temporary,
)
from tests.faults.judging import Judge, Tally
from tests.faults.operations import Operation

LARGE, SMALL = 4 << 20, 1 << 14
"""Elements of a constant: 16 MB, so that writing takes a while, and 64 kB."""

_WHILE_WRITING, _STARTING = 0.6, 0.15
"""The share of signals that are sent while files are written, and of processes that are interrupted from their first import on."""

_RENAMES = ("replace", "rename", children.EXCHANGE)


def kills(operations: Sequence[Operation], folder: Path, count: int, seed: int) -> Iterator[Tally]:
    """Signals at random moments, as many for all operations together as ``count``."""
    generator = random.Random(seed)
    for index, operation in enumerate(operations):
        work = fresh_folder(operation, folder, LARGE)
        tally = Tally(f"kills, {operation.name}")
        judge = Judge(operation, work, tally)
        seconds, writing = timed_run(operation, work, judge.next_value)
        judge.value = judge.next_value
        for case in range(index, count, len(operations)):
            number = generator.choice(ENDING)
            name = f"{operation.name}, case {case}, {signal.Signals(number).name}"
            if generator.random() < _STARTING:
                end = _interrupted_start(operation, work, judge.next_value, number, generator.random())
            else:
                child = Child(operation, work, judge.next_value)
                if generator.random() < _WHILE_WRITING:
                    wait_for_temporary(child, operation, work)
                    time.sleep(generator.random() * writing * 1.1)
                else:
                    time.sleep(generator.random() * seconds * 1.1)
                child.signal(number)
                end = child.wait()
            judge.ended(end, number, name, may_tear=number == signal.SIGKILL)
        yield tally


def _interrupted_start(operation: Operation, folder: Path, value: int, number: int, moment: float) -> children.End:
    """A new interpreter that gets the signal within its first second."""
    with new_interpreter(operation, folder, value) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(number)
        _, errors = process.communicate()
        return children.End(process.returncode, errors)


def calls(operations: Sequence[Operation], folder: Path, *, renames_only: bool = False) -> Iterator[Tally]:
    """Every signal before and right after every call that changes the disk."""
    for operation in operations:
        work = fresh_folder(operation, folder, SMALL)
        made = calls_of(operation, work, 2)
        tally = Tally(f"signals at {'renames' if renames_only else 'calls'}, {operation.name}")
        judge = Judge(operation, work, tally)
        for position, name in enumerate(made):
            if renames_only and name not in _RENAMES:
                continue
            for number in ENDING:
                for after in (False, True):
                    child = Child(operation, work, judge.next_value, signal_at(position, number, after=after))
                    case = f"{operation.name}, {signal.Signals(number).name} {'after' if after else 'before'} call {position} ({name})"
                    judge.ended(child.wait(), number, case, may_tear=number == signal.SIGKILL)
        yield tally


def limits(operations: Sequence[Operation], folder: Path) -> Iterator[Tally]:
    """RLIMIT_FSIZE: no file may become larger than this number of bytes."""
    for operation in operations:
        work = fresh_folder(operation, folder, SMALL)
        judge = Judge(operation, work, Tally(f"RLIMIT_FSIZE, {operation.name}"))
        for size in (0, 1, 100, 1000, 4096, 60_000, 65_536, 70_000, 1 << 20):

            def limit(size: int = size) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

            judge.failed(Child(operation, work, judge.next_value, limit).wait(), f"{operation.name}, {size} bytes")
        yield judge.tally


def full_disk(operations: Sequence[Operation], folder: Path) -> Iterator[Tally]:
    """A file system of its own with room for this number of bytes; the row says why if there can be none."""
    for operation in operations:
        tally = Tally(f"full disk, {operation.name}")
        room = folder / "disk"
        room.mkdir(exist_ok=True)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", room], capture_output=True, text=True, check=False
        )
        if mounted.returncode != 0:
            tally.outcomes[f"skipped: {mounted.stderr.strip()}"] = 1
            yield tally
            continue
        try:
            _fill(operation, room, tally)
        finally:
            # A model that was read may still have its .bin open.
            gc.collect()
            subprocess.run(["umount", room], check=True)
        yield tally


def _fill(operation: Operation, room: Path, tally: Tally) -> None:
    work = fresh_folder(operation, room, SMALL)
    judge = Judge(operation, work, tally)
    ballast = room / "ballast"
    for free in range(0, 300_000, 12_288):
        ballast.unlink(missing_ok=True)
        available = shutil.disk_usage(room).free
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, available - free))
        judge.failed(Child(operation, work, judge.next_value).wait(), f"{operation.name}, {free} bytes free")
    ballast.unlink()
