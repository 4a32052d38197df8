"""The table of all finding codes: those of irexec.ir.codes, and the ones that irexec.analysis.portability,
irexec.ir.legacy_codes, irexec.ir.onnx_codes and plug-ins declare."""

from __future__ import annotations

from collections.abc import Mapping

import irexec.analysis.portability
import irexec.ir.codes
import irexec.ir.legacy_codes
import irexec.ir.onnx_codes  # noqa: F401 - these four fill the table
from irexec.errors import InputError
from irexec.ir import codes
from irexec.ir.codes import Code, by_number
from irexec.schema.plugins import plugins

CODES: Mapping[str, Code] = codes.CODES
"""By code. Plug-ins that are loaded later add rows."""


def findings() -> Mapping[str, Code]:
    """The table of all finding codes, those of plug-ins included."""
    plugins.load()
    return {code: CODES[code] for code in sorted(CODES, key=by_number)}


def find_code(code: str) -> Code | None:
    """The row of a code, upper or lower case; plug-ins are loaded where it is not one of irexec."""
    if code.upper() in CODES:
        return CODES[code.upper()]
    plugins.load()
    return next((row for row in CODES.values() if row.code.casefold() == code.casefold()), None)


def explain(code: str) -> Code:
    """The meaning of a finding code, with an example and the repair.

    Raises:
        InputError: the code does not exist; the message offers similar codes.
    """
    row = find_code(code)
    if row is None:
        import difflib

        folded = {known.casefold(): known for known in CODES}
        near = [folded[match] for match in difflib.get_close_matches(code.casefold(), folded, 3)]
        offer = f"similar codes are {', '.join(sorted(near))}" if near else "irexec explain lists all codes"
        raise InputError(f"there is no finding code {code!r}; {offer}")
    return row
