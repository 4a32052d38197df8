"""Findings about other implementations: differences between OpenVINO's, and what a release does not read."""

from irexec.analysis.portability.check import differences, portability_findings
from irexec.analysis.portability.release import release_findings

__all__ = ["differences", "portability_findings", "release_findings"]
