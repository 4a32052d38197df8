"""The bytes of a string constant: int32 count, int32 0, ``count`` int32 end offsets, then UTF-8."""

from __future__ import annotations

import numpy as np

from irexec.errors import OpError


def pack_strings(values: np.ndarray) -> np.ndarray:
    """The packed bytes of an array of str of one dimension: uint8, one dimension. Errors are those of ``encoded``."""
    texts = encoded(values)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64) if texts else np.zeros(0, np.int64)
    header = np.array([len(texts), 0, *ends.tolist()], "<i4")
    return np.frombuffer(header.tobytes() + b"".join(texts), np.uint8)


def check_code_points(texts: np.ndarray) -> None:
    """Raise OpError if an array of U, of any byte order, holds a code point that Unicode does not have, or a surrogate.

    NumPy keeps them, but making a str of one beyond Unicode is a SystemError.
    """
    codes = (
        np.ascontiguousarray(texts, texts.dtype.newbyteorder("=")).ravel().view(np.uint32)
        if texts.itemsize
        else np.zeros(0, np.uint32)
    )
    wrong = (codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)
    if wrong.any():
        raise OpError(f"it holds the code point 0x{int(codes[wrong][0]):X}, which is not a character of Unicode")


def encoded(values: np.ndarray) -> list[bytes]:
    """The UTF-8 of each string of an array.

    Raises:
        OpError: one has a surrogate, which is not a character and has no UTF-8; a str of Python may have it.
    """
    try:
        return [str(value).encode() for value in values.ravel().tolist()]
    except UnicodeEncodeError as error:
        raise OpError(
            f"it holds the code point 0x{ord(error.object[error.start]):X}, which is not a character of Unicode"
        ) from None


def unpack_strings(raw: np.ndarray, count: int) -> np.ndarray:
    """``count`` texts of packed bytes, as an object array of one dimension.

    Raises:
        OpError: the bytes are not those of ``count`` strings.
    """
    data = np.ascontiguousarray(raw)
    if count == 0 and data.size == 0:
        return np.empty(0, object)
    if data.size < 8 + 4 * count:
        raise OpError(f"{count} strings take at least {8 + 4 * count} bytes, there are {data.size}")
    stored = int(data[:4].view("<i4")[0])
    if stored != count:
        raise OpError(f"holds {stored} strings, its shape has {count}")
    text = data[8 + 4 * count :].tobytes()
    starts, ends = _offsets(data, count, len(text))
    found = np.empty(count, object)
    try:
        found[:] = [text[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise OpError(f"holds text that is not UTF-8: {error}") from None
    return found


def _offsets(data: np.ndarray, count: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each string starts and ends in ``length`` bytes of text."""
    ends = data[8 : 8 + 4 * count].view("<i4").astype(np.int64)
    first = data[4:8].view("<i4").astype(np.int64)
    starts = np.concatenate([first, ends])[:count]
    if count and (first[0] < 0 or (ends < starts).any() or ends[-1] > length):
        raise OpError(f"the end offsets of its strings do not ascend within its {length} bytes of text")
    return starts, ends
