"""Where OpenVINO's own implementations differ from each other or from the specification. One row per difference.

The rows were measured: tests/analysis/test_portability.py has a model for each and, with ``--oracle``, asks OpenVINO.
"""

from irexec.ir.portability.difference import Difference, Effect, Who
from irexec.ir.portability.failures import FAILURES
from irexec.ir.portability.values import VALUES

DIFFERENCES: dict[str, Difference] = {row.code: row for row in (*VALUES, *FAILURES)}
"""By code."""

__all__ = ["DIFFERENCES", "Difference", "Effect", "Who"]
