"""FarmHash of bytes, as TensorFlow and OpenVINO put strings into buckets.

Source: farmhashna::Hash64 of google/farmhash.
"""

from __future__ import annotations

MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def fingerprint(data: bytes) -> int:
    """The hash of bytes: 64 bits, without sign."""
    if len(data) <= 16:
        return _up_to_16(data)
    if len(data) <= 32:
        return _up_to_32(data)
    return _up_to_64(data) if len(data) <= 64 else _long(data)


def _fetch(data: bytes, at: int, size: int = 8) -> int:
    at += len(data) if at < 0 else 0
    return int.from_bytes(data[at : at + size], "little")


def _rotate(value: int, shift: int) -> int:
    value &= MASK
    return (value >> shift | value << (64 - shift)) & MASK


def _mix(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def _pair(u: int, v: int, multiplier: int) -> int:
    a = _mix((u ^ v) * multiplier)
    return _mix((v ^ a) * multiplier) * multiplier & MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    multiplier = K2 + 2 * size
    if size >= 8:
        a, b = _fetch(data, 0) + K2 & MASK, _fetch(data, -8)
        c = _rotate(b, 37) * multiplier + a & MASK
        return _pair(c, (_rotate(a, 25) + b) * multiplier & MASK, multiplier)
    if size >= 4:
        return _pair(size + (_fetch(data, 0, 4) << 3), _fetch(data, -4, 4), multiplier)
    if not size:
        return K2
    y, z = data[0] + (data[size // 2] << 8), size + (data[-1] << 2)
    return _mix(y * K2 & MASK ^ z * K0 & MASK) * K2 & MASK


def _up_to_32(data: bytes) -> int:
    multiplier = K2 + 2 * len(data)
    a, b = _fetch(data, 0) * K1 & MASK, _fetch(data, 8)
    c, d = _fetch(data, -8) * multiplier & MASK, _fetch(data, -16) * K2 & MASK
    first = _rotate(a + b, 43) + _rotate(c, 30) + d & MASK
    return _pair(first, a + _rotate(b + K2, 18) + c & MASK, multiplier)


def _up_to_64(data: bytes) -> int:
    multiplier = K2 + 2 * len(data)
    a, b = _fetch(data, 0) * K2 & MASK, _fetch(data, 8)
    c, d = _fetch(data, -8) * multiplier & MASK, _fetch(data, -16) * K2 & MASK
    y = _rotate(a + b, 43) + _rotate(c, 30) + d & MASK
    z = _pair(y, a + _rotate(b + K2, 18) + c & MASK, multiplier)
    e, f = _fetch(data, 16) * multiplier & MASK, _fetch(data, 24)
    g, h = (y + _fetch(data, -32)) * multiplier & MASK, (z + _fetch(data, -24)) * multiplier & MASK
    return _pair(_rotate(e + f, 43) + _rotate(g, 30) + h & MASK, e + _rotate(f + a, 18) + g & MASK, multiplier)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two hashes of 32 bytes and two seeds."""
    w, x, y, z = (_fetch(data, at + offset) for offset in (0, 8, 16, 24))
    a = a + w & MASK
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y & MASK
    return a + z & MASK, b + _rotate(a, 44) + c & MASK


def _long(data: bytes) -> int:
    x, y = 81, 81 * K1 + 113 & MASK
    z = _mix(y * K2 + 113) * K2 & MASK
    v = w = (0, 0)
    x = x * K2 + _fetch(data, 0) & MASK
    for at in range(0, (len(data) - 1) // 64 * 64, 64):
        x, y, z, v, w = _round(data, at, (x, y, z), v, w, K1)
    multiplier = K1 + ((z & 0xFF) << 1)
    first = w[0] + ((len(data) - 1) & 63)
    v = (v[0] + first & MASK, v[1])
    w = (first + v[0] & MASK, w[1])
    x, y, z, v, w = _round(data, len(data) - 64, (x, y, z), v, w, multiplier, 9)
    left = _pair(v[0], w[0], multiplier) + _mix(y) * K0 + z & MASK
    return _pair(left, _pair(v[1], w[1], multiplier) + x & MASK, multiplier)


def _round(
    data: bytes, at: int, state: tuple[int, int, int], v: tuple[int, int], w: tuple[int, int], by: int, weight: int = 1
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """One round of 64 bytes; ``weight`` multiplies what is taken from the hashes of the round before."""
    x, y, z = state
    x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * by & MASK
    y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * by & MASK
    x ^= w[1] * weight & MASK
    y = y + v[0] * weight + _fetch(data, at + 40) & MASK
    z = _rotate(z + w[0], 33) * by & MASK
    v = _weak(data, at, v[1] * by & MASK, x + w[0] & MASK)
    w = _weak(data, at + 32, z + w[1] & MASK, y + _fetch(data, at + 16) & MASK)
    return z, y, x, v, w
