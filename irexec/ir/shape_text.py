"""Partial shapes as OpenVINO writes them: text to sizes and back."""

from __future__ import annotations

import re

from irexec.errors import OpError
from irexec.ir.dims import ANY, PartialShape, Size, span

_SIZE = re.compile(r"\s*(?:(?P<lo>\d*)\s*\.\.\s*(?P<hi>\d*)|(?P<one>\d+))\s*")


def parse_shape(text: str) -> PartialShape:
    """A partial shape as OpenVINO writes it: ``"?,2..5,3"``, ``"..."`` for unknown rank, ``""`` for a scalar.

    ``-1`` is read as ``?``; outer brackets are allowed. Raises OpError for anything else.
    """
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    if inner == "...":
        return None
    if not inner:
        return ()
    return tuple(_size(part) for part in inner.split(","))


def _size(text: str) -> Size:
    if text.strip() in ("?", "-1"):
        return ANY
    found = _SIZE.fullmatch(text)
    if found is None or len(text) > 45:
        raise OpError(f"{text.strip()!r} is not a size (a number, ?, or lo..hi)")
    if found["one"]:
        return int(found["one"])
    lo, hi = int(found["lo"] or 0), int(found["hi"]) if found["hi"] else None
    if hi is not None and hi < lo:
        raise OpError(f"{text.strip()!r} is not a size: its bounds are the wrong way round")
    return span(lo, hi)


def write_shape(shape: PartialShape) -> str:
    """The text of a partial shape as OpenVINO writes it on a Parameter."""
    if shape is None:
        return "..."
    return ",".join(_size_text(size) for size in shape)


def _size_text(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    if size.hi is None:
        return "?" if size.lo == 0 else f"{size.lo}.."
    return f"{size.lo}..{size.hi}" if size.lo else f"..{size.hi}"
