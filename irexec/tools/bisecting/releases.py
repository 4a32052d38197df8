"""The options of a bisection, and the releases that it can try: those that pip can install, and environments of a
folder, made as they are needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from irexec.errors import InputError, UnsupportedError
from irexec.tools.commands import last_line, run_command
from irexec.tools.engines.releases import (
    PACKAGES,
    Release,
    clean_environment,
    environment_of,
    installed,
    python_of,
    version_key,
)
from irexec.tools.run.shapes import Shapes

Against = Literal["irexec", "first"]
FIRST_OPENVINO = (2022, 1)
"""The first release of OpenVINO that reads IR of version 11."""


@dataclass(frozen=True)
class ReleaseRange:
    """Releases of a package from ``first`` to ``last``, both included: 2024.1 as last includes 2024.1.2.

    Raises:
        InputError: a version is not made of numbers, the range is empty, or a release reads no IR of version 11.
    """

    package: str
    first: str
    last: str

    def __post_init__(self) -> None:
        try:
            first, last = version_key(self.first), version_key(self.last)
        except ValueError:
            raise InputError(f"{self.first}..{self.last} is not a range of releases, expected A..B") from None
        if last < first[: len(last)]:
            raise InputError(f"the range {self.first}..{self.last} ends before it begins")
        if self.package == "openvino" and first < FIRST_OPENVINO:
            raise InputError(f"openvino {self.first} reads no IR of version 11, the first release that does is 2022.1")

    def __contains__(self, release: Release) -> bool:
        last = version_key(self.last)
        return release.package == self.package and version_key(self.first) <= release.key and (
            release.key[: len(last)] <= last
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.package} {self.first}..{self.last}"


def parse_range(package: str, text: str) -> ReleaseRange:
    """The range of a text such as 2023.0..2026.4; one version is a range of itself.

    Raises:
        InputError: see ReleaseRange.
    """
    first, dots, last = text.partition("..")
    return ReleaseRange(package, first, last if dots else first)


@dataclass(frozen=True, kw_only=True)
class BisectOptions:
    """Options of a bisection.

    Attributes:
        openvino, onnxruntime: the range of releases, such as 2023.0..2026.4; one of both.
        against: the other side of every comparison: irexec, or the first release that runs the model.
        all: run every release, and not only those that the search needs.
        environments: the folder of the environments; None for the default one.
        installed: only releases that the folder has; nothing is installed.
        shapes, seed, runs, rtol, atol, threads, timeout: see CompareOptions.
    """

    openvino: str | None = None
    onnxruntime: str | None = None
    against: Against = "irexec"
    all: bool = False
    environments: str | None = None
    installed: bool = False
    shapes: Shapes | None = None
    seed: int = 0
    runs: int | None = None
    rtol: float | None = None
    atol: float | None = None
    threads: int | None = None
    timeout: float | None = None


def range_of(options: BisectOptions) -> ReleaseRange:
    """The range of releases.

    Raises:
        InputError: there is none, or two; see also ReleaseRange.
    """
    given = [(package, text) for package in PACKAGES if (text := getattr(options, package)) is not None]
    if len(given) != 1:
        raise InputError(
            "expected a range of releases either of openvino or of onnxruntime, such as --openvino 2023.0..2026.4"
        )
    return parse_range(*given[0])


Python = tuple[int, int]
"""Major and minor version."""

PYTHONS: tuple[Python, ...] = tuple((3, minor) for minor in range(7, 15))
"""The Pythons whose releases are asked for, installed here or not."""

_ASK = "import json, sys, venv, ensurepip; print(json.dumps(sys.version_info[:2]))"


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
            [path, "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=60,
            env=clean_environment(),
            check=True,
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
    code, said = run_command(command, 60)
    if "No matching distribution" in said:
        return []
    lines = [line.partition(":")[2] for line in said.splitlines() if line.startswith("Available versions:")]
    if code or not lines:
        raise UnsupportedError(f"pip cannot list the releases of {package}: {last_line(said)}")
    versions = [version.strip() for version in lines[0].split(",")]
    return [Release(package, version) for version in versions if all(map(str.isdigit, version.split(".")))]


_INSTALL_SECONDS = 1800
# The first release whose wheels run with NumPy 2, but do not say that older ones do not. Source: release notes.
_NUMPY_2 = {"onnxruntime": (1, 19)}


class InstalledReleases:
    """The releases that a folder has.

    Attributes:
        folder: of the environments.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def named(self, wanted: ReleaseRange, advance: Callable[[float], object]) -> list[Release]:
        """The releases of a range, the oldest first; ``advance`` is called with each finished part of the work."""
        advance(1)
        return [release for release in installed(wanted.package, self.folder) if release in wanted]

    def why_not(self, release: Release) -> str:
        """Make the environment of a release; the reason if it cannot be made, "" if it is there."""
        return ""


class PublishedReleases(InstalledReleases):
    """Releases from the index of pip, installed into a folder when they are asked for, and those of the folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._pythons: dict[Release, list[Python]] = {}
        self._interpreters: dict[Python, str] = {}

    def named(self, wanted: ReleaseRange, advance: Callable[[float], object]) -> list[Release]:
        self._interpreters = interpreters()
        found = set(installed(wanted.package, self.folder))
        for python in PYTHONS:
            for release in published(wanted.package, python):
                found.add(release)
                self._pythons.setdefault(release, []).append(python)
            advance(1 / len(PYTHONS))
        return sorted((release for release in found if release in wanted), key=lambda release: release.key)

    def why_not(self, release: Release) -> str:
        if python_of(environment_of(release, self.folder)).exists():
            return ""
        pythons = self._pythons[release]
        # The newest one: the wheels of old Pythons are the first to be lost.
        chosen = next((python for python in reversed(pythons) if python in self._interpreters), None)
        if chosen is None:
            names = ", ".join(f"3.{minor}" for _, minor in pythons)
            return f"needs Python {names}, not found on PATH or in pyenv"
        return install(release, self._interpreters[chosen], self.folder)


def install(release: Release, interpreter: str, folder: Path) -> str:
    """Make the environment of a release; the reason if that fails. An environment is there only when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    # Its Python finds its packages after the renaming, too; only the scripts of pip do not, which are not called again.
    made = Path(tempfile.mkdtemp(prefix=f"{release.package}-{release.version}.part-", dir=folder))
    try:
        limits = ["numpy<2"] if release.key < _NUMPY_2.get(release.package, (0,)) else []
        wanted = [f"{release.package}=={release.version}", *limits]
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", *wanted]
        for command in ([interpreter, "-m", "venv", str(made)], [str(python_of(made)), *pip]):
            code, said = run_command(command, _INSTALL_SECONDS)
            if code != 0:
                return f"not installed: {last_line(said) or f'pip took longer than {_INSTALL_SECONDS} s'}"
        os.rename(made, environment_of(release, folder))
        return ""
    finally:
        shutil.rmtree(made, ignore_errors=True)
