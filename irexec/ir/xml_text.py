"""What XML, and so an IR, can contain."""

from __future__ import annotations

import functools
import re

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# NameStartChar and NameChar of XML 1.0, fifth edition.
_NAME_START = (
    ":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(rf"[{_NAME_START}][{_NAME_START}\-.0-9\xb7\u0300-\u036f\u203f\u2040]*")


def is_text(text: str) -> bool:
    """Whether XML can contain every character."""
    return _NOT_XML.search(text) is None


@functools.lru_cache(maxsize=256)
def is_name(text: str) -> bool:
    """Whether it can be the name of an attribute."""
    return _NAME.fullmatch(text) is not None
