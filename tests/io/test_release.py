"""Memory of a mapped .bin that is given back: the bytes are read from the file again."""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path

import numpy as np
import pytest

from irexec.errors import ModelError
from irexec.io import sources
from irexec.io.sources import Weights

PAGES = 4


@pytest.fixture(autouse=True)
def _mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files here are small, and are mapped all the same."""
    monkeypatch.setattr(sources, "READ_AT_ONCE", 0)


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


@pytest.mark.parametrize(
    ("offset", "size"),
    [
        pytest.param(PAGES * mmap.PAGESIZE, mmap.PAGESIZE, id="beyond the end"),
        pytest.param((PAGES + 3) * mmap.PAGESIZE + 1, 4 * mmap.PAGESIZE, id="far beyond the end"),
        pytest.param(1 << 70, mmap.PAGESIZE, id="beyond what an address can be"),
        pytest.param(mmap.PAGESIZE, 1 << 70, id="of more bytes than an address can count"),
        pytest.param((PAGES - 1) * mmap.PAGESIZE, 8 * mmap.PAGESIZE, id="across the end"),
        pytest.param(PAGES * mmap.PAGESIZE, 0, id="nothing, at the end"),
    ],
)
def test_a_constant_outside_of_the_file(tmp_path: Path, offset: int, size: int) -> None:
    """Where a file says that a constant lies, there need not be any bytes: it cannot be read, and there is nothing to give back."""
    data = bytes(range(256)) * (PAGES * mmap.PAGESIZE // 256)
    (tmp_path / "m.bin").write_bytes(data)
    whole = Weights(tmp_path / "m.bin")
    assert bytes(whole.read(0, whole.size)) == data
    part = whole.slice(offset, size)
    part.release()
    assert bytes(whole.read(0, whole.size)) == data
    if size:
        with pytest.raises(ModelError, match=r"cannot be read: .*m\.bin has"):
            part()
