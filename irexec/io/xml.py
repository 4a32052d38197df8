"""XML that is not trusted, parsed in bounded time and memory.

Document types are refused before the parser sees them, and with them every entity; the parser is given
the encoding, so that it cannot see other characters than the check did. Nothing is ever fetched. The
depth of elements is limited, whatever the parser allows; lines are exact however long the file is, which
libxml2's own 16 bits are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

from irexec.errors import ModelError

_MARKUP = re.compile(rb"<(?:!--.*?--|\?.*?\?|!\[CDATA\[.*?\]\]|([^/!?]))", re.DOTALL)
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = {b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin-1"}
_LINE_LIMIT = 65535
# Bodies add three levels each, and the reader allows 64 of them.
DEEPEST_ELEMENT = 512
# For text that this module has made of a checked document.
_OWN_TEXT = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


class Document:
    """A parsed file: its root element and the line of every element."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        parser = etree.XMLParser(
            encoding=_encoding(data, name),
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            huge_tree=True,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            self.root = etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise ModelError(f"{name}: not well-formed XML: {error.msg}") from None
        if self.root.xpath(f"boolean({'/*' * (DEEPEST_ELEMENT + 1)})"):
            raise ModelError(f"{name}: elements are nested more than {DEEPEST_ELEMENT} deep")
        info: Any = self.root.getroottree().docinfo
        if info.doctype:
            raise ModelError(f"{name}: has a document type, which IR never has")
        self._lines = _exact_lines(data, self.root)

    def line(self, element: etree._Element) -> int | None:
        """The line on which the element starts."""
        line: Any = element.sourceline if self._lines is None else self._lines.get(element)
        return None if line is None else int(line)


def attributes_of(element: etree._Element, *without: str) -> dict[str, str]:
    """The attributes of an element in the order in which they are written, except those named."""
    return {str(key): str(text) for key, text in element.attrib.items() if key not in without}


def attributes_by_tag(parent: etree._Element, *tags: str) -> dict[str, dict[str, str]]:
    """The attributes of the children with these tags, where they have any."""
    return {tag: attributes_of(child) for tag in tags for child in parent.iterchildren(tag) if child.attrib}


def element_texts(elements: Iterable[etree._Element]) -> tuple[str, ...]:
    """The XML text of each element."""
    return tuple(etree.tostring(element, encoding="unicode", with_tail=False) for element in elements)


def parsed_elements(texts: Iterable[str]) -> Iterator[etree._Element]:
    """The elements of ``element_texts``, without white space between elements, so that the writer can indent them."""
    for text in texts:
        root = etree.fromstring(text, _OWN_TEXT)
        for element in root.iter():
            if element.tail is not None and not element.tail.strip():
                element.tail = None
            if len(element) and element.text is not None and not element.text.strip():
                element.text = None
        yield root


def element_rows(texts: Iterable[str]) -> list[tuple[str, dict[str, str], str, int]]:
    """Tag, attributes, text and number of children of every element, in the order of the document; white space does not count."""
    return [
        (str(element.tag), attributes_of(element), (element.text or "").strip(), len(element))
        for text in texts
        for element in etree.fromstring(text, _OWN_TEXT).iter()
    ]


def _encoding(data: bytes, name: str) -> str:
    """The encoding of a file that has no document type; raises ModelError for one that has."""
    declared = _DECLARED.match(data)
    if data[:2] in (b"\xfe\xff", b"\xff\xfe") or (declared and declared[1].lower() not in _ENCODINGS):
        raise ModelError(f"{name}: IR is written in UTF-8, this file is not")
    if b"\0" in data[:4]:
        raise ModelError(f"{name}: not XML in UTF-8: it starts with {data[:20]!r}")
    prolog = _PROLOG.match(data)
    rest = data[prolog.end() if prolog else 0 :][:64]
    if rest[:2] == b"<!":
        raise ModelError(f"{name}: has a document type, which IR never has")
    if not rest.startswith(b"<"):
        raise ModelError(f"{name}: not XML: it starts with {rest[:20]!r}" if rest else f"{name}: contains no XML element")
    return declared[1].decode("ascii") if declared else "utf-8"


def _exact_lines(data: bytes, root: etree._Element) -> dict[etree._Element, int] | None:
    """Lines by element where libxml2's own may have run into its limit; None where they are exact."""
    if data.count(b"\n") < _LINE_LIMIT:
        return None
    elements = (element for element in root.iter() if isinstance(element.tag, str))
    return dict(zip(elements, _tag_lines(data), strict=False))


def _tag_lines(data: bytes) -> Iterator[int]:
    line, seen = 1, 0
    for found in _MARKUP.finditer(data):
        if found[1] is not None:
            line += data.count(b"\n", seen, found.start())
            seen = found.start()
            yield line
