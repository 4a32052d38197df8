"""Text stays text, whatever it holds, and markup is well-formed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.display import (
    Amount,
    Bar,
    Column,
    Content,
    Definitions,
    Guided,
    HistogramChart,
    Section,
    Table,
    Text,
    bars,
)
from irexec.display.hypertext import Html, data, element, escaped, html, joined, page
from irexec.messages import visible
from tests.support.markup import parse

HOSTILE = [
    "<script>alert(1)</script>",
    "</style></table></div><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "&lt;b&gt; &amp; &#x3c;",
    "a\x00b\x1b[31m\u202ec\ud800",
    "<!-- ]]> --> {{ 7*7 }} ${7} `",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "made",
    [
        lambda text: element("p", text, title=text),
        lambda text: html(Table([text, Column(text, hint=text)], [[text, Amount(1, text)]], caption=text, ids=[text])),
        lambda text: html(Definitions({text: text})),
        lambda text: html(Section(text, text)),
        lambda text: html(bars([(text, 1, text)], (text, text))),
        lambda text: html(Bar(0.5, text)),
        lambda text: html([text, Text(text, "error", text), Table([""], [[Text(text, hint=text)], [Guided(text, text)]])]),
        lambda text: page(text, text),
    ],
    ids=["element", "table", "definitions", "section", "bars", "bar", "texts", "page"],
)  # fmt: skip
def test_hostile_text_is_shown_and_not_obeyed(text: str, made: object) -> None:
    assert callable(made)
    # As long as the text, since long ones are laid out in another way.
    word = "harmless"[: len(text)] + "x" * (len(text) - 8)
    found, harmless = parse(made(text)), parse(made(word))
    assert [(e.tag, *e.attributes) for e in found.all()] == [(e.tag, *e.attributes) for e in harmless.all()]
    assert found.text == harmless.text.replace(word, visible(text))
    for ours, theirs in zip(found.all(), harmless.all(), strict=True):
        assert ours.attributes == {
            name: (value or "").replace(word, visible(text)) for name, value in theirs.attributes.items()
        }


@given(st.text())
def test_any_text_is_read_back(text: str) -> None:
    (found,) = parse(element("p", text, title=text)).all()
    assert found.text == found.attributes["title"] == visible(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "<p></p>"),
        (0, "<p>0</p>"),
        (1.5, "<p>1.5</p>"),
        ("a < b", "<p>a &lt; b</p>"),
        (Html("<b>x</b>"), "<p><b>x</b></p>"),
        (["a", None, ["<", Html("<br>")]], "<p>a&lt;<br></p>"),
        ((c for c in "ab"), "<p>ab</p>"),
    ],
    ids=["nothing", "zero", "a float", "text", "markup", "nested", "a generator"],
)
def test_content(content: Content, expected: str) -> None:
    assert element("p", content) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"class_": "x"}, '<i class="x"></i>'),
        ({"data_order": 3}, '<i data-order="3"></i>'),
        ({"data_order": 0}, '<i data-order="0"></i>'),
        ({"open": True}, "<i open></i>"),
        ({"open": False, "title": None}, "<i></i>"),
        ({"title": ""}, '<i title=""></i>'),
    ],
)
def test_attributes(attributes: dict[str, str | int | bool | None], expected: str) -> None:
    assert element("i", **attributes) == expected


def test_elements_without_content_have_no_end_tag() -> None:
    assert element("br") == "<br>"


def test_joining_with_text_gives_text() -> None:
    assert not isinstance(Html("<b>") + "<i>", Html)
    assert isinstance(joined(Html("<b></b>"), "<"), Html)
    assert escaped(escaped("<")) == "&lt;"


def test_cells_and_what_they_sort_by() -> None:
    made = parse(
        html(Table(["name", Column("size", kind="number")], [["a", Amount(1.2e6, "1.2 MB")], ["b", Amount(None, "?")]]))
    )
    assert made.rows() == [["name", "size"], ["a", "1.2 MB"], ["b", "?"]]
    assert [cell.attributes for cell in made.all("td")] == [
        {},
        {"class": "number", "data-order": "1200000.0"},
        {},
        {"class": "number"},
    ]
    assert [cell.attributes["scope"] for cell in made.all("th")] == ["col", "col"]


def test_a_limit_says_how_many_rows_are_left_out() -> None:
    assert parse(html(Table(["n"], [[i] for i in range(1234)], limit=2))).rows() == [
        ["n"],
        ["0"],
        ["1"],
        ["and 1,232 more"],
    ]
    assert len(parse(html(Table(["n"], [[i] for i in range(9)]), limit=3)).rows()) == 5


def test_empty_columns_are_left_out_unless_all_are_wanted() -> None:
    rows: list[list[Content]] = [["a", "", None, 0], ["b", None, Amount(None, ""), 0]]
    assert parse(html(Table(["w", "x", "y", "z"], rows))).rows() == [["w", "z"], ["a", "0"], ["b", "0"]]
    assert parse(html(Table(["w", "x"], []))).rows() == [["w", "x"]]
    assert parse(html(Table(["w", "x"], [["a", ""]], hide_empty=False))).rows() == [["w", "x"], ["a", ""]]


def test_long_texts_are_cut_in_their_middle() -> None:
    ((cell,),) = parse(html(Table([""], [["a" * 5000]]))).rows()
    assert len(cell) == 300
    assert "..." in cell


@pytest.mark.parametrize(
    ("counts", "bars_drawn"), [([], 0), ([0, 0], 0), ([1], 1), ([5, 0, 1_000_000], 2), ([1] * 50, 50)]
)
def test_a_histogram_has_a_bar_for_every_interval_that_has_elements(counts: list[int], bars_drawn: int) -> None:
    made = parse(html(HistogramChart(counts, -1.0, 1.0)))
    paths = [path.attributes["d"] or "" for path in made.all("path")]
    assert sum(path.count("z") for path in paths) == bars_drawn
    assert made.all("title")[0].text == f"histogram of {sum(counts):,} elements from -1 to 1"


def test_a_histogram_draws_the_lighter_part_at_the_end_of_a_bar() -> None:
    made = parse(html(HistogramChart([10, 90, 5], 0.0, 3.0, lighter=[0, 80, 1])))
    paths = [path.attributes for path in made.all("path")]
    assert [(path["d"], path.get("fill-opacity")) for path in paths] == [
        # 10 of 10 elements, 10 and 80 that are cut at the top, 4 and 1 of 10; the height is 32.
        ("M0 32v-32h39.5V32zM40 32v-32h39.5V32zM80 32v-12.8h39.5V32z", None),
        ("M80 19.2V16h39.5V19.2z", "0.4"),
    ]


def test_a_bar_stays_in_its_width() -> None:
    assert [parse(html(Bar(part, ""))).all("path")[0].attributes["d"] for part in (-1, 0.5, 7)] == [
        "M0 0h0v12H0z",
        "M0 0h60v12H0z",
        "M0 0h120v12H0z",
    ]


def test_a_page_loads_nothing() -> None:
    made = parse(page("title", "text", style_sheet="p { color: red }", script="let a = 1 < 2"))
    assert made.all("title")[0].text == "title"
    assert not made.all(where=lambda found: bool({"src", "href"} & found.attributes.keys()))
    (policy,) = made.all("meta", lambda found: "http-equiv" in found.attributes)
    assert (policy.attributes["content"] or "").startswith("default-src 'none'")
    assert "url(" not in page("t")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_document_inside_of_a_page_is_read_back(document: object) -> None:
    (found,) = parse(data("layers", document)).all()
    (text,) = found.content
    assert isinstance(text, str)
    assert json.loads(text) == document
    assert "<" not in text
