"""The command as users call it: help, samples, inspect, ops, convert, wrong usage."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import irexec
from irexec.cli.main import run
from irexec.native.library import description
from tests.cli.calling import MODEL, Capture, stderr, stdout
from tests.support.onnx_models import model_of
from tests.support.paths import DIGITS, IRS


def test_help_reads_well(capsys: Capture) -> None:
    text = stdout(capsys, "--help")
    for command in ("infer", "validate", "inspect", "convert", "ops"):
        assert command in text
        assert "Usage: irexec" in stdout(capsys, command, "--help")


@pytest.mark.parametrize("how", [["-m", "irexec"], ["-c", "from irexec.cli.main import main; main()"]])
def test_it_is_a_program(how: list[str]) -> None:
    done = subprocess.run([sys.executable, *how, "--version"], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == f"irexec, version {irexec.__version__}"
    assert second == f"NumPy {np.__version__}, {description()}"


@pytest.mark.parametrize("digit", range(10))
def test_the_classifier_reads_digits_it_has_never_seen(digit: int, capsys: Capture) -> None:
    text = stdout(
        capsys,
        "infer",
        DIGITS / "classifier.xml",
        "-i",
        DIGITS / f"digit_{digit}.png",
        "--scale",
        255,
        "--topk",
        1,
        "--json",
    )
    (best,) = json.loads(text)["topk"]
    assert best["index"] == digit
    assert best["score"] > 0.5


@pytest.mark.parametrize("digit", [3, 8])
def test_the_denoiser_and_its_twin_give_the_same_image(digit: int, tmp_path: Path, capsys: Capture) -> None:
    for name in ("denoiser", "denoiser_onednn"):
        stdout(
            capsys,
            "infer",
            DIGITS / f"{name}.xml",
            "-i",
            DIGITS / f"noisy_{digit}.png",
            "--scale",
            255,
            "-o",
            tmp_path / f"{name}.npz",
        )
    one, other = (np.load(tmp_path / f"{name}.npz")["cleaned"] for name in ("denoiser", "denoiser_onednn"))
    np.testing.assert_allclose(one, other, atol=1e-6)
    clean, noisy = (_image(DIGITS / f"{kind}_{digit}.png") for kind in ("digit", "noisy"))
    assert np.square(one - clean).mean() < 0.8 * np.square(noisy - clean).mean()


def _image(path: Path) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(path), np.float32)[None, None] / 255


def test_sample_irs_are_what_the_converter_makes(tmp_path: Path, capsys: Capture) -> None:
    stdout(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--verify")
    result = stdout(
        capsys, "infer", tmp_path / "m.xml", "-i", DIGITS / "digit_7.png", "--scale", 255, "--topk", 1, "--json"
    )
    assert json.loads(result)["topk"][0]["index"] == 7


def test_the_damaged_sample(capsys: Capture) -> None:
    text = stdout(capsys, "validate", DIGITS / "damaged.xml", code=1)
    for code in ("IR103", "IR013", "IR107", "IR401", "IR011"):
        assert code in text


def test_inspect(capsys: Capture) -> None:
    text = stdout(capsys, "inspect", MODEL, "--layers", "--ops", "--weights")
    for part in ("convolutions", "Convolution_3", "f32[1,8,16,16]", "Convolution-1", "Constant_4"):
        assert part in text
    document = json.loads(stdout(capsys, "inspect", MODEL, "--layers", "--ops", "--weights", "--json"))
    assert document["schema"] == 1
    assert document["layers"][2]["outputs"] == ["f32[1,8,16,16]"]


def test_ops(capsys: Capture, tmp_path: Path) -> None:
    assert "Convolution" in stdout(capsys, "ops")
    assert "batch_dims" in stdout(capsys, "ops", "Gather")
    assert "everything is supported" in stdout(capsys, "ops", "--check", MODEL)
    text = MODEL.read_text().replace('type="ReLU"', 'type="Frobnicate"')
    (tmp_path / "m.xml").write_text(text)
    shutil.copy(MODEL.with_suffix(".bin"), tmp_path / "m.bin")
    assert "Frobnicate of opset1 is not supported" in stdout(capsys, "ops", "--check", tmp_path / "m.xml", code=4)
    assert "there is no operation" in stderr(capsys, "ops", "Frobnicate")


def test_wrong_usage(capsys: Capture, tmp_path: Path) -> None:
    stderr(capsys, "frobnicate")
    stderr(capsys, "infer")
    stderr(capsys, "infer", MODEL, "--topk", "0")
    stderr(capsys, "infer", MODEL, "--mean", "a,b")
    stderr(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.txt")
    assert "cannot be read" in stderr(capsys, "validate", tmp_path / "nowhere.xml", code=3)


def test_converting_what_is_not_a_model(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x00\x01 no model")
    assert "not an ONNX model" in stderr(capsys, "convert", tmp_path / "m.onnx", code=3)
    assert "cannot be read" in stderr(capsys, "convert", tmp_path / "nowhere.onnx", code=3)
    assert "input 'z' does not exist" in stderr(
        capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--input", "z[1]"
    )
    assert list(tmp_path.glob("*.xml")) == []


def test_what_the_converter_warns_of_is_a_line(capsys: Capture, tmp_path: Path) -> None:
    graph = "(float[1,1,4] x, float[1,2,3] o) => (float[1,1,3] y) { [d] y = DeformConv(x, w, o) }"
    onnx.save(model_of(graph, 22, w=np.ones((1, 1, 2), np.float32)), tmp_path / "m.onnx")
    assert run(["convert", str(tmp_path / "m.onnx")]) == 0
    assert capsys.readouterr().err.startswith("warning: DeformConv 'd' over 1 spatial axes")


def test_nothing_trails_in_a_file(capsys: Capture) -> None:
    for text in (stdout(capsys, "ops"), stdout(capsys, "infer", MODEL, "-i", "random")):
        assert text.splitlines() == [line.rstrip() for line in text.splitlines()]


def test_texts_are_called_strings(capsys: Capture) -> None:
    outputs = json.loads(stdout(capsys, "infer", IRS / "operations" / "text.xml", "-i", "random", "--json"))["outputs"]
    kinds = {output["type"] for output in outputs}
    assert "string" in kinds
    assert "object" not in kinds


def test_debug_may_stand_anywhere(capsys: Capture) -> None:
    for arguments in (["--debug", "infer", "nowhere.xml"], ["infer", "nowhere.xml", "--debug"]):
        assert run(arguments) == 3
        assert "Traceback" in capsys.readouterr().err


def test_converting_as_json(capsys: Capture, tmp_path: Path) -> None:
    text = stdout(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--verify", "--json")
    document = json.loads(text)
    assert (document["schema"], document["warnings"]) == (1, [])
    assert [output["agrees"] for output in document["verify"]["outputs"]] == [True]


def test_one_run_is_not_plural(capsys: Capture) -> None:
    assert "(median of 1 run, " in stdout(capsys, "profile", DIGITS / "classifier.xml", "--runs", "1")
