"""irexec profile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Capture, streams
from tests.support.paths import DIGITS

MODEL = DIGITS / "classifier.xml"


def test_the_document(capsys: Capture) -> None:
    document = json.loads(streams(capsys, "profile", MODEL, "--runs", 2, "--threads", 1, "--json")[0])
    assert set(document) == {
        "schema", "model", "threads", "kernels", "runs", "milliseconds", "minimum", "observed", "in_steps", "cost",
        "by", "rows",
    }  # fmt: skip
    assert (document["schema"], document["by"], document["threads"], document["runs"]) == (1, "step", 1, 2)
    keys = {"name", "layers", "type", "algorithm", "milliseconds", "share", "macs", "parameters", "bytes", "gflops"}
    assert all(set(row) == keys for row in document["rows"])
    assert document["rows"][0]["layers"] == ["conv0/Convolution", "conv0", "relu1"]


@pytest.mark.parametrize("by", ["step", "layer", "type"])
def test_it_fits_80_columns(by: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text, _ = streams(capsys, "profile", MODEL, "--by", by, "--runs", 1)
    assert max(map(len, text.splitlines())) <= 80
    assert "84.2 kMACs" in text


def test_inputs_are_random_unless_given_and_a_note_says_so(capsys: Capture, tmp_path: Path) -> None:
    assert (
        streams(capsys, "profile", MODEL, "--runs", 1)[1] == "note: inputs are random, with seed 0; -i gives others\n"
    )
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    assert streams(capsys, "profile", MODEL, "--runs", 1, "-i", tmp_path / "x.npy")[1] == ""


def test_shapes(capsys: Capture) -> None:
    rows = json.loads(streams(capsys, "profile", MODEL, "--runs", 1, "--shape", "image[3,1,8,8]", "--json")[0])["rows"]
    assert sum(row["macs"] for row in rows) == 3 * 84224


def test_without_optimisation_each_layer_is_a_step(capsys: Capture) -> None:
    rows = json.loads(streams(capsys, "profile", MODEL, "--runs", 1, "--no-optimize", "--json")[0])["rows"]
    assert len(rows) == 12 and {row["algorithm"] for row in rows} == {"reference"}


def test_static_is_the_cost_of_inspect_and_says_so(capsys: Capture, tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "m.xml")
    text, err = streams(capsys, "profile", tmp_path / "m.xml", "--static")
    assert err == "note: --static is deprecated: irexec inspect MODEL --cost shows the same table\n"
    assert streams(capsys, "inspect", tmp_path / "m.xml", "--cost")[0].endswith(text)
    document = json.loads(streams(capsys, "profile", tmp_path / "m.xml", "--static", "--json")[0])
    inspected = json.loads(streams(capsys, "inspect", tmp_path / "m.xml", "--cost", "--json")[0])
    assert inspected["cost"] == {name: document[name] for name in inspected["cost"]}
    assert document["cost"]["macs"] == 84224
    assert "m.bin does not exist" in streams(capsys, "profile", tmp_path / "m.xml", code=3)[1]


def test_the_trace_is_in_chrome_s_format(capsys: Capture, tmp_path: Path) -> None:
    streams(capsys, "profile", MODEL, "--runs", 2, "--trace", tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["displayTimeUnit"] == "ms"
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert all(isinstance(event[key], int | float) for event in events for key in ("ts", "dur", "pid", "tid"))
    runs = [event for event in events if event["cat"] == "run"]
    steps = [event for event in events if event["cat"] != "run"]
    assert [event["name"] for event in runs] == ["run 1", "run 2"]
    assert steps[0]["args"]["layers"] == ["conv0/Convolution", "conv0", "relu1"]
    for step in steps:
        assert any(
            one["ts"] <= step["ts"] and step["ts"] + step["dur"] <= one["ts"] + one["dur"] + 1e-3 for one in runs
        )
    # Viewers tell what is nested by the times: no two steps overlap.
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in pairwise(steps))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("t.txt", "--trace {}/t.txt does not end in .json"),
        ("nowhere/t.json", "the folder {}/nowhere does not exist"),
        ("folder.json", "--trace {}/folder.json is a folder, not a regular file"),
    ],
)
def test_traces_that_cannot_be_written(path: str, message: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    assert message.format(tmp_path) in streams(capsys, "profile", MODEL, "--trace", tmp_path / path, code=2)[1]


def test_a_trace_never_overwrites_what_is_read(capsys: Capture, tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        shutil.copy(MODEL.with_suffix(suffix), tmp_path / f"m{suffix}")
    os.link(tmp_path / "m.bin", tmp_path / "weights.json")
    before = (tmp_path / "m.bin").read_bytes()
    assert (
        "is the model's weights, which would be overwritten"
        in streams(capsys, "profile", tmp_path / "m.xml", "--trace", tmp_path / "weights.json", code=2)[1]
    )
    assert (tmp_path / "m.bin").read_bytes() == before


def test_a_trace_that_fails_leaves_what_was_there(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.json").write_text("old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("irexec.io.files.os.fsync", full)
    assert (
        "t.json: cannot be written: No space left"
        in streams(capsys, "profile", MODEL, "--runs", 1, "--trace", tmp_path / "t.json", code=3)[1]
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t.json", "old")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--static", "-i", "random"], "--input is about running the model, which --static does not"),
        (["--static", "--runs", "3"], "--runs is about running the model"),
        (["--static", "--threads", "1"], "--threads is about running the model"),
        (["--static", "--trace", "t.json"], "--trace is about running the model"),
        (["--static", "--by", "step"], "--by is about running the model"),
        (["--static", "--sort", "time"], "--sort is about running the model"),
        (["--runs", "0"], "0 is not in the range 1<=x<=1000000"),
        (["--by", "node"], "'node' is not one of"),
        (["--shape", "1,3,8,8"], "the model does not take --shape [1,3,8,8]"),
        (["--shape", "y[1]"], "there is no input 'y'"),
        (["-i", "y=random"], "there is no input 'y'"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: Capture) -> None:
    err = streams(capsys, "profile", MODEL, *arguments, code=2)[1]
    assert message in err
    assert err.count("error:") == 1 and "Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["--static"]])
def test_models_that_cannot_be_profiled(arguments: list[str], capsys: Capture) -> None:
    assert (
        "an execution graph" in streams(capsys, "profile", DIGITS.parent / "execution_graph.xml", *arguments, code=3)[1]
    )
    assert "cannot be read" in streams(capsys, "profile", "nowhere.xml", *arguments, code=3)[1]


@pytest.mark.slow
def test_nobody_reads_the_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "irexec", "profile", str(MODEL), "--runs", "1", "-i", "random"]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
