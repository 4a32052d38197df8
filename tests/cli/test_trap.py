"""infer --trap, --record-range and --histogram, and the parts of inspect that add up: what they print, and wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.support.paths import DIGITS

MODEL = str(DIGITS / "classifier.xml")
IMAGE = str(DIGITS / "digit_7.png")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def shares(tmp_path: Path) -> list[str]:
    """A model that divides by a sum, and an input whose second row has the sum 0."""
    builder = irexec.Builder("shares")
    x = builder.parameter("f32", (2, 2), "x")
    total = builder.emit("ReduceSum", x, np.array([1]), keep_dims=True, name="total")
    builder.result(builder.emit("Divide", x, total, name="share"))
    irexec.save_model(builder.model(), str(tmp_path / "m.xml"))
    np.save(tmp_path / "x.npy", np.array([[1, 2], [0, 0]], np.float32))
    return ["infer", str(tmp_path / "m.xml"), "-i", str(tmp_path / "x.npy")]


def test_it_stops_with_exit_code_1_and_writes_nothing(shares: list[str], tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "out.npz"
    assert run([*shares, "--trap", "nan,inf", "-o", str(output), "--record-range", str(tmp_path / "r.json")]) == 1
    text = capsys.readouterr().out
    assert "'share' (Divide, opset1, line " in text
    assert (
        "2 of 4 elements, the first at [1,0]: nan; none in its inputs\n1 layer before it had nothing to report\n"
        in text
    )
    assert not output.exists()
    assert not (tmp_path / "r.json").exists()


def test_json(shares: list[str], capsys: Capture) -> None:
    assert run([*shares, "--trap", "nan", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = document["trap"]["trap"]
    assert (found["name"], found["value"], found["index"], found["fine"]) == ("share", None, [1, 0], 1)
    assert document["outputs"] == []


def test_without_a_find_results_are_as_ever(shares: list[str], tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "out.npz"
    assert run([*shares, "--trap", "nan", "--trap-ignore", "sh*", "-o", str(output)]) == 0
    assert "trap nan: nothing found in 2 layers" in capsys.readouterr().out
    assert np.load(output)["share"][0].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_ranges_are_written_and_widened(tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "r.json")
    for runs in ("1 run", "2 runs"):
        assert run(["infer", MODEL, "-i", "random", "--record-range", path]) == 0
        captured = capsys.readouterr()
        assert captured.err.endswith(f"r.json: ranges of 13 tensors in {runs}\n")
        assert "trap" not in captured.out
    assert run(["infer", MODEL, "-i", "random", "--trap", f"range={path}"]) == 0
    assert run(["infer", MODEL, "-i", IMAGE, "--trap", f"range={path}"]) == 1
    assert "input 'image' of the model has values outside of the recorded range" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trap", "big"], "'big' is none of nan, inf, f16 and range=FILE"),
        (["--trap", "range"], "range takes the file that --record-range has written"),
        (["--trap", "nan=x"], "nan takes no file"),
        (["--trap", "nan", "--trap-ignore", "nothing"], "--trap-ignore nothing: no layer, tensor or input has this name"),
        (["--trap-ignore", "relu1"], "--trap-ignore is for --trap, which is not given"),
        (["--trap", "nan", "--trap-margin", "0.1"], "--trap-margin is for --trap range=FILE, which is not given"),
        (["--trap", "nan", "--weights", "packed"], "--weights says how weights are stored in a run"),
        (["--record-range", "out.txt"], "ranges are written to a .json"),
        (["--bins", "3"], "--bins is for --histogram, which is not given"),
    ],
)  # fmt: skip
def test_wrong_usage(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run(["infer", MODEL, "-i", IMAGE, *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depth", "2"], "--depth is for --tree, which is not given"),
        (["--bins", "3"], "--bins is for --histogram, which is not given"),
        (["--histogram", "relu1"], "'relu1' is a Relu, not a Constant: irexec infer --tensor"),
        (["--histogram", "w"], "there is no constant 'w'"),
        (["--cost", "--shape", "1,3,8,8"], "the model does not take --shape [1,3,8,8]"),
    ],
)
def test_wrong_usage_of_inspect(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run(["inspect", MODEL, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_values_of_a_constant(capsys: Capture) -> None:
    assert run(["inspect", MODEL, "--values", "conv0.w", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]["conv0.w"]
    assert np.array_equal(np.float32(values), irexec.read_model(MODEL)["conv0.w"].array)


@pytest.mark.parametrize("option", ["--cost", "--tree", "--precision", "--memory", "--histogram=x", "--values=x"])
def test_an_execution_graph_has_none_of_it(option: str, capsys: Capture) -> None:
    assert run(["inspect", str(DIGITS.parent / "execution_graph.xml"), option]) == 2
    assert "is an execution graph, which has no" in capsys.readouterr().err


def test_shape_is_for_all_of_inspect(capsys: Capture) -> None:
    assert run(["inspect", MODEL, "--shape", "[3,1,8,8]", "--cost", "--memory", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["inputs"][0]["shape"] == "[3,1,8,8]"
    # Three images of 84,224 MACs each; the tensors of 4096 bytes at the peak are three times as large.
    assert document["cost"]["cost"]["macs"] == 3 * 84_224
    assert document["memory"]["peak"] == 3 * 8192


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["inspect", MODEL, "--tree", "--cost", "--histogram", "conv3.w"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[6:])) <= max(width, 80)
