"""Bytes and characters: the alphabet of byte-level tokenizers, byte tokens, and the check of UTF-8."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.errors import OpError
from irexec.ir.dims import meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.reference.limits import Growth
from irexec.schema.opdef import VECTOR
from irexec.tokenizers.packed import (
    Bytes,
    Flags,
    Offsets,
    Packed,
    StringFacts,
    converted,
    pack,
    ragged_string_facts,
    rows,
    string_facts,
    unpack,
)

REPLACEMENT = "\ufffd".encode()


@operation("BytesToChars", domain="extension")
def bytes_to_chars(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    skips: Flags | None = None,
) -> tuple[np.ndarray, ...]:
    """Each byte as a printable character: the alphabet of GPT-2. Strings that ``skips`` marks stay as they are."""
    alphabet = _alphabet()
    results = converted(begins, ends, chars, skips, lambda string: b"".join([alphabet[byte] for byte in string]))
    flags = () if skips is None else (skips.copy(),)
    return ragged_begins.copy(), ragged_ends.copy(), *results, *flags


@bytes_to_chars.shape_rule
def _bytes_to_chars_facts(
    ragged_begins: Fact, ragged_ends: Fact, begins: Fact, ends: Fact, chars: Fact, skips: Fact | None = None
) -> tuple[Fact, ...]:
    shape = meet_shapes(begins.shape, ends.shape)
    outer = meet_shapes(ragged_begins.shape, ragged_ends.shape)
    flags = () if skips is None else (Fact(BOOLEAN, skips.shape),)
    return *ragged_string_facts(outer)[:2], *string_facts(shape), *flags


@operation("CharsToBytes", domain="extension")
def chars_to_bytes(
    ragged_begins: Offsets, ragged_ends: Offsets, begins: Offsets, ends: Offsets, chars: Bytes
) -> Packed:
    """The strings of each row joined, and their characters turned back to bytes; see BytesToChars."""
    strings = unpack(begins, ends, chars)
    growth = Growth("the bytes of the strings")
    table = {ord(char.decode()): byte for byte, char in enumerate(_alphabet())}
    found = []
    for row in rows(ragged_begins, ragged_ends, len(strings)):
        try:
            found.append(bytes(_byte(table, ord(char)) for i in row for char in strings[i].decode()))
            growth.add(len(found[-1]))
        except UnicodeDecodeError as error:
            raise OpError(f"chars are not UTF-8: {error.reason}") from None
    return pack(found, ragged_begins.shape)


def _byte(table: dict[int, int], code: int) -> int:
    # OpenVINO copies a character of ASCII that stands for no byte.
    byte = code if code < 128 else table.get(code)
    if byte is None:
        raise OpError(f"the character U+{code:04X} is not one of the 256 that stand for a byte")
    return byte


@chars_to_bytes.shape_rule
def _chars_to_bytes_facts(ragged_begins: Fact, ragged_ends: Fact, begins: Fact, ends: Fact, chars: Fact) -> StringFacts:
    meet_shapes(begins.shape, ends.shape)
    return string_facts(meet_shapes(ragged_begins.shape, ragged_ends.shape))


@functools.cache
def _alphabet() -> list[bytes]:
    """The character of each byte: itself where it is printable, else one above U+0100."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)).encode() for byte in range(256)]


@operation("ByteFallback", domain="extension")
def byte_fallback(begins: Offsets, ends: Offsets, chars: Bytes) -> Packed:
    """Tokens such as "<0x0A>" replaced by their byte."""
    return converted(begins, ends, chars, None, of_byte_token)


def of_byte_token(token: bytes) -> bytes:
    """The byte of a token of six characters in angle brackets, 0xFF for one that is not a byte, else the token."""
    if len(token) != 6 or token.rfind(b"<") or token.rfind(b">") != 5:
        return token
    digits = token[3:5].decode("latin-1")
    is_byte = token[1:3] == b"0x" and all(digit in "0123456789ABCDEF" for digit in digits)
    return bytes([int(digits, 16)]) if is_byte else b"\xff"


@byte_fallback.shape_rule
def _byte_fallback_facts(begins: Fact, ends: Fact, chars: Fact) -> StringFacts:
    return string_facts(meet_shapes(begins.shape, ends.shape))


@operation("UTF8Validate", domain="extension")
def utf8_validate(
    begins: Annotated[Offsets, VECTOR], ends: Annotated[Offsets, VECTOR], chars: Bytes, *, replace_mode: bool = False
) -> Packed:
    """Bytes that are not UTF-8 replaced by U+FFFD, or left out."""
    replacement = REPLACEMENT if replace_mode else b""
    return converted(begins, ends, chars, None, lambda string: _validated(string, replacement))


def _validated(string: bytes, replacement: bytes) -> bytes:
    try:
        string.decode()
    except UnicodeDecodeError:
        return b"".join(_characters(string, replacement))
    return string


def _characters(string: bytes, replacement: bytes) -> Iterator[bytes]:
    """The characters of bytes that are not UTF-8. As in OpenVINO, surrogates are characters, and a character that is
    written with too many bytes has one replacement for each of them."""
    start = 0
    while start < len(string):
        length = _length(string[start])
        tail = string[start + 1 : start + length]
        continued = next((i for i, byte in enumerate(tail) if byte >> 6 != 0b10), len(tail))
        end = start + 1 + continued
        if not length or continued < length - 1:
            yield replacement
        else:
            yield string[start:end] if _is_shortest(string[start:end]) else replacement * length
        start = end


def _length(first: int) -> int:
    """Number of bytes of a character that begins with a byte; 0 if none does."""
    if first < 0x80:
        return 1
    return next((n for n, shift, mark in ((2, 5, 0b110), (3, 4, 0b1110), (4, 3, 0b11110)) if first >> shift == mark), 0)


def _is_shortest(character: bytes) -> bool:
    """Whether the code point of a character needs all of its bytes."""
    length = len(character)
    code = character[0] & (0x7F if length == 1 else 0x7F >> length)
    for byte in character[1:]:
        code = code << 6 | byte & 0x3F
    return code >= (0, 0x80, 0x800, 0x10000)[length - 1]


@utf8_validate.shape_rule
def _utf8_validate_facts(begins: Fact, ends: Fact, chars: Fact) -> StringFacts:
    return string_facts(meet_shapes(begins.shape, ends.shape))
