"""Bundles: the smallest model with the verdict, and a script that shows it with OpenVINO and NumPy alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.ir.constants import constant_value
from irexec.tools.bundling import judge_into
from irexec.tools.judge import JudgeOptions, judge
from tests.support.paths import DIGITS
from tests.tools.judge.faulty import plant
from tests.tools.judge.test_judge import IMAGE, network, setting, without_bias

FAULT = {"damage": setting("conv", pads_begin="2, 1", pads_end="0, 1")}


def test_the_smallest_model_has_the_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge_into(
        str(tmp_path / "out"), network(), {"x": IMAGE}, JudgeOptions(runtime=plant(monkeypatch, **FAULT))
    )
    assert found.bundle is not None
    assert (found.bundle.before, found.bundle.after) == (6, 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(found.bundle.files)
    model = irexec.read_model(tmp_path / "out/model.xml")
    inputs, interval = np.load(tmp_path / "out/inputs.npz"), np.load(tmp_path / "out/interval.npz")
    right = irexec.infer(model, dict(inputs))[0]
    assert ((right >= interval["low_0"]) & (right <= interval["high_0"])).all()
    wrong = interval["actual_0"]
    assert ((wrong < interval["low_0"]) | (wrong > interval["high_0"])).any()
    assert "(Convolution" in (tmp_path / "out/report.md").read_text("utf-8")


def test_weights_that_are_replaced_keep_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = JudgeOptions(runtime=plant(monkeypatch, **FAULT))
    found = judge_into(str(tmp_path), network(), {"x": IMAGE}, options, strip_weights=True)
    assert found.bundle is not None
    assert found.bundle.kept == ()
    (weights,) = (
        node.constant for node in irexec.read_model(tmp_path / "model.xml").nodes if node.constant is not None
    )
    own = next(node.constant for node in network().nodes if node.name == "w")
    assert own is not None
    assert weights.shape == own.shape
    assert not np.isin(constant_value(weights), constant_value(own)).any()
    interval = np.load(tmp_path / "interval.npz")
    assert (interval["actual_0"] > interval["high_0"]).any()


def test_a_fault_of_fused_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fused(model, values) -> None:  # type: ignore[no-untyped-def]
        if not any(value.node.name == "biased" for value in values):
            without_bias(model, values)

    found = judge_into(str(tmp_path), network(), {"x": IMAGE}, JudgeOptions(runtime=plant(monkeypatch, damage=fused)))
    assert found.verdict == "fusion"
    layers = {node.type for node in irexec.read_model(tmp_path / "model.xml").nodes}
    assert layers - {"Parameter", "Constant", "Result"} == {"Add", "Relu"}


def test_a_recording_made_by_the_script_and_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    monkeypatch.chdir(tmp_path)
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    assert run(["judge", "m.xml", "--record-script", "record.py"]) == 0
    done = subprocess.run([sys.executable, "record.py"], capture_output=True, text=True, check=True)
    assert "irexec judge m.xml --runtime recorded.npz" in done.stdout
    assert run(["judge", "m.xml", "--runtime", "recorded.npz"]) == 0
    tensors = dict(np.load("recorded.npz"))
    assert len(tensors) == 16
    # OpenVINO computes in bf16 where the processor does.
    assert str(tensors["irexec.arithmetic"]).partition(" ")[0] in ("f32", "bf16")
    assert "of OpenVINO" in str(tensors["irexec.arithmetic"])
    np.savez("wrong.npz", **(tensors | {"conv0": tensors["conv0/Convolution"]}))
    assert run(["judge", "m.xml", "--runtime", "wrong.npz", "--bundle", "out"]) == 1
    # OpenVINO is right today: the recording was damaged.
    done = subprocess.run([sys.executable, "check.py"], cwd="out", capture_output=True, text=True)
    assert done.returncode == 0
    assert "output 0: 0 of 1024 values outside of their interval" in done.stdout
    interval = dict(np.load("out/interval.npz"))
    np.savez("out/interval.npz", **(interval | {"low_0": interval["high_0"] + 1, "high_0": interval["high_0"] + 2}))
    assert subprocess.run([sys.executable, "check.py"], cwd="out", capture_output=True).returncode == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--record-script", "m.xml"], "--record-script m.xml is the model, which would be overwritten"),
        (["--record-script", "m.bin"], "--record-script m.bin is the model's weights, which would be overwritten"),
        (["-i", "x.inputs.npz", "--record-script", "x.py"], "x.inputs.npz is an input, which would be overwritten"),
        (["--record-script", "x.py"], "x.inputs.npz exists, and is not the one of x.py"),
        (["--record-script", "x.xml"], "--record-script x.xml does not end in .py"),
        (["--record-script", "no/r.py"], "the folder no does not exist"),
        (["--runtime", "reference", "--bundle", "m.bin"], "m.bin is not an empty folder"),
        (["--runtime", "reference", "--bundle", "."], ". is not an empty folder"),
    ],
)
def test_no_file_of_the_user_is_overwritten(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix in (".xml", ".bin"):
        Path(f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    np.savez("x.inputs.npz", image=np.ones((1, 1, 8, 8), np.float32))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(["judge", "m.xml", *options]) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strip-weights"], "--strip-weights is for --bundle, which is not given"),
        (["--record-script", "r.py"], "--record-script judges nothing: no --runtime"),
    ],
)
def test_options_without_effect(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["judge", str(DIGITS / "classifier.xml"), "--runtime", "reference", *options]) == 2
    assert message in capsys.readouterr().err


def test_an_option_without_effect_is_named_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge", str(DIGITS / "classifier.xml"), "--sensitivity", "f16", "-p", "A=b"]) == 2
    assert "--sensitivity judges no runtime: no --property" in capsys.readouterr().err


def test_a_known_difference_of_openvino_is_not_accused(tmp_path: Path) -> None:
    b = irexec.Builder("m")
    x = b.parameter("i32", (4,), "x")
    b.result(b.emit("Divide", x, b.constant(np.array([2], np.int32)), m_pythondiv=True, name="halves"))
    values = np.array([-3, 3, -5, 4], np.int32)
    # OpenVINO's CPU plugin rounds towards zero, as recorded from 2026.4.
    halves = np.array([-1, 1, -2, 2], np.int32)
    said = {"irexec.arithmetic": "f32 of OpenVINO 2026.4 on CPU"}
    np.savez(tmp_path / "recorded.npz", x=values, halves=halves, **said)
    found = judge(b.model(), runtime=str(tmp_path / "recorded.npz"))
    assert found.verdict == "open"
    assert found.at[0].codes == ("IR911",)
    # The difference excuses its own values, and OpenVINO alone.
    np.savez(tmp_path / "beyond.npz", x=values, halves=halves + np.int32(2), **said)
    assert judge(b.model(), runtime=str(tmp_path / "beyond.npz")).verdict == "bug"
    np.savez(tmp_path / "nobody.npz", x=values, halves=halves)
    assert judge(b.model(), runtime=str(tmp_path / "nobody.npz")).verdict == "bug"
