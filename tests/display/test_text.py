"""Contents as text, and records as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from irexec.display import (
    Amount,
    Bar,
    Column,
    Content,
    Curve,
    Definitions,
    Guided,
    HistogramChart,
    Section,
    Table,
    Text,
    TextFormat,
    lines,
    plain,
    sections_of,
)
from irexec.display.text import cell_len, shortened
from irexec.records import Record, Report


@dataclass(frozen=True)
class _Size(Record):
    width: int
    height: int

    _json_properties = ("area",)

    @property
    def area(self) -> int:
        """Width times height."""
        return self.width * self.height


@dataclass(frozen=True)
class _Sizes(Report):
    name: str
    sizes: tuple[_Size, ...]
    hidden: int = field(default=0, metadata={"json": False})

    def sections(self) -> list[Content]:
        """A table."""
        return [
            Table([Column("width", "width", "number"), Column("area", lambda size: size.area, "count")], self.sizes)
        ]


def _text(contents: Content, frame: TextFormat) -> list[str]:
    return ["".join(text for _, text in pieces).rstrip() for pieces in lines(contents, frame)]


def test_a_report_says_its_sections_once() -> None:
    report = _Sizes("s", (_Size(2, 3), _Size(40, 50)))
    assert str(report) == "width  area\n-----------\n    2     6\n   40   2 k"
    assert "2 k" in report._repr_html_()
    assert report._repr_html_().index("_Sizes(name") < report._repr_html_().index("<table")


def test_json_of_records() -> None:
    report = _Sizes("s", (_Size(2, 3),), 7)
    assert report.as_dict() == {"name": "s", "sizes": [{"width": 2, "height": 3, "area": 6}]}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 1234567, "1234567"),
        ("number", 0.123456789, "0.123457"),
        ("count", 1234567, "1.23 M"),
        ("count", None, "?"),
        ("count", 0, ""),
        ("bytes", 1234567, "1.23 MB"),
        ("bytes", None, "?"),
        ("share", 0.1234, "12.3%"),
        ("share", None, ""),
        ("figure", 0.00123456, "0.001235"),
        ("ms", 1.23456, "1.235"),
        ("ms", None, ""),
    ],
)
def test_formats(kind: str, value: float | None, text: str) -> None:
    table = Table([Column("", kind=kind)], [[value]], hide_empty=False)  # type: ignore[arg-type]
    assert _text(table, TextFormat())[0] == text


def test_contents_in_a_terminal_without_other_characters_than_ascii() -> None:
    contents = [
        Text("title", "title"),
        Table(["name", Column("", kind="chart")], [[Guided("├─ ", "a├b"), Bar(1, "all")], [Guided("└─ ", "c"), None]]),
        Curve([1, 2], "2 MB", "memory"),
        HistogramChart([1, 2], 0, 1, ["a", "b"], [0, 1]),
        Definitions({"term": "value", "nothing": None}),
        Section("folded", "inside", is_folded=True),
    ]
    assert _text(contents, TextFormat(width=20, ascii=True)) == [
        "title", "", "name", "------", "|- a├b", "`- c", "", "=@ 2 MB", "a  1  " + "#" * 14, "b  2  " + "#" * 14, "term  value",
    ]  # fmt: skip
    assert _text(Section("folded", "inside", is_folded=True), TextFormat(unfolds=True))[-1] == "inside"


def test_names_of_layers_keep_module_and_operation_below_what_all_begin_with() -> None:
    columns = [Column("layer", kind="path"), Column("ms", kind="number")]
    names = ["1.conv/aten::convolution", "1.act/aten::silu_", "22/aten::add"]
    table = Table(columns, [[f"__module.model.{name}", "1.5"] for name in names])
    assert _text(table, TextFormat(width=20, has_lines=True)) == [
        "layer: all names begin with __module.model.",
        "layer             ms",
        "─" * 20,
        "1.conv/…olution  1.5",
        "1.act/a…::silu_  1.5",
        "22/aten::add     1.5",
    ]


def test_rows_that_are_left_out_are_counted() -> None:
    table = Table(["n"], [[i] for i in range(2345)], what="numbers")
    assert (
        _text(table, TextFormat(rows=2, rest="; --json gives all of them"))[-1]
        == "... and 2,343 more numbers; --json gives all of them"
    )
    assert len(plain(Table(["n"], [[1], [2], [3]], limit=1)).splitlines()) == 4


def test_hostile_cells_are_visible() -> None:
    assert _text(Table(["n"], [["a\x1b[31m"], [Amount(1, "b\nc")]]), TextFormat())[2:] == ["a\\x1b[31m", "b\\nc"]


@pytest.mark.parametrize(("text", "size"), [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("", 0)])
def test_columns_of_a_terminal(text: str, size: int) -> None:
    assert cell_len(text) == size
    assert cell_len(shortened(text * 20, 10)) <= 10


def test_what_has_no_sections() -> None:
    with pytest.raises(TypeError, match="of type int has no sections"):
        sections_of(3)
