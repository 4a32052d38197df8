"""Dataclasses and lists of them as HTML: a list of definitions, or a table with a column for each field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any, SupportsIndex, TypeVar, overload

from irexec.html.markup import Content, Html, joined
from irexec.html.page import display
from irexec.html.tables import Amount, Column, definitions, table
from irexec.messages import listed

ROWS = 200
"""Rows of a table in a notebook; a last row says how many more there are."""

_MEMBERS = 8
T = TypeVar("T")


class Record:
    """A dataclass that displays in a notebook: each field with its value; fields with ``repr=False`` are left out."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return display(type(self).__name__, record(self))


class Records(list[T]):
    """A list of dataclasses. It displays in a notebook as a table, and its repr has a line for each member."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | list[T]:
        return type(self)(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)

    def __repr__(self) -> str:
        lines = [repr(member) for member in self[: ROWS + 1]]
        if len(lines) < 2:
            return f"[{''.join(lines)}]"
        more = [f"... and {len(self) - ROWS:,} more"] if len(self) > ROWS else []
        inside = ",\n ".join([*lines[:ROWS], *more])
        return f"[{inside}]"

    def _repr_html_(self) -> str:
        return display(_count(self), records(self))


def record(value: Any) -> Html:
    """The fields of a dataclass as definitions; those that are dataclasses, or several of them, follow."""
    shown = {field.name: getattr(value, field.name) for field in _fields(value)}
    inside = {name: inner for name, inner in shown.items() if _are_records(inner)}
    short = {_words(name): _shown(inner) for name, inner in shown.items() if name not in inside}
    return joined(definitions(short), (records(inner, caption=_words(name)) for name, inner in inside.items()))


def records(values: Iterable[Any], *, caption: Content = None) -> Html:
    """Dataclasses of one type as a table; fields that none of them has a value for are left out."""
    rows = list(values)
    if not rows:
        return joined()
    chosen = _fields(rows[0])
    columns = [Column(_words(field.name), is_number=_is_number(rows, field.name)) for field in chosen]
    cells = [[cell(getattr(row, field.name)) for field in chosen] for row in rows[:ROWS]]
    missing: list[list[Content]] = [[""] * len(chosen)] * (len(rows) - len(cells))
    return table(columns, [*cells, *missing], caption=caption, limit=ROWS, hide_empty=True)


def _shown(value: Any) -> Content:
    found = record(value) if is_dataclass(value) and type(value).__str__ is object.__str__ else cell(value)
    return found.text if isinstance(found, Amount) else found


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
            numbers = bool(value) and all(isinstance(member, int) for member in value)
            return (
                f"[{','.join(map(str, value))}]" if numbers else listed([_text(member) for member in value], _MEMBERS)
            )
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
    values = [getattr(row, name) for row in rows[:ROWS]]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _count(values: Sequence[Any]) -> str:
    return f"{len(values):,} {type(values[0]).__name__}{'s' if len(values) > 1 else ''}" if values else "empty"
