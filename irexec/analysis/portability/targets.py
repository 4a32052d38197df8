"""Where a model is to run: a release of OpenVINO, or a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irexec.analysis.portability.devices import DEVICES, NOT_TAKEN, device_findings
from irexec.analysis.portability.findings import release_findings
from irexec.analysis.portability.releases import NEWEST, Release, first_release, parse_release
from irexec.analysis.shape_inference import Inference
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph


@dataclass(frozen=True)
class Target:
    """A release, on whose CPU a model is to run, or a device of the newest release.

    Attributes:
        release: the release.
        device: CPU, GPU or NPU; None where a release was named.
    """

    release: Release
    device: str | None = None

    def __str__(self) -> str:
        return self.device or str(self.release)

    @property
    def name(self) -> str:
        """The subject of a sentence, such as "OpenVINO 2021.4" or "the GPU"."""
        return f"the {self.device}" if self.device else f"OpenVINO {self.release}"

    def has(self, type: str, since: int) -> bool:
        """Whether it has a version of an operation, by the opset of the version."""
        first = first_release(type, since)
        refused = NOT_TAKEN.get(self.device or "", frozenset())
        return first is not None and first <= self.release and (type, since) not in refused

    def findings(self, model: ModelGraph, inference: Inference) -> Iterator[Finding]:
        """Findings about the layers that do not run there."""
        if self.device is not None:
            return device_findings(model, inference, self.device)
        return release_findings(model, inference, self.release)


def parse_target(text: str) -> Target:
    """A target from "2023.3", "2023.3.0" or a device in any letter case; raises InputError for anything else."""
    if text.upper() in DEVICES:
        return Target(NEWEST, text.upper())
    return Target(parse_release(text))
