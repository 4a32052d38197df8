"""Upgrading an IR of version 2 to 7, and comparing the file that is written with the old one."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.display import Content
from irexec.errors import EngineError
from irexec.io.sources import WeightsSource
from irexec.io.xml import Progress
from irexec.ir.findings import Finding
from irexec.messages import counted
from irexec.reading import read_model, read_old
from irexec.records import Record
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of, agreements_table
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.inference_engine import InferenceEngine, environments
from irexec.tools.engines.runtimes import Worker
from irexec.tools.run.input_sources import random_array

_RUNS = 2
"""Runs of a model with states, so that a state that was written is read."""


@dataclass(frozen=True)
class Upgraded:
    """An old IR as a model of version 11.

    Attributes:
        model: the model.
        writer: the version of the file, and who wrote it.
        findings: warnings about layers that may have been meant otherwise than they are read, and infos.
    """

    model: Model
    writer: str
    findings: list[Finding]


def upgrade(path: str, weights: WeightsSource = None, *, progress: Progress | None = None) -> Upgraded:
    """Read an IR of version 2 to 7.

    Args:
        path: the .xml.
        weights: the .bin; by default the file beside the .xml.
        progress: called with the fraction that each step has read.

    Raises:
        InputError: the file is not an IR of version 2 to 7.
        ModelError: it cannot be read.
        ConversionError: layers cannot be translated; the message has each with its line.
    """
    model, findings, writer = read_old(path, weights, progress=progress)
    return Upgraded(model, writer, findings)


@dataclass(frozen=True)
class UpgradeCheck(Record):
    """The old and the new file run on the same random inputs.

    Attributes:
        old, new: the runtimes of the old and the new file.
        shapes: of the inputs, by name.
        agreements: one for each output.
    """

    old: str
    new: str
    shapes: dict[str, tuple[int, ...]]
    agreements: list[Agreement]

    @property
    def agrees(self) -> bool:
        """True if every output agrees."""
        return all(one.agrees for one in self.agreements)

    def sections(self) -> list[Content]:
        """The outputs, and what was compared."""
        return [
            agreements_table(self.agreements, "output"),
            f"compared: the old file in {self.old} with the new file in {self.new}",
            None if self.old != "irexec" else _NO_ENGINE,
        ]


_NO_ENGINE = (
    "The old file ran in irexec, so that the translation of its layers was not compared with the engine of its time: "
    "IREXEC_INFERENCE_ENGINE names a folder with Inference Engine."
)


def verify_upgrade(
    old: Path, weights: Path, new: Path, upgraded: Upgraded, *, seed: int, tolerance: Tolerance
) -> UpgradeCheck:
    """Run the old file and the new one on the same random inputs.

    The old file runs in Inference Engine of 2020, where the environment has it, and in irexec otherwise; the new one in
    OpenVINO, where it is installed, and in irexec otherwise.

    Args:
        old, weights: the files of the old model.
        new: the .xml that was written.
        upgraded: the model of the old file.
        seed: of the inputs.
        tolerance: of the comparison.

    Raises:
        EngineError: a runtime refuses its file.
        InputError: the sizes of an input are not known.
    """
    model = upgraded.model
    runs = [
        {port.name: random_array(port, seed + 100 * run + i) for i, port in enumerate(model.inputs)}
        for run in range(_RUNS if _has_states(model) else 1)
    ]
    before, expected = _run_old(old, weights, model, runs)
    after, found = _run_new(new, model, runs)
    agreements = [
        agreement_of(port.name if len(runs) == 1 else f"{port.name}, run {run + 1}", array, reference, tolerance)
        for run, (given, right) in enumerate(zip(found, expected, strict=True))
        for port, array, reference in zip(model.outputs, given, right, strict=True)
    ]
    return UpgradeCheck(before, after, {name: array.shape for name, array in runs[0].items()}, agreements)


Runs = Sequence[Mapping[str, np.ndarray]]
Results = list[list[np.ndarray]]


def _run_old(old: Path, weights: Path, model: Model, runs: Runs) -> tuple[str, Results]:
    """The runtime of the old file, and the outputs of each run."""
    found = environments()
    if not found:
        return "irexec", _by_irexec(model, runs)
    # 2020.4 starts from memory that nobody has written.
    release = "2020.1" if _has_states(model) and "2020.1" in found else next(iter(found))
    with InferenceEngine(release, found[release]) as engine:
        outputs = engine.run(old, weights, runs)
    missing = [port.name for port in model.outputs if port.name not in outputs[0]]
    if missing:
        raise EngineError(f"{engine.name} has no output {missing[0]!r} of {old}", engine=engine.name)
    return engine.name, [[given[port.name] for port in model.outputs] for given in outputs]


def _run_new(new: Path, model: Model, runs: Runs) -> tuple[str, Results]:
    """The runtime of the new file, and the outputs of each run."""
    if importlib.util.find_spec("openvino") is None:
        return "irexec", _by_irexec(read_model(new), runs)
    with closing(Worker("openvino")) as worker:
        job = EngineJob("openvino", str(new), "", options={"EXECUTION_MODE_HINT": "ACCURACY"})
        outputs = worker.run(job, runs, str(new))
        if any(len(given) != len(model.outputs) for given in outputs):
            raise EngineError(f"OpenVINO gives {counted(len(outputs[0]), 'output')} of {new}", engine="openvino")
        return f"OpenVINO {worker.version.split('-')[0]}", outputs


def _has_states(model: Model) -> bool:
    return any(node.type == "ReadValue" for node in model.walk())


def _by_irexec(model: Model, runs: Runs) -> Results:
    compiled = CompiledModel(model)
    return [list(compiled(arrays).values()) for arrays in runs]
