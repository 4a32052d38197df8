"""Files of arrays: .npy and .npz, and their parts changed one by one."""

from __future__ import annotations

import io
import random
import struct
import zipfile

import numpy as np

from tests.fuzz import mutate_bytes, odd

_DTYPES = [
    "<f4", "<f8", "<f2", "<i8", "<i4", "|i1", "|u1", "<u8", "|b1", ">f4", ">i8", "<U3", "|S4", "<c8", "<c16", "<f16",
    "<m8[s]", "<M8[D]", "|V4", "|O", "=f4", "f4", "<f3", "<i16", "<U0", "<U1000000", "<U99999999999",
]  # fmt: skip
_DESCRIPTIONS = [
    "[('a', '<f4')]", "[('a', '<f4'), ('b', '|O')]", "[]", "'<f4'*9", "('<f4', (2,))", "None", "1", "{'a': 1}", "b'<f4'", "open('x')", "[('a', '<f4', (2, 2))]",
    "'<f4,<i4'", "''", "'<f4\\x00'", "'O'", "[('', '<f4')]",
]  # fmt: skip
_SHAPES = [
    "()", "(3,)", "(0,)", "(3, 0)", "(-1,)", "(-3,)", "(True,)", "(3.0,)", "3", "[3]", "None",
    "(9223372036854775807,)", "(4294967296, 4294967296)", "(18446744073709551616,)", "('3',)", "(3, None)",
    "(" + "1, " * 70 + ")", "(1000000000000,)", "(3,)*2",
]  # fmt: skip
_TAILS = ["", "x", "(", ")", "'", "\\", "\n", "#", "{", ", 'a': 1", "é", "\x00"]


def npy(rng: random.Random) -> bytes:
    """A .npy: sound, or with parts of its header or bytes changed."""
    array = rng.choice(
        [
            np.arange(3, dtype=np.float32), np.float32(1), np.zeros((2, 3), np.int64), np.array(["a", "é"]),
            np.array([True, False]), np.zeros((0, 3), np.float32),
        ]
    )  # fmt: skip
    if rng.random() < 0.25:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asfortranarray(array), version=rng.choice([None, (1, 0), (2, 0), (3, 0)]))
        data = file.getvalue()
    else:
        data = _written(rng, array.tobytes())
    return mutate_bytes.mutate(data, rng) if rng.random() < 0.35 else data


def _written(rng: random.Random, values: bytes) -> bytes:
    descr = rng.choice([f"'{dtype}'" for dtype in _DTYPES] + _DESCRIPTIONS) if rng.random() < 0.6 else "'<f4'"
    order = rng.choice(["False", "True", "0", "None", "1.0"]) if rng.random() < 0.2 else "False"
    shape = rng.choice(_SHAPES) if rng.random() < 0.6 else "(3,)"
    entries = [f"'descr': {descr}", f"'fortran_order': {order}", f"'shape': {shape}"]
    if rng.random() < 0.1:
        rng.shuffle(entries)
        entries = entries[: rng.randint(0, 3)] + rng.choice([[], ["'more': 1"]])
    text = "{" + ", ".join(entries) + ", }"
    if rng.random() < 0.15:
        position = rng.randrange(len(text) + 1)
        text = text[:position] + rng.choice(_TAILS) + text[position:]
    if rng.random() < 0.03:
        text = rng.choice(
            [
                "(" * 300, "-" * 3000 + "1", "[" * 5000 + "]" * 5000, "1+" * 2000 + "1", "'" + "x" * 20000 + "'",
                "0x" + "f" * 6000,
            ]
        )  # fmt: skip
    version = rng.choice([(1, 0)] * 6 + [(2, 0), (3, 0), (0, 0), (9, 9), (1, 1)])
    header = text.encode("utf-8") + b" " * rng.choice([0, 1, 20, 60]) + rng.choice([b"\n", b"\n", b"\n", b""])
    length = len(header) + (rng.choice([-1, 1, 100, -len(header)]) if rng.random() < 0.1 else 0)
    size = struct.pack("<H", length & 0xFFFF) if version[0] < 2 else struct.pack("<I", max(0, length))
    kept = values if rng.random() < 0.7 else values[: rng.randint(0, len(values))]
    return b"\x93NUMPY" + bytes(version) + size + header + kept


def npz(rng: random.Random) -> bytes:
    """A .npz: members of odd names and contents, compressed or not, and fields of the archive changed."""
    file = io.BytesIO()
    methods = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    with zipfile.ZipFile(file, "w", rng.choice(methods)) as archive:
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            name = rng.choice(
                [
                    "x.npy",
                    "x.npy",
                    "x.npy",
                    "x",
                    "y.npy",
                    ".npy",
                    "a/x.npy",
                    "x.npy/",
                    *(f"{text}.npy" for text in odd.TEXTS),
                ]
            )
            # Always the same time, so that a seed gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name or "x", (2020, 1, 1, 0, 0, 0)), _member(rng), rng.choice(methods))
    data = bytearray(file.getvalue())
    for _ in range(rng.choice([0, 0, 1, 2])):
        _field(data, rng)
    return mutate_bytes.mutate(bytes(data), rng) if rng.random() < 0.25 else bytes(data)


def _member(rng: random.Random) -> bytes:
    return (
        npy(rng)
        if rng.random() < 0.85
        else rng.choice([b"", b"hello", b"\x80\x04.", b"cos\nsystem\n(S'true'\ntR.", b"PK\x03\x04", b"\x93NUMPY"])
    )


# Offset and size of fields of the local header, of the central directory and of its end.
_FIELDS = {
    b"PK\x03\x04": [(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)],
    b"PK\x01\x02": [(6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (34, 2), (42, 4)],
    b"PK\x05\x06": [(4, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)],
}


def _field(data: bytearray, rng: random.Random) -> None:
    """Another value of one field: a flag, the method, a size, an offset."""
    signature = rng.choice(list(_FIELDS))
    start = data.find(signature)
    if start < 0:
        return
    offset, size = rng.choice(_FIELDS[signature])
    value = rng.choice([0, 1, 2, 8, 9, 12, 14, 93, 99, 255, 1 << 11, 65535, 2**31 - 1, 2**32 - 1, rng.randrange(2**32)])
    data[start + offset : start + offset + size] = (value & (256**size - 1)).to_bytes(size, "little")
