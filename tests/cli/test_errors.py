"""What goes wrong: closed pipes, signals, unreadable files, errors as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irexec.cli.main import run
from tests.cli.calling import MODEL, Capture, stderr, stdout
from tests.support.paths import DIGITS


def as_program(*arguments: object, **how: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    words = [sys.executable, "-c", "from irexec.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(words, text=True, stderr=subprocess.PIPE, check=False, **how)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["ops"], 0), (["ops", "--json"], 0), (["--help"], 0), (["validate", DIGITS / "damaged.xml"], 1)],
)
def test_a_pipe_that_nobody_reads_leaves_the_exit_code_true(arguments: list[object], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = as_program(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_closed_stdout_is_not_an_error() -> None:
    """Python has None for it then."""
    words = [sys.executable, "-c", "import sys; sys.stdout = None; from irexec.cli.main import main; main()", "ops"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["infer", "nowhere.xml", "--json"], 3, "ModelError"),
        (["infer", MODEL, "--json"], 2, "InputError"),
        (["infer", "--json"], 2, "UsageError"),
        (["inspect", "nowhere.xml", "--json"], 3, "ModelError"),
        (["validate", "nowhere.xml", "--json"], 3, "ModelError"),
        (["validate", "nowhere.xml", "--format", "json"], 3, "ModelError"),
        (["convert", "nowhere.onnx", "--json"], 3, "ConversionError"),
        (["ops", "Gathr", "--json"], 2, "InputError"),
    ],
)
def test_errors_are_documents_too(arguments: list[object], code: int, kind: str, capsys: Capture) -> None:
    document = json.loads(stdout(capsys, *arguments, code=code))
    assert document["schema"] == 1
    assert document["error"]["type"] == kind
    assert document["error"]["exit_code"] == code
    assert document["error"]["message"]


def test_files_of_another_kind_are_named_for_what_they_are(capsys: Capture, tmp_path: Path) -> None:
    assert "is an ONNX model: it has no .bin" in stderr(capsys, "inspect", DIGITS / "classifier.onnx", "--no-mmap")
    assert "exists: -o names another file to write" in stderr(capsys, "convert", DIGITS / "classifier.xml")
    err = stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", DIGITS / "labels.txt", code=3)
    assert (
        "not a readable .npy, .npz or image (.png, .jpg, .jpeg, .bmp, .gif, .webp, .tif, .tiff, .ppm, .pgm, .pbm): it starts with b'zero"
        in err
    )
    err = stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", "random", "--bin", tmp_path, code=3)
    assert f"the weights {str(tmp_path)!r} cannot be read: {tmp_path.name} is a folder" in err
    np.savez(tmp_path / "odd.npz", y=np.zeros(1))
    err = stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", tmp_path / "odd.npz")
    assert "odd.npz: there is no input 'y'" in err


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.sampled(2)
def test_a_signal_in_the_middle_of_writing_leaves_nothing(name: str, code: int, tmp_path: Path) -> None:
    """The process signals itself when the files are open and half-written."""
    program = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell lets what runs in the background ignore it.
from irexec.cli.main import main
from irexec.io.writer import Writer

written = Writer.document

def stopped(self, *arguments):
    written(self, *arguments)
    signal.raise_signal(signal.{name})

Writer.document = stopped
main()
"""
    words = [sys.executable, "-c", program, "convert", str(DIGITS / "classifier.onnx"), "-o", str(tmp_path / "m.xml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_constant_that_cannot_be_read_is_named(capsys: Capture) -> None:
    assert run(["inspect", str(DIGITS / "damaged.xml"), "--weights"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: layer 15 'dense6.w' (Constant, line 273): has 5120 bytes, f64[128,10] takes 10240\n"
