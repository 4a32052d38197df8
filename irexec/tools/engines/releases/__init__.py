"""Releases of OpenVINO and ONNX Runtime, each in an environment of Python of its own: ``FOLDER/openvino-2024.1.0``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from irexec.errors import UnsupportedError

FOLDER = "IREXEC_RELEASES"
"""The environment variable that names the folder; by default it is irexec-releases in the user's cache."""

PACKAGES = ("openvino", "onnxruntime")
"""The packages with releases that can be runtimes."""

PROGRAM = Path(__file__).with_name("program.py")
"""The program that an environment runs; it needs the release and NumPy only."""


class Release(NamedTuple):
    """A release of a package, such as openvino 2024.1.0."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def runtime(self) -> str:
        """The name of the runtime: openvino==2024.1.0."""
        return f"{self.package}=={self.version}"

    @property
    def key(self) -> tuple[int, ...]:
        """The version as numbers; releases are ordered by it."""
        return version_key(self.version)


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    Raises:
        ValueError: it is not made of numbers and dots.
    """
    return tuple(int(part) for part in version.split("."))


def environments_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder that is given, or the default one."""
    chosen = given or os.environ.get(FOLDER)
    return Path(chosen) if chosen else Path.home() / ".cache" / "irexec-releases"


def python_of(environment: Path) -> Path:
    """The Python of an environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def environment_of(release: Release, folder: Path) -> Path:
    """Where the environment of a release is, or would be."""
    return folder / f"{release.package}-{release.version}"


def installed(package: str, folder: Path) -> list[Release]:
    """The releases of a package that the folder has, the oldest first."""
    paths = (path for path in folder.glob(f"{package}-*") if python_of(path).exists())
    found = (Release(package, path.name[len(package) + 1 :]) for path in paths)
    # An environment that is still being made has a name with more than a version.
    found = (release for release in found if all(map(str.isdigit, release.version.split("."))))
    return sorted(found, key=lambda release: release.key)


def command_of(release: Release, folder: Path) -> list[str]:
    """The command that serves requests with a release, see irexec.tools.engines.releases.program.

    Raises:
        UnsupportedError: the folder has no such release.
    """
    python = python_of(environment_of(release, folder))
    if not python.exists():
        raise UnsupportedError(f"{release} is not in {folder}, where irexec bisect installs releases")
    return [str(python), str(PROGRAM)]


def clean_environment() -> dict[str, str]:
    """The environment variables for another Python: without those that say where this one finds its modules."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
