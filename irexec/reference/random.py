"""The two generators of random 32-bit words that OpenVINO uses, vectorised.

Sources: RandomUniform-8; Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (Philox 4x32-10);
Matsumoto and Nishimura, Mersenne Twister (MT19937), which NumPy has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.reference.limits import check_time

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_STEPS = (0x9E3779B9, 0xBB67AE85)

# Blocks that are computed together, in cache; the run's time is looked at between them.
_TOGETHER = 1 << 13


def philox(key: int, counter: int, blocks: int) -> np.ndarray:
    """Words (blocks, 4) uint32; ``key`` and ``counter`` are 64-bit integers, blocks are numbered from 0."""
    words = np.empty((blocks, 4), np.uint32)
    for first in range(0, blocks, _TOGETHER):
        check_time()
        part = words[first : first + _TOGETHER]
        part[...] = _philox(key, counter, np.arange(first, first + len(part), dtype=np.uint64))
    return words


def _philox(key: int, counter: int, n: np.ndarray) -> np.ndarray:
    """The words of the blocks of these numbers."""
    words = [n & _LOW, n >> _HALF, *(np.full(len(n), part, np.uint64) for part in _halves(counter))]
    keys = _halves(key)
    for _ in range(_ROUNDS):
        first, second = _FACTORS[0] * words[0], _FACTORS[1] * words[2]
        words = [
            (second >> _HALF) ^ words[1] ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _HALF) ^ words[3] ^ np.uint64(keys[1]),
            first & _LOW,
        ]
        keys = ((keys[0] + _STEPS[0]) & 0xFFFFFFFF, (keys[1] + _STEPS[1]) & 0xFFFFFFFF)
    return np.stack(words, 1)


def _halves(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF


def mersenne(seed: int, count: int) -> np.ndarray:
    """Words (count,) uint32 of the Mersenne Twister seeded with the low 32 bits of ``seed``."""
    generator: Any = np.random.RandomState(seed & 0xFFFFFFFF)
    return generator.randint(0, 1 << 32, count, np.uint32)


def fraction(words: np.ndarray, bits: int) -> np.ndarray:
    """The lowest ``bits`` of words as fractions in [0, 1), f64."""
    return (words & np.asarray((1 << bits) - 1, words.dtype)) / float(1 << bits)
