"""Options of a bisection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irexec.errors import InputError
from irexec.tools.engines.releases.environments import PACKAGES, Release, version_key
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
