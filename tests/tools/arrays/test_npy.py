"""A .npy: what NumPy and others write is read, and everything else is one sentence."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import ModelError
from irexec.tools.arrays import npy
from irexec.tools.arrays.files import open_arrays
from tests.tools.arrays.files import read, saved, with_header, written, zipped

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
