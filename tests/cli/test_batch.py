"""irexec batch: what it prints, its exit codes, and its options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from irexec.cli.main import run
from tests.support.paths import DIGITS

MODEL = str(DIGITS / "classifier.xml")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def source(tmp_path: Path) -> str:
    np.save(tmp_path / "x.npy", np.random.default_rng(1).random((30, 1, 8, 8), np.float32))
    return str(tmp_path / "x.npy")


@pytest.mark.slow
def test_scores_are_those_of_the_model(tmp_path: Path, source: str, capsys: Capture) -> None:
    assert run(["batch", MODEL, source, "-o", str(tmp_path / "out.npy"), "--jobs", "1"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out.npy'}: 30 of 30 items\n"
    found = np.load(tmp_path / "out.npy")
    np.testing.assert_allclose(found.sum(axis=1), np.ones(30), rtol=1e-5)


def test_failures(tmp_path: Path, source: str, capsys: Capture) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((25, 5), np.float32))
    assert (
        run(["batch", MODEL, source, str(tmp_path / "wrong.npy"), "-o", str(tmp_path / "out.jsonl"), "--jobs", "1"])
        == 1
    )
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out.jsonl'}: 30 of 55 items, 25 failed\n"
    lines = printed.err.splitlines()
    assert lines[0].startswith(f"error: {tmp_path / 'wrong.npy'}[0]: the item has shape [5] for input image")
    assert lines[20:] == ["5 more items failed, which the manifest lists"]


@pytest.mark.slow
def test_json_is_a_line_for_each_part(tmp_path: Path, source: str, capsys: Capture) -> None:
    assert run(["batch", MODEL, source, "-o", str(tmp_path / "out"), "--jobs", "1", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["part"] * 30 + ["end"]
    assert lines[-1]["done"] == 30


@pytest.mark.parametrize(
    "line, says",
    [
        (["-o", "out.npz", "--format", "npy"], "--format npy is for a folder, and -o out.npz ends in .npz"),
        (["-o", "out.npz", "--labels", "x"], "--labels is for --topk, which is not given"),
        (["-o", "out.npz", "--axis", "1"], "--axis is for --topk, which is not given"),
        ([], "missing option '-o' / '--output'"),
        (["-o", "out.npz", "--shape", "y[1,1,8,8]"], "there is no input 'y'"),
        (["-o", "out.npz", "--tensor", "nothing"], "there is no tensor or layer 'nothing'"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, source: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, line: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["batch", MODEL, source, *line]) == 2
    assert says in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The items x.npy and the output whole.npz of a job that nothing has interrupted, in one folder."""
    folder = tmp_path_factory.mktemp("whole")
    np.save(folder / "x.npy", np.random.default_rng(1).random((30, 1, 8, 8), np.float32))
    arguments = ["batch", MODEL, str(folder / "x.npy"), "-o", str(folder / "whole.npz"), "--batch-size", "1"]
    assert run([*arguments, "--jobs", "1"]) == 0
    return folder


def _command(source: Path, output: Path) -> list[str]:
    options = ["--batch-size", "1", "--jobs", "2"]
    return [sys.executable, "-m", "irexec", "batch", MODEL, str(source), "-o", str(output), *options]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
@pytest.mark.parametrize("number, code", [("SIGKILL", -9), ("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.slow
def test_a_command_that_is_ended_continues(
    tmp_path: Path, whole: Path, number: str, code: int, capsys: Capture
) -> None:
    command = _command(whole / "x.npy", tmp_path / "out.npz")
    begun = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert begun.stdout is not None
    begun.stdout.readline()
    begun.send_signal(getattr(signal, number))
    assert begun.wait(60) == code
    begun.stdout.close()
    capsys.readouterr()
    assert run([*command[3:-1], "1", "--resume"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'out.npz'}: 30 of 30 items, ")
    assert (tmp_path / "out.npz").read_bytes() == (whole / "whole.npz").read_bytes()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are found in /proc")
@pytest.mark.slow
def test_processes_end_with_the_command(tmp_path: Path, source: str) -> None:
    command = _command(Path(source), tmp_path / "out")
    begun = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert begun.stdout is not None
    begun.stdout.readline()
    children = [
        int(pid)
        for task in Path(f"/proc/{begun.pid}/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    assert children
    begun.kill()
    begun.wait()
    begun.stdout.close()
    end = time.monotonic() + 60
    while time.monotonic() < end and any(Path(f"/proc/{pid}/exe").is_symlink() and _is_alive(pid) for pid in children):
        time.sleep(0.05)
    assert not any(_is_alive(pid) for pid in children)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
