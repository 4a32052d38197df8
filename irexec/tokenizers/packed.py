"""Strings as offsets into bytes: annotations of inputs, packing and unpacking, facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import BOOLEAN, I32, U8
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Shape
from irexec.ir.facts import Fact
from irexec.reference.limits import Growth, check_memory, check_time
from irexec.schema.inputs import ONE_ELEMENT, VECTOR, element_set

Offsets = Annotated[np.ndarray, element_set("i32", I32)]
Bytes = Annotated[np.ndarray, element_set("u8", U8), VECTOR]
Flags = Annotated[np.ndarray, element_set("boolean", BOOLEAN)]
Number = Annotated[np.ndarray, element_set("i32", I32), ONE_ELEMENT]

Packed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Begins, ends and chars."""
StringFacts = tuple[Fact, Fact, Fact]
RaggedStringFacts = tuple[Fact, Fact, Fact, Fact, Fact]


def unpack(begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> list[bytes]:
    """The bytes of each string.

    Raises:
        OpError: an offset is outside of chars, or an end is before its begin.
    """
    check_offsets(begins, ends, len(chars), "chars")
    # The same bytes can be those of any number of strings.
    check_memory((_total(begins, ends),), chars.dtype, "the bytes of the strings")
    text = chars.tobytes()
    spans = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    return [text[begin:end] for begin, end in spans]


def _total(begins: np.ndarray, ends: np.ndarray) -> int:
    """Number of elements between begins and ends."""
    return int(ends.sum(dtype=np.int64) - begins.sum(dtype=np.int64))


def check_offsets(begins: np.ndarray, ends: np.ndarray, size: int, of: str) -> None:
    """Raise OpError unless begins and ends have the same shape and are offsets into ``size`` elements."""
    check(begins.shape == ends.shape, f"begins have shape {list(begins.shape)}, ends {list(ends.shape)}")
    inside = (begins >= 0) & (begins <= ends) & (ends <= size)
    if not inside.all():
        at = int(np.argmin(inside.ravel()))
        begin, end = int(begins.ravel()[at]), int(ends.ravel()[at])
        raise OpError(f"string {at} is from {begin} to {end}, outside of {size} elements of {of}")


def pack(strings: Sequence[bytes], shape: Sequence[int]) -> Packed:
    """Begins, ends and chars of strings, one after the other."""
    ends = np.cumsum([len(string) for string in strings], dtype=np.int64)
    check(not len(ends) or int(ends[-1]) < 1 << 31, "the strings have more than 2 GiB of bytes")
    # Joined, and copied for NumPy.
    check_memory((2, *ends[-1:].tolist()), np.dtype(np.uint8), "the bytes of the strings")
    begins = np.concatenate([np.zeros(1, np.int64), ends])[: len(strings)]
    chars = np.frombuffer(b"".join(strings), np.uint8).copy()
    return begins.astype(np.int32).reshape(shape), ends.astype(np.int32).reshape(shape), chars


def converted(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None, convert: Callable[[bytes], bytes]
) -> Packed:
    """Each string converted; those that ``skips`` marks stay as they are. The same string is converted once."""
    strings = unpack(begins, ends, chars)
    skipped = [False] * len(strings) if skips is None else skips.ravel().tolist()
    check(len(skipped) == len(strings), f"there are {len(skipped)} skips for {len(strings)} strings")
    known: dict[bytes, bytes] = {}
    growth = Growth("the bytes of the strings")
    for i, (string, skip) in enumerate(zip(strings, skipped, strict=True)):
        if not skip:
            if string not in known:
                check_time()
                known[string] = convert(string)
                growth.add(len(known[string]))
            strings[i] = known[string]
    return pack(strings, begins.shape)


def rows(ragged_begins: np.ndarray, ragged_ends: np.ndarray, size: int) -> list[range]:
    """The indices of each row of a ragged tensor.

    Raises:
        OpError: a row is outside of the ``size`` elements of the flat tensor.
    """
    check_offsets(ragged_begins, ragged_ends, size, "the flat tensor")
    # Rows may overlap.
    check_memory((_total(ragged_begins, ragged_ends),), np.dtype(np.int64), "the elements of the rows")
    return list(starmap(range, zip(ragged_begins.ravel().tolist(), ragged_ends.ravel().tolist(), strict=True)))


def row_offsets(counts: Sequence[int], shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of rows of these lengths, one after the other."""
    ends = np.cumsum(np.asarray(counts, np.int64), dtype=np.int64).astype(np.int32).reshape(shape)
    return (ends - np.asarray(counts, np.int32).reshape(shape)).astype(np.int32), ends


def text(raw: bytes) -> str:
    """The characters of UTF-8; bytes that are none become surrogates, which ``raw_bytes`` turns back."""
    return raw.decode("utf-8", "surrogateescape")


def raw_bytes(text: str) -> bytes:
    """The UTF-8 of characters, see ``text``."""
    return text.encode("utf-8", "surrogateescape")


def string_facts(shape: Shape | None) -> StringFacts:
    """Facts of strings of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(U8, (ANY,))


def ragged_string_facts(shape: Shape | None) -> RaggedStringFacts:
    """Facts of a ragged tensor of strings with rows of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(I32, (ANY,)), Fact(I32, (ANY,)), Fact(U8, (ANY,))


def ragged_facts(shape: Shape | None) -> StringFacts:
    """Facts of a ragged tensor of token ids with rows of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(I32, (ANY,))
