"""Progress bars: on stderr where that is a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from irexec.cli import render
from irexec.cli.main import run
from tests.support.paths import DIGITS

MODEL = str(DIGITS / "classifier.xml")
COMMANDS = [
    (["inspect", MODEL, "--weights"], "reading weights"),
    (["inspect", MODEL], f"reading {MODEL}"[:20]),
    (["validate", MODEL], "validating"),
    (["validate", str(DIGITS)], "validating"),
]
# These show at once that they work, and a bar when they have run for a second.
RUNNING = [
    (["infer", MODEL, "-i", "random"], f"running {MODEL}"[:20]),
    (["infer", MODEL, "-i", "random", "--trap", "nan"], f"running {MODEL}"[:20]),
    (["profile", MODEL, "--runs", "3", "-i", "random"], f"running {MODEL}"[:20]),
]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("arguments", "text"), [*COMMANDS, *RUNNING])
def test_a_terminal_shows_a_bar(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(render, "DELAY", 0)
    run(arguments)
    assert text in terminal.getvalue()
    # Of files the bar shows the number, of other work the percentage.
    assert ("7/7" if arguments == ["validate", str(DIGITS)] else "100%") in terminal.getvalue()
    assert text not in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "text"), [*COMMANDS, *RUNNING])
def test_a_file_gets_none(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(arguments)
    assert capsys.readouterr().err == ""


def test_what_is_done_within_a_second_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(render, "DELAY", 60)
    for arguments, _ in COMMANDS:
        run(arguments)
    assert terminal.getvalue() == ""


def test_a_dumb_terminal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    run(COMMANDS[0][0])
    assert terminal.getvalue().strip() == ""
