"""irexec serve: names of models, and what is said without the SDK; python -m tests.serving has the rest, with clients."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from irexec.cli.main import run
from irexec.integrations import open_inference
from irexec.io import sources

MODEL = str(Path(__file__).parent.parent.parent / "samples" / "digits" / "classifier.xml")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["=x.xml"], "'=x.xml' is not NAME=MODEL"),
        (["name="], "'name=' is not NAME=MODEL"),
        ([MODEL, f"classifier={MODEL}"], "two models are called 'classifier'"),
        ([], "missing argument"),
        ([MODEL, "--max-batch", "0"], "0 is not in the range"),
        ([MODEL, "--port", "9000", "--grpc-port", "9000"], "--port and --grpc-port are both 9000"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str, capsys: Capture) -> None:
    assert run(["serve", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--no-grpc"], pytest.param(["--grpc-port", "0"], marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_port_in_use_is_named(options: list[str]) -> None:
    pytest.importorskip("kserve")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "irexec", "serve", MODEL, "--port", str(port), *options]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 3
    assert f"127.0.0.1:{port} cannot be listened on: is it in use?" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("kserve") is not None, reason="kserve is installed")
def test_without_kserve_the_command_says_what_to_install(capsys: Capture) -> None:
    assert run(["serve", MODEL]) == 4
    assert capsys.readouterr().err == "error: this needs kserve, which is not installed: pip install 'irexec[serve]'\n"


@pytest.mark.parametrize(("options", "is_noted"), [([], True), (["--no-mmap"], False), (["--json"], False)])
def test_files_that_are_mapped_are_noted(
    options: list[str], is_noted: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sources, "READ_AT_ONCE", 0)
    monkeypatch.setattr(open_inference, "load_kserve", lambda: None)
    monkeypatch.setattr(open_inference, "serve", lambda models, options, started: None)
    assert run(["serve", MODEL, *options]) == 0
    assert ("classifier.bin is mapped: " in capsys.readouterr().err) is is_noted
