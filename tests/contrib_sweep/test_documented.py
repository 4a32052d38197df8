"""The page of operations of language models names the oracle of each operator, and those that are not converted."""

from __future__ import annotations

import re

import pytest

from converters.onnx.registry import COM_MICROSOFT, operators
from tests.contrib_sweep.sweep import DRAWS, drawn
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/reference/language-models.md").read_text("utf-8")
ORACLES = {
    "runtime": "ONNX Runtime's CPU kernel",
    "both": "its CPU kernel, and NumPy by the document where it has none or a wrong one",
    "formula": "NumPy by the document: ONNX Runtime has no CPU kernel",
}


def oracle_of(name: str) -> str:
    """What the random cases of an operator are compared with."""
    kinds = {drawn(name, number).reference is None for number in range(20)}
    return "both" if len(kinds) == 2 else "runtime" if True in kinds else "formula"


@pytest.mark.parametrize("key", ORACLES)
def test_each_operator_stands_beside_its_oracle(key: str) -> None:
    found = re.search(rf"^\| {re.escape(ORACLES[key])} \| (.*) \|$", PAGE, re.MULTILINE)
    assert found
    assert [entry.split()[0] for entry in found[1].split(", ")] == [
        name for name in sorted(DRAWS) if oracle_of(name) == key
    ]


def test_every_operator_of_the_runtime_is_converted_or_named() -> None:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    known = {one.name for one in state.get_all_operator_schema() if one.domain == COM_MICROSOFT}
    converted = {name for domain, name in operators() if domain == COM_MICROSOFT}
    rows = PAGE.split("Not converted:")[1].split("##")[0].splitlines()[4:]
    named = [name for row in rows if row for name in row.split(" | ")[1].removesuffix(" |").split(", ")]
    assert sorted(named) == sorted(known - converted)
