"""Processes for the parts of a job, each in a pool of its own: the death of a process loses only its own part.

Processes are spawned, not forked: a fork of a process with threads may hang. They end whenever their parent process
ends.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, MutableSequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from irexec.backend.threads import thread_count
from irexec.errors import InputError, ModelError
from irexec.io.files import flush_file
from irexec.io.processes import begin_worker
from irexec.io.reading import writing
from irexec.tools.batch.parts import DONE, NOTHING_DONE, BatchJob, PartResult, PartRunner, PartTask

_AHEAD = 2
"""Number of parts that a process has: the one that it computes, and the next one."""

_INTERVAL = 0.2
"""Seconds between two looks at the progress."""

_DIED = "the process that ran it ended twice while it did: there may be not enough memory, or it crashed"


Run = Callable[[PartTask], PartResult]
Make = Callable[[BatchJob, MutableSequence[int]], Run]
"""Makes what does parts, in the process that does them; it can be pickled."""


_here: list[tuple[Make, BatchJob, MutableSequence[int]]] = []
_runner: list[Run] = []


def _begin(make: Make, job: BatchJob, numbers: Any) -> None:
    """The first thing that a new process does."""
    begin_worker()
    _here.append((make, job, numbers))


def _do(task: PartTask) -> PartResult:
    """Do a part in this process, which loads the model for its first."""
    make, job, progress = _here[0]
    progress[:] = NOTHING_DONE
    if not _runner:
        _runner.append(make(job, progress))
    return _runner[0](task)


@dataclass
class _Process:
    """A pool of one process, and what it does: the task of each future, the oldest first."""

    make: Make
    job: BatchJob
    pool: ProcessPoolExecutor | None = None
    numbers: Any = None

    def __post_init__(self) -> None:
        self.tasks: deque[tuple[Future[PartResult], PartTask]] = deque()

    def submit(self, task: PartTask) -> None:
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            self.numbers = context.RawArray("q", NOTHING_DONE)
            self.pool = ProcessPoolExecutor(1, context, _begin, (self.make, self.job, self.numbers))
        self.tasks.append((self.pool.submit(_do, task), task))

    def restart(self) -> list[PartTask]:
        """Drop the pool, whose process is dead; returns the tasks that it had."""
        tasks = [task for _, task in self.tasks]
        self.tasks.clear()
        self.close()
        return tasks

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None


class Processes:
    """The processes of a job.

    Args:
        job: the job of the processes.
        count: number of processes; None is the number of available cores.
        make: makes what does a part.

    Raises:
        InputError: this is a daemonic process of multiprocessing, which may not start others; or the main file of the
            program, which each process imports, does not exist.
    """

    def __init__(
        self, job: BatchJob, count: int | None = None, make: Make = partial(PartRunner, flushes=False)
    ) -> None:
        if multiprocessing.current_process().daemon:
            raise InputError(
                "the processes of a job cannot be started from a daemonic process: start this one with daemon=False"
            )
        # Raise InputError if a spawned process could not import the main file, as that of a script that is read from
        # stdin.
        path = multiprocessing.spawn.get_preparation_data("part").get("init_main_from_path")
        if path is not None and not Path(path).exists():
            raise InputError(
                f"the processes of a job import the main file of the program, and {Path(path).name} is not a file: "
                "write the script to a file"
            )
        self.count = thread_count(count)
        self._processes = [_Process(make, job) for _ in range(self.count)]
        self._deaths: Counter[tuple[int, int, int]] = Counter()

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        """Do the tasks, and yield each result as soon as it is ready.

        A part whose process died is done again. After a second death in the same batch, the items of the batch run
        one by one, and the item of a further death is an error.

        Args:
            tasks: are taken as processes become free.
            advance: called now and then with the number of items that parts under way have done.

        Raises:
            ModelError: a part cannot be written, or processes die before they have run anything.
        """
        try:
            yield from self._run(tasks, advance)
        except BaseException:
            # End the processes at once: a part may take minutes.
            for child in multiprocessing.active_children():
                child.kill()
            raise
        finally:
            # At the same time, since each waits for the end of an interpreter.
            with ThreadPoolExecutor(len(self._processes)) as threads:
                list(threads.map(_Process.close, self._processes))

    def _run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Iterator[PartResult]:
        again: deque[PartTask] = deque()
        while True:
            for process in sorted(self._processes, key=lambda each: len(each.tasks)):
                while len(process.tasks) < _AHEAD and (task := again.popleft() if again else next(tasks, None)):
                    process.submit(task)
            waiting = {future: process for process in self._processes for future, _ in process.tasks}
            if not waiting:
                return
            done, _ = wait(waiting, _INTERVAL, FIRST_COMPLETED)
            for process in {id(waiting[future]): waiting[future] for future in done}.values():
                yield from self._finished(process, again)
            advance(sum(process.numbers[DONE] for process in self._processes if process.tasks))

    def _finished(self, process: _Process, again: deque[PartTask]) -> Iterator[PartResult]:
        while process.tasks and process.tasks[0][0].done():
            future = process.tasks[0][0]
            try:
                result = future.result()
            except BrokenProcessPool:
                _, batch, position = process.numbers
                first, *others = process.restart()
                again.append(self._after_death(first, batch, position))
                again.extend(others)
                return
            _, task = process.tasks.popleft()
            if not result.is_flushed:
                # The process computes its next part meanwhile.
                with writing(task.file):
                    flush_file(task.file)
            yield result

    def _after_death(self, task: PartTask, batch: int, position: int) -> PartTask:
        """The task to do in place of one whose process died where the numbers say."""
        if position >= 0:
            return replace(task, skipped={**task.skipped, position: _DIED})
        key = (task.number, batch, len(task.skipped))
        self._deaths[key] += 1
        if self._deaths[key] < 2:
            return task
        if batch < 0:
            raise ModelError(
                f"a process that began part {task.number} ended twice before it ran the model: "
                "there may be not enough memory, "
                'or a script calls batch outside of `if __name__ == "__main__":`'
            )
        return replace(task, singly=task.singly | {batch})
