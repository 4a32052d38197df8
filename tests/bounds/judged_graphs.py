"""Random graphs judged in another runtime, as `irexec judge` does; an accusation is to be checked by hand.

ONNX Runtime gets the graph as irexec exports it. An accusation fails. ``--case NUMBER --write FOLDER`` writes a graph.
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from irexec import save_model
from irexec.api import to_onnx
from irexec.errors import IrexecError, UnsupportedError
from irexec.tools.engines.runtimes import Worker, open_runtime
from irexec.tools.judge import Judgement, JudgeOptions, judge, opponent
from tests.graphs.making import make
from tests.sweep.kind import Case, Kind, Outcome

_ACCUSATIONS = ("bug", "fusion")
_TIMEOUT = 60.0


class Sweep(Kind):
    """The random graphs of tests.graphs."""

    cases = 300

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--runtime", default="openvino", choices=("openvino", "onnxruntime"))
        add("--precision", default="f32", choices=("f32", "bf16"), help="of OpenVINO")
        add("--write", type=Path, metavar="FOLDER", help="write the graphs and the inputs of their first run")

    def names(self) -> list[str]:
        return ["graphs"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The verdict about a graph."""
        # One process of the runtime for all graphs: to start it takes longer than a run.
        worker = Worker(self.options.runtime, _TIMEOUT)
        with mock.patch.object(opponent, "open_runtime", functools.partial(open_runtime, worker=worker)):
            yield self._outcomes

    def _outcomes(self, number: int) -> Iterator[Outcome]:
        if self.options.write is not None:
            _write(number, self.options.write)
            yield Outcome("written")
            return
        try:
            found = _judged(number, self.options.runtime, self.options.precision)
        except IrexecError as error:
            yield Outcome(f"refused: {type(error).__name__}")
            return
        yield Outcome(found.verdict, found.sentence, fails=found.verdict in _ACCUSATIONS)


def _judged(seed: int, runtime: str, precision: str) -> Judgement:
    made = make(seed)
    options = JudgeOptions(runtime=runtime, timeout=_TIMEOUT)
    if runtime == "openvino":
        names = [port.name for port in made.model.inputs]
        properties = {"INFERENCE_PRECISION_HINT": precision}
        return judge(
            made.model, dict(zip(names, made.runs[0], strict=True)), dataclasses.replace(options, properties=properties)
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        proto = to_onnx(made.model)
        path.write_bytes(proto.SerializeToString())
        if len(proto.graph.input) != len(made.runs[0]):
            raise UnsupportedError("a state is an input of the exported graph")
        return judge(path, dict(zip([one.name for one in proto.graph.input], made.runs[0], strict=True)), options)


def _write(seed: int, folder: Path) -> None:
    """Write the graph of a seed and the inputs of its first run."""
    made = make(seed)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(made.model, folder / f"graph{seed}.xml")
    names = [port.name for port in made.model.inputs]
    np.savez(folder / f"inputs{seed}.npz", **dict(zip(names, made.runs[0], strict=True)))
