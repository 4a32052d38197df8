"""A finding of validate."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.analysis.validate import validate
from irexec.errors import InputError
from irexec.ir.codes import CODES
from irexec.ir.findings import Finding
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files

_OF_FILES, _OF_ONNX = "IR0", "ON"
"""The findings of the readers: they are of the file, which is written anew."""


class FindingCheck(Check):
    """Whether validate has a finding of a code, at one of the layers at which the first candidate has it.

    Args:
        code: of the finding, such as "IR107".

    Raises:
        InputError: there is no such code, or its findings are not those of a graph.
    """

    def __init__(self, code: str) -> None:
        self.code = code.upper()
        if self.code.startswith(_OF_ONNX):
            raise InputError(f"{self.code} is a finding about an .onnx file, and what is reduced is the IR that it is converted to")
        if self.code not in CODES:
            raise InputError(f"there is no finding code {code!r}; irexec explain lists all codes")
        if self.code.startswith(_OF_FILES):
            raise InputError(f"{self.code} is a finding about the file itself, and what is reduced is written anew, without it")
        self._layers: frozenset[str | None] | None = None

    takes_damage = True

    @property
    def identity(self) -> Sequence[object]:
        """See Check."""
        return ("finding", self.code)

    def __call__(self, candidate: Candidate) -> Failure | None:
        """See Check."""
        weights = self.code.startswith("IR4")
        found = [finding for finding in validate(candidate.model, weights=weights) if finding.code == self.code]
        if self._layers is None:
            self._layers = frozenset(finding.layer_name for finding in found)
        same = next((finding for finding in found if finding.layer_name in self._layers), None)
        return None if same is None else Failure(self.code, _text(same))

    def command(self, files: Files) -> list[str]:
        """See Check."""
        return ["irexec", "validate", *(["--weights"] if self.code.startswith("IR4") else []), files.model]


def _text(finding: Finding) -> str:
    layer = "" if finding.layer_name is None else f" layer {finding.layer_name!r} ({finding.layer_type}):"
    return f"{finding.code}{layer} {finding.message}"
