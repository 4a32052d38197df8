"""The law of export: a row, written as ONNX, passes the checker and gives what it gives in IR, or is refused with a reason.

ONNX Runtime runs what is written in the default opset.
"""

from __future__ import annotations

import pytest

from converters.ir_to_onnx.graph_writer import ExportError
from converters.ir_to_onnx.registry import Translation, translation_of
from irexec.testing import Case
from tests.support.cases import runnable_definitions
from tests.to_onnx.exceptions import EXCEPT, REFUSED, is_listed
from tests.to_onnx.sweep import cases, expected_of, exported

_ROWS: dict[str, list[tuple[str, Case]]] = {}
for _family, _row in cases():
    _ROWS.setdefault(_row.type, []).append((_family, _row))


def _translation(row: Case) -> Translation | None:
    return translation_of(row.definition)


@pytest.mark.parametrize("type", [t for t, rows in _ROWS.items() if any(_translation(row) for _, row in rows)])
@pytest.mark.sampled(2)
def test_rows(type: str) -> None:
    broken = []
    for family, row in _ROWS[type]:
        translation = _translation(row)
        if translation is None or translation.function is None or is_listed(row, EXCEPT):
            continue
        try:
            exported(row, expected_of(family, row))
        except ExportError as error:
            if not is_listed(row, REFUSED):
                broken.append(f"{row.id} is refused: {error}")
        except Exception as error:
            # A runtime raises errors of its own; all rows of the operation are looked at.
            broken.append(f"{row.id}: {error!r:.400}")
    assert not broken, "\n".join(broken)


def test_what_is_not_translated_has_a_reason() -> None:
    for definition in runnable_definitions():
        translation = translation_of(definition)
        if translation is not None:
            assert translation.text, f"{definition.type}-{definition.since} has no text"
