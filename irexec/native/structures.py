"""Structures of C as the sources declare them, so that no order of fields is written twice.

A kernel is given one ``typedef struct`` of integers and floats of 8 bytes, addresses, structures of this kind, and
arrays of these.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

from irexec.native.sources import SOURCE

_NUMBERS: dict[str, Any] = {"i64": ctypes.c_int64, "double": ctypes.c_double}
_STRUCTURE = re.compile(r"typedef struct \{(.*?)\n\} (\w+);", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"(?:const )?(\w+) (?:const )?(.+)", re.DOTALL)
_FIELD = re.compile(r"\s*(\**)(\w+)(?:\[(\d+)\])?\s*")


class Parameters(ctypes.Structure):
    """A structure, given a value for each of its fields in their order, or some by name; others are zeros."""

    def __init__(self, *values: Any, **named: Any) -> None:
        whole = len(self._fields_)
        assert named or len(values) in (0, whole), f"{type(self).__name__} has {whole} fields, not {len(values)}"
        super().__init__(*values, **named)


_known: dict[str, type[Parameters]] = {}


def structure(file: str, name: str) -> type[Parameters]:
    """The structure of a file of the C sources; those that are fields of it are made before."""
    fields: list[tuple[str, Any]] = []
    for declaration in _structures(file)[name].split(";")[:-1]:
        kind, names = _match(_DECLARED, declaration.strip())
        for one in names.split(","):
            pointer, field, count = _match(_FIELD, one)
            type_ = ctypes.c_void_p if pointer else (_NUMBERS | _known)[kind]
            fields.append((field, type_ * int(count) if count else type_))

    class Structure(Parameters):
        _fields_ = fields

    Structure.__name__ = name
    _known[name] = Structure
    return Structure


@functools.cache
def _structures(file: str) -> dict[str, str]:
    """The declarations of fields by the name of the structure."""
    text = _COMMENT.sub("", (SOURCE / file).read_text("utf-8"))
    return {found[2]: found[1] for found in _STRUCTURE.finditer(text)}


def _match(pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    found = pattern.fullmatch(text)
    assert found is not None, f"{text!r} declares no field"
    return found.groups()
