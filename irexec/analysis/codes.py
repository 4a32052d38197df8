"""The table of all finding codes, with the ones that irexec.analysis.portability and irexec.ir.onnx_codes declare."""

from __future__ import annotations

from collections.abc import Mapping

import irexec.analysis.portability
import irexec.ir.codes
import irexec.ir.onnx_codes  # noqa: F401 - these three fill the table
from irexec.errors import InputError
from irexec.ir import code_table
from irexec.ir.code_table import Code

CODES: Mapping[str, Code] = dict(sorted(code_table.CODES.items()))
"""By code."""


def findings() -> Mapping[str, Code]:
    """The table of all finding codes."""
    return dict(CODES)


def explain(code: str) -> Code:
    """The meaning of a finding code, with an example and the repair.

    Raises:
        InputError: the code does not exist; the message offers similar codes.
    """
    row = CODES.get(code.upper())
    if row is None:
        import difflib

        near = difflib.get_close_matches(code.upper(), CODES, 3)
        offer = f"similar codes are {', '.join(sorted(near))}" if near else "irexec explain lists all codes"
        raise InputError(f"there is no finding code {code!r}; {offer}")
    return row
