"""A .bin that is not the one that was written with its .xml is noticed; a pair that is copied, renamed or written again is not."""

from __future__ import annotations

import pickle
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.io.reading import record_of

SIZE = 1 << 20


def _model(*values: float, size: int = 2) -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter(irexec.f32, (size,), "x")
    constants = [builder.constant(np.full(size, value, np.float32)) for value in values]
    for constant in constants:
        x = builder.emit("Add", x, constant)
    builder.result(x, "y")
    return builder.model()


def _saved(folder: Path, name: str, *values: float, size: int = 2) -> Path:
    irexec.save_model(_model(*values, size=size), folder / f"{name}.xml")
    return folder / f"{name}.xml"


def _codes(path: Path, *, weights: bool = False) -> list[str]:
    return [finding.code for finding in irexec.validate(irexec.read_model(path), weights=weights)]


def test_the_xml_has_size_and_checksum_of_the_bin(tmp_path: Path) -> None:
    """[1, 1, 2, 2] as f32; the CRC-32 is zlib's of the 16 bytes, the sample is the whole file."""
    path = _saved(tmp_path, "m", 1, 2)
    found = re.search(
        rb'^<net name="m" version="11" bin_size="16" bin_sample="(\w{8})" bin_crc32="(\w{8})">$',
        path.read_bytes(),
        re.MULTILINE,
    )
    assert found is not None
    expected = f"{zlib.crc32(np.float32([1, 1, 2, 2]).tobytes()):08x}".encode()
    assert found.groups() == (expected, expected)


def test_what_is_read_and_written_again_has_a_record_of_its_own(tmp_path: Path) -> None:
    path = _saved(tmp_path, "m", 1)
    model = irexec.read_model(path)
    assert io.write_text(model)[0].count(b"bin_") == 0
    irexec.save_model(_model(2), path)
    irexec.save_model(model, tmp_path / "again.xml")
    assert _codes(tmp_path / "again.xml", weights=True) == []
    assert irexec.compile_model(tmp_path / "again.xml")(np.zeros(2, np.float32))[0].tolist() == [1, 1]


def _copied(path: Path) -> Path:
    for suffix in (".xml", ".bin"):
        shutil.copy(path.with_suffix(suffix), path.with_name(f"copy{suffix}"))
    return path.with_name("copy.xml")


def _renamed(path: Path) -> Path:
    for suffix in (".xml", ".bin"):
        path.with_suffix(suffix).rename(path.with_name(f"other{suffix}"))
    return path.with_name("other.xml")


def _saved_again(path: Path) -> Path:
    irexec.save_model(irexec.read_model(path), path)
    return path


@pytest.mark.parametrize("change", [_copied, _renamed, _saved_again])
def test_a_pair_stays_a_pair(change: Callable[[Path], Path], tmp_path: Path) -> None:
    path = change(_saved(tmp_path, "m", 1))
    assert _codes(path, weights=True) == []
    assert irexec.compile_model(path)(np.zeros(2, np.float32))[0].tolist() == [1, 1]


def test_the_bin_of_another_model_is_refused(tmp_path: Path) -> None:
    """As a process leaves them that is killed between the two renames."""
    path, other = _saved(tmp_path, "m", 1), _saved(tmp_path, "other", 2)
    shutil.copy(other.with_suffix(".bin"), path.with_suffix(".bin"))
    (finding,) = irexec.validate(irexec.read_model(path))
    crc = [zlib.crc32(np.float32([value, value]).tobytes()) for value in (2, 1)]
    assert finding.code == "IR023"
    assert finding.message == (
        f"m.bin is not the file that was written with the .xml: the CRC-32 of its sample is {crc[0]:08x}, expected {crc[1]:08x}"
    )
    with pytest.raises(irexec.ModelError, match=r"m\.bin is not the file that was written with the \.xml"):
        irexec.compile_model(path)
    with pytest.raises(irexec.ModelError, match=r"m\.bin is not the file that was written with the \.xml"):
        irexec.save_model(irexec.read_model(path), tmp_path / "new.xml")


def test_a_bin_of_another_size_is_refused(tmp_path: Path) -> None:
    path = _saved(tmp_path, "m", 1)
    with path.with_suffix(".bin").open("ab") as file:
        file.write(bytes(8))
    assert "m.bin is not the file that was written with the .xml: it has 16 bytes, expected 8" in [
        finding.message for finding in irexec.validate(irexec.read_model(path))
    ]


def test_a_bin_that_is_named_is_taken_as_it_is(tmp_path: Path) -> None:
    path, other = _saved(tmp_path, "m", 1), _saved(tmp_path, "other", 2)
    for weights in (other.with_suffix(".bin"), other.with_suffix(".bin").read_bytes()):
        assert irexec.compile_model(path, weights)(np.zeros(2, np.float32))[0].tolist() == [2, 2]


@pytest.mark.parametrize("missing", ["bin_size", "bin_sample", "bin_crc32"])
def test_without_the_attributes_nothing_is_compared(missing: str, tmp_path: Path) -> None:
    path, other = _saved(tmp_path, "m", 1), _saved(tmp_path, "other", 2)
    shutil.copy(other.with_suffix(".bin"), path.with_suffix(".bin"))
    path.write_text(re.sub(rf' {missing}="\w+"', "", path.read_text("utf-8")), "utf-8")
    assert _codes(path, weights=True) == []
    assert irexec.compile_model(path)(np.zeros(2, np.float32))[0].tolist() == [2, 2]


def test_bytes_outside_of_the_sample_are_compared_where_all_are_read(tmp_path: Path) -> None:
    path = _saved(tmp_path, "m", 1, size=SIZE // 4)
    with path.with_suffix(".bin").open("r+b") as file:
        file.seek(5000)  # The second block of the sample starts at (2^20 - 4096) / 63 = 16579.
        file.write(b"\7")
    assert _codes(path) == []
    assert _codes(path, weights=True) == ["IR023"]
    with pytest.raises(irexec.ModelError, match="its CRC-32 is"):
        irexec.compile_model(path, mmap=False)


def test_a_sample_takes_the_first_and_the_last_bytes() -> None:
    data = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
    blocks = [data[i * (SIZE - 4096) // 63 :][:4096] for i in range(64)]
    expected = zlib.crc32(b"".join(block.tobytes() for block in blocks))
    found = record_of(SIZE, lambda offset, size: data[offset : offset + size], whole=True)
    assert (found.size, found.sample, found.checksum) == (SIZE, expected, zlib.crc32(data))


def test_a_pickled_model_knows_its_bin_again(tmp_path: Path) -> None:
    path = _saved(tmp_path, "m", 1)
    pickled = pickle.dumps(irexec.read_model(path))
    assert irexec.compile_model(pickle.loads(pickled))(np.zeros(2, np.float32))[0].tolist() == [1, 1]
    irexec.save_model(_model(2), path)
    with pytest.raises(
        irexec.NodeError, match=r"m\.bin is not the file that the model was read with: the CRC-32 of its sample is"
    ):
        irexec.compile_model(pickle.loads(pickled))
