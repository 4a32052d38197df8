"""Batch jobs and pipelines on a cluster, by Ray Data.

The parts of a job are the rows of a data set. A pool of actors runs them with the code that the processes of one
machine use, so that the output is the same. Ray replaces lost processes and nodes, and repeats their unfinished parts.
Sources, model and output must have the same paths on every node, as on a file system that all nodes mount.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from irexec.errors import InputError, IrexecError, ModelError
from irexec.integrations.tensors import not_importable
from irexec.io.processes import silenced_stderr
from irexec.tools.batch.parts import BatchJob, PartResult, PartRunner, PartTask

_TASK, _RESULT = "task", "result"
_QUIET = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_py_gcs_connect_timeout_s": "10"}
"""Environment that Ray reads at its import: less output on stderr, and the seconds of one attempt to connect."""

_ANSWER = 5
"""Seconds to wait for the answer of an address."""

_PARTS, _CALLS = 8, 5
"""Maximum number of parts in one call of an actor, and minimum number of calls per actor. A call takes Ray a tenth of a
second, and is lost with its node."""


def load_ray() -> Any:
    """Ray with its module of data sets; raises UnsupportedError if it is not installed."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise not_importable("ray", "ray", error) from None
    return ray


class RayActors:
    """The engine that runs the parts of a job on a cluster; see irexec.tools.batch.run.Engine.

    Args:
        job: the job of the parts.
        count: the maximum number of actors; None is the number of processors in the cluster.
        address: "auto" for the cluster of this machine, "HOST:PORT", or None to start a cluster here.

    Raises:
        UnsupportedError: Ray is not installed.
        InputError: the address has no cluster.
    """

    def __init__(self, job: BatchJob, count: int | None, address: str | None = None) -> None:
        self._ray = load_ray()
        self._job = replace(job, model=os.path.abspath(job.model))
        _connect(self._ray, address, count)
        self.count = count or int(self._ray.cluster_resources().get("CPU", 1))

    def run(self, tasks: Iterator[PartTask], advance: Callable[[int], None]) -> Generator[PartResult, None, None]:
        """Run the tasks, and yield each result as soon as it is ready.

        Raises:
            ModelError, InputError: a part cannot be written, or a node does not see the files of this machine.
        """
        rows = [
            {_TASK: pickle.dumps((replace(task, file=Path(os.path.abspath(task.file))), _seen(task)))} for task in tasks
        ]
        data = self._ray.data
        # Rows of results are small, in the order in which parts end.
        size = max(1, min(_PARTS, len(rows) // (_CALLS * self.count)))
        parts = data.from_items(rows, override_num_blocks=-(-len(rows) // size)).map_batches(
            _Actor,
            fn_constructor_args=(self._job, os.getcwd()),
            batch_size=size,
            num_cpus=1,
            compute=data.ActorPoolStrategy(min_size=1, max_size=self.count),
        )
        try:
            for row in parts.iter_rows():
                result = pickle.loads(row[_RESULT])
                if isinstance(result, IrexecError):
                    raise result
                yield result
        except self._ray.exceptions.RayError as error:
            raise ModelError(_sentence(error)) from error


def _seen(task: PartTask) -> str:
    """A source of the part that this machine sees, and therefore every node should; "" without one."""
    path = task.items[0].path if task.items else ""
    return os.path.abspath(path) if os.path.exists(path) else ""


def _sentence(error: Exception) -> str:
    """The messages of Ray, shortened to one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("No module named 'irexec" in line for line in lines):
        return "the nodes of the Ray cluster need irexec, too: pip install it on each"
    return f"the Ray cluster has ended the job: {lines[-1] if lines else type(error).__name__}"


def _connect(ray: Any, address: str | None, count: int | None) -> None:
    # Otherwise Ray's libraries write messages for Ray's developers to stderr.
    for name in ("ray", "ray.data"):
        # Failures are raised too.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    if ray.is_initialized():
        return
    # Keep reports of nodes, such as ended actors, off stdout, where results are: Ray has no option for that.
    worker = getattr(getattr(ray, "_private", None), "worker", None)
    if worker is not None and hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda data, ignore_prefix=False: None
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    try:
        # Ray announces on stderr that it writes nothing there.
        with warnings.catch_warnings(action="ignore"), silenced_stderr(), _signals_kept():
            if address is None:
                # Without "local" Ray would join an existing cluster of this machine.
                ray.init("local", num_cpus=count, include_dashboard=False, **quiet)
            else:
                _try(address)
                # One attempt to connect in place of twenty.
                os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
                ray.init(address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        where = "Ray cannot be started here" if address is None else f"there is no Ray cluster at {address}"
        raise InputError(f"{where}: {_reason(error)}") from None


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM after the block: Ray's ends the process with a stack trace and exit code 15."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _reason(error: Exception) -> str:
    """The reason of a failed connection, as a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _try(address: str) -> None:
    """Check the address by one connection: Ray itself would try for minutes.

    Raises:
        OSError: nothing answers at the address.
        InputError: the text is not an address.
    """
    if address == "auto":
        return
    if address.startswith("ray://"):
        raise InputError(
            f"--address {address}: Ray Data does not run through Ray's client; give auto, or HOST:PORT on a machine of "
            "the cluster"
        )
    found = re.fullmatch(r"\[?([^\s/]+?)\]?:(\d{1,5})", address)
    if found is None or int(found[2]) > 65535:
        raise InputError(f"--address {address} is not auto or HOST:PORT")
    with socket.create_connection((found[1], int(found[2])), timeout=_ANSWER):
        pass


class _Actor:
    """Runs parts in a process of the cluster."""

    def __init__(self, job: BatchJob, folder: str) -> None:
        self._job, self._folder = job, folder
        self._runner: PartRunner | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        return {_RESULT: np.array([pickle.dumps(self._done(*pickle.loads(work))) for work in batch[_TASK]], object)}

    def _done(self, task: PartTask, seen: str) -> PartResult | IrexecError:
        """The result of a part; ``seen`` is a source of it that the machine of the command sees, "" without one."""
        try:
            if self._runner is None:
                for path in (self._folder, self._job.model):
                    if not os.path.exists(path):
                        raise _unseen(path)
                # Items keep the paths that the user gave: the paths are their names in the output.
                os.chdir(self._folder)
                self._runner = PartRunner(self._job)
            if seen and not os.path.exists(seen):
                return _unseen(seen)
            return self._runner(task)
        except IrexecError as error:
            # The error is for the user; Ray must not try again.
            return error


def _unseen(path: str) -> ModelError:
    return ModelError(
        f"the node {socket.gethostname()} of the cluster has no {path}: model, sources and output need the same paths "
        "on all"
    )
