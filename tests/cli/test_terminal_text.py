"""Names and texts of files do not control the terminal, and do not fill it; JSON has them exactly."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from irexec.cli import render
from irexec.cli.main import run
from irexec.display import Column, Table, Text
from irexec.tools.arrays.files import write_npz
from tests.support.paths import SAMPLES
from tests.test_messages import OBEYED

Capture = pytest.CaptureFixture[str]

# XML 1.0 allows these in names; of C0 it has tab and line break as references.
NAME = "\x9b31m\u202e\u2028\u200f"
CONTROLS = NAME + "\x1b[31m\x07"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose names hold what a terminal obeys, and files for it."""
    text = (SAMPLES / "digits" / "classifier.xml").read_text()
    for name in ("image", "relu1", "probabilities", "conv0"):
        text = text.replace(f'"{name}"', f'"{name}{NAME}&#10;"')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "bad.xml").write_text(
        text.replace('rounding_type="floor"', f'rounding_type="floor{NAME}"').replace('"ReLU"', f'"Re{NAME}LU"'),
        encoding="utf-8",
    )
    (tmp_path / "broken.xml").write_text(f"<net><layers></{NAME}>", encoding="utf-8")
    (tmp_path / "m.bin").write_bytes((SAMPLES / "digits" / "classifier.bin").read_bytes())
    (tmp_path / "bad.bin").write_bytes((SAMPLES / "digits" / "classifier.bin").read_bytes())
    (tmp_path / f"labels{CONTROLS}.txt").write_text(f"{CONTROLS}\n" * 10, encoding="utf-8")
    with open(tmp_path / "odd.npz", "wb") as file:
        write_npz(file, {f"x{CONTROLS}": np.zeros(1), f"relu1{NAME}\n": np.zeros(1)})
    node = helper.make_node(f"Op{CONTROLS}\n", ["x"], ["y"], name=f"n{CONTROLS}", domain=f"d{CONTROLS}")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node], f"g{CONTROLS}", values[:1], values[1:])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(f"d{CONTROLS}", 1)]),
        tmp_path / "m.onnx",
    )
    return tmp_path


INFER = ["infer", "m.xml", "-i", "zeros"]
COMMANDS = [
    [*INFER, "--all"],
    [*INFER, "--topk", "3", "--labels", f"labels{CONTROLS}.txt"],
    [*INFER, "--assert", "odd.npz"],
    [*INFER, "--tensor", f"t{CONTROLS}"],
    [*INFER, "--dump-layers", f"d{CONTROLS}"],
    [*INFER, "--topk", "3", "--labels", f"none{CONTROLS}"],
    ["infer", "m.xml", "-i", "odd.npz"],
    ["infer", "m.xml", "-i", f"x{CONTROLS}=zeros"],
    ["infer", "m.xml", "-i", f"none{CONTROLS}.npy"],
    ["infer", "m.xml", "-i", f"none{CONTROLS}.png"],
    ["infer", "m.xml", "-i", f"labels{CONTROLS}.txt"],
    ["infer", "m.xml", "-i", "random", "--shape", f"x{CONTROLS}[1]"],
    ["infer", "bad.xml", "-i", "zeros"],
    ["inspect", "m.xml", "--layers", "--ops", "--weights", "--plan", "-v"],
    ["inspect", "bad.xml", "--layers", "--ops"],
    ["profile", "m.xml", "--runs", "1"],
    ["profile", "m.xml", "--static"],
    ["validate", "m.xml", "bad.xml", "broken.xml"],
    ["validate", f"none{CONTROLS}.xml"],
    ["validate", "m.xml", "--ignore", CONTROLS],
    ["ops", "--check", "bad.xml"],
    ["ops", "--check", "m.onnx"],
    ["ops", CONTROLS],
    ["convert", "m.onnx"],
    ["convert", f"none{CONTROLS}.onnx"],
    ["explain", CONTROLS],
    [f"{CONTROLS}"],
    ["infer", f"--{CONTROLS}"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: ascii(" ".join(arguments)))
def test_nothing_that_a_terminal_obeys(
    arguments: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = run(arguments)
    printed = capsys.readouterr()
    shown = printed.out + printed.err
    assert code in (0, 1, 2, 3, 4)
    assert not [character for character in OBEYED if character in shown.replace("\n", "")]
    assert printed.err.count("\n") == len(
        [
            line
            for line in printed.err.splitlines()
            if line.startswith(("error: ", "warning: ", "note: ", "next: ", "d\\x9b"))
        ]
    )
    if arguments != [CONTROLS] and code in (2, 3, 4):
        assert "\\u202e" in shown


def test_a_debugged_error_is_escaped_too(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["--debug", "infer", "m.xml", "-i", f"none{CONTROLS}.npy"]) == 3
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last):" in shown
    assert not [character for character in OBEYED if character in shown.replace("\n", "")]


def test_json_is_exact(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["inspect", "m.xml", "--layers", "--json"]) == 0
    text = capsys.readouterr().out
    assert not [character for character in OBEYED if character in text.replace("\n", "")]
    names = [layer["name"] for layer in json.loads(text)["layers"]]
    assert f"relu1{NAME}\n" in names and f"image{NAME}\n" in names
    assert run([*INFER, "--assert", "odd.npz", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["only_in_reference"] == [f"x{CONTROLS}"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_exact_in_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = f"é模😀\udcff{''.join(OBEYED)}"
    with open(tmp_path / "out", "w", encoding=encoding) as file:
        monkeypatch.setattr(sys, "stdout", file)
        render.as_json({"name": value})
        monkeypatch.undo()
    assert json.loads((tmp_path / "out").read_text(encoding=encoding))["name"] == value


def _model(folder: Path, layers: str) -> str:
    (folder / "m.xml").write_text(f'<net name="n" version="11"><layers>{layers}</layers><edges/></net>')
    return str(folder / "m.xml")


def test_a_long_name_takes_no_time_and_little_room(tmp_path: Path, capsys: Capture) -> None:
    name = "n" * 20_000_000
    path = _model(tmp_path, f'<layer id="0" name="{name}" type="ReLU"/><layer id="1" name="b" type="{name}"/>')
    for arguments in (
        ["validate", path],
        ["inspect", path, "--layers", "--ops"],
        ["ops", "--check", path],
        ["infer", path],
    ):
        start = time.process_time()
        assert run(arguments) in (1, 0, 3, 4)
        assert time.process_time() - start < 5
        printed = capsys.readouterr()
        assert len(printed.out + printed.err) < 100_000
    assert run(["validate", path, "--json"]) == 1
    assert name in {finding["layer_name"] for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_100_000_rows_take_seconds(capsys: Capture) -> None:
    start = time.process_time()
    columns = ["name", Column("message", kind="sentence")]
    render.show(Table(columns, [(f"layer{i}", "a sentence") for i in range(100_000)], what="findings"))
    assert time.process_time() - start < 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["layer9999  a sentence", "... and 90,000 more findings; --json gives all of them"]
    assert len(lines) == 10_003


class _Terminal:
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_500_rows_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    render.show(Table(["severity"], [(Text("error", "error"),)] * 600))
    monkeypatch.undo()
    assert terminal.text.count("error") == 500
    assert "\x1b[1;31merror\x1b[0m" in terminal.text
    assert terminal.text.endswith("... and 100 more rows; --json gives all of them\n")
