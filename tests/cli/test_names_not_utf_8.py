"""Linux has names of files that are not UTF-8: every command reads and writes them, and shows them as escapes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from irexec.cli.main import run
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names are text, or normalised")

SAMPLES = ROOT / "samples/digits"
MODEL, IMAGE = "model\udcff", "digit\udcff.png"
COMMANDS = [
    "validate MODEL.xml",
    "validate MODEL.xml --json",
    "validate MODEL.xml --format sarif",
    "validate MODEL.xml --format junit",
    "infer MODEL.xml -i IMAGE -o OUT.npz --dump-layers OUT",
    "infer MODEL.xml -i random --record-range OUT.json",
    "inspect MODEL.xml --json",
    "convert MODEL.onnx -o OUT.xml",
    "diff MODEL.xml MODEL.xml",
    "compare MODEL.xml MODEL.onnx --b-runtime reference",
    "report MODEL.xml -o OUT.html",
    "profile MODEL.xml --runs 1 --trace OUT.json",
    "batch MODEL.xml IMAGE -o OUT.npz",
    "batch MODEL.xml IMAGE -o OUT.jsonl",
    "batch MODEL.xml . -o OUT/ --format npy",
    "graph MODEL.xml -o OUT.mmd",
    "graph MODEL.xml -o OUT.dot",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_command(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if "MODEL.onnx" in command:
        pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    for source, name in [
        *((f"classifier{end}", f"{MODEL}{end}") for end in (".xml", ".bin", ".onnx")),
        ("digit_7.png", IMAGE),
    ]:
        Path(name).write_bytes((SAMPLES / source).read_bytes())
    words = [
        word.replace("MODEL", MODEL).replace("IMAGE", IMAGE).replace("OUT", "out\udcfe") for word in command.split()
    ]
    before = set(os.listdir())
    assert run(words) == 0, capfd.readouterr().err
    assert {name.partition(".")[0] for name in set(os.listdir()) - before} == (
        {"out\udcfe"} if "OUT" in command else set()
    )
    capfd.readouterr().out.encode()


@pytest.mark.slow
def test_items_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names are texts of the output, which every reader of .npz and JSON takes."""
    monkeypatch.chdir(tmp_path)
    Path(IMAGE).write_bytes((SAMPLES / "digit_7.png").read_bytes())
    for output in ("a.npz", "a.jsonl"):
        assert run(["batch", str(SAMPLES / "classifier.xml"), IMAGE, "-o", output]) == 0
        assert run(["batch", str(SAMPLES / "classifier.xml"), IMAGE, "-o", output, "--resume"]) == 0
    with np.load("a.npz") as found:
        assert found["item"].tolist() == ["digit\\udcff.png"]
    assert json.loads(Path("a.jsonl").read_text())["item"] == "digit\\udcff.png"
