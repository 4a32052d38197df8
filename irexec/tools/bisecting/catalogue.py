"""The releases that pip can install, by the version of Python, and the interpreters of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from irexec.errors import UnsupportedError
from irexec.tools.commands import last_line, run_command
from irexec.tools.engines.releases.environments import Release, clean_environment

Python = tuple[int, int]
"""Major and minor version."""

PYTHONS: tuple[Python, ...] = tuple((3, minor) for minor in range(7, 15))
"""The Pythons whose releases are asked for, installed here or not."""

_ASK = "import json, sys, venv, ensurepip; print(json.dumps(sys.version_info[:2]))"
_SECONDS = 60


def interpreters() -> dict[Python, str]:
    """The interpreters on PATH, in the folder of pyenv, and this one, by version; each can make environments."""
    found: dict[Python, str] = {}
    for path in _candidates():
        version = _version(path)
        if version in PYTHONS:
            found.setdefault(version, path)
    return found


def _candidates() -> Iterator[str]:
    yield sys.executable
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob("versions/3.*/bin/python"), reverse=True))
    for major, minor in PYTHONS:
        path = shutil.which(f"python{major}.{minor}")
        if path is not None:
            yield path


def _version(path: str) -> Python | None:
    """The version of an interpreter; None if it does not start, as a shim of pyenv, or makes no environments."""
    try:
        done = subprocess.run(
            [path, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, env=clean_environment(), check=True
        )
        major, minor = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return major, minor


def published(package: str, python: Python) -> list[Release]:
    """The releases of a package with a wheel for a Python on this platform; pre-releases are left out.

    Raises:
        UnsupportedError: pip is not installed here, or cannot reach its index.
    """
    command = [
        sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check",
        "--only-binary=:all:", f"--python-version={python[0]}.{python[1]}",
    ]  # fmt: skip
    code, said = run_command(command, _SECONDS)
    if "No matching distribution" in said:
        return []
    lines = [line.partition(":")[2] for line in said.splitlines() if line.startswith("Available versions:")]
    if code or not lines:
        raise UnsupportedError(f"pip cannot list the releases of {package}: {last_line(said)}")
    versions = [version.strip() for version in lines[0].split(",")]
    return [Release(package, version) for version in versions if all(map(str.isdigit, version.split(".")))]
