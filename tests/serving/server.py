"""irexec serve as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.support.paths import ROOT


class Server:
    """A running server on free ports.

    Attributes:
        http, grpc: HOST:PORT of each protocol.
    """

    def __init__(self, models: Mapping[str, str], options: Sequence[str] = (), before: str = "") -> None:
        """``before`` is code of Python that runs first."""
        named = [f"{name}={path}" for name, path in models.items()]
        program = f"{before}\nfrom irexec.cli.main import main\nmain()"
        command = [sys.executable, "-c", program, "serve", *named, "--port", "0", "--grpc-port", "0", *options]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"http://(\S+) and grpc://(\S+): ", line)
        if found is None:
            raise RuntimeError(f"the server did not start: {line}{self.process.communicate()}")
        self.http, self.grpc = found.groups()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """SIGTERM; the exit code, and what was written to stderr."""
        self.process.send_signal(signal.SIGTERM)
        err = self.process.communicate(timeout=60)[1]
        return self.process.returncode, err


# Requests of tritonclient over HTTP and gRPC, alone and by many clients at once.


def inputs(name: str, seed: int) -> dict[str, np.ndarray]:
    """Random inputs of one of the models."""
    random = np.random.default_rng(seed)
    if name == "classifier":
        return {"image": random.random((1, 1, 8, 8), np.float32)}
    if name == "transformer":
        return {"tokens": random.integers(0, 1000, (1, 16))}
    if name == "slow":
        return {"x": np.zeros((600, 1024), np.float32)}
    return {"x": random.standard_normal((2, 4)).astype(np.float32)}


def asked(library: Any, client: Any, name: str, given: dict[str, np.ndarray]) -> Any:
    """The answer to one request; ``library`` is tritonclient.http or tritonclient.grpc."""
    types = {"f": "FP32", "i": "INT64"}
    tensors = []
    for key, array in given.items():
        tensor = library.InferInput(key, list(array.shape), types[array.dtype.kind])
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return client.infer(name, tensors)


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with 0 to ``count`` - 1, each in a thread, and wait for all."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
