"""infer: inputs that are generated, read from standard input or from a pipe."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32
from tests.cli.infer.running import CLASSIFIER, Capture, infer, values


@pytest.mark.parametrize(("source", "expected"), [("zeros", 0), ("ones", 1)])
def test_constant_inputs(source: str, expected: float, capsys: Capture) -> None:
    (line,) = values(capsys, CLASSIFIER, "-i", source, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"], line["shape"]) == (expected, expected, [1, 1, 8, 8])


def test_sizes_that_are_not_known_are_chosen_within_their_bounds(tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (irexec.Dim(), 3, irexec.Dim(2, 5)), "x")), "y")
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    out, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--json")
    assert json.loads(out)["outputs"][0]["shape"] == [2, 3, 5]
    assert err.startswith("note: input x: f32[?,3,2..5] gets the shape [2,3,5]: ") and err.count("\n") == 1
    _, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--shape", "1,3,2")
    assert err == ""


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("option", ["-", "image=-"])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_come_from_standard_input(
    option: str, kind: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer, array = io.BytesIO(), np.full((1, 1, 8, 8), 0.5, np.float32)
    np.save(buffer, array) if kind == "npy" else np.savez(buffer, image=array)
    _stdin(monkeypatch, buffer.getvalue())
    (line,) = values(capsys, CLASSIFIER, "-i", option, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"]) == (0.5, 0.5)


def test_standard_input_that_is_no_array(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, b"hello")
    assert "standard input: not a readable .npy" in infer(capsys, CLASSIFIER, "-i", "-", code=3)[1]
    assert "-i - is given twice" in infer(capsys, CLASSIFIER, "-i", "-", "-i", "a=-", code=2)[1]


def test_a_pipe_is_read_once(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 1, 8, 8), 0.5, np.float32))
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "x.npy").read_bytes())
    os.close(writing)
    (line,) = values(capsys, CLASSIFIER, "-i", f"/dev/fd/{reading}", "--tensor", "image")["outputs"]
    os.close(reading)
    assert line["mean"] == 0.5


def test_a_file_of_another_kind(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "v.mp4").write_bytes(b"\0\0\0\x20ftyp")
    _, err = infer(capsys, CLASSIFIER, "-i", tmp_path / "v.mp4", code=3)
    assert "not a readable .npy, .npz or image (.png, .jpg" in err


def _texts_model(path: Path, *shapes: tuple[int | irexec.Dim, ...]) -> Path:
    """Joins two strings of each input."""
    builder = irexec.Builder("m")
    for i, shape in enumerate(shapes):
        x = builder.parameter("string", shape, f"x{i}")
        builder.result(builder.emit("StringConcat", x, x, version="irexec"), f"y{i}")
    irexec.save_model(builder.model(), path)
    return path


def test_lines_of_a_text_file_are_strings(tmp_path: Path, capsys: Capture) -> None:
    model = _texts_model(tmp_path / "m.xml", (irexec.Dim(),), (), (2, irexec.Dim()))
    texts = {"a.txt": "ab\r\nyé\n", "b.txt": "one line", "c.txt": "1\n2\n\n4\n"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    sources = [word for name in texts for word in ("-i", tmp_path / name)]
    lines = values(capsys, model, *sources)["outputs"]
    assert [(line["shape"], line["first"]) for line in lines] == [
        ([2], ["abab", "yéyé"]),
        ([], ["one lineone line"]),
        ([2, 2], ["11", "22", "", "44"]),
    ]
    out, _ = infer(capsys, model, *sources)
    assert "'abab', 'yéyé'" in out
    assert out.splitlines()[0].split()[-1] == "strings"


def test_text_files_that_do_not_fit(tmp_path: Path, capsys: Capture) -> None:
    model = _texts_model(tmp_path / "m.xml", (2,))
    (tmp_path / "a.txt").write_text("a\nb\nc\n", "utf-8")
    _, err = infer(capsys, model, "-i", tmp_path / "a.txt", code=2)
    assert "has shape [3], the model expects" in err
    (tmp_path / "b.txt").write_bytes(b"a\xe9\n")
    _, err = infer(capsys, model, "-i", tmp_path / "b.txt", code=3)
    assert err.endswith("b.txt: not a text in UTF-8: it has the byte 0xe9\n")
    _, err = infer(capsys, CLASSIFIER, "-i", tmp_path / "a.txt", code=3)
    assert "a.txt: not a readable .npy, .npz or image" in err
