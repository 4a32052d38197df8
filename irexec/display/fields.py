"""Contents of dataclasses that say nothing of their own: definitions, or a table with a column for each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any

from irexec.display.document import Amount, Column, Content, Definitions, Table, Text, has_sections, sections_of
from irexec.messages import listed
from irexec.records import Record, Records

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
    columns = [
        Column(_words(f.name), _of(f.name), "number" if _is_number(rows, f.name) else "name") for f in _fields(rows[0])
    ]
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
            numbers = bool(value) and all(isinstance(member, int) for member in value)
            if numbers:
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
