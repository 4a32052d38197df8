"""Limits of memory and time on the command line, and Ctrl-C in the middle of a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.cli.values import MEMORY_SIZE
from tests.support.loops import endless_loop
from tests.support.paths import DIGITS

Capture = pytest.CaptureFixture[str]


def test_a_run_that_takes_too_long_has_an_exit_code_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    irexec.save_model(endless_loop(), tmp_path / "m.xml")
    assert run(["infer", str(tmp_path / "m.xml"), "-i", "zeros", "--timeout", "0.05", "--json"]) == 124
    captured = capsys.readouterr()
    assert captured.err.startswith("error: the run took longer than 0.05 s and was stopped at layer 'loop")
    assert json.loads(captured.out)["error"]["type"] == "RunTimeoutError"
    assert run(["profile", str(tmp_path / "m.xml"), "-i", "zeros", "--timeout", "0.05"]) == 124


@pytest.mark.parametrize("command", [["infer", "-i", "zeros"], ["profile"], ["inspect", "--plan"], ["bench"]])
def test_a_limit_of_memory(command: list[str], tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (1000, 10), "x")
    builder.result(builder.emit("Tile", x, builder.constant(np.array([1, 1000])), name="large"))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    assert run([*command, str(tmp_path / "m.xml"), "--max-memory", "20M"]) == 3
    error = capsys.readouterr().err
    assert "its result f32[1000,10000] takes 40000000 bytes (40 MB), and the limit of memory is 20 MB" in error
    assert "'large'" in error


@pytest.mark.parametrize("limit", ["1", "2M"])
def test_a_process_that_holds_more_than_the_limit(limit: str, capsys: Capture) -> None:
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", "random", "--max-memory", limit]) == 3
    assert "; the process already holds " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "text"),
    [*(("--timeout", text) for text in ("0", "x", "inf")), *(("--max-memory", text) for text in ("0", "2 apples"))],
)
def test_limits_that_are_not_valid(option: str, text: str, capsys: Capture) -> None:
    assert run(["infer", "nowhere.xml", option, text]) == 2
    assert option in capsys.readouterr().err


def test_help_shows_the_range_of_threads(capsys: Capture) -> None:
    assert run(["infer", "--help"]) == 0
    assert "[1<=x<=256]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "option"),
    [("infer", "--layout"), ("infer", "--plugin"), ("batch", "--tensor"), ("report", "--title"), ("serve", "--host")],
)
def test_empty_texts_are_refused(command: str, option: str, capsys: Capture) -> None:
    assert run([command, "nowhere.xml", option, ""]) == 2
    assert f"invalid value for '{option}': the value is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("500M", 500_000_000), ("2g", 2_000_000_000), ("1.5GiB", 3 << 29), ("10 kB", 10_000),
        ("2KiB", 2048), ("1T", 10**12),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert MEMORY_SIZE.convert(text, None, None) == size


_RUN = """
import sys
from irexec.runtime import execute
from irexec.cli.main import main

plain = execute.PlanRunner.__call__

def announced(self, *inputs):
    execute.PlanRunner.__call__ = plain
    print("running", flush=True)
    return plain(self, *inputs)

execute.PlanRunner.__call__ = announced
sys.argv = ["irexec", "infer", sys.argv[1], "-i", "zeros"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to another process")
def test_an_interrupt_ends_an_endless_loop(tmp_path: Path) -> None:
    irexec.save_model(endless_loop(), tmp_path / "m.xml")
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(tmp_path / "m.xml")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        # Likely within an iteration of the loop; the result is the same wherever the signal arrives.
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, error.strip()) == (130, "error: interrupted")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the addresses of a process")
@pytest.mark.slow
def test_little_memory_is_an_error_or_a_result() -> None:
    """From the interpreter's own needs on: imports, threads and BLAS fail in ways of their own."""
    import resource

    def limited(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20))

    command = [sys.executable, "-m", "irexec", "infer", str(DIGITS / "classifier.xml"), "-i", "random"]
    codes = []
    for size in (60, 100, 128, 129, 130, 131, 132, 133, 134, 136, 140, 150, 160, 180, 400):
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda size=size: limited(size))
        codes.append(done.returncode)
        assert done.returncode in (0, 3), (size, done.returncode, done.stderr)
        assert not done.returncode or done.stderr.startswith("error: "), (size, done.stderr)
        assert "there is not enough memory" in done.stderr or not done.returncode
    assert codes[0] == 3
    assert codes[-1] == 0
