"""Shapes and XML as text."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import SupportsIndex, TypeAlias

from irexec.errors import OpError
from irexec.ir.dims import ANY, LARGEST_SIZE, Dim, PartialShape, Size, span

SizeLike: TypeAlias = SupportsIndex | Dim | str | tuple[int | None, int | None] | None
"""A size as users give it: an int (-1: any), a Dim, None (any), text such as "2..5", or bounds such as (2, 5)."""

ShapeLike: TypeAlias = str | Sequence[SizeLike] | None
"""A partial shape as users give it: text such as "1,3,?,2..5", a sequence of sizes, or None for an unknown rank."""

NamedShapes: TypeAlias = Mapping[str, ShapeLike] | Mapping[str | None, ShapeLike]
"""Shapes by the names of inputs; None is the only input."""

_SIZE = re.compile(r"\s*(?:(?P<lo>\d*)\s*\.\.\s*(?P<hi>\d*)|(?P<one>\d+))\s*", re.ASCII)
_LONGEST_SIZE = 45


def parse_shape(text: str) -> PartialShape:
    """A partial shape from text: ``"?,2..5,3"``, ``"..."`` for an unknown rank, ``""`` for a scalar.

    ``-1`` means ``?``, and brackets around the whole are allowed: ``"[1,3]"``. Raises OpError for anything else.
    """
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1].strip()
    if inner == "...":
        return None
    if not inner:
        return ()
    return tuple(_size(part) for part in inner.split(","))


def parse_named_shape(text: str) -> tuple[str, PartialShape]:
    """A name and a shape from ``"x[1,3,?,2..5]"`` or ``"x=1,3,?,2..5"``; raises OpError for anything else."""
    if text.endswith("]"):
        name, bracket, inner = text.rpartition("[")
        name, shape = name.removesuffix("="), bracket + inner
    else:
        name, _, shape = text.rpartition("=")
    if not name or not shape:
        raise OpError(f"{text!r} is not of the form NAME[1,3,?,2..8] or NAME=1,3,?,2..8")
    return name, parse_shape(shape)


def as_shape(shape: ShapeLike) -> PartialShape:
    """A partial shape from what users give as one; raises OpError for anything else."""
    if shape is None:
        return None
    if isinstance(shape, str):
        return parse_shape(shape)
    if not isinstance(shape, Sequence):
        raise OpError(f"{shape!r} is neither a sequence of sizes nor text such as '1,3,?,2..5'")
    return tuple(map(_as_size, shape))


def _as_size(size: SizeLike) -> Size:
    if size is None or isinstance(size, Dim):
        return ANY if size is None else size
    if isinstance(size, str):
        return _size(size)
    if isinstance(size, tuple):
        return _bounds(size)
    try:
        value = operator.index(size)
    except TypeError:
        raise OpError(f"{size!r} is not a size (an int, None, text such as '2..5' or a tuple of bounds)") from None
    if value < -1:
        raise OpError(f"{value} is not a size")
    return ANY if value == -1 else _fitting(value, value, str(value))


def _bounds(bounds: tuple[int | None, int | None]) -> Size:
    values = [None if bound is None or bound == -1 else bound for bound in bounds]
    if len(values) != 2 or not all(value is None or isinstance(value, SupportsIndex) for value in values):
        raise OpError(f"{bounds!r} is not a size: bounds are a minimum and a maximum")
    lo, hi = (None if value is None else operator.index(value) for value in values)
    if (lo or 0) < 0 or (hi is not None and hi < (lo or 0)):
        raise OpError(f"{bounds!r} is not a size: the minimum is negative or above the maximum")
    return _fitting(lo or 0, hi, repr(bounds))


def _size(text: str) -> Size:
    if text.strip() in ("?", "-1"):
        return ANY
    found = _SIZE.fullmatch(text)
    if found is None or len(text) > _LONGEST_SIZE:
        raise OpError(f"{text.strip()!r} is not a size (a number, ?, or lo..hi)")
    if found["one"]:
        return _fitting(int(found["one"]), int(found["one"]), text.strip())
    lo, hi = int(found["lo"] or 0), int(found["hi"]) if found["hi"] else None
    if hi is not None and hi < lo:
        raise OpError(f"{text.strip()!r} is not a size: its minimum is above its maximum")
    return _fitting(lo, hi, text.strip())


def _fitting(lo: int, hi: int | None, text: str) -> Size:
    """The size between lo and hi; ``text`` is what the user wrote."""
    if max(lo, hi or 0) > LARGEST_SIZE:
        raise OpError(f"{text} is not a size: the largest is 2**63 - 1")
    return span(lo, hi)


def write_shape(shape: PartialShape) -> str:
    """The text of a partial shape as OpenVINO writes it on a Parameter."""
    if shape is None:
        return "..."
    return ",".join(_size_text(size) for size in shape)


def _size_text(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    if size.hi is None or size.hi > LARGEST_SIZE:
        # Bounds of a product may be beyond what a size can be, and could not be read again.
        return "?" if size.lo == 0 else f"{size.lo}.."
    return f"{size.lo}..{size.hi}" if size.lo else f"..{size.hi}"


# NameStartChar and NameChar of XML 1.0, fifth edition.
_NAME_START = (
    ":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)


def is_text(text: str) -> bool:
    """Whether XML can contain every character."""
    # Every printable character is allowed, and most texts have no others.
    return text.isprintable() or _not_xml().search(text) is None


@functools.lru_cache(maxsize=256)
def is_name(text: str) -> bool:
    """Whether a text can be the name of an attribute."""
    return (text.isascii() and text.isidentifier()) or _name().fullmatch(text) is not None


# Patterns of all characters take milliseconds to compile, and few models need them.
@functools.cache
def _not_xml() -> re.Pattern[str]:
    return re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@functools.cache
def _name() -> re.Pattern[str]:
    return re.compile(rf"[{_NAME_START}][{_NAME_START}\-.0-9\xb7\u0300-\u036f\u203f\u2040]*")
