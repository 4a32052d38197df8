"""Bytes, characters and pieces: byte-level alphabets, byte tokens, UTF-8, and SentencePiece by its own library."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import Annotated, Any

import numpy as np

from irexec.dtypes.codecs import encoded
from irexec.dtypes.elements import BOOLEAN, I32, I64, STRING, U8
from irexec.errors import OpError, UnsupportedError, check
from irexec.ir.dims import ANY, meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.reference.limits import Growth
from irexec.schema.opdef import VECTOR, AnyTensor, Rank
from irexec.tokenizers.isolated import Isolated
from irexec.tokenizers.packed import (
    Bytes,
    Flags,
    Offsets,
    Packed,
    StringFacts,
    converted,
    converted_facts,
    converted_with_flags,
    pack,
    ragged_string_facts,
    raw_bytes,
    rows,
    string_facts,
    text,
    unpack,
)
from irexec.tokenizers.patterns import compile_pattern

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
    results = converted_with_flags(begins, ends, chars, skips, lambda string: b"".join([alphabet[b] for b in string]))
    return ragged_begins.copy(), ragged_ends.copy(), *results


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


byte_fallback.shape_rule(converted_facts)


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


utf8_validate.shape_rule(converted_facts)

Ids = Annotated[Offsets, Rank(2)]

_PACKED, _SPECIAL = [I32, I32, U8], [I32, I32, U8, I32]
_INPUTS = {len(kinds): kinds for kinds in ([STRING], _PACKED, [STRING, *_SPECIAL], [*_PACKED, *_SPECIAL])}
"""Element types of the inputs after the model, by their number."""
_META = re.compile(rb"[.^$*+?()\[\]{}|\\]")


@functools.lru_cache(maxsize=8)
def _processor(model: bytes) -> Isolated:
    """The model, in processes of its own: the library trusts its bytes, and a damaged one ends the process."""
    return Isolated("model", model, "the first input")


def _ask(processor: Isolated, method: str, *arguments: Any) -> tuple[np.ndarray, bytes]:
    """The answer about a model; raises UnsupportedError if sentencepiece cannot be imported."""
    try:
        if find_spec("sentencepiece") is None:
            raise UnsupportedError("it is not installed")
        return processor.ask(method, *arguments)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"this needs sentencepiece, which cannot be imported ({error}): "
            "pip install 'irexec[tokenizers-sentencepiece]'"
        ) from None


@operation("SentencepieceTokenizer", domain="extension")
def sentencepiece_tokenizer(
    model: Bytes,
    *strings_and_special: AnyTensor,
    nbest_size: int = 0,
    alpha: float = 1.0,
    add_bos: bool = False,
    add_eos: bool = False,
    reverse: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token ids of strings by a model of SentencePiece, as a sparse matrix: indices, values and shape.

    The strings are a tensor of strings, or begins, ends and chars. Begins, ends, chars and ids of special tokens may
    follow: these are split off first, and each part between them has its own begin of sequence. ``alpha`` is for
    sampling, which other values of ``nbest_size`` than 0 and 1 ask for, and which is not supported.
    """
    if nbest_size not in (0, 1):
        raise UnsupportedError(f"nbest_size is {nbest_size}: tokens that are sampled at random are not supported")
    processor = _processor(model.tobytes())
    begin, end, _ = _ask(processor, "model")[0].tolist()
    has_special = len(strings_and_special) > 3
    first = strings_and_special[: -4 if has_special else None]
    strings = encoded(first[0]) if len(first) == 1 else unpack(*first)
    bos = _ends(begin, "begin") if add_bos else []
    eos = [] if not add_eos else [end] if has_special else _ends(end, "end")
    split = _special(*strings_and_special[-4:]) if has_special else None
    parts: list[list[bytes | int]] = [[string] if split is None else split(string) for string in strings]
    tokens = _encoded(processor, [part for row in parts for part in row if isinstance(part, bytes)])
    found = [
        [*(id for part in row for id in ([part] if isinstance(part, int) else [*bos, *next(tokens)])), *eos]
        for row in parts
    ]
    # Indices, values and shape of the matrix of rows of different lengths.
    rows = [ids[::-1] for ids in found] if reverse else found
    lengths = np.array([len(row) for row in rows], np.intp)
    row = np.repeat(np.arange(lengths.size), lengths)
    column = np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = np.fromiter(chain.from_iterable(rows), np.int32, row.size)
    return np.stack([row, column], 1).astype(np.int64), values, np.array([len(rows), lengths.max(initial=0)], np.int64)


def _encoded(processor: Isolated, strings: Sequence[bytes]) -> Iterator[list[int]]:
    """The token ids of each string."""
    answer, _ = _ask(processor, "encode", strings)
    counts, ids = answer[: len(strings)].tolist(), answer[len(strings) :].tolist()
    at = 0
    for count in counts:
        yield ids[at : at + count]
        at += count


def _ends(token: int, name: str) -> list[int]:
    check(token >= 0, f"the model has no token for the {name} of a sequence")
    return [token]


def _special(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, ids: np.ndarray
) -> Callable[[bytes], list[bytes | int]]:
    """A function that splits a string at special tokens, of which it returns the ids.

    A token of letters alone is found at the begin or end of a word only.
    """
    tokens = unpack(begins, ends, chars)
    check(len(tokens) == ids.size, f"{len(tokens)} special tokens have {ids.size} ids, expected one each")
    known = dict(zip(reversed(tokens), reversed(ids.ravel().tolist()), strict=True))
    quoted = [_META.sub(rb"\\\g<0>", token) for token in tokens]
    choices = [
        rb"\b%b|%b\b" % (one, one) if token.isalpha() or not token else one
        for token, one in zip(tokens, quoted, strict=True)
    ]
    pattern = compile_pattern(b"|".join(choices))

    def split(string: bytes) -> list[bytes | int]:
        whole, at = text(string), 0
        found: list[bytes | int] = []
        for match in pattern.matches(whole):
            start, end = match.span()
            if start == end:
                break
            if at < start:
                found.append(raw_bytes(whole[at:start]))
            found.append(known[raw_bytes(whole[start:end])])
            at = end
        return [*found, raw_bytes(whole[at:])] if at < len(whole) else found

    return split


@sentencepiece_tokenizer.shape_rule
def _sentencepiece_tokenizer_facts(model: Fact, *strings_and_special: Fact) -> tuple[Fact, Fact, Fact]:
    expected = _INPUTS.get(len(strings_and_special))
    check(expected is not None, f"has {1 + len(strings_and_special)} inputs, expected 2, 4, 6 or 8")
    for number, (fact, element) in enumerate(zip(strings_and_special, expected or [], strict=True), 1):
        check(fact.element in (None, element), f"input {number} has element type {fact.element}, expected {element}")
    return Fact(I64, (ANY, 2)), Fact(I32, (ANY,)), Fact(I64, (2,))


@operation("SentencepieceDetokenizer", domain="extension")
def sentencepiece_detokenizer(model: Bytes, ids: Ids) -> Packed:
    """The text of the token ids of each row; ids from the size of the vocabulary on are left out."""
    processor = _processor(model.tobytes())
    lengths, data = _ask(processor, "decode", [_known(processor, row) for row in ids])
    return pack(_split(lengths, data), ids.shape[:1])


@operation("SentencepieceStreamDetokenizer", domain="extension")
def sentencepiece_stream_detokenizer(model: Bytes, ids: Ids) -> Packed:
    """The pieces of the token ids of each row, bytes for tokens such as "<0x0A>", and U+2581 for spaces."""
    processor = _processor(model.tobytes())
    rows = [_known(processor, row) for row in ids]
    tokens = sorted({token for row in rows for token in row})
    pairs = zip(tokens, _split(*_ask(processor, "pieces", tokens)), strict=True)
    pieces = {token: of_byte_token(piece) if piece.startswith(b"<0x") else piece for token, piece in pairs}
    return pack([b"".join(pieces[token] for token in row) for row in rows], ids.shape[:1])


def _split(lengths: np.ndarray, data: bytes) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    return [data[start:end] for start, end in pairwise([0, *ends])]


def _known(processor: Isolated, row: np.ndarray) -> list[int]:
    """The ids of a row that are in the vocabulary."""
    check(not (row < 0).any(), f"there is a negative token id: {row.min(initial=0)}")
    found: list[int] = row[row < _ask(processor, "model")[0][2]].tolist()
    return found


def _text_facts(model: Fact, ids: Fact) -> StringFacts:
    """The shape rule of detokenizers: a string for each row."""
    return string_facts((ANY,) if ids.shape is None else ids.shape[:1])


sentencepiece_detokenizer.shape_rule(_text_facts)
sentencepiece_stream_detokenizer.shape_rule(_text_facts)
