"""Paths of files that are read: those with ``=``, files without a byte, models that may not be read, and labels that are not text."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from irexec.tools.run.input_sources import InputSource, parse_input_source
from tests.cli.calling import Capture, stderr
from tests.support.paths import DIGITS

MODEL = DIGITS / "classifier.xml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with arrays whose paths hold ``=``."""
    (tmp_path / "day=1").mkdir()
    for name in ("day=1/x.npy", "a=b.npy", "b.npy"):
        np.save(tmp_path / name, np.zeros((1, 1, 8, 8), np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "name", "source"),
    [
        ("b.npy", None, "b.npy"),
        ("image=b.npy", "image", "b.npy"),
        ("a=b.npy", "a", "b.npy"),
        ("image=a=b.npy", "image=a", "b.npy"),
        ("./a=b.npy", "./a", "b.npy"),
        ("day=1/x.npy", None, "day=1/x.npy"),
        ("image=day=1/x.npy", "image", "day=1/x.npy"),
        ("a=b=day=1/x.npy", "a=b", "day=1/x.npy"),
        ("=day=1/x.npy", None, "day=1/x.npy"),
        ("day=1/y.npy", "day", "1/y.npy"),
        ("a=b=random", "a=b", "random"),
        ("a=b=-", "a=b", "-"),
        ("a=b=y.npy", "a=b", "y.npy"),
    ],
)
def test_names_and_paths_may_hold_equals_signs(text: str, name: str | None, source: str, folder: Path) -> None:
    assert parse_input_source(text) == InputSource(name, source)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x", "x.png"])
def test_a_file_without_a_byte_is_said_to_be_empty(name: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).touch()
    message = stderr(capsys, "infer", MODEL, "-i", tmp_path / name, code=3)
    assert "is empty" in message
    assert "b''" not in message


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "{}"),
        ("infer", "{}", "-i", "random"),
        ("convert", "{}"),
        ("validate", "{}"),
        ("ops", "--check", "{}"),
    ],
)
def test_a_model_that_may_not_be_read_is_not_wrong_usage(
    command: tuple[str, ...], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes((DIGITS / "classifier.onnx").read_bytes())
    monkeypatch.setattr(os, "access", lambda *given, **more: False)

    def refuse(given: str | Path, *rest: object, **more: object) -> object:
        if str(given) == str(path):
            raise PermissionError(13, "Permission denied", str(given))
        return open(given, *rest, **more)

    monkeypatch.setattr("irexec.io.reading.open", refuse, raising=False)
    message = stderr(capsys, *(word.format(path) for word in command), code=3)
    assert f"{path}: cannot be read: Permission denied" in message


def test_labels_that_are_not_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "labels.txt").write_bytes(b"caf\xe9\n")
    message = stderr(capsys, "infer", MODEL, "-i", "random", "--topk", "1", "--labels", tmp_path / "labels.txt", code=3)
    assert message.endswith("labels.txt: not a list of labels in UTF-8: it has the byte 0xe9\n")
