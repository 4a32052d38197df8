"""Calls of the command in this process, and what it printed."""

from __future__ import annotations

import pytest

from irexec.cli.main import run
from tests.support.paths import IRS

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, *arguments: object, code: int = 0) -> str:
    """What a command writes to stdout."""
    assert run([str(argument) for argument in arguments]) == code
    return capsys.readouterr().out


def complained(capsys: Capture, *arguments: object, code: int = 2) -> str:
    """What a command that fails writes to stderr, which is no traceback."""
    assert run([str(argument) for argument in arguments]) == code
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err


MODEL = IRS / "convolutions.xml"
