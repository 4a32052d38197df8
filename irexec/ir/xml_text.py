"""The characters that XML, and so an IR, can contain."""

from __future__ import annotations

import functools
import re

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
