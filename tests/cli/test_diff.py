"""irexec diff: what is shown, exit codes, wrong usage."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irexec
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
    assert lines[-3].split() == ["16", "dense6.b", "10", "1", "10.0%", "0", "0", "1"]


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
        "@@ 7 x Const @@", "      1 conv0.w", "      3 conv0.b_1", "      7 conv3.w", "      ... and 4 more",
        "- bytes: in the file", "+ bytes: not in the file", "7 layers changed",
    ]  # fmt: skip


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


def _weights_moved(folder: Path, by: float) -> Path:
    """The classifier with all weights of one layer multiplied by 1 + ``by``."""
    model = irexec.read_model(A)
    node = next(node for node in model.nodes if node.name == "dense6.w")
    values = node.constant.raw.view(np.float32).reshape(128, 10) * np.float32(1 + by)  # type: ignore[union-attr]
    node.constant = irexec.Builder("new").constant(values).node.constant
    irexec.save_model(model, folder / "moved.xml")
    return folder / "moved.xml"


@pytest.mark.parametrize(("tolerance", "code"), [("1.1e-3", 0), ("0.9e-3", 1), ("0", 1)])
def test_values_up_to_a_relative_norm_are_ignored(tolerance: str, code: int, tmp_path: Path, capsys: Capture) -> None:
    moved = _weights_moved(tmp_path, 1e-3)
    lines = _shown(capsys, A, moved, "--ignore", f"values={tolerance}", code=code)
    assert (lines == ["no differences"]) is (code == 0)


def test_values_that_become_nan_are_never_within_a_tolerance(tmp_path: Path, capsys: Capture) -> None:
    moved = _weights_moved(tmp_path, float("nan"))
    _shown(capsys, A, moved, "--ignore", "values=1e9", code=1)


@pytest.mark.parametrize(
    ("name", "code"),
    [("probabilities", 0), ("prob*ities", 0), ("19", 0), ("*", 0), ("prob", 1), ("PROBABILITIES", 1), ("p.*", 1)],
)
def test_a_layer_is_ignored_by_name_or_id(name: str, code: int, tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, ('axis="1"/>', 'axis="-1"/>'))
    _shown(capsys, A, edited, "--ignore", f"layer={name}", code=code)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("values=x", "values=x has no tolerance, expected a relative norm such as values=1e-6"),
        ("values=-1", "values=-1 has no tolerance"),
        ("values=inf", "values=inf has no tolerance"),
        ("layer=", "'layer=' is not a kind of change"),
        ("names,shape", "'shape' is not a kind of change; there are added"),
    ],
)
def test_wrong_entries_of_ignore(entry: str, message: str, capsys: Capture) -> None:
    assert run(["diff", str(A), str(A), "--ignore", entry]) == 2
    assert message in capsys.readouterr().err


def test_markdown_has_names_in_code_spans_in_cells_of_their_own(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, ('name="relu4"', 'name="a|b`c @everyone"'), ('axis="1"/>', 'axis="-1"/>'))
    lines = _shown(capsys, A, edited, "--format", "markdown")
    assert lines[:3] == [f"### `{A}` → `{edited}`", "", "**1 layer changed, 1 renamed** (21 layers → 21 layers)"]
    rows = lines[6:]
    assert rows == [
        "| renamed | `11 relu4` | `ReLU` | `name` | `relu4` | ``a\\|b`c @everyone`` |",
        "| changed | `19 probabilities` | `SoftMax` | `axis` | `1` | `-1` |",
    ]


def test_markdown_of_equal_models_is_one_sentence(capsys: Capture) -> None:
    assert _shown(capsys, A, A, "--format", "markdown", code=0)[-1] == "**no differences** (21 layers → 21 layers)"


def test_annotations_name_the_line_of_b(tmp_path: Path, capsys: Capture) -> None:
    edited = _edited(tmp_path, ('axis="1"/>', 'axis="-1"/>'))
    (line,) = _shown(capsys, A, edited, "--format", "github")
    text = edited.read_text("utf-8").splitlines()
    number = next(number for number, one in enumerate(text, 1) if 'name="probabilities"' in one)
    assert line == (f"::notice file={edited},line={number},title=19 probabilities (SoftMax) changed::axis: 1 -> -1")


@pytest.mark.parametrize("option", ["--verbose", "--weights"])
def test_options_of_the_text_are_refused_with_other_formats(option: str, capsys: Capture) -> None:
    assert run(["diff", str(A), str(A), option, "--format", "markdown"]) == 2
    assert f"{option} is for the text, not for --format markdown" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("git") is None or os.name != "posix", reason="needs git and a POSIX shell")
@pytest.mark.parametrize(("recipe", "shown"), [(0, '+    axis="-1"'), (1, "+ axis: -1")])
def test_the_recipes_for_git_in_the_docs(recipe: int, shown: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands" / "diff.md").read_text("utf-8")
    config = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)[recipe]
    attributes = re.findall(r"```text\n(models/.*?)```", page, re.DOTALL)[0]
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "irexec").write_text(f'#!/bin/sh\nexec {sys.executable} -m irexec "$@"\n')
    (bin / "irexec").chmod(0o755)
    work = tmp_path / "work"
    (work / "models").mkdir(parents=True)
    environment = os.environ | {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=work, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    git("init", "-q")
    (work / ".gitattributes").write_text(attributes)
    with (work / ".git" / "config").open("a") as file:
        file.write(config)
    text = A.read_text("utf-8")
    (work / "models" / "a.xml").write_text(text)
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    (work / "models" / "a.xml").write_text(text.replace('axis="1"/>', 'axis="-1"/>'))
    lines = [line for line in git("diff").splitlines() if line.startswith(("+", "-")) and line[1:3] not in ("++", "--")]
    assert any(line.startswith(shown) for line in lines)
    assert len(lines) == (2 if recipe == 0 else len(lines))
