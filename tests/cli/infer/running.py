"""Runs of the command, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irexec.cli.main import run
from tests.support.paths import DIGITS

CLASSIFIER = DIGITS / "classifier.xml"
Capture = pytest.CaptureFixture[str]


def infer(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What the command writes to stdout and stderr."""
    assert run(["infer", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def values(capsys: Capture, *arguments: object, code: int = 0) -> dict:
    """The JSON document."""
    return json.loads(infer(capsys, *arguments, "--json", code=code)[0])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
