"""Elements of ONNX's tests of casts that its specification defines."""

from __future__ import annotations

import re

import numpy as np

_CASTS = re.compile(r"test_cast(like)?_FLOAT(16)?_to_U?INT[24]")


def only_defined(name: str, type: str, x: np.ndarray, *results: np.ndarray) -> tuple[np.ndarray, ...]:
    """Results of a test of the suite, without the elements that are undefined: those of floats that an integer of four
    or two bits does not have.

    ml_dtypes, the source of the expected results, wraps such floats in release 0.5, and has 0 in 0.7.

    Args:
        name: of the test.
        type: of its result, such as "uint4" or "u4".
        x: its first input.
        results: arrays of the shape of the result.
    """
    if not _CASTS.match(name):
        return results
    bits = int(type[-1])
    low, high = (0, 2**bits - 1) if type.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    x = x.astype(np.float64)
    is_defined = (np.rint(x) >= low) & (np.rint(x) <= high)
    assert is_defined.any()
    return tuple(result[is_defined] for result in results)
