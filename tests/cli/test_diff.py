"""irexec diff: what is shown, exit codes, wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irexec.cli.main import run
from tests.support.paths import ROOT

DIGITS = ROOT / "samples" / "digits"
A = DIGITS / "classifier.xml"
Capture = pytest.CaptureFixture[str]


def _edited(folder: Path, *changes: tuple[str, str]) -> Path:
    """The classifier with texts of its .xml replaced."""
    text = A.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "edited.xml"
    path.write_text(text, "utf-8")
    path.with_suffix(".bin").write_bytes(A.with_suffix(".bin").read_bytes())
    return path


def _shown(capsys: Capture, *arguments: object, code: int = 1) -> list[str]:
    assert run(["diff", *map(str, arguments)]) == code
    return capsys.readouterr().out.splitlines()


def test_no_difference(capsys: Capture) -> None:
    assert _shown(capsys, A, A, code=0) == ["no differences"]
    assert json.loads("".join(_shown(capsys, A, A, "--json", code=0)))["equal"] is True


def test_it_reads_like_a_patch(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(
        tmp_path, ('axis="1"/>', 'axis="-1"/>'), ('name="relu4"', 'name="other"'), ('"digits classifier"', '"new"')
    )
    assert _shown(capsys, A, edited) == [
        f"--- {A} (21 layers)",
        f"+++ {edited} (21 layers)",
        "@@ model @@",
        "- name: digits classifier",
        "+ name: new",
        "@@ 19 probabilities (SoftMax, opset8, line 327) @@",
        "- axis: 1",
        "+ axis: -1",
        "~ 11 relu4 -> other (ReLU)",
        "1 layer changed, 1 renamed, 1 change of the model",
    ]


@pytest.mark.parametrize(
    ("change", "ignored", "left"),
    [
        (('name="relu4"', 'name="other"'), "names", 0),
        (('names="relu4"', 'names="other"'), "tensor-names", 0),
        (('axis="1"/>', 'axis="-1"/>'), "names, values", 1),
        (('version="opset14"', 'version="opset8"'), "versions", 0),
        (('precision="FP32" names="dense6"', 'precision="FP16" names="dense6"'), "types", 0),
        (('to-layer="19" to-port="0"', 'to-layer="19" to-port="7"'), "attributes", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ignored_kinds(change: tuple[str, str], ignored: str, left: int, tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, change)
    assert len(_shown(capsys, A, edited)) > 1
    assert (_shown(capsys, A, edited, "--ignore", ignored, code=left) == ["no differences"]) is (left == 0)


def test_what_follows_from_an_ignored_change_is_ignored(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(
        tmp_path, ('strides="1, 1"', 'strides="2, 2"'), ("<dim>8</dim>", "<dim>4</dim>"), ('"1,1,8,8"', '"1,1,4,4"')
    )
    assert _shown(capsys, A, edited)[-1].endswith("shapes and types that follow")
    assert _shown(capsys, A, edited, "--ignore", "attributes,shapes", code=0) == ["no differences"]


def test_many_equal_changes_are_summed_up(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, ('version="opset1"', 'version="opset3"'))
    short = _shown(capsys, A, edited)
    assert "@@ 7 x Const @@" in short
    assert "      ... and 4 more" in short
    long = _shown(capsys, A, edited, "--verbose")
    assert not any(" x " in line for line in long)
    assert sum(line == "+ version: opset3" for line in long) == 18


def test_weights(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path)
    raw = bytearray(A.with_suffix(".bin").read_bytes())
    # The last constant is the bias of ten f32, of which the first becomes infinite.
    raw[-40:-36] = b"\x00\x00\x80\x7f"
    edited.with_suffix(".bin").write_bytes(raw)
    lines = _shown(capsys, A, edited, "--weights")
    assert "  values: 1 of 10 changed, by at most 0, relative norm 0, 1 with NaN or infinity" in lines
    assert lines[-2].split() == ["16", "dense6.b", "10", "1", "10.0%", "0", "0", "1"]


def test_colours_on_a_terminal(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = _edited(tmp_path, ('axis="1"/>', 'axis="-1"/>'))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = _shown(capsys, A, edited)
    assert any("\x1b[31m- axis" in line for line in lines)
    assert any("\x1b[32m+ axis" in line for line in lines)


def test_the_document_has_what_the_text_has(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, ('axis="1"/>', 'axis="-1"/>'))
    document = json.loads("\n".join(_shown(capsys, A, edited, "--json")))
    (layer,) = document["layers"]
    assert (document["equal"], layer["status"], layer["a"]["id"], layer["b"]["line"]) == (False, "changed", 19, 327)
    assert layer["changes"] == [{"kind": "attributes", "what": "axis", "a": "1", "b": "-1", "values": None}]


def test_onnx_and_its_conversion(capsys: Capture) -> None:
    pytest.importorskip("onnx")
    assert _shown(capsys, DIGITS / "classifier.onnx", A, code=0) == ["no differences"]


def test_a_damaged_file_is_compared(capsys: Capture) -> None:
    lines = _shown(capsys, A, DIGITS / "damaged.xml")
    assert "- bytes: in the file" in lines
    assert "+ bytes: has 5120 bytes, f64[128,10] takes 10240" in lines
    assert "- input 1: 1 conv0.w" in lines


def test_without_weights_there_is_a_warning(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.xml").write_bytes(A.read_bytes())
    assert run(["diff", str(tmp_path / "a.xml"), str(tmp_path / "a.xml")]) == 0
    assert "warning: the values of 7 constants cannot be read" in capsys.readouterr().err
    lines = _shown(capsys, A, tmp_path / "a.xml")
    assert lines[2:] == [
        "@@ 7 x Const @@",
        "      1 conv0.w",
        "      3 conv0.b_1",
        "      7 conv3.w",
        "      ... and 4 more",
        "- bytes: in the file",
        "+ bytes: not in the file",
        "7 layers changed",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((A,), 2, "missing argument 'B'"),
        ((A, A, "--ignore", "ids"), 2, "'ids' is not a kind of change; there are added, removed"),
        ((A, "missing.xml"), 3, "missing.xml: cannot be read"),
    ],
)
def test_wrong_usage(arguments: tuple[object, ...], code: int, message: str, capsys: Capture) -> None:
    assert run(["diff", *map(str, arguments)]) == code
    assert message in capsys.readouterr().err
