"""Models held to the inputs and outputs that lie beside them.

Beside ``model.xml`` or ``model.onnx`` these are ``model.inputs.npz`` and ``model.outputs.npz``, or several tests
``model.NAME.inputs.npz`` and ``model.NAME.outputs.npz``, with arrays by the names of inputs and outputs. Folders
``test_data_set_N`` with ``input_0.pb`` and ``output_0.pb``, as the ONNX model zoo has them, are tests of the models of
their parent folder, by position.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from irexec.display import Column, Content, Table
from irexec.errors import InputError, IrexecError
from irexec.io.writer import is_ir_file
from irexec.messages import counted, visible
from irexec.reading import read_model, read_onnx_tensor
from irexec.records import Record, Records, Report
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.arrays.files import open_arrays
from irexec.tools.validation import find_files

Verdict = Literal["passed", "failed", "error", "no test"]
_INPUTS, _OUTPUTS = ".inputs.npz", ".outputs.npz"
Arrays = dict[Any, np.ndarray]


@dataclass(frozen=True)
class ModelTest(Record):
    """A model with one set of inputs and outputs.

    Attributes:
        model: its path.
        name: of the test: "" for ``model.inputs.npz``, NAME, or the folder ``test_data_set_N``.
        verdict: "passed"; "failed": an output differs or is missing; "error": the model or a file cannot be read or
            run; "no test": nothing lies beside the model.
        message: the output that differs, or the error.
        seconds: the time of the run, for the first test of a model with that of reading and compiling it.
    """

    model: str
    name: str
    verdict: Verdict
    message: str = ""
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class ModelTests(Report):
    """The tests of models.

    Attributes:
        tests: in the order of the models.
    """

    tests: Records[ModelTest]

    def count(self, verdict: Verdict) -> int:
        """The number of tests with a verdict."""
        return sum(test.verdict == verdict for test in self.tests)

    def sections(self) -> Iterator[Content]:
        """One line for each test, and their numbers."""
        yield Table(
            [
                Column("model", "model", "code"),
                Column("test", "name"),
                Column("verdict", "verdict"),
                Column("ms", lambda test: f"{test.seconds * 1e3:.0f}", "number"),
                Column("", "message", "sentence"),
            ],
            self.tests,
            what="tests",
        )
        others = [f"{self.count(verdict)} {shown}" for verdict, shown in _COUNTED if self.count(verdict)]
        yield ", ".join([f"{counted(len(self.tests), 'test')}: {self.count('passed')} passed", *others])

    def junit(self) -> str:
        """A JUnit document: a test case for each test, with a failure, an error or the reason why it is skipped."""
        suite = Element("testsuite", name="irexec test", tests=str(len(self.tests)))
        suite.set("time", f"{sum(test.seconds for test in self.tests):.3f}")
        for verdict, kind in _ELEMENTS.items():
            suite.set({"failure": "failures", "error": "errors", "skipped": "skipped"}[kind], str(self.count(verdict)))
        for test in self.tests:
            case = SubElement(suite, "testcase", classname=visible(test.model), name=visible(test.name or "test"))
            case.set("time", f"{test.seconds:.3f}")
            if test.verdict in _ELEMENTS:
                SubElement(case, _ELEMENTS[test.verdict], message=visible(test.message))
        indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'


_COUNTED: tuple[tuple[Verdict, str], ...] = (("failed", "failed"), ("error", "not run"), ("no test", "without a test"))
_ELEMENTS: dict[Verdict, str] = {"failed": "failure", "error": "error", "no test": "skipped"}


def run_model_tests(
    paths: Sequence[str],
    *,
    tolerance: Tolerance | None = None,
    threads: int | None = None,
    timeout: float | None = None,
) -> Iterator[ModelTest]:
    """Run the tests that lie beside models, one after the other.

    Args:
        paths: models, or folders, which stand for every .onnx and every IR in them and in their subfolders.
        tolerance: of each output; by default every value near that of the file.
        threads, timeout: of each run, as for CompiledModel and its sessions.

    Raises:
        InputError: a folder has no model.
    """
    for path in find_files(paths):
        tests = list(_tests_beside(Path(path)))
        # A report of tests in a folder is an .xml, too.
        if not tests and (path in paths or not path.lower().endswith(".xml") or is_ir_file(Path(path))):
            yield ModelTest(path, "", "no test", f"no {Path(path).stem}{_INPUTS} and {_OUTPUTS[1:]} lie beside it")
        compiled: CompiledModel | None = None
        for name, inputs, outputs in tests:
            started = time.perf_counter()
            verdict: Verdict
            try:
                if compiled is None:
                    compiled = CompiledModel(read_model(path), threads=threads)
                message = _difference(compiled, inputs, outputs, tolerance or Tolerance(), timeout)
                verdict = "failed" if message else "passed"
            except IrexecError as error:
                verdict, message = "error", str(error)
            yield ModelTest(path, name, verdict, message, time.perf_counter() - started)


def _tests_beside(model: Path) -> Iterator[tuple[str, Path, Path]]:
    """The name, inputs and outputs of each test of a model."""
    for inputs in sorted(model.parent.glob(f"{glob.escape(model.stem)}*{_INPUTS}")):
        name = inputs.name[len(model.stem) : -len(_INPUTS)]
        if not name or name.startswith("."):
            yield name[1:], inputs, inputs.with_name(f"{model.stem}{name}{_OUTPUTS}")
    for folder in sorted(model.parent.glob("test_data_set_*")):
        if folder.is_dir():
            yield folder.name, folder, folder


def _difference(
    compiled: CompiledModel, inputs: Path, outputs: Path, tolerance: Tolerance, timeout: float | None
) -> str:
    """The tensors of a file from which those of a run differ, as a sentence; "" if none does."""
    expected = _arrays(outputs, "output")
    found = compiled.session().run(_arrays(inputs, "input"), list(expected), timeout=timeout)
    checked = [
        agreement_of(str(key), array, reference, tolerance)
        for (key, reference), array in zip(expected.items(), found.values(), strict=True)
    ]
    return "; ".join(f"{one.name}: {one.message}" for one in checked if not one.agrees)


def _arrays(path: Path, kind: str) -> Arrays:
    """Arrays by name of a .npz, or by position of a folder of ``input_0.pb`` and ``output_0.pb``."""
    if not path.is_dir():
        with open_arrays(path) as file:
            return {name: file.read(name) for name in file.names}
    numbered = [(file.stem.rpartition("_")[2], file) for file in path.glob(f"{kind}_*.pb")]
    files = [file for number, file in sorted(numbered, key=lambda pair: pair[0].zfill(9)) if number.isdigit()]
    if not files and kind == "output":
        raise InputError(f"{path}: the folder has no output_0.pb")
    return {i: read_onnx_tensor(file) for i, file in enumerate(files)}
