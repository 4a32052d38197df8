"""irexec serve as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

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
