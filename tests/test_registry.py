"""Completeness: every registered operation has its docstring, its facts rule and rows; the foundation is all there."""

from __future__ import annotations

from pathlib import Path

import pytest

from irexec.ops.registry import OpDef, definitions, resolve
from tests.support.cases import Case, FactsCase, families

_LINES = [line.split() for line in (Path(__file__).parent / "data" / "opsets.txt").read_text().splitlines() if not line.startswith("#")]
_FOUNDATION = [(parts[0], int(parts[1])) for parts in _LINES if parts[-1] == "*"]
_ROWS = [row for rows in families().values() for row in rows]
# What the reader, the session and the bodies of Loop need; their tests are those of the graphs they stand in.
_IN_GRAPHS = {"Parameter", "Constant", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}


def _id(definition: OpDef) -> str:
    return f"{definition.type}-{definition.since}"


def test_there_are_245_pairs() -> None:
    assert len(_LINES) == 245


@pytest.mark.parametrize(("type", "since"), _FOUNDATION, ids=[f"{t}-{v}" for t, v in _FOUNDATION])
def test_the_foundation_is_there(type: str, since: int) -> None:
    assert resolve(type, f"opset{since}").since == since


@pytest.mark.parametrize("definition", definitions(), ids=_id)
def test_is_complete(definition: OpDef) -> None:
    assert definition.kernel.__doc__
    assert definition.facts_rule is not None
    if definition.type in _IN_GRAPHS:
        return
    rows = [row for row in _ROWS if (row.type, row.since) == (definition.type, definition.since)]
    assert any(isinstance(row, Case) for row in rows), "no row says what it gives"
    assert any(isinstance(row, FactsCase) for row in rows), "no row says what is inferred where little is known"


@pytest.mark.parametrize("definition", definitions(), ids=_id)
def test_is_one_of_the_pairs_or_an_extension(definition: OpDef) -> None:
    known = {(parts[0], int(parts[1])) for parts in _LINES}
    assert (definition.type, definition.since) in known or definition.since in ("onednn", "irexec")
