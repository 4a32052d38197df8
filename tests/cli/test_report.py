"""irexec report: what it writes and says, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Capture, streams
from tests.support.markup import parse

DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
MODEL = DIGITS / "classifier.xml"


def test_it_says_what_it_has_written(capsys: Capture, tmp_path: Path) -> None:
    out, err = streams(capsys, "report", DIGITS / "damaged.xml", "-o", tmp_path / "r.html", "--graph", "off")
    assert err == ""
    assert out.splitlines()[0].endswith(", 21 layers, 9 errors, 1 warning")
    assert parse((tmp_path / "r.html").read_text("utf-8")).all("h1")[0].text == "damaged.xml"


def test_the_document(capsys: Capture, tmp_path: Path) -> None:
    document = json.loads(streams(capsys, "report", MODEL, "-o", tmp_path / "r.html", "--graph", "off", "--json")[0])
    assert set(document) == {"schema", "model", "report", "bytes", "layers", "findings", "sections", "notes"}
    assert document["bytes"] == (tmp_path / "r.html").stat().st_size
    assert document["findings"] == {}
    assert "weights" in document["sections"]


def test_a_title(capsys: Capture, tmp_path: Path) -> None:
    streams(capsys, "report", MODEL, "-o", tmp_path / "r.html", "--graph", "off", "--title", "Release <3>")
    found = parse((tmp_path / "r.html").read_text("utf-8"))
    assert [one.text for one in (*found.all("h1"), *found.all("title")[:1])] == ["Release <3>"] * 2


def test_times_are_measured_if_asked_for(capsys: Capture, tmp_path: Path) -> None:
    common = ["-o", tmp_path / "r.html", "--graph", "off", "--runs", 1, "--profile"]
    assert streams(capsys, "report", MODEL, *common)[1] == "note: inputs are random, with seed 0; -i gives others\n"
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    out, err = streams(capsys, "report", MODEL, *common, "-i", tmp_path / "x.npy", "--json")
    assert err == ""
    assert "time" in json.loads(out)["sections"]


def test_what_exists_is_replaced_and_links_stay_links(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    streams(capsys, "report", MODEL, "-o", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "{tmp}/m.xml"], 2, "a report is written to an .html"),
        (["-o", "{tmp}/r"], 2, "a report is written to an .html"),
        (["-o", "{tmp}/none/r.html"], 2, "does not exist"),
        (["-o", "{tmp}"], 2, "a report is written to an .html"),
        (["-o", "{tmp}/m.html"], 2, "is the model, which would be overwritten"),
        (["-o", "{tmp}/r.html", "--bin", "{tmp}/r.html"], 2, "is the model's weights, which would be overwritten"),
        (["-o", "{tmp}/r.html", "--profile", "-i", "{tmp}/r.html"], 2, "is an input, which would be overwritten"),
        ([], 2, "missing option '-o' / '--output'"),
        (["-o", "{tmp}/r.html", "--runs", "3"], 2, "--runs is for --profile, which is not given"),
        (["-o", "{tmp}/r.html", "-i", "random"], 2, "--input is for --profile, which is not given"),
        (["-o", "{tmp}/r.html", "--weights", "maybe"], 2, "'maybe' is not one of 'on', 'off'"),
        (["-o", "{tmp}/r.html", "--shape", "nothing[1]"], 2, "there is no input 'nothing'"),
        (["-o", "{tmp}/r.html", "--profile", "-i", "nothing=random"], 2, "there is no input 'nothing'"),
        (["-o", "{tmp}/r.html", "--bin", "{tmp}/none.bin"], 3, "none.bin' cannot be read"),
    ],
)
def test_what_is_refused(capsys: Capture, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    """Nothing is written then, and nothing is changed."""
    # A link, so that the model has a name that a report could have.
    shutil.copy(MODEL, tmp_path / "m.xml")
    (tmp_path / "m.html").symlink_to("m.xml")
    shutil.copy(MODEL.with_suffix(".bin"), tmp_path / "m.bin")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    err = streams(capsys, "report", tmp_path / "m.xml", *(text.format(tmp=tmp_path) for text in arguments), code=code)[
        1
    ]
    assert message in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_is_no_model(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text("<html></html>")
    assert "m.xml" in streams(capsys, "report", tmp_path / "m.xml", "-o", tmp_path / "r.html", code=3)[1]
    assert not (tmp_path / "r.html").exists()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="whoever may write everywhere is refused nothing"
)
def test_a_folder_that_cannot_be_written(capsys: Capture, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written" in streams(capsys, "report", MODEL, "-o", tmp_path / "r.html", code=3)[1]


def test_nothing_but_what_is_needed_is_imported(tmp_path: Path) -> None:
    program = "import sys; from irexec.cli.main import run; run(sys.argv[1:]); sys.exit(repr({'onnx', 'openvino', 'PIL'} & {*sys.modules}))"
    command = [sys.executable, "-c", program, "report", str(MODEL), "-o", str(tmp_path / "r.html"), "--graph", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("set()")
