"""A .npz: damaged archives, names of members, and reading only what is asked for."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec.cli.main import run
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import ModelError
from irexec.tools.arrays.files import ArrayFile, open_arrays, write_npz
from tests.support.paths import DIGITS
from tests.tools.arrays.files import read, saved, written, zipped


def _flagged(content: bytes, bits: int) -> bytes:
    """The archive with these bits set in the flags of its first member, in both headers."""
    raw = bytearray(content)
    raw[6] |= bits
    raw[raw.index(b"PK\1\2") + 8] |= bits
    return bytes(raw)


def _method(content: bytes, number: int) -> bytes:
    raw = bytearray(content)
    raw[8] = raw[raw.index(b"PK\1\2") + 10] = number
    return bytes(raw)


def _overwritten(content: bytes, start: int) -> bytes:
    return content[:start] + b"\xff" * 6 + content[start + 6 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: _flagged(content, 1), "array 'a': is encrypted"),
        (lambda content: _flagged(content, 0x20), "array 'a': is damaged: compressed patched data"),
        (lambda content: _method(content, 99), "is compressed by method 99 of .zip, expected 0"),
        (lambda content: _method(content, zipfile.ZIP_LZMA), "is compressed by method 14"),
        (lambda content: _overwritten(content, 36), "array 'a': is damaged: Error -3 while decompressing data"),
        (lambda content: content[: len(content) // 2], "is damaged: File is not a zip file"),
    ],
)
def test_damaged_archives(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    content = zipped(tmp_path / "x.npz", {"a.npy": saved(np.arange(50.0))})
    with pytest.raises(ModelError, match=message):
        read(tmp_path / "x.npz", change(content), "a")


def _with_offset(content: bytes, offset: int) -> bytes:
    """The archive of one member with this offset of the member, as zip64 writes it in an extra field of the directory."""
    directory, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    name = int.from_bytes(content[directory + 28 : directory + 30], "little")
    entry, tail = bytearray(content[directory : directory + 46 + name]), bytearray(content[end:])
    entry[30:32], entry[42:46] = struct.pack("<H", 12), b"\xff" * 4
    entry += struct.pack("<HHQ", 1, 8, offset)
    tail[12:16] = struct.pack("<I", len(entry))
    return content[:directory] + bytes(entry) + bytes(tail)


@pytest.mark.parametrize("offset", [2**62, 2**63, 2**64 - 1])
def test_offsets_beyond_any_file(offset: int, tmp_path: Path) -> None:
    """Python's files and its BytesIO raise different exceptions."""
    content = _with_offset(zipped(tmp_path / "x.npz", {"a.npy": saved(np.arange(3.0))}), offset)
    with pytest.raises(ModelError, match="array 'a'"):
        read(tmp_path / "x.npz", content, "a")
    with ArrayFile(io.BytesIO(content), "x.npz", MemoryLimit()) as arrays, pytest.raises(ModelError, match="array 'a'"):
        arrays.read("a")


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    content = zipped(tmp_path / "x.npz", {"a.npy": saved(np.arange(3.0))}, zipfile.ZIP_STORED)
    with pytest.raises(ModelError, match="Bad CRC-32"):
        read(tmp_path / "x.npz", content.replace(np.float64(2).tobytes(), np.float64(3).tobytes()), "a")


def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    zipped(tmp_path / "x.npz", dict.fromkeys(("a", "a.npy"), saved(np.zeros(1))))
    with pytest.raises(ModelError, match="has two arrays of the name 'a'"):
        open_arrays(tmp_path / "x.npz")


def test_a_member_that_is_not_an_array_does_not_matter_until_it_is_read(tmp_path: Path) -> None:
    zipped(tmp_path / "x.npz", {"a.npy": saved(np.arange(2)), "readme.txt": b"hello"})
    with open_arrays(tmp_path / "x.npz") as arrays:
        assert arrays.names == ("a", "readme.txt")
        assert arrays.read("a").tolist() == [0, 1]
        with pytest.raises(ModelError, match=r"array 'readme.txt': is not a .npy: it starts with b'hello'"):
            arrays.read("readme.txt")


def test_names_written_are_the_names_read(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "file": np.zeros(2),
        "a.npy": np.arange(3),
        "../x": np.array(["a", "bc"], object),
        "": np.ones(1),
    }
    with open(tmp_path / "x.npz", "wb") as file:
        write_npz(file, arrays)
    with open_arrays(tmp_path / "x.npz") as found:
        assert found.named
        assert set(found.names) == set(arrays)
        for name, array in arrays.items():
            assert found.read(name).tolist() == array.tolist()


def _bomb(path: Path, name: str, array: np.ndarray) -> None:
    """An archive with an array beside a member of which nothing can be read."""
    zipped(path, {f"{name}.npy": saved(array), "other.npy": saved(np.zeros(4))})
    raw = bytearray(path.read_bytes())
    second = raw.rindex(b"PK\3\4")
    raw[second + 30 + len("other.npy") : raw.index(b"PK\1\2")] = b"\xff" * (
        raw.index(b"PK\1\2") - second - 30 - len("other.npy")
    )
    path.write_bytes(bytes(raw))


def test_only_what_is_asked_for_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As an input by its name, and as the reference of --assert."""
    path, model = tmp_path / "x.npz", str(DIGITS / "classifier.xml")
    _bomb(path, "image", np.zeros((1, 1, 8, 8), np.float32))
    assert run(["infer", model, "-i", f"image={path}", "-o", str(tmp_path / "y.npz")]) == 0
    with open_arrays(tmp_path / "y.npz") as arrays:
        _bomb(path, "probabilities", arrays.read("probabilities"))
    assert run(["infer", model, "-i", "zeros", "--assert", str(path)]) == 0
    assert "only in the reference: other" in capsys.readouterr().out


def test_a_damaged_input_is_one_line_and_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.npy").write_bytes(written(shape="(-3,)"))
    for option in (["-i", str(tmp_path / "x.npy")], ["-i", "random", "--assert", str(tmp_path / "x.npy")]):
        assert run(["infer", str(DIGITS / "classifier.xml"), *option]) == 3
        assert (
            capsys.readouterr().err
            == f"error: {tmp_path / 'x.npy'}: its header has a shape of (-3,), expected a tuple of sizes\n"
        )


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("conv0/Convolution:0", "conv0/Convolution:0.npy"),
        ("../../x", "%2E%2E/%2E%2E/x.npy"),
        ("a/../x..", "a/%2E%2E/x...npy"),
        ("/model/conv/Conv_output_0", "/model/conv/Conv_output_0.npy"),
        ("//x", "%2F/x.npy"),
        ("C:/x", "C%3A/x.npy"),
        ("..\\x", "..%5Cx.npy"),
        ("%2E%2E/50%", "%252E%252E/50%.npy"),
    ],
)
def test_no_member_leads_out_of_a_folder(name: str, member: str, tmp_path: Path) -> None:
    """The layers of a model from anywhere may have any names."""
    with open(tmp_path / "x.npz", "wb") as file:
        write_npz(file, {name: np.ones(1)})
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.namelist() == [member]
    with open_arrays(tmp_path / "x.npz") as found:
        assert found.names == (name,)
    with np.load(tmp_path / "x.npz") as loaded:
        assert loaded.files == [member.removesuffix(".npy")]


def test_a_slash_in_front_is_read_as_older_versions_wrote_it(tmp_path: Path) -> None:
    zipped(tmp_path / "x.npz", {"%2Fmodel/x.npy": saved(np.zeros(1))})
    with open_arrays(tmp_path / "x.npz") as found:
        assert found.names == ("/model/x",)


def test_members_of_other_programs_keep_their_names(tmp_path: Path) -> None:
    zipped(
        tmp_path / "x.npz",
        {"%2E%2E%2Fx.npy": saved(np.zeros(1)), "50%25.npy": saved(np.zeros(1)), "../y.npy": saved(np.zeros(1))},
    )
    with open_arrays(tmp_path / "x.npz") as found:
        assert set(found.names) == {"%2E%2E%2Fx", "50%25", "../y"}


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with (
        open(tmp_path / "x.npz", "wb") as file,
        pytest.raises(ModelError, match=r"its name has 65532 characters, a .npz takes 65535 bytes"),
    ):
        write_npz(file, {"n" * 65532: np.ones(1)})
    with open(tmp_path / "x.npz", "wb") as file:
        write_npz(file, {"n" * 65531: np.ones(1)})
