"""irexec inspect --plan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from irexec import Builder, save_model
from irexec.cli.main import run
from tests.cli.calling import stdout
from tests.support.paths import DIGITS, IRS

MODEL = DIGITS / "classifier.xml"
Capture = pytest.CaptureFixture[str]


def shown(capsys: Capture, *arguments: object, code: int = 0) -> str:
    assert run(["inspect", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_every_layer_is_accounted_for(capsys: Capture) -> None:
    plan = json.loads(shown(capsys, MODEL, "--plan", "--json"))["plan"]
    # 21 layers, of which are one Parameter, one Result and seven Constants.
    assert plan["layers"] == 12
    assert plan["computed"] + plan["viewed"] + plan["removed"] == 12
    assert {layer for step in plan["steps"] for layer in step["layers"]} >= {
        "conv0/Convolution",
        "conv0",
        "relu1",
        "probabilities",
    }
    assert all(
        set(step) == {"number", "path", "layers", "operation", "algorithm", "order", "output", "bytes"}
        for step in plan["steps"]
    )


def test_the_document_has_the_schema_and_the_summary(capsys: Capture) -> None:
    document = json.loads(shown(capsys, MODEL, "--plan", "--json"))
    assert document["schema"] == 1
    assert document["layers"] == 21
    assert {"threads", "arena", "intermediate", "packed", "kept", "passes", "refusals"} <= set(document["plan"])


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_the_terminal(columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.chdir(DIGITS)
    text = shown(capsys, MODEL.name, "--plan", "-v", "--shape", "image[2,1,8,8]", "--threads", 2)
    assert max(map(len, text.splitlines())) <= columns
    assert "f32[2,10]" in text
    assert "steps for 12 layers, 2 threads" in text


def test_verbose_lists_layers_and_reasons(capsys: Capture, tmp_path: Path) -> None:
    builder = Builder("two results")
    x = builder.parameter("f32", "40,40", "x")
    product = builder.emit(
        "MatMul", x, np.ones((40, 40), np.float32), transpose_a=False, transpose_b=False, name="product"
    )
    active = builder.emit("Relu", product, name="active")
    builder.result(builder.emit("Exp", active, name="first"))
    builder.result(builder.emit("Tanh", product, name="second"))
    save_model(builder.model(), tmp_path / "m.xml")
    text = shown(capsys, tmp_path / "m.xml", "--plan", "--verbose")
    assert "layers computed with it" in text
    assert "left alone because" in text
    assert "left alone because" not in shown(capsys, tmp_path / "m.xml", "--plan")


def test_a_dynamic_model_without_shapes(capsys: Capture) -> None:
    plan = json.loads(shown(capsys, IRS / "shared.xml", "--plan", "--json"))["plan"]
    assert plan["steps"]
    steps = json.loads(shown(capsys, MODEL, "--plan", "--shape", "?,1,8,8", "--json"))["plan"]["steps"]
    assert steps[0]["output"] == "f32[?,16,8,8]"
    assert steps[0]["bytes"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "1,3,8,8"], "the model does not take --shape [1,3,8,8]"),
        (["--threads", "2"], "--threads is for --plan or --memory, which are not given"),
        (["-v"], "--verbose is for --plan, which is not given"),
        (["--plan", "--threads", "0"], "0 is not in the range 1<=x<=256"),
        (["--plan", "--shape", "1,3,8,8"], "the model does not take --shape [1,3,8,8]"),
        (["--plan", "--shape", "y[1,1,8,8]"], "there is no input 'y'"),
        (["--plan", "--shape", "image[1,1,8,8]", "--shape", "image[1,1,8,8]"], "is given twice"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: Capture) -> None:
    err = shown(capsys, MODEL, *arguments, code=2)
    assert message in err
    assert err.count("\n") == 1


def test_an_execution_graph_has_no_plan(capsys: Capture) -> None:
    assert "which has no plan" in shown(capsys, DIGITS.parent / "execution_graph.xml", "--plan", code=2)


def test_a_model_that_cannot_be_compiled_is_an_error(capsys: Capture) -> None:
    assert "layer" in shown(capsys, DIGITS / "damaged.xml", "--plan", code=3)


def test_a_model_of_constants_has_no_step(capsys: Capture, tmp_path: Path) -> None:
    builder = Builder("constant")
    builder.result(builder.emit("Relu", np.array([-1.0, 2.0], np.float32)))
    save_model(builder.model(), tmp_path / "m.xml")
    text = shown(capsys, tmp_path / "m.xml", "--plan")
    assert "\nstep  " in text
    assert "0 steps for 1 layer" in text


def test_without_the_c_kernels(capsys: Capture) -> None:
    document = json.loads(shown(capsys, MODEL, "--plan", "--no-native", "--json"))
    assert (document["plan"]["kernels"], document["plan"]["native"]) == ("NumPy alone (native is False)", 0)
    profile = json.loads(stdout(capsys, "profile", MODEL, "--runs", 1, "--no-native", "--json"))
    assert profile["kernels"] == "NumPy alone (native is False)"
    bench = json.loads(stdout(capsys, "bench", MODEL, "--runs", 1, "--no-native", "--json"))
    assert bench["kernels"] == "NumPy alone (native is False)"
    assert stdout(capsys, "infer", MODEL, "-i", "random", "--no-native")
