"""Old releases of OpenVINO, each in an environment of its own, as processes that run IRs."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import numpy as np

FOLDER = "IREXEC_RELEASES"
"""The environment variable that names the folder with an environment of Python for each release, such as 2021.4."""

_STRUCT = struct.Struct("<q")


class Reply(NamedTuple):
    """The reply of a release: "done" with arrays, or the stage that failed, or "crash", with a message."""

    stage: str
    message: str
    arrays: list[np.ndarray]


def folder() -> Path:
    """The folder of the environments."""
    return Path(os.environ.get(FOLDER, Path.home() / ".cache" / "irexec-releases"))


def installed() -> list[str]:
    """The releases that are there."""
    return sorted(path.parent.parent.name for path in folder().glob("*/bin/python"))


class OldRelease:
    """A process of a release; after a crash the next call starts another one."""

    def __init__(self, name: str, seconds: float = 60) -> None:
        self.name, self._seconds = name, seconds
        self._python = folder() / name / "bin" / "python"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> OldRelease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def run(self, xml: bytes, weights: bytes, inputs: list[np.ndarray]) -> Reply:
        """The reply to an IR and its inputs."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        arrays = [(array.dtype.str, array.shape, array.tobytes()) for array in inputs]
        data = pickle.dumps((xml, weights, arrays), protocol=2)
        timer = Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(_STRUCT.pack(len(data)) + data)
            process.stdin.flush()
            head = process.stdout.read(_STRUCT.size)
            if len(head) == _STRUCT.size:
                stage, message, found = pickle.loads(process.stdout.read(_STRUCT.unpack(head)[0]))
                return Reply(stage, message, [np.frombuffer(raw, kind).reshape(shape) for kind, shape, raw in found])
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        self.close()
        return Reply("crash", "the process ended", [])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            program = [str(self._python), str(Path(__file__).with_name("worker.py"))]
            clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            self._process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, env=clean
            )
        return self._process
