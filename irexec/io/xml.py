r"""XML that is not trusted, parsed in one pass: time linear in the file, and memory for one layer at a time.

Tensor names are joined with commas; a comma inside a name is written ``\,`` and any other backslash is an ordinary
character.

lxml reports what it parses as events, so that no tree is built. Document types are refused where they start, and with
them every entity; nothing is ever fetched. The parser is given the encoding, the depth of elements is limited, and
lines are exact however long the file is, which libxml2's own 16 bits are not. Prefixes of names have no meaning, as in
OpenVINO's own reader: names are as they are written. Files with prefixes are parsed by expat, since lxml drops a prefix
that no attribute declares, and then accepts whatever follows the root.

Elements, lines and refusals are those of lxml's parser; the words of a syntax error are expat's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any
from xml.parsers import expat

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.errors import ModelError, UnsupportedError

etree: Any
try:
    from lxml import etree
except ImportError:
    etree = None


_SEPARATOR = re.compile(r"(?<!\\),")


def decode_names(text: str) -> list[str]:
    """The names in a ``names`` attribute."""
    if "," not in text:
        return [text] if text else []
    return [part.replace("\\,", ",") for part in _SEPARATOR.split(text)]


def encode_names(names: list[str]) -> str:
    """The ``names`` attribute for names."""
    return ",".join(name.replace(",", "\\,") for name in names)


# The types that OpenVINO writes under another name than its specification has.
WRITTEN_TYPES = {"Constant": "Const", "Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
READ_TYPES = {written: type for type, written in WRITTEN_TYPES.items()}

# The precision of a port whose element type is not known, as OpenVINO writes it.
NO_PRECISION = "UNSPECIFIED"


def named_element(text: str) -> Element | None:
    """The element type of a spelling as element_type or precision; None if the type does not exist."""
    try:
        return element(text)
    except UnsupportedError:
        return None


def body_tags(name: str) -> tuple[str, str, str]:
    """The elements of a body: itself, its port map, its back edges ("then_body" has "then_port_map")."""
    prefix = name.removesuffix("body")
    return name, f"{prefix}port_map", f"{prefix}back_edges"


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


_MARKUP = re.compile(rb"<(?:!--.*?--|\?.*?\?|!\[CDATA\[.*?\]\]|([^/!?]))", re.DOTALL)
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]*\?>)?")
_PIECE = 1 << 20
_LESS, _SLASH, _NEW_LINE = b"</\n"


def tag_lines(data: bytes) -> Iterator[int]:
    """Lines, counted from 1.

    In well-formed XML "<" begins markup, except in comments, processing instructions and CDATA: without these, tags are
    found by NumPy, which is ten times as fast as by a regular expression.
    """
    prolog = _PROLOG.match(data)
    first = prolog.end() if prolog else 0
    if data.find(b"<!", first) >= 0 or data.find(b"<?", first) >= 0:
        return _by_expression(data)
    return _by_bytes(data, first)


def _by_bytes(data: bytes, first: int) -> Iterator[int]:
    all_bytes = np.frombuffer(data, np.uint8)
    line = 1 + data.count(b"\n", 0, first)
    for start in range(first, len(data), _PIECE):
        piece = all_bytes[start : start + _PIECE]
        after = all_bytes[start + 1 : start + _PIECE + 1]
        tags = np.flatnonzero(piece == _LESS)
        tags = tags[tags < after.size]
        tags = tags[after[tags] != _SLASH]
        breaks = np.flatnonzero(piece == _NEW_LINE)
        yield from (np.searchsorted(breaks, tags) + line).tolist()
        line += breaks.size


def _by_expression(data: bytes) -> Iterator[int]:
    line, seen = 1, 0
    for found in _MARKUP.finditer(data):
        if found[1] is not None:
            line += data.count(b"\n", seen, found.start())
            seen = found.start()
            yield line


_DECLARED = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = {
    b"utf-8": "utf-8", b"utf8": "utf-8", b"us-ascii": "us-ascii", b"ascii": "us-ascii",
    b"iso-8859-1": "iso-8859-1", b"latin-1": "iso-8859-1",
}  # fmt: skip
_MARKS = (b"\xfe\xff", b"\xff\xfe")
# Bodies add three levels each, and the reader allows 64 of them.
DEEPEST_ELEMENT = 512
LARGEST_TAG = 1 << 25
# A tag or an attribute whose name has a prefix.
_PREFIXED = re.compile(rb"""<[^\s<>"'=:]*:|:[^\s<>"'=:]*\s*=\s*["']|xmlns""")
# libxml2's codes of a file that ends too early: it is missing or has no tag, or it ends in a tag or in an element.
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
        self._is_cut = not data[-64:].rstrip().endswith(b">")
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
        cut_off = "; the file ends inside a tag or text, perhaps cut off" if self._is_cut else ""
        return f"{self._name}, line {error.lineno}: not well-formed XML: {reason}{cut_off}"


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


# libxml2's codes for expat's errors at the end of a file: the element is missing or open, and a tag is open.
_AT_THE_END = {
    expat.errors.XML_ERROR_NO_ELEMENTS: 4,
    expat.errors.XML_ERROR_UNCLOSED_TOKEN: 73,
    expat.errors.XML_ERROR_PARTIAL_CHAR: 73,
    expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION: 73,
}


class ExpatSyntaxError(Exception):
    """A file that is not well-formed.

    Attributes:
        msg: the message of expat.
        code: libxml2's code of a file that ends too early, else 0.
        lineno: the line, from 1.
    """

    def __init__(self, error: expat.ExpatError, is_final: bool) -> None:
        self.msg, self.lineno = expat.ErrorString(error.code), error.lineno
        self.code = _AT_THE_END.get(self.msg, 0) if is_final else 0
        super().__init__(self.msg)


class ExpatParser:
    """A parser with the methods of lxml's ``XMLParser`` that :mod:`irexec.io.xml` calls.

    Args:
        encoding: of the file: ``utf-8``, ``us-ascii`` or ``iso-8859-1``.
        target: takes the events; its methods are those of a target of lxml's parser.
    """

    def __init__(self, encoding: str, target: Any) -> None:
        self._parser = expat.ParserCreate(encoding)
        self._parser.buffer_text = True
        self._parser.StartElementHandler = target.start
        self._parser.EndElementHandler = target.end
        self._parser.CharacterDataHandler = target.data
        self._parser.StartDoctypeDeclHandler = target.doctype
        if hasattr(self._parser, "SetReparseDeferralEnabled"):
            # A tag is reported with the piece that ends it, so that the limit of its length holds.
            self._parser.SetReparseDeferralEnabled(False)

    def close(self) -> None:
        """End the file; raises ExpatSyntaxError."""
        self.feed(b"", is_final=True)

    def feed(self, piece: bytes, *, is_final: bool = False) -> None:
        """Parse the next bytes; raises ExpatSyntaxError."""
        try:
            self._parser.Parse(piece, is_final)
        except expat.ExpatError as error:
            raise ExpatSyntaxError(error, is_final) from None
