"""Methods of values in any layer whose functions are in layers above: display, ``save`` and ``edit``.

A layer below the tools must not import ``irexec.display``, and ``_repr_html_`` is asked of its objects all the same.
The package, which may import everything and is imported before any of its modules, therefore sets ``renderers``,
``writer`` and ``editor``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsIndex, TypeVar, overload

if TYPE_CHECKING:
    from irexec.authoring.editor import Editor as Editor


ROWS = 200
"""Rows of a table in a notebook and lines of the repr of a list; a last row counts the others."""

T = TypeVar("T")


class Renderers(Protocol):
    """A module that renders any value: as plain text, and as HTML for a notebook."""

    def text(self, value: object, /) -> str: ...
    def html(self, value: object, /) -> str: ...


def _no_renderers() -> Renderers:
    raise RuntimeError("irexec has set no renderers")


renderers: Callable[[], Renderers] = _no_renderers
"""Import the renderers; irexec sets it."""


class Shown:
    """A value that displays in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return renderers().html(self)


class Record(Shown):
    """A dataclass that displays in a notebook: by its sections, or field by field; fields with ``repr=False`` are left
    out.

    Attributes:
        _json_properties: the names of the properties that ``as_dict`` adds to the fields.
    """

    __slots__ = ()
    _json_properties: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields and ``_json_properties``, for JSON. Fields with the metadata ``json: False`` are left out."""
        names = [each.name for each in _fields(self) if each.metadata.get("json", True)]
        return {name: plain(getattr(self, name)) for name in (*names, *self._json_properties)}


class Report(Record):
    """A record that prints as the tables and lines of its sections."""

    __slots__ = ()

    def __str__(self) -> str:
        return renderers().text(self)


class Records(list[T]):
    """A list of records. It displays in a notebook as a table, and its repr has a line for each member."""

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
        return renderers().html(self)


def _fields(record: Any) -> tuple[Field[Any], ...]:
    return fields(record)


def plain(value: Any) -> Any:
    """A value for JSON: records and dataclasses become dictionaries, tuples become lists."""
    if isinstance(value, Record):
        return value.as_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


class Write(Protocol):
    """Write a model to the path of an .xml."""

    def __call__(self, model: Any, path: str | Path, *, overwrite: bool = False) -> None: ...


def _unset_functions() -> Any:
    raise RuntimeError("irexec has set no functions of models")


writer: Callable[[], Write] = _unset_functions
"""Import the function that writes a model; irexec sets it."""
editor: Callable[[], Callable[[Any], Editor]] = _unset_functions
"""Import the editor of models; irexec sets it."""
