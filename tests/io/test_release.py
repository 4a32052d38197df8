"""Memory of a mapped .bin that is given back: the bytes are read from the file again."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from irexec.io.weights import Weights


@pytest.mark.parametrize(("offset", "size"), [(0, 1 << 20), (1, 100), (4097, 40_000), ((1 << 20) - 1, 1)])
def test_what_was_given_back_is_read_again(tmp_path: Path, offset: int, size: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    data.tofile(tmp_path / "m.bin")
    part = Weights(tmp_path / "m.bin").slice(offset, size)
    part.release()
    array = part()
    part.release()
    np.testing.assert_array_equal(array, data[offset : offset + size])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(part))(), data[offset : offset + size])


def test_bytes_in_memory_stay() -> None:
    part = Weights(data=b"abcd" * 5000).slice(0, 8)
    part()
    part.release()
    assert part().tobytes() == b"abcdabcd"
