"""What validate says of other implementations: where OpenVINO's own differ from each other, and what a release of it does not read."""

from irexec.analysis.portability.check import differences, portability_findings
from irexec.analysis.portability.release import release_findings

__all__ = ["differences", "portability_findings", "release_findings"]
