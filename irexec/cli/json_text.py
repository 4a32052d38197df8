"""The report of a command as JSON: its values in JSON's own types, and its text."""

from __future__ import annotations

import json
import math
from typing import Any

from irexec.records import Record

_LONG = 1000
"""A list of more members has one in each line: json is ten times as fast where it does not indent."""


def to_plain(value: Any) -> Any:
    """A value in the types of JSON: NaN becomes null, infinities become text, and so does every other type but a
    Record, whose fields are written."""
    if isinstance(value, Record):
        value = value.as_dict()
    if isinstance(value, dict):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)


def json_text(document: dict[str, Any], indent: int | None, *, ascii_only: bool) -> str:
    """The text of a document of plain values.

    Args:
        document: its values as ``to_plain`` gives them.
        indent: the spaces of a level; None writes one line. A list of the document that has more than 1,000 members is
            written with each of them in one line.
        ascii_only: escape all other characters.
    """
    if indent is None or not document:
        return json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    encode = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False).encode
    indented = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, indent=indent).encode
    outer, inner = " " * indent, " " * 2 * indent

    def text(value: Any) -> str:
        if isinstance(value, list) and len(value) > _LONG:
            members = f",\n{inner}".join(map(encode, value))
            return f"[\n{inner}{members}\n{outer}]"
        # Line breaks of strings are escaped, so that these are all of the layout.
        return indented(value).replace("\n", f"\n{outer}")

    members = f",\n{outer}".join(f"{encode(key)}: {text(value)}" for key, value in document.items())
    return f"{{\n{outer}{members}\n}}"
