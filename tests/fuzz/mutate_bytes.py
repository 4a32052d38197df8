"""Bytes with a few of them changed, whatever they mean."""

from __future__ import annotations

import random

_WORDS = [
    b"\x00", b"\xff", b"\x7f", b"\x80", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f",
    b"\x00\x00\x80\x7f", b"\x00\x00\xc0\x7f", b"\x01\x00\x00\x00",
]  # fmt: skip


def mutate(data: bytes, rng: random.Random, times: int = 3) -> bytes:
    """The bytes after 1 to ``times`` changes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, times)):
        _once(changed, rng)
    return bytes(changed)


def _once(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    count = min(rng.choice([1, 1, 2, 4, 8, 16, 64, len(data)]), len(data) - start)
    choice = rng.randrange(7)
    if choice == 0 and start < len(data):
        data[start] ^= 1 << rng.randrange(8)
    elif choice == 1 and start < len(data):
        data[start] = rng.randrange(256)
    elif choice == 2:
        word = rng.choice(_WORDS)
        data[start : start + len(word)] = word
    elif choice == 3:
        del data[start : start + count]
    elif choice == 4:
        data[start:start] = data[start : start + count]
    elif choice == 5:
        other = rng.randrange(len(data) + 1)
        data[start : start + count] = data[other : other + count]
    else:
        data[start:start] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 4, 16])))
