"""Inference Engine 2020.1 and 2020.4, the last releases that ran IR of versions 2 to 7.

The package opencv-python-inference-engine bundles them, for Python 3.6 and 3.7: 4.2.0.4 and 4.4.0.0. The environment
variable IREXEC_INFERENCE_ENGINE names a folder with a virtual environment for each release: 2020.1 and 2020.4.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irexec.errors import UnsupportedError
from irexec.io.files import Closing
from irexec.io.processes import LineProcess

RELEASES = {"2020.4": "4.4.0.0", "2020.1": "4.2.0.4"}
"""The releases, each with the version of opencv-python-inference-engine that bundles it; the newest is the first."""

VARIABLE = "IREXEC_INFERENCE_ENGINE"

Arrays = Mapping[str, np.ndarray]


def environments(root: str | None = None) -> dict[str, Path]:
    """The virtual environments of the releases that are installed below a folder, VARIABLE's unless given."""
    root = root or os.environ.get(VARIABLE)
    if not root:
        return {}
    found = {release: Path(root) / release for release in RELEASES}
    return {release: path for release, path in found.items() if _libraries(path) is not None}


def _libraries(environment: Path) -> Path | None:
    """The folder of the libraries in a virtual environment."""
    found = list(environment.glob("lib/python3.*/site-packages/cv2/libinference_engine_c_api.so"))
    return found[0].parent if found else None


class InferenceEngine(Closing):
    """A release in a process of its own, which is started again after a network has ended it.

    Args:
        release: of RELEASES.
        environment: its virtual environment.

    Raises:
        UnsupportedError: the environment does not hold Inference Engine.
    """

    def __init__(self, release: str, environment: Path) -> None:
        self.release = release
        self.name = f"Inference Engine {release}"
        libraries = _libraries(environment)
        if libraries is None:
            raise UnsupportedError(f"{environment} is not a virtual environment with opencv-python-inference-engine")
        worker = Path(__file__).with_name("worker.py")
        self._command = [str(environment / "bin" / "python"), str(worker), str(libraries)]
        # Nothing of the environment of this Python may reach the old one.
        self._environment = {"LD_LIBRARY_PATH": str(libraries), "OMP_NUM_THREADS": "1"}
        self._process: LineProcess | None = None

    def run(
        self, model: Path, weights: Path, calls: Sequence[Arrays], timeout: float | None = None
    ) -> list[dict[str, np.ndarray]]:
        """Run a network.

        Args:
            model, weights: its .xml and .bin.
            calls: for each run the inputs by name, in the types that the network gets; states stay from run to run.
            timeout: seconds for all of it.

        Returns: for each run the outputs by name.

        Raises:
            EngineError: it refuses the network, or its process ended.
            RunTimeoutError: it took longer.
        """
        with tempfile.TemporaryDirectory(prefix="irexec-inference-engine-") as folder:
            inputs, outputs = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
            fed: dict[str, Any] = {f"{i}/{name}": x for i, call in enumerate(calls) for name, x in call.items()}
            np.savez(inputs, **fed)
            job = {"model": model, "weights": weights, "inputs": inputs, "outputs": outputs}
            self._ask(json.dumps({name: str(path.absolute()) for name, path in job.items()}), str(model), timeout)
            with np.load(outputs) as file:
                named = [(*name.split("/", 1), file[name]) for name in file.files]
        return [{name: array for call, name, array in named if call == str(i)} for i in range(len(calls))]

    def _ask(self, job: str, what: str, timeout: float | None) -> None:
        if self._process is None:
            self._process = LineProcess("", name=self.name, command=self._command, environment=self._environment)
        try:
            self._process.ask(job)
            self._process.answer(what, timeout)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()
            self._process = None
