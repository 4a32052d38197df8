"""Image files of every format that is read, with the parts that say how large they are changed."""

from __future__ import annotations

import io
import random
import struct
import zlib

import numpy as np
from PIL import Image

from tests.fuzz import mutate_bytes

FORMATS = {"PNG": "png", "JPEG": "jpg", "BMP": "bmp", "GIF": "gif", "WEBP": "webp", "TIFF": "tif", "PPM": "ppm"}
_MODES = {
    "PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"], "JPEG": ["L", "RGB", "CMYK"], "BMP": ["1", "L", "P", "RGB", "RGBA"], "GIF": ["1", "L", "P", "RGB"],
    "WEBP": ["L", "RGB", "RGBA"], "TIFF": ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "LAB", "YCbCr"], "PPM": ["1", "L", "RGB", "I"],
}  # fmt: skip
_SIZES = [(8, 8), (1, 1), (5, 3), (8, 1), (17, 9), (1, 40)]
# What starts programs or formats that are not meant to be read, under a name that is.
_OTHERS = [
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.4\n", b"", b"\x00",
    b"FLIF", b"\x00\x00\x01\x00\x01\x00", b"8BPS\x00\x01", b"DDS |", b"SIMPLE  =                    T", b"\x0a\x05\x01\x08",
]  # fmt: skip
_NUMBERS = [0, 1, 2, 3, 8, 255, 256, 65535, 65536, 100_000, 2**31 - 1, 2**31, 2**32 - 1]


def image(rng: random.Random, format: str) -> bytes:
    """The bytes of a small image, mostly changed."""
    if rng.random() < 0.04:
        return rng.choice(_OTHERS)
    data = _sound(rng, format)
    if rng.random() < 0.5:
        data = {"PNG": _png, "JPEG": _marker, "PPM": _text}.get(format, _number)(data, rng)
    return mutate_bytes.mutate(data, rng) if rng.random() < 0.4 else data


def _sound(rng: random.Random, format: str) -> bytes:
    mode, (width, height) = rng.choice(_MODES[format]), rng.choice(_SIZES)
    values = np.frombuffer(rng.randbytes(width * height * 4), np.uint8).reshape(height, width, 4)
    made = Image.fromarray(values, "RGBA")
    if mode == "I;16":
        made = Image.fromarray(values[:, :, 0].astype(np.uint16) * 257)
    elif mode in ("I", "F"):
        made = Image.fromarray(values[:, :, 0].astype(np.int32 if mode == "I" else np.float32))
    else:
        made = made.convert("RGB").convert(mode) if mode not in ("RGBA", "LA") else made.convert(mode)
    options = _options(rng, format, made)
    file = io.BytesIO()
    try:
        made.save(file, format, **options)
    except (OSError, ValueError):
        # Not every option and mode go together in every version of Pillow.
        file = io.BytesIO()
        Image.fromarray(values[:, :, 0]).save(file, format)
    return file.getvalue()


def _options(rng: random.Random, format: str, made: Image.Image) -> dict[str, object]:
    if format in ("JPEG", "PNG", "TIFF", "WEBP") and rng.random() < 0.2:
        exif = Image.Exif()
        exif[0x0112] = rng.choice([1, 3, 6, 8, 0, 9])
        return {"exif": exif.tobytes()}
    if format in ("GIF", "WEBP", "TIFF", "PNG") and rng.random() < 0.15:
        return {"save_all": True, "append_images": [made.copy()]}
    if format == "TIFF":
        return {"compression": rng.choice([None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "group4"])}
    return {"progressive": True} if format == "JPEG" and rng.random() < 0.3 else {}


def _png(data: bytes, rng: random.Random) -> bytes:
    """One chunk changed, removed, repeated or moved, with the sum that it is to have."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    i = rng.randrange(len(chunks))
    name, content = chunks[i]
    choice = rng.random()
    if (name == b"IHDR" and choice < 0.7) or choice < 0.3:
        header = bytearray(chunks[0][1])
        offset = rng.choice([0, 4, 8, 9, 10, 11, 12])
        value = rng.choice(_NUMBERS)
        header[offset : offset + (4 if offset < 8 else 1)] = (
            struct.pack(">I", value) if offset < 8 else bytes([value & 0xFF])
        )
        chunks[0] = (b"IHDR", bytes(header))
    elif choice < 0.6:
        chunks[i] = (name, mutate_bytes.mutate(content, rng))
    elif choice < 0.7:
        del chunks[i]
    elif choice < 0.85:
        chunks.insert(
            rng.randrange(len(chunks) + 1),
            rng.choice(
                [
                    chunks[i],
                    (b"tEXt", b"a\x00b"),
                    (b"zTXt", b"a\x00\x00" + zlib.compress(bytes(100_000))),
                    (b"iCCP", b"x"),
                    (b"eXIf", b"II*\x00"),
                    (b"tRNS", b"\x00"),
                    (b"acTL", struct.pack(">II", 2**31 - 1, 0)),
                ]
            ),
        )
    else:
        rng.shuffle(chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks
    )


def _marker(data: bytes, rng: random.Random) -> bytes:
    """Height, width, precision or the number of components of a JPEG; or the length of a segment."""
    changed = bytearray(data)
    markers = [
        i
        for i in range(len(data) - 9)
        if data[i] == 0xFF and data[i + 1] in (0xC0, 0xC2, 0xC4, 0xDA, 0xDB, 0xE0, 0xE1, 0xEE)
    ]
    at = rng.choice(markers) if markers else 0
    offset = rng.choice([2, 4, 5, 7, 9])
    changed[at + offset : at + offset + 2] = struct.pack(">H", rng.choice(_NUMBERS) & 0xFFFF)
    return bytes(changed)


def _text(data: bytes, rng: random.Random) -> bytes:
    words = data.split(maxsplit=4)
    i = rng.randrange(min(4, len(words)))
    words[i] = rng.choice(
        [
            b"P1",
            b"P2",
            b"P3",
            b"P4",
            b"P5",
            b"P6",
            b"PF",
            b"Pf",
            b"P7",
            b"#x",
            b"-1",
            b"1e3",
            b"x",
            *(str(n).encode() for n in _NUMBERS),
        ]
    )
    return b"\n".join(words)


def _number(data: bytes, rng: random.Random) -> bytes:
    """Any number near the start, or near the end, where the directory of a TIFF is."""
    changed = bytearray(data)
    size = rng.choice([2, 4])
    start = (
        rng.randrange(min(64, max(1, len(data) - size)))
        if rng.random() < 0.6
        else rng.randrange(max(1, len(data) - size))
    )
    changed[start : start + size] = (rng.choice(_NUMBERS) & (256**size - 1)).to_bytes(size, "little")
    return bytes(changed)
