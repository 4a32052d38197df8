"""Work that may end a process or take for ever: patterns that backtrack, and a library that reads models unchecked.

A process of its own does it. It is ended when the run takes too long or is interrupted, while a function of C in this
process could not be: it holds the interpreter's lock, and so the whole server.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from irexec.errors import OpError, UnsupportedError
from irexec.reference.limits import check_time
from irexec.tokenizers.isolated_program import ANSWER, HEADER, MISSING, NO_MEMORY, Service, answered

Answer = tuple[np.ndarray, bytes]
"""Integers of 64 bits, and bytes."""
Reply = tuple[bytes, Any, bytes]

HAS_PROCESSES = sys.platform not in ("emscripten", "wasi") and bool(sys.executable)
"""Whether this platform has processes; without them, the work is done in this one."""

_POLL = 0.05
"""Seconds between two checks of the limits of the run."""
_KEPT = 16
"""Number of patterns and models that a process keeps."""

_keys = itertools.count()


class Isolated:
    """A pattern or model that lives in processes of its own.

    Args:
        method: the method of ``Service`` that takes it.
        content: the argument of that method.
        what: its name in messages, the subject of a sentence.
    """

    def __init__(self, method: str, content: Any, what: str) -> None:
        self.method, self.content, self.what = method, content, what
        self.key = next(_keys)

    def ask(self, method: str, *arguments: Any, seconds: float | None = None) -> Answer:
        """The answer of a method of ``Service``.

        Args:
            method: its name; that of the content itself is asked without arguments.
            arguments: further arguments, after the key.
            seconds: limit of the time of this request; None for none.

        Raises:
            OpError: the content or the request is refused, the process ended, or it took too long.
            UnsupportedError: a package is not installed there.
            RunTimeoutError: the run takes too long.
        """
        worker = _idle.pop() if _idle else _Worker()
        try:
            kind, integers, data = worker.ask(self, method, arguments, seconds)
        except BaseException:
            worker.stop()
            raise
        _idle.append(worker)
        if kind == ANSWER:
            return np.frombuffer(integers, np.int64), data
        if kind == NO_MEMORY:
            raise MemoryError
        text = data.decode("utf-8", "replace")
        raise UnsupportedError(text) if kind == MISSING else OpError(f"{self.what} {text}")


class _Worker:
    """A process, and the keys of the contents that it has."""

    def __init__(self) -> None:
        self._known: dict[int, Reply] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        if not HAS_PROCESSES:
            self._service = Service()
            return
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _program(), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise OpError(f"a process for patterns and models of SentencePiece cannot be started: {error}") from None
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, content: Isolated, method: str, arguments: tuple[Any, ...], seconds: float | None) -> Reply:
        """The answer to a request; the content is sent where the process does not have it."""
        end = None if seconds is None else time.monotonic() + seconds
        known = self._known.pop(content.key, None)
        if known is None:
            if len(self._known) >= _KEPT:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._reply(content, "forget", (oldest,), end)
            known = self._reply(content, content.method, (content.key, content.content), end)
        if known[0] == ANSWER:
            # Used last.
            self._known[content.key] = known
        if known[0] != ANSWER or method == content.method:
            return known
        return self._reply(content, method, (content.key, *arguments), end)

    def _reply(self, content: Isolated, method: str, arguments: tuple[Any, ...], end: float | None) -> Reply:
        if self._process is None:
            return answered(self._service, method, arguments)
        assert self._process.stdin is not None
        # If it has ended, the missing answer says so.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(pickle.dumps((method, arguments), pickle.HIGHEST_PROTOCOL))
            self._process.stdin.flush()
        while True:
            try:
                reply = self._replies.get(timeout=_POLL)
            except queue.Empty:
                check_time()
                if end is not None and time.monotonic() > end:
                    raise OpError(f"{content.what} takes too long, and was stopped") from None
                continue
            if reply is None:
                raise OpError(f"{content.what} ends the process that reads it ({self._ending()})")
            return reply

    def _ending(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _read(self) -> None:
        """Put the answers of the process into a queue, and None at its end."""
        assert self._process is not None and self._process.stdout is not None
        read: Callable[[int], bytes] = self._process.stdout.read
        with contextlib.suppress(OSError, ValueError, OverflowError, MemoryError):
            while len(header := read(HEADER.size)) == HEADER.size:
                kind, count, size = HEADER.unpack(header)
                integers, data = read(8 * count), read(size)
                if len(integers) != 8 * count or len(data) != size:
                    break
                self._replies.put((kind, integers, data))
        self._replies.put(None)

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    # Bytes that it has not read no longer matter.
                    with contextlib.suppress(OSError):
                        pipe.close()


@cache
def _program() -> str:
    return (resources.files("irexec.tokenizers") / "isolated_program.py").read_text("utf-8")


_idle: list[_Worker] = []
"""Processes that wait. There are as many as were needed at once."""


@atexit.register
def stop_idle() -> None:
    """End the processes that wait."""
    while _idle:
        _idle.pop().stop()


_of_parent: list[_Worker] = []


def _leave_to_parent() -> None:
    """In a forked process: the pipes are those of the parent, which continues to use them."""
    _of_parent.extend(_idle)
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
