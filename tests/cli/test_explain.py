"""irexec explain, and the table of finding codes behind it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from irexec.analysis.codes import CODES
from irexec.cli.main import run

Capture = pytest.CaptureFixture[str]


def test_a_code_is_explained(capsys: Capture) -> None:
    assert run(["explain", "ir103"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("IR103 missing attribute (error)\nA required attribute is missing.\n")
    assert "Example:\n  <layer " in text
    assert "Repair: Write the attribute" in text


@pytest.mark.parametrize("width", [40, 80])
def test_sentences_are_wrapped_at_words(width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["explain", "IR103"]) == 0
    unlimited = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["explain", "IR103"]) == 0
    text = capsys.readouterr().out
    assert text.split() == unlimited.split()
    assert max(len(line) for line in text.splitlines() if not line.startswith("  ")) <= width


def test_without_a_code_all_are_listed(capsys: Capture) -> None:
    assert run(["explain"]) == 0
    text = capsys.readouterr().out
    assert all(code in text for code in CODES)


def test_as_json(capsys: Capture) -> None:
    assert run(["explain", "IR201", "IR103", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in document["codes"]] == ["IR201", "IR103"]
    assert set(document["codes"][0]) == {"code", "name", "severity", "meaning", "example", "repair"}


@pytest.mark.parametrize(
    ("name", "expected"), [("IR118", "similar codes are IR110, IR911"), ("nonsense", "irexec explain lists all codes")]
)
def test_an_unknown_code_is_wrong_usage(name: str, expected: str, capsys: Capture) -> None:
    assert run(["explain", name]) == 2
    err = capsys.readouterr().err
    assert f"there is no finding code {name!r}" in err
    assert expected in err


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.code)
def test_a_row_is_complete(row) -> None:
    assert row.code[:2] in ("IR", "ON")
    assert len(row.code) == 5
    assert row.name == row.name.lower() or ".bin" in row.name or row.code.startswith("ON")
    assert not row.meaning.endswith(".")
    assert row.repair.endswith((".", "..."))
    if row.code.startswith("IR"):
        ElementTree.fromstring(f"<example>{row.example}</example>")
