"""XML parsed by expat of the standard library: where lxml is missing, as in a browser, and names with a prefix.

Elements, lines and refusals are those of lxml's parser; the words of a syntax error are expat's own.
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

# libxml2's codes for expat's errors at the end of a file: there is no element or it is open, and a tag is open.
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

    def feed(self, piece: bytes) -> None:
        """Parse the next bytes; raises ExpatSyntaxError."""
        self._parse(piece, False)

    def close(self) -> None:
        """End the file; raises ExpatSyntaxError."""
        self._parse(b"", True)

    def _parse(self, piece: bytes, is_final: bool) -> None:
        try:
            self._parser.Parse(piece, is_final)
        except expat.ExpatError as error:
            raise ExpatSyntaxError(error, is_final) from None
