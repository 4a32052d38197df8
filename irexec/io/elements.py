"""Elements of XML, and their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

# White space in attributes would be read as blanks, and a carriage return in text as a line break.
_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_ATTRIBUTES = _IN_TEXT | str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})
_SPECIAL = re.compile('[&<>"\t\n\r]')


class XmlElement:
    """One element.

    Attributes:
        tag: its name.
        attributes: in the order in which they are written.
        line: the line on which it starts; None for one that was not read.
        children: the elements in it.
        text: the text before its first child; white space between elements is not kept.
        tail: the text after it.
    """

    __slots__ = ("attributes", "children", "line", "tag", "tail", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int | None = None) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[XmlElement] = []
        self.text = self.tail = ""

    def all(self, tag: str) -> list[XmlElement]:
        """The children of that name."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[XmlElement]:
        """The element and all in it, in the order of the document."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def without(self, keys: Set[str]) -> dict[str, str]:
        """The attributes except those named."""
        if self.attributes.keys() <= keys:
            return {}
        return {key: text for key, text in self.attributes.items() if key not in keys}


class WrittenElement(XmlElement):
    """An element of which only the text is kept: a large model has many.

    Attributes:
        written: its XML text, with its lines indented, but not the first.
    """

    __slots__ = ("written",)

    def __init__(self, element: XmlElement, depth: int) -> None:
        super().__init__(element.tag, {})
        self.written = _text(element, depth)


def attributes_by_tag(parent: XmlElement, *tags: str) -> dict[str, dict[str, str]]:
    """The attributes of the children with these tags, where they have any."""
    return {child.tag: child.attributes for child in parent.children if child.attributes and child.tag in tags}


def element_texts(elements: Iterable[XmlElement]) -> tuple[str, ...]:
    """The XML text of each element, without what follows it."""
    return tuple(_text(element, None) for element in elements)


def indented(element: XmlElement) -> str:
    """The XML text of an element on lines of its own, as OpenVINO writes it."""
    return _text(element, 0) + "\n"


def _text(element: XmlElement, depth: int | None) -> str:
    pieces: list[str] = []
    _add_pieces(pieces, element, depth)
    return "".join(pieces)


def _escaped(text: str, escapes: dict[int, str]) -> str:
    return text.translate(escapes) if _SPECIAL.search(text) else text


def _add_pieces(pieces: list[str], element: XmlElement, depth: int | None) -> None:
    """Add the text of an element; its children stand on lines of their own, unless there is text between them or
    ``depth`` is None.
    """
    if isinstance(element, WrittenElement):
        pieces.append(element.written)
        return
    attributes = "".join([f' {key}="{_escaped(text, _IN_ATTRIBUTES)}"' for key, text in element.attributes.items()])
    if not element.children and not element.text:
        pieces.append(f"<{element.tag}{attributes}/>")
        return
    pieces.append(f"<{element.tag}{attributes}>{_escaped(element.text, _IN_TEXT)}")
    if element.text or any(child.tail for child in element.children):
        depth = None
    for child in element.children:
        if depth is not None:
            pieces.append("\n" + "\t" * (depth + 1))
        _add_pieces(pieces, child, None if depth is None else depth + 1)
        if child.tail:
            pieces.append(_escaped(child.tail, _IN_TEXT))
    if depth is not None and element.children:
        pieces.append("\n" + "\t" * depth)
    pieces.append(f"</{element.tag}>")
