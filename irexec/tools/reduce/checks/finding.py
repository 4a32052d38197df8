"""A finding of validate as a check."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.analysis.codes import find_code
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import parse_target
from irexec.analysis.validate import validate
from irexec.errors import InputError
from irexec.ir.findings import Finding
from irexec.tools.commands import irexec_command
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files

_OF_FILES, _OF_ONNX = "IR0", "ON"
"""Findings of the readers about the file itself; a candidate is a new file."""
_OF_RELEASES = "IR90"
"""Findings about layers that a release of OpenVINO does not read."""


class FindingCheck(Check):
    """Whether validate has a finding of a code, at one of the layers of this finding in the first candidate.

    Args:
        code: the code, such as "IR107"; also one of ``validate --portability``, such as "IR911".
        release: a release of OpenVINO, such as "2023.3", for IR901 to IR903 and for findings of portability.

    Raises:
        InputError: the code or release does not exist, the finding is not about a graph, or a release is missing.
    """

    def __init__(self, code: str, release: str | None = None) -> None:
        row = find_code(code)
        if row is None:
            raise InputError(f"there is no finding code {code!r}; irexec explain lists all codes")
        self.code = row.code
        if self.code.startswith(_OF_ONNX):
            raise InputError(
                f"{self.code} is a finding about an .onnx file, and what is reduced is the IR that it is converted to"
            )
        if self.code.startswith(_OF_FILES):
            raise InputError(
                f"{self.code} is a finding about the file itself, and what is reduced is written anew, without it"
            )
        self.release = release
        self._is_of_portability = self.code in DIFFERENCES
        is_of_releases = self.code.startswith(_OF_RELEASES)
        if release is not None:
            parse_target(release)
            if not is_of_releases and not self._is_of_portability:
                raise InputError(f"{self.code} does not depend on a release of OpenVINO, of which {release} is given")
        elif is_of_releases:
            raise InputError(
                f"{self.code} is a finding about a release of OpenVINO, which is to be given (--for), such as 2023.3"
            )
        self._layers: frozenset[str | None] | None = None

    takes_damage = True

    @property
    def identity(self) -> Sequence[object]:
        return ("finding", self.code, *([self.release] if self.release is not None else []))

    def __call__(self, candidate: Candidate) -> Failure | None:
        findings = validate(
            candidate.model, weights=self._needs_weights, portability=self._is_of_portability, release=self.release
        )
        found = [finding for finding in findings if finding.code == self.code]
        if self._layers is None:
            self._layers = frozenset(finding.layer_name for finding in found)
        same = next((finding for finding in found if finding.layer_name in self._layers), None)
        return None if same is None else Failure(self.code, _text(same))

    def command(self, files: Files) -> list[str]:
        options = ["--weights"] if self._needs_weights else ["--portability"] if self._is_of_portability else []
        options += ["--for", self.release] if self.release is not None else []
        return irexec_command("validate", *options, files.model)

    @property
    def _needs_weights(self) -> bool:
        return self.code.startswith("IR4")


def _text(finding: Finding) -> str:
    layer = "" if finding.layer_name is None else f" layer {finding.layer_name!r} ({finding.layer_type}):"
    return f"{finding.code}{layer} {finding.message}"
