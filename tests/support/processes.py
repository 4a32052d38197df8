"""This Python as another process, with the irexec of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from irexec.schema.plugins import VARIABLE
from tests.support.paths import ROOT


def python(
    *words: str, folder: Path | None = None, timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, whatever its exit code.

    Args:
        words: its arguments.
        folder: its working directory; that of this process unless given.
        timeout: seconds.
        variables: environment variables, beside those of this process without plug-ins.
    """
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


_COMMANDS = """
import contextlib, io, json, sys
from irexec.cli.main import run

done = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(words)
    done.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""


def commands(folder: Path, *lines: list[str], **variables: str) -> list[tuple[int, str, str]]:
    """The exit code, stdout and stderr of each command of irexec; one process runs them, one after the other."""
    done: list[tuple[int, str, str]] = [
        tuple(one) for one in json.loads(said(folder, "-c", _COMMANDS, json.dumps(lines), **variables)[0])
    ]
    assert not any("Traceback" in text for _, *texts in done for text in texts)
    return done


def said(folder: Path, *words: str, code: int = 0, **variables: str) -> tuple[str, str]:
    """Texts on stdout and stderr of a process that ends with ``code`` and without a traceback."""
    done = python(*words, folder=folder, **variables)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr
