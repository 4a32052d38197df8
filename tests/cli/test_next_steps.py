"""The last line of a report names a command, which runs as it stands and says more."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.support.paths import DIGITS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A classifier, one with other pads, results that are wrong, and a model that makes infinities."""
    model = irexec.read_model(DIGITS / "classifier.xml")
    irexec.save_model(model, tmp_path / "right.xml")
    next(node for node in model.nodes if node.id == 8).attributes |= {"pads_begin": "2,1", "pads_end": "0,1"}
    irexec.save_model(model, tmp_path / "faulty model.xml")
    np.savez(tmp_path / "wrong.npz", probabilities=np.zeros((1, 10), np.float32))
    builder = irexec.Builder("m")
    x = builder.emit("Divide", builder.emit("Abs", builder.parameter("f32", (3,), "x")), np.float32(0), name="divide")
    builder.result(builder.emit("Negative", x))
    for name in ("infinite.xml", "min.xml"):
        irexec.save_model(builder.model(), tmp_path / name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("command", "following"),
    [
        ("compare right.xml 'faulty model.xml' --seed 3", "reduce 'faulty model.xml' -o min.xml --against right.xml --seed=3"),
        (
            "compare right.xml 'faulty model.xml' -i random --shape '[1,1,8,8]'",
            "reduce 'faulty model.xml' -o min.xml --against right.xml -i random --shape '[1,1,8,8]'",
        ),
        ("diff right.xml 'faulty model.xml'", "compare right.xml 'faulty model.xml'"),
        ("infer infinite.xml -i ones --trap nan,inf", "reduce infinite.xml -o min.xml --trap inf -i ones"),
        ("infer min.xml -i ones --trap nan,inf", "reduce min.xml -o smaller.xml --trap inf -i ones"),
        ("infer right.xml -i ones --assert wrong.npz", "compare right.xml --a-runtime reference -i ones"),
    ],
)  # fmt: skip
def test_the_command_to_continue_with(command: str, following: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(command)) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"next: irexec {following}"
    assert run(shlex.split(following)) in (0, 1)
    capsys.readouterr()
    assert run([*shlex.split(command), "--json"]) == 1
    printed = capsys.readouterr()
    assert "next: " not in printed.err
    json.loads(printed.out)


def test_a_damaged_model_is_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "right.xml", str(DIGITS / "damaged.xml")]) == 1
    assert "next: " not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "compare right.xml right.xml",
        "diff right.xml right.xml",
        "infer right.xml -i ones",
        "infer infinite.xml -i ones --trap nan",
    ],
)
def test_nothing_follows_where_nothing_is_wrong(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(command)) == 0
    assert "next: " not in capsys.readouterr().err
