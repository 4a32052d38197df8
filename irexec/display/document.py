"""A small model of a document: what a result consists of, once, for every renderer.

A result's ``sections()`` returns contents: texts, tables, charts, lists of definitions and sections of them. Renderers
draw these as plain text (``plain``), in a terminal (``irexec.cli.render``) and as HTML (``html``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import singledispatch
from typing import Any, Literal, Protocol, TypeGuard

from irexec.messages import amount, listed, metric
from irexec.records import Record, Records

Content = object
"""A str or Text, Table, Definitions, Curve, Histogram or Section; an iterable stands for its members, None for nothing.

The cell of a table is a str, number, Amount, Bar, Histogram, Guided or Text.
"""

Style = Literal["", "title", "note", "error", "warning", "info", "code", "change", "old", "new", "renamed"]
"""Text of the style "code" is not wrapped. The last four styles are those of a patch: the title of a change, and what
is removed, added and renamed."""


@dataclass(frozen=True)
class Text:
    """A line or a cell of text with a style; a str is text without one.

    Attributes:
        text: the text.
        style: how it looks.
        hint: more about it, shown where the pointer rests on it.
    """

    text: str
    style: Style = ""
    hint: str | None = None


@dataclass(frozen=True)
class Amount:
    """A cell that shows one text and sorts by a number: "1.2 MB" by 1200000.

    Attributes:
        value: the number; None sorts after all others.
        text: the shown text.
    """

    value: float | None
    text: str


@dataclass(frozen=True)
class Guided:
    """A cell of a tree: the lines that lead to it, of the characters │├└─, and its text."""

    guide: str
    text: str


Kind = Literal["name", "path", "code", "sentence", "number", "count", "bytes", "share", "figure", "ms", "chart"]
"""The kind of the cells of a column.

"name" is text that may be shortened; "path" is the name of a layer, which is shortened inside; "sentence" is wrapped
at words, "code" (types, shapes) is kept whole. Numbers are written as they are ("number"), as counts and bytes with a
unit, as a share in percent, in four digits ("figure") or as milliseconds. Text leaves out charts, whose numbers are in
another column.
"""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its header.
        of: the name of the attribute of a row that it shows, or a function of a row; None where rows are sequences of
            cells.
        kind: of its cells.
        hint: the meaning of the column, shown at the pointer on the header.
        width: in characters, in a table of the style "fixed", the columns of which do not depend on their cells: such
            tables of thousands of rows are drawn in less time.
    """

    title: str
    of: str | Callable[[Any], Content] | None = None
    kind: Kind = "name"
    hint: str | None = None
    width: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers, which are aligned to the right."""
        return self.kind not in ("name", "path", "code", "sentence", "chart")

    def cell(self, row: Any, index: int) -> Content:
        """The cell of a row, in the format of the column; ``index`` is the position of the column."""
        if self.of is None:
            value = row[index]
        else:
            value = getattr(row, self.of) if isinstance(self.of, str) else self.of(row)
        return _FORMATS[self.kind](value) if self.kind in _FORMATS and value != "" else value


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: each a Column, or the title of a column of names.
        rows: objects of which the columns show attributes, or sequences of cells.
        caption: the title of the table.
        hide_empty: leave out columns that are empty in every row.
        limit: maximum number of shown rows; None for the renderer's own. A last row counts the others.
        what: the plural of what a row is.
        style: of a page: "stacked" puts the cells of a row below each other on a narrow screen, "sortable",
            "searchable", "fixed".
        label: accessible label of the table in a page; a wide table with one can be scrolled by keys.
        ids: of the rows in a page, to which links lead.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Any]
    caption: str | None = None
    hide_empty: bool = True
    limit: int | None = None
    what: str = "rows"
    style: str | None = None
    label: str | None = None
    ids: Sequence[str] | None = None

    def all_columns(self) -> list[Column]:
        """The columns."""
        return [column if isinstance(column, Column) else Column(column) for column in self.columns]


@dataclass(frozen=True)
class Definitions:
    """A list of terms and what they are; a term without a value is left out."""

    pairs: Mapping[str, Content] | Iterable[tuple[str, Content]]

    def shown(self) -> list[tuple[str, Content]]:
        """The pairs with a value."""
        pairs = self.pairs.items() if isinstance(self.pairs, Mapping) else self.pairs
        return [(term, value) for term, value in pairs if not is_empty(value)]


@dataclass(frozen=True)
class Bar:
    """A cell with a horizontal bar that fills ``part``, 0 to 1, of its width; ``text`` is its accessible label."""

    part: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A filled curve over values that follow each other, from 0 to the largest.

    Attributes:
        values: at least 0.
        scale: the largest value as text.
        text: accessible label of the image.
    """

    values: Sequence[float]
    scale: str
    text: str


@dataclass(frozen=True)
class HistogramChart:
    """A bar for each of the intervals of equal width between ``low`` and ``high``.

    Attributes:
        counts: number of elements in each interval.
        low, high: the bounds.
        labels: of the intervals; without, a histogram is drawn in HTML alone.
        lighter: number of elements of each interval in a lighter colour, at the end of its bar; () for none.
        is_large: whether it stands by itself and not in the cell of a table.
    """

    counts: Sequence[int]
    low: float
    high: float
    labels: Sequence[str] = ()
    lighter: Sequence[int] = ()
    is_large: bool = False

    def parts(self) -> list[tuple[float, float]]:
        """Lengths of the two parts of each bar, 0 to 1; elements that are drawn lighter do not shorten other bars."""
        lighter = self.lighter or [0] * len(self.counts)
        others = [count - light for count, light in zip(self.counts, lighter, strict=True)]
        highest = max(others, default=0) or max(self.counts, default=0) or 1
        return [
            (count / highest, min(light / highest, 1 - count / highest))
            for count, light in zip(others, lighter, strict=True)
        ]


@dataclass(frozen=True)
class Section:
    """A part with a title. A notebook folds it, and text leaves it out if it ``is_folded``."""

    title: str
    contents: Content
    is_folded: bool = False


def bars(rows: Iterable[tuple[str, float, str]], titles: tuple[str, str]) -> Table:
    """A table with a bar in each row.

    Args:
        rows: label, value (at least 0), and the value as text.
        titles: of the labels and the values.
    """
    rows = list(rows)
    highest = max((value for _, value, _ in rows), default=0.0) or 1.0
    columns = [Column(titles[0]), Column(titles[1], kind="number"), Column("", kind="chart")]
    cells = [(label, Amount(value, text), Bar(value / highest, f"{label}: {text}")) for label, value, text in rows]
    return Table(columns, cells, style="bars")


def is_empty(content: Content) -> bool:
    """Whether nothing is shown."""
    return content is None or content == "" or (isinstance(content, Amount | Text) and content.text == "")


_FORMATS: dict[str, Callable[[Any], Content]] = {
    "count": lambda value: Amount(value, "?" if value is None else metric(value or None)),
    "bytes": lambda value: Amount(value, "?" if value is None else amount(value)),
    "share": lambda value: Amount(value, f"{value:.1%}") if value else "",
    "figure": lambda value: None if value is None else Amount(value, f"{value:.4g}"),
    "ms": lambda value: None if value is None else Amount(value, f"{value:.3f}"),
}


@singledispatch
def sections_of(value: Any) -> Iterable[Content]:
    """The contents of a value: those of its method ``sections()``, or those registered for its type
    (``sections_of.register``).

    Raises:
        TypeError: there are none.
    """
    if not has_sections(value):
        raise TypeError(f"an object of type {type(value).__name__} has no sections")
    found: Iterable[Content] = value.sections()
    return found


class HasSections(Protocol):
    """A value that says how it is shown."""

    def sections(self) -> Iterable[Content]: ...


def has_sections(value: Any) -> TypeGuard[HasSections]:
    """Whether the type of a value has a method ``sections()``."""
    return callable(getattr(type(value), "sections", None))


_MEMBERS = 8
"""Members of a list that are shown in a cell."""


@sections_of.register
def record(value: Record) -> Iterable[Content]:
    """The sections of a record; without any, its fields as definitions and its lists of dataclasses as tables."""
    if has_sections(value):
        return value.sections()
    return [Text(type(value).__name__, "title"), *_fields_as_contents(value)]


@sections_of.register(Records)
def _(values: Records[Any]) -> Iterable[Content]:
    count = f"{len(values):,} {type(values[0]).__name__}{'s' if len(values) > 1 else ''}" if values else "empty"
    return [Text(count, "title"), records(values)]


def _fields_as_contents(value: Any) -> Iterator[Content]:
    found = {field.name: getattr(value, field.name) for field in _fields(value)}
    inside = {name: inner for name, inner in found.items() if _are_records(inner)}
    yield Definitions({_words(name): _shown(inner) for name, inner in found.items() if name not in inside})
    for name, inner in inside.items():
        yield records(inner, caption=_words(name))


def records(values: Iterable[Any], *, caption: str | None = None) -> Table | None:
    """Dataclasses of one type as a table; None without any."""
    rows = list(values)
    if not rows:
        return None
    names = [field.name for field in _fields(rows[0])]
    columns = [Column(_words(name), _of(name), "number" if _is_number(rows, name) else "name") for name in names]
    return Table(columns, rows, caption=caption)


def _of(name: str) -> Any:
    return lambda row: cell(getattr(row, name))


def _shown(value: Any) -> Content:
    if not is_dataclass(value) or type(value).__str__ is not object.__str__:
        return cell(value)
    return list(_fields_as_contents(value))


def cell(value: Any) -> Content:
    """A value as it is shown: floats in six digits, sizes in brackets, arrays by their type and shape."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return Amount(value, f"{value:,}" if abs(value) > 99_999 else str(value))
        case float():
            return Amount(value if value == value else None, f"{value:.6g}")
        case str():
            return value
        case Mapping():
            return listed([f"{name}: {_text(inner)}" for name, inner in value.items()], _MEMBERS)
        case list() | tuple() | set() | frozenset():
            if value and all(isinstance(member, int) for member in value):
                return f"[{','.join(map(str, value))}]"
            return listed([_text(member) for member in value], _MEMBERS)
    return _text(value)


def _text(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, shape))}]"
    shown = cell(value) if isinstance(value, bool | int | float | list | tuple | None) else str(value)
    return str(shown.text if isinstance(shown, Amount) else shown)


def _are_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(is_dataclass(member) for member in value)


def _fields(value: Any) -> list[Field[Any]]:
    return [field for field in fields(value) if field.repr]


def _is_number(rows: Sequence[Any], name: str) -> bool:
    values = [getattr(row, name) for row in rows[:200]]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _words(name: str) -> str:
    return name.replace("_", " ")
