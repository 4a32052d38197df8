"""irexec graph and irexec report."""

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
from tests.support.paths import ROOT

DIGITS = ROOT / "samples" / "digits"
MODEL = DIGITS / "classifier.xml"


def test_mermaid_is_printed(capsys: Capture) -> None:
    out, err = streams(capsys, "graph", MODEL)
    assert out.startswith("flowchart TD\n") and out.count("-->") == 13 and err == ""


@pytest.mark.parametrize(
    ("form", "begin"), [("dot", "digraph"), ("svg", "<?xml"), ("html", "<!DOCTYPE html>"), ("mmd", "flowchart")]
)
def test_formats_are_printed_whole(form: str, begin: str, capsys: Capture) -> None:
    out, _ = streams(capsys, "graph", MODEL, "--format", form)
    assert out.startswith(begin) and "conv0/Convolution" in out
    assert out.rstrip().endswith({"dot": "}", "svg": "</svg>", "html": "</html>", "mmd": "color:#15191e"}[form])


def test_a_file_is_written_and_said(capsys: Capture, tmp_path: Path) -> None:
    out, err = streams(capsys, "graph", MODEL, "-o", tmp_path / "g.svg")
    size = (tmp_path / "g.svg").stat().st_size
    assert out == f"{tmp_path}/g.svg: 21 layers, 7 constants drawn in others; {size:,} bytes\n" and err == ""


def test_a_part_is_drawn(capsys: Capture, tmp_path: Path) -> None:
    out, _ = streams(capsys, "graph", MODEL, "-o", tmp_path / "g.dot", "--from", "relu1", "--to", "maxpool2")
    assert "2 of 21 layers, 0 constants" in out
    document = json.loads(streams(capsys, "graph", MODEL, "--around", "relu1", "--hops", 1, "--json")[0])
    assert [layer["name"] for layer in document["layers"]] == ["conv0", "relu1", "maxpool2"]
    assert len(document["edges"]) == 2 and document["file"] is None


def test_times_are_marked(capsys: Capture) -> None:
    document = json.loads(streams(capsys, "graph", MODEL, "--profile", "--runs", 1, "--no-optimize", "--json")[0])
    timed = [layer["name"] for layer in document["layers"] if layer["milliseconds"] is not None]
    assert len(timed) == 12 and "conv0" in timed
    out, err = streams(capsys, "graph", MODEL, "--profile", "--runs", 1)
    assert " ms (" in out and err.startswith("note: inputs are random")


def test_findings_are_marked(capsys: Capture) -> None:
    out, _ = streams(capsys, "graph", DIGITS / "damaged.xml", "--findings")
    assert "error IR107" in out and "classDef marked" in out


def test_onnx_models_are_drawn(capsys: Capture) -> None:
    pytest.importorskip("onnx")
    assert "flowchart TD" in streams(capsys, "graph", DIGITS / "classifier.onnx")[0]


def test_execution_graphs_are_drawn(capsys: Capture) -> None:
    assert streams(capsys, "graph", ROOT / "samples" / "execution_graph.xml", "--format", "dot")[0].startswith(
        "digraph"
    )


def test_without_weights_there_are_no_statistics(capsys: Capture, tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "m.xml")
    _, err = streams(capsys, "graph", tmp_path / "m.xml", "-o", tmp_path / "m.html")
    assert "the values of 7 constants cannot be read" in err
    assert streams(capsys, "graph", tmp_path / "m.xml", "-o", tmp_path / "m.html", "--no-statistics")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "g.txt"], "a graph is written to a file that ends in .svg, .html"),
        (["-o", "nowhere/g.svg"], "the folder nowhere does not exist"),
        (["--hops", "2"], "--hops is for --around, which is not given"),
        (["--runs", "2"], "--runs is for --profile, which is not given"),
        (["-i", "random"], "--input is for --profile, which is not given"),
        (["--scale", "2"], "--scale is for .png"),
        (["--no-statistics"], "--no-statistics is for .html"),
        (["--columns", "2"], "--columns is for .svg and .png"),
        (["-o", "g.dot", "--format", "svg"], "the suffix of -o says what is written"),
        (["--format", "svg", "--json"], "--format and --json both say what is printed"),
        (["--around", "con0"], "there is no tensor or layer 'con0'; similar names are"),
        (["--from", "conv3", "--to", "conv0"], "no path leads from 'conv3' to 'conv0'"),
        (["--hops", "-1", "--around", "conv0"], "-1 is not in the range"),
        (["--shape", "y[1]"], "there is no input 'y'"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    err = streams(capsys, "graph", MODEL, *arguments, code=2)[1]
    assert message in err and err.count("error:") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_read_is_overwritten(capsys: Capture, tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "m.xml")
    shutil.copy(MODEL.with_suffix(".bin"), tmp_path / "weights.svg")
    before = (tmp_path / "weights.svg").read_bytes()
    err = streams(
        capsys, "graph", tmp_path / "m.xml", "--bin", tmp_path / "weights.svg", "-o", tmp_path / "weights.svg", code=2
    )[1]
    assert "is the model's weights, which would be overwritten" in err
    np.testing.assert_array_equal(
        np.frombuffer((tmp_path / "weights.svg").read_bytes(), np.uint8), np.frombuffer(before, np.uint8)
    )


def test_a_package_that_is_missing_is_named(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    err = streams(capsys, "graph", MODEL, "-o", tmp_path / "g.png", code=4)[1]
    assert "pip install 'irexec[png]'" in err and list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read(capsys: Capture) -> None:
    assert "cannot be read" in streams(capsys, "graph", "nowhere.xml", code=3)[1]


# irexec report: what it writes and says, and what it refuses.


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


def test_a_file_that_is_not_a_model(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text("<html></html>")
    assert "m.xml" in streams(capsys, "report", tmp_path / "m.xml", "-o", tmp_path / "r.html", code=3)[1]
    assert not (tmp_path / "r.html").exists()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="whoever may write everywhere is refused nothing"
)
def test_a_folder_that_cannot_be_written(capsys: Capture, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written" in streams(capsys, "report", MODEL, "-o", tmp_path / "r.html", code=3)[1]


@pytest.mark.slow
def test_nothing_but_what_is_needed_is_imported(tmp_path: Path) -> None:
    program = "import sys; from irexec.cli.main import run; run(sys.argv[1:]); sys.exit(repr({'onnx', 'openvino', 'PIL'} & {*sys.modules}))"
    command = [sys.executable, "-c", program, "report", str(MODEL), "-o", str(tmp_path / "r.html"), "--graph", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("set()")
