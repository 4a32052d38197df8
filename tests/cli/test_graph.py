"""irexec graph."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Capture, streams
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
