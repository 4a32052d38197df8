"""Batch jobs and pipelines on a cluster, by Ray Data.

A job's parts are the rows of a data set, and a pool of actors does them as the processes of one machine do: with the same code, so that
the output is the same. Ray restarts what it loses, a process or a node, and gives it the parts again that it had not finished.
Sources, model and output must have the same paths on every node, as on a file system that all of them mount.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from irexec.errors import InputError, IrexecError
from irexec.integrations.extras import not_importable
from irexec.tools.batch.job import Job
from irexec.tools.batch.part import PartResult, PartRunner, PartTask

_TASK, _RESULT = "task", "result"
_PARTS, _CALLS = 8, 5
"""The most parts of one call of an actor, and the fewest calls of each. A call takes Ray a tenth of a second, and is lost with its node."""


def load_ray() -> Any:
    """Ray with its module of data sets; raises UnsupportedError if it is not installed."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise not_importable("ray", "ray", error) from None
    return ray


class RayActors:
    """What does the parts of a job on a cluster; see irexec.tools.batch.run.Engine.

    Args:
        job: that they do.
        count: the most actors; None is as many as the cluster has processors.
        address: of a cluster: "auto" for the one that this machine is part of, "ray://HOST:PORT", or None to start one here.

    Raises:
        UnsupportedError: Ray is not installed.
        InputError: there is no cluster at the address.
    """

    def __init__(self, job: Job, count: int | None, address: str | None = None) -> None:
        self._ray = load_ray()
        self._job = replace(job, model=os.path.abspath(job.model))
        _connect(self._ray, address, count)
        self.count = count or int(self._ray.cluster_resources().get("CPU", 1))

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        """Do the tasks, and give each result as soon as it is ready.

        Raises:
            ModelError, InputError: a part cannot be written.
        """
        rows = [{_TASK: pickle.dumps(replace(task, file=Path(os.path.abspath(task.file))))} for task in tasks]
        data = self._ray.data
        # Rows of results are small; their order is that in which parts are done.
        size = max(1, min(_PARTS, len(rows) // (_CALLS * self.count)))
        parts = data.from_items(rows, override_num_blocks=-(-len(rows) // size)).map_batches(
            _Actor,
            fn_constructor_args=(self._job, os.getcwd()),
            batch_size=size,
            num_cpus=1,
            compute=data.ActorPoolStrategy(min_size=1, max_size=self.count),
        )
        for row in parts.iter_rows():
            result = pickle.loads(row[_RESULT])
            if isinstance(result, IrexecError):
                raise result
            yield result


def _connect(ray: Any, address: str | None, count: int | None) -> None:
    # Else Ray's libraries write to stderr what is of use to its developers.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    if ray.is_initialized():
        return
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        ray.init(address, **quiet) if address else ray.init(num_cpus=count, include_dashboard=False, **quiet)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"there is no Ray cluster at {address}: {str(error).splitlines()[0]}") from None


class _Actor:
    """Does parts, in a process of the cluster."""

    def __init__(self, job: Job, folder: str) -> None:
        # Paths of items are those that the user gave, which are also their names in the output.
        os.chdir(folder)
        self._job = job
        self._runner: PartRunner | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        return {_RESULT: np.array([pickle.dumps(self._done(pickle.loads(task))) for task in batch[_TASK]], object)}

    def _done(self, task: PartTask) -> PartResult | IrexecError:
        try:
            if self._runner is None:
                self._runner = PartRunner(self._job)
            return self._runner(task)
        except IrexecError as error:
            # It is for the user, and not for Ray to try again.
            return error
