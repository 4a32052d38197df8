"""The check against a runtime of a name."""

from __future__ import annotations

from irexec.tools.reduce.checks.check import Check
from irexec.tools.reduce.checks.runtime import ATOL, RTOL, RuntimeCheck


def check_against(name: str, *, rtol: float | None = None, atol: float | None = None, timeout: float | None = None) -> Check:
    """Whether irexec and a runtime part.

    Args:
        name: of irexec.tools.runtimes.RUNTIMES, other than "irexec".
        rtol, atol: the tolerances; the defaults of the check unless given.
        timeout: seconds that each runtime may take.

    Raises:
        UnsupportedError: the runtime is not installed.
    """
    return RuntimeCheck(name, rtol=RTOL if rtol is None else rtol, atol=ATOL if atol is None else atol, timeout=timeout)
