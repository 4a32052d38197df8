"""irexec upgrade: what it writes, what it refuses, and what it compares."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.tools.engines.inference_engine import VARIABLE, environments
from tests.converters.legacy_ir.files import OldFile
from tests.support.paths import DIGITS

Capture = pytest.CaptureFixture[str]
OLD = DIGITS / "classifier_v5.xml"
WRITER = "IR version 5, written by Model Optimizer in 2018 and 2019 (2018 R5, 2019 R1)"


def _upgrade(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What the command writes to stdout and stderr."""
    assert run(["upgrade", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def test_the_new_file_is_the_same_classifier(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "new.xml"
    assert _upgrade(capsys, OLD, "-o", target)[0] == f"{WRITER}\n{target}: 21 layers, IR version 11\n"
    made = irexec.read_model(target)
    assert [issue.code for issue in irexec.validate(made)] == []
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = irexec.infer(DIGITS / "classifier.xml", {"image": image})["probabilities"]
    np.testing.assert_allclose(irexec.infer(made, {"image": image})["probabilities"], expected, rtol=1e-5, atol=1e-6)


def test_openvino_loads_the_new_file(tmp_path: Path, capsys: Capture) -> None:
    openvino = pytest.importorskip("openvino")
    _upgrade(capsys, OLD, "-o", tmp_path / "new.xml")
    model = openvino.Core().read_model(tmp_path / "new.xml")
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == ["image", "probabilities"]


@pytest.mark.parametrize("present", [False, True])
def test_what_was_compared(present: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    if present and not environments():
        pytest.skip("Inference Engine is not installed")
    if not present:
        monkeypatch.delenv(VARIABLE, raising=False)
    out = _upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify")[0]
    old = "Inference Engine 2020.4" if present else "irexec"
    assert f"compared: the old file in {old} with the new file in " in out
    assert ("IREXEC_INFERENCE_ENGINE names a folder" in out) is not present


def test_results_that_differ(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("irexec.tools.upgrading._run_new", lambda new, model, runs: ("other", [[np.zeros((1, 10))]]))
    assert "differs" in _upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify", code=1)[0]


def test_the_old_files_are_not_overwritten(tmp_path: Path, capsys: Capture) -> None:
    for end in ("xml", "bin"):
        shutil.copy(OLD.with_suffix(f".{end}"), tmp_path / f"old.{end}")
    text = (tmp_path / "old.xml").read_bytes()
    err = _upgrade(capsys, tmp_path / "old.xml", "-o", tmp_path / "old.xml", code=2)[1]
    assert "would be overwritten" in err
    assert (tmp_path / "old.xml").read_bytes() == text
    (tmp_path / "other.bin").write_bytes((tmp_path / "old.bin").read_bytes())
    err = _upgrade(capsys, tmp_path / "old.xml", "--bin", tmp_path / "other.bin", "-o", tmp_path / "other.xml", code=2)[
        1
    ]
    assert "would be overwritten" in err


def test_weights_that_do_not_exist_are_named_with_their_model(tmp_path: Path, capsys: Capture) -> None:
    err = _upgrade(capsys, OLD, "--bin", "missing.bin", "-o", tmp_path / "new.xml", code=3)[1]
    assert f"{OLD}: the weights 'missing.bin' cannot be read: missing.bin does not exist" in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_today_is_refused(tmp_path: Path, capsys: Capture) -> None:
    err = _upgrade(capsys, DIGITS / "classifier.xml", "-o", tmp_path / "new.xml", code=2)[1]
    assert "is an IR of version 11, expected one of version 2 to 7" in err
    err = _upgrade(capsys, DIGITS / "classifier.onnx", "-o", tmp_path / "new.xml", code=2)[1]
    assert "is an ONNX model, expected an IR of version 2 to 7" in err


def test_nothing_is_written_if_a_layer_cannot_be_translated(tmp_path: Path, capsys: Capture) -> None:
    file = OldFile(5)
    x = file.input("x", (2, 3))
    file.layer("Swoosh", "one", [(x, 0, (2, 3))], [(2, 3)])
    (tmp_path / "old.xml").write_bytes(file.text)
    err = _upgrade(capsys, tmp_path / "old.xml", "-o", tmp_path / "new.xml", code=4)[1]
    assert "layer 1 'one' (Swoosh)" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.xml"]


def test_json(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(_upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify", "--json")[0])
    assert document["old"] == WRITER
    assert [one["agrees"] for one in document["verify"]["outputs"]] == [True]
