"""Calls of the command in this process, and what it printed."""

from __future__ import annotations

import pytest

from irexec.cli.main import run
from tests.support.paths import IRS

Capture = pytest.CaptureFixture[str]


def streams(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What a command writes to stdout and to stderr, where no traceback is."""
    assert run([str(argument) for argument in arguments]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def stdout(capsys: Capture, *arguments: object, code: int = 0) -> str:
    """What a command writes to stdout."""
    return streams(capsys, *arguments, code=code)[0]


def stderr(capsys: Capture, *arguments: object, code: int = 2) -> str:
    """What a command that fails writes to stderr."""
    return streams(capsys, *arguments, code=code)[1]


MODEL = IRS / "convolutions.xml"
