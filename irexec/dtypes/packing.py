"""Exact packing and unpacking of every element type, as the bytes of a .bin have them.

u1 is most significant bit first; u2, u4, i4, nf4, f4e2m1 least significant bits first; u3 and u6
are split-plane: the low bits of a group first (8 values of u3 in 3 bytes: 2 bytes of low pairs, 1 byte
of high bits; 4 values of u6: 2 bytes of low nibbles, 1 byte of high pairs), and groups are whole.
A string constant is int32 count, int32 0, ``count`` int32 ends, then UTF-8. Measured on files that
OpenVINO wrote.
"""

from __future__ import annotations

import numpy as np

from irexec.dtypes.minifloats import table
from irexec.dtypes.rounding import bf16_bits, encode
from irexec.errors import OpError

_NATIVE = {
    "boolean": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_BITS = {"u1": 1, "u2": 2, "u4": 4, "i4": 4, "nf4": 4, "f4e2m1": 4}
_CODED = ("nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0")


def packed_size(name: str, count: int) -> int:
    """How many bytes ``count`` elements take; a string's length cannot be told from its count."""
    if name in _NATIVE:
        return count * np.dtype(_NATIVE[name]).itemsize
    if name in _BITS:
        return -(-count * _BITS[name] // 8)
    if name == "u3":
        return -(-count // 8) * 3
    if name == "u6":
        return -(-count // 4) * 3
    if name == "bf16":
        return 2 * count
    if name == "string":
        raise OpError("the size of a string tensor does not follow from its count")
    return count


def unpack(name: str, raw: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` elements of packed bytes.

    Args:
        name: the element type.
        raw: uint8, one dimension.
        count: how many elements to read.

    Returns:
        One dimension in the element's carrier; a view on ``raw`` where the type is NumPy's own.

    Raises:
        OpError: there are too few bytes, or a string tensor's table is damaged.
    """
    if name == "string":
        return _unpack_strings(raw, count)
    size = packed_size(name, count)
    if raw.size < size:
        raise OpError(f"{count} elements of {name} take {size} bytes, there are {raw.size}")
    data = raw[:size]
    if name == "boolean":
        return data != 0
    if name in _NATIVE:
        dtype = np.dtype(_NATIVE[name])
        aligned = data.ctypes.data % dtype.alignment == 0
        return (data if aligned else data.copy()).view(dtype)
    if name == "bf16":
        codes = np.ascontiguousarray(data).view(np.uint8).reshape(-1, 2).astype(np.uint32)
        return ((codes[:, 0] | (codes[:, 1] << np.uint32(8))) << np.uint32(16)).view(np.float32)
    codes = _codes(name, data, count)
    if name in _CODED:
        return table(name)[codes]
    return ((codes ^ 8).astype(np.int8) - np.int8(8)) if name == "i4" else codes


def _codes(name: str, data: np.ndarray, count: int) -> np.ndarray:
    if name == "u1":
        return np.unpackbits(data, count=count)
    if name in ("u3", "u6"):
        return _split_planes(name, data)[:count]
    if name not in _BITS:
        return data
    bits = _BITS[name]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]


def _split_planes(name: str, data: np.ndarray) -> np.ndarray:
    groups = data.reshape(-1, 3)
    bits, per = (2, 8) if name == "u3" else (4, 4)
    low = _fields(groups[:, :2], bits)
    high = _fields(groups[:, 2:], 8 // per)
    return (low | (high << np.uint8(bits))).reshape(-1)


def _fields(data: np.ndarray, bits: int) -> np.ndarray:
    """The bit fields of each row of bytes, most significant first."""
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    return ((data[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(len(data), data.shape[1] * len(shifts))


def pack(name: str, array: np.ndarray) -> np.ndarray:
    """The packed bytes of an array in the carrier of ``name``: uint8, one dimension."""
    values = np.ascontiguousarray(array).reshape(-1)
    if name == "string":
        return _pack_strings(values)
    if name == "boolean":
        return values.astype(np.uint8)
    if name in _NATIVE:
        return values.astype(_NATIVE[name], copy=False).view(np.uint8)
    if name == "bf16":
        return bf16_bits(values).astype("<u2").view(np.uint8)
    codes = encode(name, values) if name in _CODED else values.astype(np.uint8)
    if name == "u1":
        return np.packbits(codes & 1)
    if name in ("u3", "u6"):
        return _join_planes(name, codes)
    return codes if name not in _BITS else _pack_fields(codes, _BITS[name])


def _pack_fields(codes: np.ndarray, bits: int) -> np.ndarray:
    per = 8 // bits
    padded = np.zeros(-(-codes.size // per) * per, np.uint8)
    padded[: codes.size] = codes & np.uint8((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(padded.reshape(-1, per) << shifts, axis=1)


def _join_planes(name: str, codes: np.ndarray) -> np.ndarray:
    bits, per = (2, 8) if name == "u3" else (4, 4)
    groups = np.zeros((-(-codes.size // per), per), np.uint8)
    groups.reshape(-1)[: codes.size] = codes
    low, high = groups & np.uint8((1 << bits) - 1), groups >> np.uint8(bits) & np.uint8((1 << (8 // per)) - 1)
    packed = [_pack_row(low[:, : per // 2], bits), _pack_row(low[:, per // 2 :], bits), _pack_row(high, 8 // per)]
    return np.stack(packed, axis=1).reshape(-1)


def _pack_row(fields: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    return np.bitwise_or.reduce(fields << shifts, axis=1)


def _unpack_strings(raw: np.ndarray, count: int) -> np.ndarray:
    data = np.ascontiguousarray(raw)
    if count == 0 and data.size == 0:
        return np.empty(0, object)
    if data.size < 8 + 4 * count:
        raise OpError(f"{count} strings take at least {8 + 4 * count} bytes, there are {data.size}")
    stored = int(data[:4].view("<i4")[0])
    if stored != count:
        raise OpError(f"holds {stored} strings, its shape has {count}")
    ends = data[8 : 8 + 4 * count].view("<i4").astype(np.int64)
    text = data[8 + 4 * count :].tobytes()
    first = data[4:8].view("<i4").astype(np.int64)
    starts = np.concatenate([first, ends])[:count]
    if count and (first[0] < 0 or (ends < starts).any() or ends[-1] > len(text)):
        raise OpError(f"the ends of its strings do not rise within its {len(text)} bytes of text")
    found = np.empty(count, object)
    try:
        found[:] = [text[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise OpError(f"holds text that is not UTF-8: {error}") from None
    return found


def _pack_strings(values: np.ndarray) -> np.ndarray:
    texts = [str(value).encode() for value in values.tolist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64) if texts else np.zeros(0, np.int64)
    header = np.array([len(texts), 0, *ends.tolist()], "<i4")
    return np.frombuffer(header.tobytes() + b"".join(texts), np.uint8)
