"""Older opsets: operators that they lack are composed of others, or the layer is refused with a reason that says so."""

from __future__ import annotations

import pytest

from converters.ir_to_onnx.refusals import ExportError
from converters.ir_to_onnx.registry import translation_of
from irexec.testing import Case
from tests.to_onnx.exceptions import EXCEPT, REFUSED, is_listed
from tests.to_onnx.sweep import cases, expected_of, exported

_RECURRENT = ("GRU", "LSTM", "RNN")
_ROWS = [(family, row) for family, row in cases([]) if not row.type.startswith(_RECURRENT)]


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_rows(opset: int) -> None:
    broken = []
    for family, row in _ROWS[opset % 7 :: 11]:
        if is_listed(row, EXCEPT) or is_listed(row, REFUSED):
            continue
        reason = _outcome(family, row, opset)
        if reason and f"opset {opset}" not in reason:
            broken.append(f"{row.id}: {reason}")
    assert not broken, "\n".join(broken)


def _is_written(row: Case) -> bool:
    translation = translation_of(row.definition)
    return translation is not None and translation.function is not None


def _outcome(family: str, row: Case, opset: int) -> str:
    """The reason for which a row is refused or differs; empty if it is written and gives what it gives in IR."""
    try:
        exported(row, expected_of(family, row), opset)
    except ExportError as error:
        return error.layers[0].reason if _is_written(row) else ""
    except Exception as error:
        # A runtime raises errors of its own; all rows are looked at.
        return f"{error!r:.300}"
    return ""
