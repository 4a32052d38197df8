"""Processes and what they inherit: a worker that answers lines, workers of a pool, and standard error."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from irexec import errors
from irexec.errors import EngineError, IrexecError, RunTimeoutError

# The process finds the same modules as this one, wherever it was started.
_PROGRAM = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
)


class LineProcess:
    """A process that runs ``main`` of a module.

    Args:
        module: the module whose ``main`` is called.
        arguments: of ``main``.
        name: its name in messages.
        prepare: called in the new process before anything else, where the system can do that.
        command: the program and arguments to run instead of a module of this Python.
        environment: the environment variables of the process; those of this one unless given.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        name: str,
        prepare: Callable[[], None] | None = None,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        # Others import this module, and start no process.
        import subprocess

        self._name = name
        command = command or [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), module, *arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                preexec_fn=prepare,
                env=environment,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise EngineError(f"the process of {name} cannot be started: {reason}", engine=name) from None
        self._timed_out = False

    def ask(self, text: str) -> None:
        """Send a line."""
        if self._process.stdin is None:
            raise AssertionError("the process was started with a pipe")
        # If it has ended, its last answer says why.
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{text}\n")
            self._process.stdin.flush()

    def answer(self, what: str, timeout: float | None = None) -> Any:
        """The next document that the process gives.

        Args:
            what: the model that it was given, for messages.
            timeout: seconds after which the process is ended; None for any.

        Raises:
            IrexecError: irexec refuses the model.
            EngineError: another engine does, or the process ended.
            RunTimeoutError: the answer took too long.
        """
        line = self._line(timeout)
        if self._timed_out:
            raise RunTimeoutError(f"{self._name} took longer than {timeout:g} s for {what}", seconds=timeout or 0)
        if not line:
            code = self._process.wait()
            raise EngineError(
                f"the process of {self._name} ended with exit code {code}", engine=self._name, exit_code=code
            )
        document = json.loads(line)
        if isinstance(document, dict) and "error" in document:
            raise self._error(document["error"], document["message"], what)
        return document

    def _line(self, timeout: float | None) -> str:
        if self._process.stdout is None:
            return ""
        timer = threading.Timer(min(timeout, threading.TIMEOUT_MAX), self._end_late) if timeout is not None else None
        if timer is not None:
            timer.start()
        try:
            return self._process.stdout.readline()
        finally:
            if timer is not None:
                timer.cancel()

    def _end_late(self) -> None:
        self._timed_out = True
        self._process.kill()

    def _error(self, kind: str, message: str, what: str) -> IrexecError:
        found = getattr(errors, kind, None)
        if isinstance(found, type) and issubclass(found, IrexecError) and found is not EngineError:
            return found(message)
        return EngineError(f"{self._name} cannot run {what}: {said_by_engine(message) or kind}", engine=self._name)

    def close(self) -> None:
        """Nothing more is asked."""
        if self._process.stdin is not None:
            # Output that was still to be written no longer matters.
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait(self) -> None:
        """Until the process has ended by itself."""
        self._process.wait()

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        self.close()
        if self._process.stdout is not None:
            self._process.stdout.close()


def said_by_engine(message: str) -> str:
    """The message of an engine in one line, without the locations in its own source that OpenVINO writes before it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Exception from ", "Check '"))]
    return " ".join(said or lines)


def begin_worker() -> None:
    """Prepare a new worker process. Ctrl-C reaches every process of a terminal, and the parent decides about the
    workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing  # when a process starts: what validates one file needs none of it

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_STDERR = 2


@contextmanager
def silenced_stderr() -> Iterator[None]:
    """Write nothing to stderr in the block: some libraries print objections, which cannot be turned off."""
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # It is closed.
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
