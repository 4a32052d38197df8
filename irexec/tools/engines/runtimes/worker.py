"""A process that loads models into an engine and runs them, one request after the other; see
irexec.tools.engines.runtimes.runtime.

A request is a line of JSON: an EngineJob, whose ``inputs`` are the first of ``runs``, and the runs, each with a .npz of
inputs and a .npz to write the outputs to, under their positions. State goes from run to run. The answer is a line of
JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from irexec.tools.arrays.files import open_arrays, storable, write_npz
from irexec.tools.engines.engine import LOADERS, EngineJob, answers, failure


def main() -> None:
    """Serve requests until standard input ends."""
    answer = answers()
    for line in sys.stdin:
        try:
            answer(served(json.loads(line)))
        except Exception as error:
            # Engines raise errors of their own, without a common base.
            answer(failure(error))


def served(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request, after its runs."""
    job = EngineJob(**request["job"])
    feeds = [_read(run["inputs"]) for run in request["runs"]]
    run = LOADERS[job.engine](job, feeds[0])
    for arrays, files in zip(feeds, request["runs"], strict=True):
        given = run(arrays)
        with open(files["outputs"], "wb") as file:
            write_npz(file, {str(i): np.asarray(array) for i, array in enumerate(given)})
    version = getattr(sys.modules[job.engine], "__version__", "")
    return {"version": version, "precision": getattr(run, "precision", "")}


def _read(path: str) -> dict[str, np.ndarray]:
    with open_arrays(path) as file:
        return {name: storable(file.read(name)) for name in file.names}
