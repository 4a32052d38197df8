"""Tables, lists of definitions and parts that fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irexec.html.markup import Content, Html, element, escaped, joined
from irexec.messages import cut

_LONGEST = 300
"""Characters of a text in a cell; longer ones, which are names and attributes, are cut in their middle."""

_WIDE = 24
"""Characters of a text that is not kept on one line on a narrow screen."""


@dataclass(frozen=True)
class Row:
    """A row of a table that other parts of a page lead to.

    Attributes:
        cells: its cells.
        id: of the row.
    """

    cells: Sequence[Content]
    id: str


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its header.
        is_number: whether its cells are aligned to the right, with digits of one width.
        is_code: whether its cells are names, types or shapes, shown in a monospaced font.
        hint: what the column means, shown where the pointer rests on the header.
        width: how many characters wide it is in a table of the class "fixed", the columns of which do not depend on what is in them: such
            tables of thousands of rows are drawn in less time.
    """

    title: str
    is_number: bool = False
    is_code: bool = False
    hint: str | None = None
    width: float | None = None

    @property
    def style_class(self) -> str | None:
        """The class of its cells."""
        return "number" if self.is_number else "code" if self.is_code else None

    @property
    def style(self) -> str | None:
        """The style of its header."""
        return None if self.width is None else f"width:{self.width:g}em"


def table(
    columns: Sequence[object],
    rows: Iterable[Sequence[Content] | Row],
    *,
    caption: Content = None,
    limit: int | None = None,
    hide_empty: bool = False,
    class_: str | None = None,
    label: str | None = None,
) -> Html:
    """A table.

    Args:
        columns: each a Column, or the title of a column of text.
        rows: their cells, each any Content or an ``Amount``, or a Row of them.
        caption: what is in the table.
        limit: how many rows are shown at most; a last row says how many more there are.
        hide_empty: leave out columns that are empty (None or "") in every row.
        class_: of the table. In one of the class "stacked" the cells of a row are below each other on a narrow screen.
        label: what the table is called to who moves over the page by keyboard: a wide one can then be scrolled by keys.
    """
    all_columns = [column if isinstance(column, Column) else Column(str(column)) for column in columns]
    all_rows = list(rows)
    shown = all_rows if limit is None else all_rows[:limit]
    inside = [row.cells if isinstance(row, Row) else row for row in shown]
    used = [i for i in range(len(all_columns)) if not hide_empty or any(not _is_empty(cells[i]) for cells in inside)]
    chosen = [all_columns[i] for i in used]
    titles = [
        element("th", column.title, scope="col", class_=column.style_class, title=column.hint, style=column.style)
        for column in chosen
    ]
    is_stacked = class_ is not None and "stacked" in class_.split()
    body = [
        element(
            "tr",
            [_cell(cells[i], all_columns[i], is_stacked) for i in used],
            id=row.id if isinstance(row, Row) else None,
        )
        for row, cells in zip(shown, inside, strict=True)
    ]
    if len(all_rows) > len(shown):
        body.append(
            element("tr", element("td", f"and {len(all_rows) - len(shown):,} more", colspan=len(chosen), class_="more"))
        )
    head = element("thead", element("tr", titles)) if any(column.title for column in chosen) else None
    title = None if caption is None else element("caption", caption)
    region: dict[str, str] = {} if label is None else {"role": "region", "aria_label": label, "tabindex": "0"}
    return element(
        "div", element("table", title, head, element("tbody", body), class_=class_), class_="scroll", **region
    )


@dataclass(frozen=True)
class Amount:
    """A cell that shows one text and sorts by a number: "1.2 MB" by 1200000.

    Attributes:
        value: the number; None sorts after all others.
        text: what is shown.
    """

    value: float | None
    text: Content


def _cell(content: Content, column: Column, is_stacked: bool) -> Html:
    order = None
    if isinstance(content, Amount):
        order, content = content.value, content.text
    # Such a cell may be broken anywhere, but is given some width before that.
    is_long = isinstance(content, str) and not isinstance(content, Html) and len(content) > _WIDE
    # Written here: tables of large models have hundreds of thousands of cells.
    written = _CLASSES[column.is_number, column.is_code, is_long]
    if order is not None:
        written = f'{written} data-order="{order}"'
    if is_stacked and column.is_number:
        written = f'{written} data-title="{escaped(column.title)}"'
    inside = _shortened(content)
    return Html(f"<td{written}>{inside if isinstance(inside, Html) else joined(inside)}</td>")


_CLASSES = {
    (is_number, is_code, is_long): f' class="{" ".join(filter(None, (names, "long" if is_long else "")))}"'
    if names or is_long
    else ""
    for is_number, is_code, names in (
        (False, False, ""),
        (False, True, "code"),
        (True, False, "number"),
        (True, True, "number"),
    )
    for is_long in (False, True)
}
"""The attribute of cells of each kind of column and content."""


def _is_empty(content: Content) -> bool:
    return content is None or content == "" or (isinstance(content, Amount) and _is_empty(content.text))


def _shortened(content: Content) -> Content:
    if isinstance(content, str) and not isinstance(content, Html):
        return escaped(cut(content, _LONGEST))
    return content


def definitions(pairs: Mapping[str, Content] | Iterable[tuple[str, Content]]) -> Html:
    """A list of terms and what they are; a pair with None or an empty text is left out."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    shown = [
        element("div", element("dt", term), element("dd", _shortened(what)))
        for term, what in items
        if not _is_empty(what)
    ]
    return element("dl", shown)


def sections(*parts: tuple[str, Content]) -> Html:
    """Parts that the reader folds and unfolds, each with its title."""
    return Html("".join(element("details", element("summary", title), content) for title, content in parts))
