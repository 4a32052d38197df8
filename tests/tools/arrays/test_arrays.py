"""Files of arrays, .npy and .npz: what is read, what is refused, and how much memory it takes."""

from __future__ import annotations

import io
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError, ModelError
from irexec.tools.arrays import npy
from irexec.tools.arrays.files import ArrayFile, open_arrays, write_npz
from irexec.tools.run.input_sources import InputSource, input_arrays
from tests.support.paths import DIGITS
from tests.tools.arrays.files import read, saved, with_header, written, zipped


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


# A .npy: what NumPy and others write is read, and everything else is one sentence.


ARRAYS = [
    np.arange(6).reshape(2, 3).astype(kind)
    for kind in ("i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", ">f8", "?", np.longdouble)
] + [
    np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4)),
    np.float32(7).reshape(()),
    np.zeros((0, 3), np.float64),
    np.array([["a", "déjà"], ["", "😀"]]),
    np.array(["ab", "😀"], ">U2"),
    np.zeros((0,), "U5"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_what_numpy_writes_is_read(array: np.ndarray, tmp_path: Path) -> None:
    for content, name in ((saved(array), ""), (zipped(tmp_path / "x.npz", {"a/b.npy": saved(array)}), "a/b")):
        found = read(tmp_path / "x", content, name)
        assert found.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, array)


def test_bytes_are_text() -> None:
    content = saved(np.array(["déjà".encode(), b""]))
    assert npy.read_array(io.BytesIO(content).read, len(content), "x", MemoryLimit()).tolist() == ["déjà", ""]


@pytest.mark.parametrize(
    "content",
    [
        written(shape="(3L,)"),
        written("'<f'"),
        written(version=(2, 0)),
        written(version=(3, 0)),
        written('"<f4"', "(1, 3)"),
        with_header('{"shape":(3,),"descr":"<f4","fortran_order":False}'),
        with_header("{ 'fortran_order' : False, 'shape':( 3 , ),\n'descr': '<f4'}" + " " * 200),
    ],
)
def test_headers_of_other_writers(content: bytes, tmp_path: Path) -> None:
    assert read(tmp_path / "x.npy", content).ravel().tolist() == [0, 0, 0]


def test_booleans_other_than_0_and_1_are_true(tmp_path: Path) -> None:
    assert read(tmp_path / "x.npy", written("'|b1'", data=b"\0\2\xff")).view(np.uint8).tolist() == [0, 1, 1]


# What is wrong with a .npy, and what the message says.
DAMAGED = {
    "empty shape": (written(shape=""), "header cannot be read"),
    "negative": (written(shape="(-3,)"), r"shape of \(-3,\), expected a tuple of sizes"),
    "no tuple": (written(shape="(3)"), "shape is not valid: 3"),
    "a string": (written(shape="'abc'"), "shape is not valid: 'abc'"),
    "booleans": (written(shape="(True,)"), "expected a tuple of sizes"),
    "fractions": (written(shape="(3.0,)"), "shape is not valid"),
    "two commas": (written(shape="(3,,)"), "header cannot be read"),
    "65 dimensions": (written(shape=f"({'1,' * 65})"), "has 65 dimensions, of which NumPy allows 64"),
    "huge": (written(shape="(4611686018427387904, 4)"), "is too large"),
    "huge and empty": (written(shape="(0, 4611686018427387904, 4)", data=b""), "is too large"),
    "beyond 64 bits": (written(shape="(99999999999999999999,)"), "is too large"),
    "more than there is": (written(shape="(1000000000,)"), "has 12 bytes after its header, which says that it has 4,000,000,000 bytes of float32"),
    "trailing": (written(data=bytes(13)), r"has 13 bytes .* has 12 bytes of float32 of shape \[3\]"),
    "cut": (written(data=bytes(11)), "has 11 bytes"),
    "cut in the header": (written()[:30], "ends within the header"),
    "cut in the version": (written()[:7], "version 1 of the .npy format, expected 1.0"),
    "version 9": (written(version=(9, 0)), "version 9.0 of the .npy format"),
    "fortran_order": (written(order="'F'"), "fortran_order is not a valid bool: 'F'"),
    "fortran_order number": (written(order="1"), "fortran_order is not a valid bool: 1"),
    "a long header": (with_header("{" + " " * 20_000 + "}"), "has a header of 20,002 bytes"),
    "a header of 4 GB": (b"\x93NUMPY\2\0\xff\xff\xff\xff{}", "has a header of 4,294,967,295 bytes"),
    "no end": (with_header("{'a': (1,\n"), "header cannot be read"),
    "no dictionary": (with_header("[1, 2]"), "[Hh]eader (is not a dictionary|cannot be read)"),
    "nothing": (with_header(""), "[Hh]eader (is not a dictionary|cannot be read)"),
    "other entries": (with_header("{'a': True}"), "does not contain the correct keys"),
    "twice": (with_header("{'shape': (3,), 'shape': (3,), }"), "does not contain the correct keys"),
    "bytes that are not text": (b"\x93NUMPY\1\0\4\0\xff\xfe\xfd\xfc", "[Hh]eader (is not a dictionary|cannot be read)"),
    "pickled": (saved(np.array([None, {}], object)), "holds Python objects"),
    "records": (saved(np.zeros(3, [("a", "i4"), ("b", "f4")])), "holds records"),
    "records by another spelling": (written("'i4,f4'"), "holds records"),
    "complex": (saved(np.zeros(3, np.complex64)), "holds complex numbers"),
    "dates": (saved(np.zeros(3, "M8[ns]")), "holds dates"),
    "time differences": (saved(np.zeros(3, "m8[s]")), "holds time differences"),
    "void": (saved(np.zeros(3, "V4")), "holds raw bytes"),
    "unknown type": (written("'<f3'"), "not a valid dtype descriptor: '<f3'"),
    "no type": (written("''"), "header"),
    "text of no size": (written("'<U0'"), "the type '<U0'"),
    "text of 2 GB": (written("'<U999999999'"), "not a valid dtype descriptor: '<U999999999'"),
    "a deep header": (with_header("{'a': " + "(" * 4_000), "header cannot be read"),
    "a call": (written(shape="__import__('os').getcwd()"), "header cannot be read"),
    "a shape of types": (written("('<f4', (2, 3))"), "holds records"),
    "beyond Unicode": (written("'<U3'", "(1,)", data=b"\xff" * 12), "code point 0xFFFFFFFF, which is not a character of Unicode"),
    "half a pair": (written("'<U3'", "(1,)", data=b"\0\xd8\0\0" * 3), "code point 0xD800"),
    "not UTF-8": (written("'|S12'", "(1,)", data=b"\xff" * 12), "holds text that is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), DAMAGED.values(), ids=DAMAGED)
def test_every_other_npy_is_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        read(tmp_path / "x.npy", content)
    assert "\n" not in str(raised.value)
    zipped(tmp_path / "x.npz", {"a.npy": content})
    with pytest.raises(ModelError, match=message), open_arrays(tmp_path / "x.npz") as arrays:
        arrays.read("a")


@pytest.mark.slow
def test_every_cut_and_every_changed_byte_is_an_array_or_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content in (saved(np.arange(3.0)), zipped(path, {"a.npy": saved(np.arange(3.0))})):
        changed = [content[:size] for size in range(len(content))]
        changed += [
            content[:i] + bytes([content[i] ^ bit]) + content[i + 1 :] for i in range(len(content)) for bit in (1, 0x80)
        ]
        refused = 0
        for one in changed:
            path.write_bytes(one)
            try:
                with open_arrays(path) as arrays:
                    for found in [arrays.read(found) for found in arrays.names]:
                        assert found.dtype.kind in "biufU"
            except ModelError as error:
                refused += 1
                assert "\n" not in str(error)
        # Every cut is refused.
        assert refused >= len(content)


# Arrays that need more memory than there is are refused before they are read.


def _memory(folder: Path, kilobytes: int) -> MemoryLimit:
    """The limit of a system that has so much memory left."""
    (folder / "proc").mkdir()
    (folder / "proc" / "meminfo").write_text(f"MemAvailable: {kilobytes} kB\n")
    return MemoryLimit(root=folder)


def test_more_than_the_memory_that_is_available_is_refused_before_it_is_read(tmp_path: Path) -> None:
    zipped(
        tmp_path / "x.npz",
        {"a.npy": saved(np.zeros(129)), "b.npy": saved(np.zeros(128)), "c.npy": saved(np.zeros(205, "S1"))},
    )
    with open_arrays(tmp_path / "x.npz", memory=_memory(tmp_path, 1)) as arrays:
        with pytest.raises(
            ModelError, match=r"x.npz, array 'a': float64 of shape \[129\] takes 1032 bytes .* of memory are available"
        ):
            arrays.read("a")
        assert arrays.read("b").size == 128
        # Decoded it takes four bytes more for each of a character.
        with pytest.raises(ModelError, match="takes 1025 bytes"):
            arrays.read("c")


@pytest.mark.parametrize("source", ["x.npy", "x.png"])
def test_max_memory_limits_inputs(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    shutil.copy(DIGITS / "digit_7.png", tmp_path / "x.png")
    path = str(tmp_path / source)
    inputs = [InputSource(None, path)]
    model = irexec.read_model(DIGITS / "classifier.xml")
    with pytest.raises(IrexecError, match="the limit of memory is 1 bytes"):
        input_arrays(inputs, model.inputs, notify=print, memory=MemoryLimit(1))
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", path, "--max-memory", "1M"]) in (2, 3)
    assert "the limit of memory is 1 MB" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["zeros", "random"])
def test_memory_limits_what_is_generated(source: str, tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.parameter("f32", (1 << 20, 4), "x"))
    with pytest.raises(
        InputError, match=r"input 'x': shape \[1048576,4\] takes 16777216 bytes \(16.8 MB\), and 16.4 MB of memory are"
    ):
        input_arrays(
            [InputSource(None, source)], builder.model().inputs, notify=print, memory=_memory(tmp_path, 16_000)
        )


class _Endless(io.RawIOBase):
    """A pipe that never ends."""

    def __init__(self, start: bytes) -> None:
        self.start, self.given = start, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.given += len(buffer)
        buffer[:] = (self.start + bytes(len(buffer)))[: len(buffer)]
        self.start = b""
        return len(buffer)


@pytest.mark.parametrize(
    ("start", "message", "maximum"),
    [(b"", "not a readable .npy or .npz: it starts with", 2 << 20), (b"\x93NUMPY", "has more than 4.1 MB", 8 << 20)],
)
def test_standard_input_without_an_end(
    start: bytes, message: str, maximum: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = _Endless(start)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
    with pytest.raises(ModelError, match=f"standard input: {message}"):
        open_arrays("-", memory=_memory(tmp_path, 8_000))
    assert endless.given < maximum
