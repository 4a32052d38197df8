"""For each difference of irexec.analysis.portability: models that have it, and neighbours of them that have not.

OpenVINO is asked with ``--oracle``: on the first it must do what the difference says, on the others what irexec does.
"""

from tests.analysis.portability import failures, integers, networks  # noqa: F401  (they fill ROWS)
from tests.analysis.portability.row import ROWS, Row

__all__ = ["ROWS", "Row"]
