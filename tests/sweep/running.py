"""The loop over names and numbers, in this process or in several others."""

from __future__ import annotations

import argparse
import importlib
import itertools
import multiprocessing
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

from tests.sweep.kind import Case, Kind, Outcome, tried

PATIENCE = 300.0
"""Seconds after which the process of a case is ended."""
Numbered = tuple[int, Outcome]


def run(kind: Kind, names: Sequence[str]) -> Iterator[tuple[str, float, Iterator[Numbered]]]:
    """Each name with its seconds so far and the outcomes of its cases; with ``--seconds`` names share the time equally."""
    options = kind.options
    end = None if options.seconds is None else time.monotonic() + options.seconds
    if kind.is_isolated:
        yield from _isolated(kind, names, end)
        return
    for index, name in enumerate(names):
        yield name, time.monotonic(), _own(kind, name, _share(end, len(names) - index))


def _share(end: float | None, names: float) -> float | None:
    """The time at which a name must end if ``names`` names share the time that is left."""
    return None if end is None else time.monotonic() + (end - time.monotonic()) / names


def _numbers(options: argparse.Namespace, until: float | None) -> Iterator[int]:
    """The numbers of the cases of a name; one at least."""
    if options.case is not None:
        yield options.case
        return
    count = None if options.seconds is not None else options.cases
    for index in itertools.count() if count is None else range(count):
        if index and until is not None and time.monotonic() > until:
            return
        yield options.seed + index


def _own(kind: Kind, name: str, until: float | None) -> Iterator[Numbered]:
    with kind.opened(name) as case:
        for number in _numbers(kind.options, until):
            yield from ((number, outcome) for outcome in tried(case, number))


def _isolated(kind: Kind, names: Sequence[str], end: float | None) -> Iterator[tuple[str, float, Iterator[Numbered]]]:
    workers = kind.options.workers
    children = [Child(kind) for _ in range(workers)]
    free: queue.SimpleQueue[Child] = queue.SimpleQueue()
    for child in children:
        free.put(child)

    def one(index: int) -> tuple[str, float, Iterator[Numbered]]:
        child, start, name = free.get(), time.monotonic(), names[index]
        until = _share(end, (len(names) - index + workers - 1) / workers)
        try:
            numbers = _numbers(kind.options, until)
            found = [(number, outcome) for number in numbers for outcome in child.outcomes(name, number)]
        finally:
            free.put(child)
        return name, start, iter(found)

    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(one, range(len(names)))
    finally:
        for child in children:
            child.stop()


class Child:
    """A process that runs cases, and is replaced when it is lost."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._process: Any = None
        self._pipe: Any = None

    def outcomes(self, name: str, number: int) -> list[Outcome]:
        """What comes of a case."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            made = (type(self._kind).__module__, type(self._kind).__name__, self._kind.options)
            self._process = context.Process(target=_serve, args=(theirs, *made), daemon=True)
            self._process.start()
            theirs.close()
        self._pipe.send((name, number))
        asked = False
        while True:
            try:
                if not self._pipe.poll(PATIENCE):
                    return self._lost(asked, f"no answer within {PATIENCE:g} s")
                answer = self._pipe.recv()
            except (EOFError, ConnectionResetError):
                return self._lost(asked, "the process died")
            if isinstance(answer, list):
                return answer
            asked = True

    def _lost(self, asked: bool, why: str) -> list[Outcome]:
        self.stop()
        return [self._kind.lost(asked, why)]

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _serve(pipe: Connection, module: str, name: str, options: argparse.Namespace) -> None:
    """In a process of its own: run the cases that are asked for, until it is ended."""
    kind: Kind = getattr(importlib.import_module(module), name)(options)
    kind.asking = lambda: pipe.send("asking")
    opened: str | None = None
    case: Case = lambda number: ()  # noqa: E731 - replaced before the first case
    with ExitStack() as stack:
        while True:
            wanted, number = pipe.recv()
            if wanted != opened:
                stack.close()
                case, opened = stack.enter_context(kind.opened(wanted)), wanted
            pipe.send(list(tried(case, number)))
