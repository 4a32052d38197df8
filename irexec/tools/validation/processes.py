"""Validation of many files in several processes."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from irexec.errors import InputError
from irexec.io.worker_process import begin_worker
from irexec.tools.validation.files import STDIN, FileReport, report_always

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_DIED = "the process that validated it ended: there may be not enough memory, or it crashed"

_Warned = tuple[FileReport, list[Warning]]


def reports(files: Sequence[str], jobs: int = 1, **options: Any) -> Iterator[FileReport]:
    """Validate files, in their order.

    A process that dies does not hide the other files: its files are validated again, each in a process of its own.

    Args:
        files: paths, or "-" for standard input.
        jobs: the number of processes; 1 is this process, which validates where there are no others (Pyodide).
        options: as for ``report``.

    Raises:
        InputError: this process cannot start others.
    """
    inside = [path for path in files if path != STDIN]
    if jobs == 1 or len(inside) < 2 or find_spec("_multiprocessing") is None:
        yield from (report_always(path, **options) for path in files)
        return
    if multiprocessing.current_process().daemon:
        raise InputError("jobs cannot be started from a daemonic process: start this one with daemon=False")
    pool = _pool(min(jobs, len(inside)))
    try:
        futures = {path: pool.submit(_validated, path, options) for path in dict.fromkeys(inside)}
        for path in files:
            yield report_always(path, **options) if path == STDIN else _result(path, futures[path], options)
    except BaseException:
        # The files under way may take minutes.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(count: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    # Processes are spawned, not forked: a fork of a process with threads may hang.
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), begin_worker)


def _validated(path: str, options: dict[str, Any]) -> _Warned:
    with warnings.catch_warnings(record=True) as caught:
        found = report_always(path, **options)
    return found, [one.message for one in caught if isinstance(one.message, Warning)]


def _result(path: str, future: Future[_Warned], options: dict[str, Any]) -> FileReport:
    try:
        found, warned = future.result()
    except BrokenExecutor:
        with _pool(1) as pool:
            try:
                found, warned = pool.submit(_validated, path, options).result()
            except BrokenExecutor:
                return FileReport(path, (), error=f"{path}: {_DIED}")
    for warning in warned:
        warnings.warn(warning, stacklevel=2)
    return found
