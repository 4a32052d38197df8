"""Models held to the inputs and outputs that lie beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.support.paths import DIGITS


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Ten models y = x + i, with tests beside them by hand."""
    for i in range(10):
        b = irexec.Builder()
        b.result(b.emit("Add", b.parameter("f32", (2,), "x"), np.float32(i)), "y")
        folder = tmp_path / f"group{i % 2}"
        folder.mkdir(exist_ok=True)
        b.model().save(folder / f"add{i}.xml")
        np.savez(folder / f"add{i}.inputs.npz", x=np.array([1, 2], np.float32))
        np.savez(folder / f"add{i}.outputs.npz", y=np.array([1 + i, 2 + i], np.float32))
    return tmp_path


def test_ten_models_pass(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", str(models), "--junit", str(models / "report.xml")]) == 0
    assert "10 tests: 10 passed" in capsys.readouterr().out
    suite = ElementTree.parse(models / "report.xml").getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["10", "0", "0", "0"]
    assert run(["test", str(models)]) == 0
    assert "10 tests: 10 passed\n" in capsys.readouterr().out, "the report is left out"


def test_each_kind_of_failure_has_its_verdict(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = models / "group0"
    np.savez(folder / "add0.outputs.npz", y=np.array([1, 3], np.float32))
    (folder / "add2.outputs.npz").unlink()
    (folder / "add4.inputs.npz").unlink()
    np.savez(folder / "add6.outputs.npz", z=np.array([7, 8], np.float32))
    np.savez(folder / "add8.twice.inputs.npz", x=np.array([0, 0], np.float32))
    np.savez(folder / "add8.twice.outputs.npz", y=np.array([8, 8], np.float32))
    assert run(["test", str(folder), "--json"]) == 3
    tests = json.loads(capsys.readouterr().out)["tests"]
    found = {(Path(test["model"]).stem, test["name"]): (test["verdict"], test["message"]) for test in tests}
    assert found["add0", ""][0] == "failed"
    assert "1 of 2 values differ, the first at [1]: 2, the reference has 3" in found["add0", ""][1]
    assert found["add2", ""][0] == "error"
    assert "add2.outputs.npz" in found["add2", ""][1]
    assert found["add4", ""][0] == "no test"
    assert found["add6", ""][0] == "error"
    assert "'z'" in found["add6", ""][1]
    assert found["add8", "twice"] == ("passed", "")
    assert found["add8", ""] == ("passed", "")


def test_onnx_data_sets_are_tests(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    shutil.copy(DIGITS / "classifier.onnx", tmp_path / "model.onnx")
    image = np.ones((1, 1, 8, 8), np.float32)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {session.get_inputs()[0].name: image})
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    for name, array in (("input_0", image), ("output_0", result)):
        (folder / f"{name}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
    assert run(["test", str(tmp_path)]) == 0
    (folder / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(result + 1).SerializeToString())
    assert run(["test", str(tmp_path)]) == 1


def test_nothing_to_test_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(DIGITS / "classifier.xml", tmp_path)
    assert run(["test", str(tmp_path)]) == 2
    assert "no classifier.inputs.npz" in capsys.readouterr().err
