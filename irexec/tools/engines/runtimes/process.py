"""Another runtime in a process of its own, which an error of it may bring down without harm."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import EngineError, RunTimeoutError
from irexec.io.line_process import LineProcess
from irexec.tools.arrays.files import open_arrays, write_npz
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.releases.environments import Release, clean_environment, command_of, environments_folder
from irexec.tools.engines.runtimes.names import release_of, runtime_kind
from irexec.tools.engines.runtimes.runtime import Arrays, Runtime


class Worker:
    """Runs models in an engine, whose process is started at the first request, and again after it has ended.

    Args:
        engine: a key of irexec.tools.engines.engine.LOADERS.
        timeout: seconds that one request may take; None for any.
        release: a release of the engine in an environment of its own; None for the one that is installed here.
        environments: the folder of its environment; None for the default one.

    Raises:
        UnsupportedError: the folder has no such release.
    """

    def __init__(
        self,
        engine: str,
        timeout: float | None = None,
        release: Release | None = None,
        environments: str | None = None,
    ) -> None:
        self.engine, self.timeout = engine, timeout
        self._name = str(release or engine)
        self._command = command_of(release, environments_folder(environments)) if release else None
        self.version, self.precision = "", ""
        self._process: LineProcess | None = None

    def run(self, job: EngineJob, runs: Sequence[Arrays], what: str) -> list[list[np.ndarray]]:
        """Load a model and run it, with state from run to run.

        Args:
            job: the model to load; its ``inputs`` are not used.
            runs: the inputs of each run.
            what: the model, for messages.

        Returns:
            The outputs of each run.

        Raises:
            EngineError: the engine refuses the model or the inputs, or its process ended.
            RunTimeoutError: it took longer than the timeout.
        """
        with tempfile.TemporaryDirectory(prefix="irexec-run-") as name:
            folder = Path(name)
            files = [{key: str(folder / f"{key}{i}.npz") for key in ("inputs", "outputs")} for i in range(len(runs))]
            for arrays, pair in zip(runs, files, strict=True):
                with open(pair["inputs"], "xb") as file:
                    write_npz(file, arrays)
            self._ask({"job": asdict(job) | {"engine": self.engine, "inputs": files[0]["inputs"]}, "runs": files}, what)
            return [_outputs(pair["outputs"]) for pair in files]

    def _ask(self, request: object, what: str) -> None:
        if self._process is None:
            environment = clean_environment() if self._command else None
            self._process = LineProcess(
                "irexec.tools.engines.runtimes.worker", name=self._name, command=self._command, environment=environment
            )
        try:
            self._process.ask(json.dumps(request))
            answer = self._process.answer(what, self.timeout)
            self.version, self.precision = answer["version"], answer["precision"]
        except EngineError as error:
            if error.exit_code is not None:
                self.close()
            raise
        except (RunTimeoutError, KeyboardInterrupt):
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class ProcessRuntime(Runtime):
    """A runtime whose engine is in a process of its own, or in one that several models share.

    Args:
        name: of the runtime.
        model: the graph whose values can be asked for.
        threads: of the engine.
        worker: the process; one of its own unless given.
        timeout: seconds that a call may take, where the process is its own.
        environments: the folder of the environments of releases.

    Raises:
        UnsupportedError: the release that the name says is not there.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        threads: int | None = None,
        timeout: float | None = None,
        worker: Worker | None = None,
        environments: str | None = None,
    ) -> None:
        super().__init__(name, model)
        self._threads = threads
        self._is_shared = worker is not None
        self.worker: Worker = worker or Worker(runtime_kind(name), timeout, release_of(name), environments)

    @property
    def version(self) -> str:
        """That of the engine's package."""
        return self.worker.version

    @property
    def precision(self) -> str:
        return self.worker.precision

    def _ask(self, path: Path, runs: Sequence[Arrays], what: str, **settings: Any) -> list[list[np.ndarray]]:
        """The outputs of the model in a file, for each run; ``what`` is its name in messages.

        ``settings`` are further ones of the EngineJob.
        """
        engine = self.worker.engine
        return self.worker.run(EngineJob(engine, str(path), "", threads=self._threads, **settings), runs, what)

    def close(self) -> None:
        """End the process, unless it is shared."""
        if not self._is_shared:
            self.worker.close()


def _outputs(path: str) -> list[np.ndarray]:
    with open_arrays(path, memory=MemoryLimit()) as file:
        return [file.read(str(i)) for i in range(len(file.names))]
