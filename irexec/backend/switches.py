"""Environment variables that switch on internal checks, for reports of bugs. Each is off unless set to 1."""

from __future__ import annotations

import os

from irexec.errors import InputError

CHECK_PASSES = "IREXEC_CHECK_PASSES"
"""Check the invariants of the compile graph after each pass."""

CHECK_RECORDS = "IREXEC_CHECK_RECORDS"
"""Compare the results of a step's recorded calls with the results of its kernel."""


def is_on(variable: str) -> bool:
    """True if the environment variable is set to 1.

    Raises:
        InputError: the variable is neither 1, 0, nor empty.
    """
    text = os.environ.get(variable, "").strip()
    if text not in ("", "0", "1"):
        raise InputError(f"{variable} is {text!r}, expected 0 or 1")
    return text == "1"
