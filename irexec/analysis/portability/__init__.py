"""Other implementations: where OpenVINO's differ from each other or from the specification, and what a release reads.

The package declares the differences and imports no NumPy, so that their codes are explained and completed at once.
"""

from irexec.analysis.portability import (  # noqa: F401 - they declare the differences
    bodies,
    failures,
    integers,
    quantised,
    values,
    windows,
)
from irexec.analysis.portability.difference import DIFFERENCES, Difference

__all__ = ["DIFFERENCES", "Difference"]
