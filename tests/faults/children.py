"""An operation in a process of its own, which is ended from outside or from inside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irexec.io import files
from tests.faults.operations import Operation

# What changes names on the disk, or brings bytes to it: each of them is a moment to end a process at.
_CALLS = ("mkdir", "link", "replace", "rename", "fsync", "unlink", "rmdir")
EXCHANGE = "_exchange"
ENDING = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True)
class End:
    """How a process ended.

    Attributes:
        status: the exit code, or minus the number of the signal that ended it.
        errors: what it wrote to stderr.
    """

    status: int
    errors: str


class Child:
    """A fork of this process that runs an operation; faster than a new interpreter, which imports everything again.

    Args:
        operation: what to run.
        folder: with its inputs.
        value: what to write.
        before: called in the child at first.
    """

    def __init__(
        self, operation: Operation, folder: Path, value: int, before: Callable[[], Any] = lambda: None
    ) -> None:
        self._errors, errors = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _run(operation, folder, value, before, errors)
        os.close(errors)

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        os.kill(self.pid, number)

    def wait(self) -> End:
        """Wait for the end."""
        with open(self._errors, encoding="utf-8") as file:
            errors = file.read()
        return End(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), errors)


def _run(operation: Operation, folder: Path, value: int, before: Callable[[], Any], errors: int) -> None:
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        before()
        operation.write(folder, value)
        code = 0
    except SystemExit as left:
        code = int(left.code or 0)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException as error:
        # Of a function of the Python API.
        code = 3
        sys.stderr.write(
            f"{type(error).__name__}: {error}\n" if isinstance(error, Exception) else traceback.format_exc()
        )
    finally:
        sys.stderr.flush()
        os._exit(code)


def _called() -> Iterator[tuple[Any, str]]:
    """Modules and the names in them of the functions that change names on the disk."""
    yield from ((os, name) for name in _CALLS)
    yield files, EXCHANGE


def signal_at(position: int, number: int, *, after: bool) -> Callable[[], None]:
    """What makes a child send a signal to itself before, or right after, the call at a position (from 0)."""

    def install() -> None:
        count = [-1]

        def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                count[0] += 1
                here = count[0] == position
                if here and not after:
                    os.kill(os.getpid(), number)
                result = real(*arguments, **options)
                if here and after:
                    os.kill(os.getpid(), number)
                return result

            return call

        for module, name in _called():
            setattr(module, name, wrapped(getattr(module, name)))

    return install


def calls_of(operation: Operation, folder: Path, value: int) -> list[str]:
    """What an operation calls that changes names on the disk, in order."""
    log = folder.parent / "calls"

    def install() -> None:
        file = log.open("w")

        def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                file.write(f"{name}\n")
                file.flush()
                return real(*arguments, **options)

            return call

        for module, name in _called():
            setattr(module, name, wrapped(name, getattr(module, name)))

    end = Child(operation, folder, value, install).wait()
    if end.status != 0:
        raise RuntimeError(f"{operation.name} ends with {end.status}: {end.errors}")
    return log.read_text().split()


def leftovers(operation: Operation, folder: Path) -> dict[str, int]:
    """Temporary folders by target; the name of whatever else does not belong into the folder counts as -1."""
    found: dict[str, int] = {}
    for path in folder.iterdir():
        target = next((name for name in operation.targets if path.name.startswith(f".{name}.irexec-")), None)
        if target is not None:
            found[target] = found.get(target, 0) + 1
        elif path.name.startswith("."):
            found[path.name] = -1
    return found


def timed_run(operation: Operation, folder: Path, value: int) -> tuple[float, float]:
    """The seconds of a whole run, and those after its first temporary folder appeared."""
    begin = time.monotonic()
    child = Child(operation, folder, value)
    wait_for_temporary(child, operation, folder)
    writing = time.monotonic()
    end = child.wait()
    if end.status != 0:
        raise RuntimeError(f"{operation.name} ends with {end.status}: {end.errors}")
    return time.monotonic() - begin, time.monotonic() - writing


def wait_for_temporary(child: Child, operation: Operation, folder: Path) -> None:
    """Wait until the child has made a temporary folder, or has ended."""
    while (
        not leftovers(operation, folder)
        and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):
        time.sleep(0.0005)


def new_interpreter(operation: Operation, folder: Path, value: int) -> subprocess.Popen[str]:
    """The operation in a new process, which imports everything first."""
    program = (
        "import sys; from pathlib import Path; from tests.faults.operations import OPERATIONS; "
        "print(flush=True); "
        f"next(o for o in OPERATIONS if o.name == {operation.name!r}).write(Path({str(folder)!r}), {value})"
    )
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fresh_folder(operation: Operation, parent: Path, count: int) -> Path:
    """A new folder with the inputs of an operation, and what it writes for value 1."""
    folder = parent / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    operation.prepare(folder, count)
    end = Child(operation, folder, 1).wait()
    if end.status != 0:
        raise RuntimeError(f"{operation.name} ends with {end.status}: {end.errors}")
    return folder
