"""XML that is not trusted, parsed in one pass: time linear in the file, and memory for one layer at a time.

lxml reports what it parses as events, so that no tree is built. Document types are refused where they start, and with
them every entity; nothing is ever fetched. The parser is given the encoding, the depth of elements is limited, and
lines are exact however long the file is, which libxml2's own 16 bits are not. Prefixes of names have no meaning, as in
OpenVINO's own reader: names are as they are written. Files with prefixes are parsed by expat, since lxml drops a prefix
that no attribute declares, and then accepts whatever follows the root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irexec.errors import ModelError
from irexec.io.elements import XmlElement
from irexec.io.tag_lines import tag_lines

try:
    from lxml import etree
except ImportError:
    etree = None  # type: ignore[assignment]

_DECLARED = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = {
    b"utf-8": "utf-8", b"utf8": "utf-8", b"us-ascii": "us-ascii", b"ascii": "us-ascii",
    b"iso-8859-1": "iso-8859-1", b"latin-1": "iso-8859-1",
}  # fmt: skip
_MARKS = (b"\xfe\xff", b"\xff\xfe")
# Bodies add three levels each, and the reader allows 64 of them.
DEEPEST_ELEMENT = 512
LARGEST_TAG = 1 << 25
_PIECE = 1 << 20
# A tag or an attribute whose name has a prefix.
_PREFIXED = re.compile(rb"""<[^\s<>"'=:]*:|:[^\s<>"'=:]*\s*=\s*["']|xmlns""")
# libxml2's codes of a file that ends too early: there is none, there is no tag, it ends in a tag, it ends in an
# element.
_EMPTY, _ENDED = frozenset((1, 4)), frozenset((4, 73, 77))

Reader = Callable[[XmlElement], None]
Progress = Callable[[float], None]


def parse(
    data: bytes,
    name: str,
    opened: Reader | None = None,
    parts: Mapping[str, Reader] | None = None,
    progress: Progress | None = None,
) -> XmlElement:
    """Parse a file.

    Args:
        data: the file.
        name: its name in messages.
        opened: called with the root as soon as its attributes are known.
        parts: functions by the tag of a child of the root; each is given the children of that element one after the
            other, as soon as they are complete, and they are not kept.
        progress: called with the fraction of the file that each step has read.

    Returns:
        The root, with all elements but those that ``parts`` has taken.

    Raises:
        ModelError: the file is not well-formed, has a document type, is not in UTF-8, ASCII or Latin-1, or is nested
            too deeply.
    """
    target = _Target(data, name, opened, parts or {})
    parser, syntax_error = _parser(data, _encoding(data, name), target)
    try:
        for first in range(0, len(data), _PIECE):
            parser.feed(data[first : first + _PIECE])
            target.fed(min(first + _PIECE, len(data)))
            if progress is not None:
                progress(min(_PIECE, len(data) - first) / len(data))
        parser.close()
    except syntax_error as error:
        raise ModelError(target.not_well_formed(error)) from None
    if target.root is None:
        raise ModelError(f"{name}: contains no XML element")
    return target.root


def _parser(data: bytes, encoding: str, target: _Target) -> tuple[Any, type[Exception]]:
    """The parser for a file, and what it raises where the file is not well-formed."""
    if etree is None or _PREFIXED.search(data):
        from irexec.io.expat import ExpatParser, ExpatSyntaxError

        return ExpatParser(encoding, target), ExpatSyntaxError
    # The stubs know neither targets that have not all events nor "internal": only entities that the file declares,
    # which is refused.
    options: dict[str, Any] = {"target": target, "resolve_entities": "internal"}
    parser = etree.XMLParser(encoding=encoding, no_network=True, load_dtd=False, huge_tree=True, **options)
    return parser, etree.XMLSyntaxError


class _Target:
    """Builds elements from the events of a parser, whose names the methods have.

    Attributes:
        root: the first element, once its start was read.
    """

    def __init__(self, data: bytes, name: str, opened: Reader | None, parts: Mapping[str, Reader]) -> None:
        self._name, self._opened, self._parts = name, opened, parts
        self._lines = tag_lines(data)
        self.root: XmlElement | None = None
        self._path: list[XmlElement] = []
        self._texts: list[str] = []
        # Children of the root's child that is open now, if they are not kept.
        self._reader: Reader | None = None
        # Up to where the parser was given the file at the last event, and now.
        self._event, self._fed = 0, 0

    def fed(self, end: int) -> None:
        """The parser has been given the file up to ``end``."""
        self._fed = end
        if end - self._event > LARGEST_TAG:
            raise ModelError(f"{self._name}: a tag, text or comment is longer than {LARGEST_TAG >> 20} MiB")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # lxml has one empty mapping for all elements without attributes.
        element = XmlElement(tag, dict(attributes) if attributes else {}, next(self._lines))
        self._event = self._fed
        path = self._path
        if self._texts:
            self._take_text(path[-1])
        if path:
            path[-1].children.append(element)
        path.append(element)
        if len(path) == 1:
            self.root = element
            if self._opened is not None:
                self._opened(element)
        elif len(path) == 2:
            self._reader = self._parts.get(tag)
        elif len(path) > DEEPEST_ELEMENT:
            raise ModelError(f"{self._name}, line {element.line}: elements are nested more than {DEEPEST_ELEMENT} deep")

    def end(self, tag: str) -> None:
        element = self._path.pop()
        self._event = self._fed
        if self._texts:
            if element.children:
                self._take_text(element)
            else:
                element.text = "".join(self._texts)
                self._texts.clear()
        if self._reader is not None:
            if len(self._path) == 2:
                self._path[1].children.clear()
                self._reader(element)
            elif len(self._path) == 1:
                self._reader = None

    def data(self, text: str) -> None:
        self._texts.append(text)

    def doctype(self, *_: object) -> None:
        raise ModelError(f"{self._name}: has a document type, which IR never has")

    def close(self) -> None:
        """Nothing is left to do at the end of the file."""

    def _take_text(self, inside: XmlElement) -> None:
        """Put the characters since the last tag where they belong; white space between elements does not count."""
        text = "".join(self._texts)
        self._texts.clear()
        if text.isspace():
            return
        if inside.children:
            inside.children[-1].tail = text
        else:
            inside.text = text

    def not_well_formed(self, error: Any) -> str:
        """The message about an error of the parser."""
        if self.root is None and error.code in _EMPTY:
            return f"{self._name}: contains no XML element"
        if error.code in _ENDED and self._path:
            return f"{self._name}: not well-formed XML: the file ends inside <{self._path[-1].tag[:40]}>"
        reason = str(error.msg).rsplit(", line ", 1)[0]
        return f"{self._name}, line {error.lineno}: not well-formed XML: {reason}"


def _encoding(data: bytes, name: str) -> str:
    """The encoding of a file; raises ModelError where it cannot be XML in one of those that are read."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf")
    declared = _DECLARED.match(start)
    encoding = _ENCODINGS.get(declared[1].lower() if declared else b"utf-8")
    if start[:2] in _MARKS or encoding is None:
        raise ModelError(f"{name}: IR is written in UTF-8, this file is not")
    if b"\0" in start[:4]:
        raise ModelError(f"{name}: not XML in UTF-8: it starts with {start[:20]!r}")
    text = start.lstrip()
    if text and not text.startswith(b"<"):
        raise ModelError(f"{name}: not XML: it starts with {text[:20]!r}")
    return encoding


def parsed_elements(texts: tuple[str, ...]) -> Iterator[XmlElement]:
    """The elements of texts that this package has made of a checked document."""
    for text in texts:
        yield parse(text.encode(), "an element")


def element_rows(texts: tuple[str, ...]) -> list[tuple[str, Mapping[str, str], str, int]]:
    """Tag, attributes, text and number of children of every element, in the order of the document; white space does not
    count.
    """
    return [
        (element.tag, element.attributes, element.text.strip(), len(element.children))
        for root in parsed_elements(texts)
        for element in root.walk()
    ]
