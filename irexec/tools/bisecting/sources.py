"""Where releases come from: environments of a folder, made with venv and pip as they are needed."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from irexec.tools.bisecting.catalogue import PYTHONS, Python, interpreters, published
from irexec.tools.bisecting.options import ReleaseRange
from irexec.tools.commands import last_line, run_command
from irexec.tools.engines.releases.environments import Release, environment_of, installed, python_of

_SECONDS = 1800
# The first release whose wheels run with NumPy 2, but do not say that older ones do not. Source: release notes.
_NUMPY_2 = {"onnxruntime": (1, 19)}


class Releases(ABC):
    """The releases of a range.

    Attributes:
        folder: of the environments.
    """

    folder: Path

    @abstractmethod
    def named(self, wanted: ReleaseRange, advance: Callable[[float], object]) -> list[Release]:
        """The releases of a range, the oldest first; ``advance`` is called with each finished part of the work."""

    @abstractmethod
    def why_not(self, release: Release) -> str:
        """Make the environment of a release; the reason if it cannot be made, "" if it is there."""


class InstalledReleases(Releases):
    """The releases that a folder has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def named(self, wanted: ReleaseRange, advance: Callable[[float], object]) -> list[Release]:
        advance(1)
        return [release for release in installed(wanted.package, self.folder) if release in wanted]

    def why_not(self, release: Release) -> str:
        return ""


class PublishedReleases(Releases):
    """Releases from the index of pip, installed into a folder when they are asked for, and those of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
            code, said = run_command(command, _SECONDS)
            if code != 0:
                return f"not installed: {last_line(said) or f'pip took longer than {_SECONDS} s'}"
        os.rename(made, environment_of(release, folder))
        return ""
    finally:
        shutil.rmtree(made, ignore_errors=True)
