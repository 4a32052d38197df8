"""Tables, lists of definitions and parts that fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irexec.html.markup import Content, Html, element, escaped
from irexec.messages import cut

_LONGEST = 300
"""Characters of a text in a cell; longer ones, which are names and attributes, are cut in their middle."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its header.
        is_number: whether its cells are aligned to the right, with digits of one width.
        is_code: whether its cells are names, types or shapes, shown in a monospaced font.
        hint: what the column means, shown where the pointer rests on the header.
    """

    title: str
    is_number: bool = False
    is_code: bool = False
    hint: str | None = None

    @property
    def style_class(self) -> str | None:
        """The class of its cells."""
        return "number" if self.is_number else "code" if self.is_code else None


def table(
    columns: Sequence[object],
    rows: Iterable[Sequence[Content]],
    *,
    caption: Content = None,
    limit: int | None = None,
    hide_empty: bool = False,
    class_: str | None = None,
) -> Html:
    """A table.

    Args:
        columns: each a Column, or the title of a column of text.
        rows: their cells, each any Content or an ``Amount``.
        caption: what is in the table.
        limit: how many rows are shown at most; a last row says how many more there are.
        hide_empty: leave out columns that are empty (None or "") in every row.
        class_: of the table.
    """
    all_columns = [column if isinstance(column, Column) else Column(str(column)) for column in columns]
    all_rows = list(rows)
    shown = all_rows if limit is None else all_rows[:limit]
    used = [i for i in range(len(all_columns)) if not hide_empty or any(not _is_empty(row[i]) for row in shown)]
    chosen = [all_columns[i] for i in used]
    titles = [element("th", column.title, scope="col", class_=column.style_class, title=column.hint) for column in chosen]
    body = [element("tr", [_cell(row[i], all_columns[i]) for i in used]) for row in shown]
    if len(all_rows) > len(shown):
        body.append(element("tr", element("td", f"and {len(all_rows) - len(shown):,} more", colspan=len(chosen), class_="more")))
    head = element("thead", element("tr", titles)) if any(column.title for column in chosen) else None
    title = None if caption is None else element("caption", caption)
    return element("div", element("table", title, head, element("tbody", body), class_=class_), class_="scroll")


@dataclass(frozen=True)
class Amount:
    """A cell that shows one text and sorts by a number: "1.2 MB" by 1200000.

    Attributes:
        value: the number; None sorts after all others.
        text: what is shown.
    """

    value: float | None
    text: Content


def _cell(content: Content, column: Column) -> Html:
    order = None
    if isinstance(content, Amount):
        order, content = content.value, content.text
    return element("td", _shortened(content), class_=column.style_class, data_order=order)


def _is_empty(content: Content) -> bool:
    return content is None or content == "" or (isinstance(content, Amount) and _is_empty(content.text))


def _shortened(content: Content) -> Content:
    if isinstance(content, str) and not isinstance(content, Html):
        return escaped(cut(content, _LONGEST))
    return content


def definitions(pairs: Mapping[str, Content] | Iterable[tuple[str, Content]]) -> Html:
    """A list of terms and what they are; a pair with None or an empty text is left out."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    shown = [element("div", element("dt", term), element("dd", _shortened(what))) for term, what in items if not _is_empty(what)]
    return element("dl", shown)


def sections(*parts: tuple[str, Content], opened: bool = False) -> Html:
    """Parts that the reader folds and unfolds, each with its title."""
    return Html("".join(element("details", element("summary", title), content, open=opened) for title, content in parts))
