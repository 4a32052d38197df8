"""Contents as HTML, for notebooks and for pages: a ``str`` is text and is escaped, an ``Html`` is markup and is kept.

Small charts are inline SVG, which needs no script and takes the colours of the text around it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from irexec.display.document import (
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
    is_empty,
    sections_of,
)
from irexec.messages import OBEYED, cut, visible
from irexec.records import ROWS, Report

_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
"""Elements that have no content and no end tag."""


# The module html of the standard library takes longer to import than all of this package.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_SPECIAL = re.compile(f"[&<>\"'{OBEYED}]")
_WIDTH, _HEIGHT = 120, 32
_LARGE = 320, 80
_BAR = 12
_AREA = 640, 80
_LIGHTER = 0.4
"""Opacity of the lighter parts of bars."""


class Html(str):
    """Markup. Joining it with text by ``+`` or formatting gives a ``str``, which would be escaped: use ``joined`` and
    ``element``."""

    __slots__ = ()

    def __html__(self) -> str:
        """The markup: template engines ask for it so, and do not escape it then."""
        return str(self)

    _repr_html_ = __html__


Markup = object
"""The content of an element: ``Html`` is kept, an iterable stands for its members, None for nothing; the rest is
text."""

Attribute = str | int | float | bool | None


def escaped(text: object) -> Html:
    """Text as markup: nothing in it is obeyed, and control characters and marks of direction show as escapes, such as
    ``\\x1b``."""
    return text if isinstance(text, Html) else Html(_escaped(str(text)))


def joined(*content: Markup) -> Html:
    """The markup of several pieces one after the other."""
    pieces: list[str] = []
    _add(pieces, content)
    return Html("".join(pieces))


def element(tag: str, /, *content: Markup, **attributes: Attribute) -> Html:
    """An element.

    Args:
        tag: its name.
        content: see Markup.
        attributes: by name, with "-" written as "_" and a last "_" dropped (``class_="x"``, ``data_id=3``). None and
            False leave an attribute out, True gives it without a value.
    """
    pieces = ["<", tag]
    for name, value in attributes.items():
        if value is True:
            pieces.append(f" {_written(name)}")
        elif value is not None and value is not False:
            pieces.append(f' {_written(name)}="{value if isinstance(value, Html) else _escaped(str(value))}"')
    pieces.append(">")
    if tag not in _VOID:
        _add(pieces, content)
        pieces += ("</", tag, ">")
    return Html("".join(pieces))


# Pages of large models have millions of pieces, most of them texts in which nothing has to be escaped.


def _escaped(text: str) -> str:
    return text if _SPECIAL.search(text) is None else visible(text).translate(_ESCAPES)


def _add(pieces: list[str], content: Iterable[Markup]) -> None:
    """Add the markup of a content to pieces of markup."""
    for piece in content:
        kind = type(piece)
        if isinstance(piece, Html):
            pieces.append(piece)
        elif kind is str or kind is int:
            pieces.append(_escaped(str(piece)))
        elif piece is None:
            continue
        elif isinstance(piece, str) or not isinstance(piece, Iterable):
            pieces.append(escaped(piece))
        else:
            _add(pieces, piece)


@functools.cache
def _written(name: str) -> str:
    """The name of an attribute as it is written."""
    return name.removesuffix("_").replace("_", "-")


def histogram(chart: HistogramChart) -> Html:
    """A histogram; an interval with any element has a bar that can be seen."""
    width, height = _LARGE if chart.is_large else (_WIDTH, _HEIGHT)
    total = sum(chart.counts)
    text = f"histogram of {total:,} elements from {chart.low:.4g} to {chart.high:.4g}"
    starts, wide = _positions(len(chart.counts), width)
    bars, lighter = "", ""
    for start, (part, light) in zip(starts, chart.parts(), strict=True):
        size = max(1.0, part * height) if part else 0.0
        if size:
            bars += f"M{start} {height}v-{_short(size)}h{wide}V{height}z"
        if light:
            bottom, top = _short(height - size), _short(height - max(size + 1.0, (part + light) * height))
            lighter += f"M{start} {bottom}V{top}h{wide}V{bottom}z"
    drawn = [
        element("title", text),
        element("path", d=bars) if bars else None,
        element("path", d=lighter, fill_opacity=_LIGHTER) if lighter else None,
    ]
    return _svg(drawn, width, height, text, "histogram")


@functools.cache
def _positions(count: int, width: int) -> tuple[list[str], str]:
    """The left edges of the bars of a histogram, and the width of a bar."""
    step = width / max(1, count)
    return [_short(i * step) for i in range(count)], _short(max(0.5, step - 0.5))


def bar(part: float, text: str) -> Html:
    """A horizontal bar that fills a part, 0 to 1, of its width; ``text`` is its accessible label."""
    part = min(1.0, max(0.0, part))
    drawn = [element("title", text), element("path", d=f"M0 0h{_short(part * _WIDTH)}v{_BAR}H0z")]
    return _svg(drawn, _WIDTH, _BAR, text, "bar")


def area(values: Sequence[float], text: str) -> Html:
    """A filled curve over values that follow each other, from 0 to the largest; ``text`` is its accessible label.

    If there are more values than pixels, each pixel shows the largest of its values.
    """
    width, height = _AREA
    step = max(1, -(-len(values) // width))
    drawn = [max(values[first : first + step]) for first in range(0, len(values), step)]
    highest = max(drawn, default=0.0) or 1.0
    across = width / max(1, len(drawn))
    path = "".join(f"V{_short(height - value / highest * height)}h{_short(across, 2)}" for value in drawn)
    curve = element("path", d=f"M0 {height}{path}V{height}z")
    return _svg([element("title", text), curve], width, height, text, "area")


_GOOD, _BAD, _LABEL = "#2e7d32", "#b71c1c", "#555"
_LETTER = 6.7
"""Width of a letter of a badge, in pixels: text is stretched to it, so that a font that is wider does not overflow."""


def badge(label: str, text: str, *, is_good: bool) -> str:
    """A document of one line, for the page of a project: a label, and a text on green or red."""
    first, second = (round(_LETTER * len(part)) + 12 for part in (label, text))
    parts = (0, first, label, _LABEL), (first, second, text, _GOOD if is_good else _BAD)
    drawn = [
        element("g", element("rect", x=start, width=width, height=20, fill=colour), element(
            "text", part, x=start + 6, y=14, textLength=width - 12, fill="#fff", font_size=11,
            font_family="Verdana, DejaVu Sans, sans-serif",
        ))
        for start, width, part, colour in parts
    ]  # fmt: skip
    whole = element(
        "svg", element("title", f"{label}: {text}"), *drawn, xmlns="http://www.w3.org/2000/svg", role="img",
        aria_label=f"{label}: {text}", width=first + second, height=20,
    )  # fmt: skip
    return f"{whole}\n"


def _svg(drawn: Sequence[Markup], width: int, height: int, text: str, class_: str) -> Html:
    return element(
        "svg", *drawn, class_=class_, role="img", aria_label=text, width=width, height=height,
        viewBox=f"0 0 {width} {height}", preserveAspectRatio="none",
    )  # fmt: skip


def _short(number: float, digits: int = 1) -> str:
    """A number with as few digits after the point as can be seen."""
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".")


_LONGEST = 300
"""Characters of a text in a cell; longer ones, which are names and attributes, are cut in their middle."""

_WIDE = 24
"""Characters of a text that is not kept on one line on a narrow screen."""


def html(content: Content, limit: int | None = None) -> Html:
    """Contents as HTML; markup is kept.

    Args:
        content: see ``document.Content``.
        limit: the maximum number of rows of a table that has no limit of its own.
    """
    match content:
        case None:
            return Html()
        case Html():
            return content
        case Table():
            return _table(content, limit)
        case Definitions():
            pairs = [(element("dt", term), element("dd", _inline(value))) for term, value in content.shown()]
            return element("dl", [element("div", *pair) for pair in pairs])
        case Section(title, inside):
            return element("details", element("summary", title), html(inside, limit))
        case Curve(values, _, text):
            return area(values, text)
        case HistogramChart() | Bar():
            return _inline(content)
        case Text(text, style, hint):
            return element("p", text, class_=style or None, title=hint)
        case str():
            return element("p", content) if content else Html()
        case Iterable():
            return joined(html(each, limit) for each in content)
    return element("p", content)


def _table(table: Table, limit: int | None) -> Html:
    limit = limit if table.limit is None else table.limit
    columns = table.all_columns()
    shown = table.rows if limit is None else table.rows[:limit]
    cells = [[column.cell(row, i) for i, column in enumerate(columns)] for row in shown]
    if table.hide_empty and cells:
        used = [i for i in range(len(columns)) if any(not is_empty(row[i]) for row in cells)]
        columns, cells = [columns[i] for i in used], [[row[i] for i in used] for row in cells]
    is_stacked = table.style is not None and "stacked" in table.style.split()
    ids = [""] * len(cells) if table.ids is None else [f' id="{escaped(id)}"' for id in table.ids[: len(cells)]]
    written = [
        Html(f"<tr{id}>{''.join(_cell(*pair, is_stacked) for pair in zip(row, columns, strict=True))}</tr>")
        for id, row in zip(ids, cells, strict=True)
    ]
    if len(table.rows) > len(written):
        more = f"and {len(table.rows) - len(written):,} more"
        written.append(element("tr", element("td", more, colspan=len(columns), class_="more")))
    head = element("thead", element("tr", map(_header, columns))) if any(column.title for column in columns) else None
    caption = None if table.caption is None else element("caption", table.caption)
    region: dict[str, str] = {}
    if table.label is not None:
        region = {"role": "region", "aria_label": table.label, "tabindex": "0"}
    inside = element("table", caption, head, element("tbody", written), class_=table.style)
    return element("div", inside, class_="scroll", **region)


def _header(column: Column) -> Html:
    style = None if column.width is None else f"width:{column.width:g}em"
    return element("th", column.title, scope="col", class_=_class(column), title=column.hint, style=style)


def _class(column: Column) -> str | None:
    return "number" if column.is_number else "code" if column.kind == "code" else None


def _cell(value: Content, column: Column, is_stacked: bool) -> str:
    """A cell. It is written here and not by ``element``: tables of large models have hundreds of thousands of cells."""
    order = ""
    if isinstance(value, Amount):
        order = "" if value.value is None else f' data-order="{value.value}"'
        value = value.text
    # Such a cell may be broken anywhere, but has some width before that.
    is_long = isinstance(value, str) and not isinstance(value, Html) and len(value) > _WIDE
    classes = " ".join(filter(None, (_class(column), "long" if is_long else None)))
    title = f' data-title="{escaped(column.title)}"' if is_stacked and column.is_number else ""
    written = f' class="{classes}"' if classes else ""
    return f"<td{written}{order}{title}>{_inline(value)}</td>"


def _inline(value: Any) -> Html:
    """A value inside of a cell or of a definition."""
    match value:
        case Html():
            return value
        case Bar(part, text):
            return bar(part, text)
        case HistogramChart():
            return histogram(value)
        case Guided(guide, text):
            return escaped(cut(guide + text, _LONGEST))
        case Amount(_, text):
            return escaped(text)
        case Text(text, style, hint):
            tag = "abbr" if hint is not None else "span"
            return element(tag, cut(text, _LONGEST), class_=style or None, title=hint)
        case str():
            return escaped(cut(value, _LONGEST))
        case float():
            return escaped(f"{value:.6g}")
        case Definitions() | Table():
            return html(value)
        case Iterable():
            return joined(map(_inline, value))
    return joined(value)


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""A page loads nothing, from the network or from a file."""


def notebook(value: object) -> str:
    """The return value of ``_repr_html_``: the sections of a value, with the style sheet.

    The style sheet applies to this output alone, and takes the colours of the notebook. Where a viewer drops it, all is
    still readable. A report whose sections begin without a title gets its repr as one.
    """
    contents = list(sections_of(value))
    if isinstance(value, Report) and not (contents and isinstance(contents[0], Text) and contents[0].style == "title"):
        contents.insert(0, Text(repr(value).strip("<>"), "title"))
    return str(element("div", element("style", style("base")), html(contents, ROWS), class_="irexec"))


def page(title: str, *content: Markup, style_sheet: str = "", script: str = "") -> str:
    """A whole document that needs no other file: light or dark as the reader's system is, for screens of any width and
    for print.

    Args:
        title: of the window.
        content: of the body.
        style_sheet: CSS after that of every page.
        script: JavaScript that runs when the page is complete.
    """
    css = Html(style("base") + style("page") + style_sheet)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("style", css),
    )
    body = element("body", *content, element("script", Html(script)) if script else None, class_="irexec")
    return joined(Html("<!DOCTYPE html>\n"), element("html", head, Html("\n"), body, lang="en"), Html("\n"))


def data(id: str, document: Any) -> Html:
    """A JSON document inside of a page, for its script: ``JSON.parse(document.getElementById(id).textContent)``.

    NaN and infinities are not JSON: who calls this writes them as something else.
    """
    # Nothing in a string may end the element or begin a comment.
    text = json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
    return element("script", Html(text), type="application/json", id=id)


@cache
def style(name: str) -> Html:
    """A style sheet of this package: "base" for what is shown anywhere, "page" for pages."""
    # Imported here since most programs show nothing.
    from importlib.resources import files

    return Html((files("irexec.display") / f"{name}.css").read_text("utf-8"))
