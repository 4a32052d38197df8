"""Markup and text, distinguished by their types: a ``str`` is text and is escaped, an ``Html`` is markup and is
kept."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from irexec.messages import OBEYED, visible

_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
"""Elements that have no content and no end tag."""


# The module html of the standard library takes longer to import than all of this package.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_SPECIAL = re.compile(f"[&<>\"'{OBEYED}]")


class Html(str):
    """Markup. Joining it with text by ``+`` or formatting gives a ``str``, which would be escaped: use ``joined`` and
    ``element``."""

    __slots__ = ()

    def __html__(self) -> str:
        """The markup: template engines ask for it so, and do not escape it then."""
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


Content = object
"""The content of an element: ``Html`` is kept, an iterable stands for its members, None for nothing; the rest is
text."""

Attribute = str | int | float | bool | None


def escaped(text: object) -> Html:
    """Text as markup: nothing in it is obeyed, and control characters and marks of direction show as escapes, such as
    ``\\x1b``."""
    return text if isinstance(text, Html) else Html(_escaped(str(text)))


def joined(*content: Content) -> Html:
    """The markup of several pieces one after the other."""
    pieces: list[str] = []
    _add(pieces, content)
    return Html("".join(pieces))


def element(tag: str, /, *content: Content, **attributes: Attribute) -> Html:
    """An element.

    Args:
        tag: its name.
        content: see Content.
        attributes: by name, with "-" written as "_" and a last "_" dropped (``class_="x"``, ``data_id=3``). None and
            False leave an attribute out, True gives it without a value.
    """
    pieces = ["<", tag]
    for name, value in attributes.items():
        if value is True:
            pieces.append(f" {_written(name)}")
        elif value is not None and value is not False:
            pieces.append(f' {_written(name)}="{value if isinstance(value, Html) else _escaped(str(value))}"')
    pieces.append(">")
    if tag not in _VOID:
        _add(pieces, content)
        pieces += ("</", tag, ">")
    return Html("".join(pieces))


# Pages of large models have millions of pieces, most of them texts in which nothing has to be escaped.


def _escaped(text: str) -> str:
    return text if _SPECIAL.search(text) is None else visible(text).translate(_ESCAPES)


def _add(pieces: list[str], content: Iterable[Content]) -> None:
    """Add the markup of a content to pieces of markup."""
    for piece in content:
        kind = type(piece)
        if isinstance(piece, Html):
            pieces.append(piece)
        elif kind is str or kind is int:
            pieces.append(_escaped(str(piece)))
        elif piece is None:
            continue
        elif isinstance(piece, str) or not isinstance(piece, Iterable):
            pieces.append(escaped(piece))
        else:
            _add(pieces, piece)


@functools.cache
def _written(name: str) -> str:
    """The name of an attribute as it is written."""
    return name.removesuffix("_").replace("_", "-")
