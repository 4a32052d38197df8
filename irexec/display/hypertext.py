"""Contents as HTML: for notebooks and for pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irexec.display import svg
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
)
from irexec.display.markup import Html, element, escaped, joined
from irexec.messages import cut

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
            return element("dl", [_definition(term, value) for term, value in content.shown()])
        case Section(title, inside):
            return element("details", element("summary", title), html(inside, limit))
        case Curve(values, _, text):
            return svg.area(values, text)
        case HistogramChart() | Bar():
            return _inline(content)
        case Text(text, style, hint):
            return element("p", text, class_=style or None, title=hint)
        case str():
            return element("p", content) if content else Html()
        case Iterable():
            return joined(html(each, limit) for each in content)
    return element("p", content)


def _definition(term: str, value: Content) -> Html:
    return element("div", element("dt", term), element("dd", _inline(value)))


def _table(table: Table, limit: int | None) -> Html:
    limit = limit if table.limit is None else table.limit
    columns = table.all_columns()
    shown = table.rows if limit is None else table.rows[:limit]
    cells = [[column.cell(row, i) for i, column in enumerate(columns)] for row in shown]
    if table.hide_empty and cells:
        used = [i for i in range(len(columns)) if any(not is_empty(row[i]) for row in cells)]
        columns, cells = [columns[i] for i in used], [[row[i] for i in used] for row in cells]
    is_stacked = table.style is not None and "stacked" in table.style.split()
    written = [
        Html(f"<tr{_id(table, k)}>{''.join(_cell(*pair, is_stacked) for pair in zip(row, columns, strict=True))}</tr>")
        for k, row in enumerate(cells)
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


def _id(table: Table, row: int) -> str:
    return "" if table.ids is None else f' id="{escaped(table.ids[row])}"'


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
            return svg.bar(part, text)
        case HistogramChart():
            return svg.histogram(value)
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
