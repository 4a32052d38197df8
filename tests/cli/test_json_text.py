"""The text of JSON: exact in every value, indented, with the members of a long list in a line each."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.cli.render import json_text, to_plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 1, 2]), st.booleans())
def test_short_documents_are_as_json_writes_them(
    document: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    plain = to_plain(document)
    expected = json.dumps(plain, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    assert json_text(plain, indent, ascii_only=ascii_only) == expected


def test_members_of_a_long_list_are_a_line_each() -> None:
    document = to_plain(
        {"a": 1, "all": [{"name": "line\nbreak", "position": (0, n)} for n in range(2000)], "b": [1, 2]}
    )
    text = json_text(document, 2, ascii_only=False)
    assert json.loads(text) == document
    lines = text.splitlines()
    assert lines[:4] == ["{", '  "a": 1,', '  "all": [', '    {"name": "line\\nbreak", "position": [0, 0]},']
    assert lines[-6:] == ["  ],", '  "b": [', "    1,", "    2", "  ]", "}"]
    assert len(lines) == 2000 + 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(math.nan, None, id="NaN"),
        pytest.param(-math.inf, "-inf", id="infinity"),
        pytest.param((1, 2.5), [1, 2.5], id="tuple"),
        pytest.param({1: {"b": ()}}, {"1": {"b": []}}, id="key"),
        pytest.param(range(2), "range(0, 2)", id="another type"),
    ],
)
def test_values_that_json_lacks(value: object, expected: object) -> None:
    assert to_plain(value) == expected
