"""Markup and text, distinguished by their types: a ``str`` is text and is escaped, an ``Html`` is markup and is kept."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.messages import visible

_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
"""Elements that have no content and no end tag."""


# The module html of the standard library takes longer to import than all of this package.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Html(str):
    """Markup. Joining it with text by ``+`` or formatting gives a ``str``, which would be escaped: use ``joined`` and ``element``."""

    __slots__ = ()

    def __html__(self) -> str:
        """The markup: template engines ask for it so, and do not escape it then."""
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


Content = object
"""What an element contains: ``Html`` is kept, an iterable stands for its members, None for nothing, and all else is text."""

Attribute = str | int | float | bool | None


def escaped(text: object) -> Html:
    """Text as markup: nothing in it is obeyed, and control characters and marks of direction show as escapes, such as ``\\x1b``."""
    return text if isinstance(text, Html) else Html(visible(str(text)).translate(_ESCAPES))


def joined(*content: Content) -> Html:
    """The markup of several pieces one after the other."""
    return Html("".join(_pieces(content)))


def element(tag: str, /, *content: Content, **attributes: Attribute) -> Html:
    """An element.

    Args:
        tag: its name.
        content: see Content.
        attributes: by name, with "-" written as "_" and a last "_" dropped (``class_="x"``, ``data_id=3``). None and False leave an
            attribute out, True gives it without a value.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items() if value is not None and value is not False)
    return Html(f"<{tag}{written}>" if tag in _VOID else f"<{tag}{written}>{''.join(_pieces(content))}</{tag}>")


def _pieces(content: Iterable[Content]) -> Iterable[str]:
    for piece in content:
        if piece is None:
            continue
        if isinstance(piece, str) or not isinstance(piece, Iterable):
            yield escaped(piece)
        else:
            yield from _pieces(piece)


def _attribute(name: str, value: Attribute) -> str:
    name = name.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(value)}"'
