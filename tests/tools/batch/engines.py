"""An engine that starts no processes: most tests are about jobs, and a process takes longer than all the items."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator

from irexec.tools.batch.parts import DONE, NOTHING_DONE, BatchJob, PartResult, PartRunner, PartTask


class InThisProcess:
    """Does the parts of a job one after the other. All that other processes would get is pickled."""

    def __init__(self, job: BatchJob, count: int | None = None) -> None:
        self.count = 1
        self._job: BatchJob = pickle.loads(pickle.dumps(job))

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        progress = list(NOTHING_DONE)
        runner = PartRunner(self._job, progress)
        for task in tasks:
            progress[:] = NOTHING_DONE
            result: PartResult = pickle.loads(pickle.dumps(runner(pickle.loads(pickle.dumps(task)))))
            advance(progress[DONE])
            yield result
