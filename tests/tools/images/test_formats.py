"""Formats: which are read, animations, damaged files, and what libraries print."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from irexec.cli.main import run
from irexec.errors import ModelError, UnsupportedError
from tests.support.paths import DIGITS
from tests.tools.images.reading import WIDE, port, read, saved


@pytest.mark.parametrize("content", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", b"%PDF-1.4\n", b"no image"])
def test_only_known_formats_reach_pillow(content: bytes, tmp_path: Path) -> None:
    """PostScript would be given to Ghostscript."""
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(ModelError, match="not a readable image: it is none of PNG, JPEG, BMP"):
        read(tmp_path / "x.png", port(1, 3, 8, 8))


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.bmp", "x.gif", "x.webp", "x.tif", "x.ppm"])
def test_formats_that_are_read(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, np.full((8, 8, 3), 100), name)
    np.testing.assert_allclose(read(path, port(1, 3, 8, 8))[0], 100, atol=2)


def test_an_animation_gives_its_first_image(tmp_path: Path) -> None:
    first, second = (Image.new("L", (2, 2), value) for value in (10, 200))
    first.save(tmp_path / "x.gif", save_all=True, append_images=[second])
    array, notes = read(tmp_path / "x.gif", port(1, 1, 2, 2))
    assert array.ravel().tolist() == [10] * 4
    assert notes == [f"{tmp_path / 'x.gif'} has several images, of which the first is taken"]


def test_an_animation_that_is_cut_anywhere_is_read_or_one_sentence(tmp_path: Path) -> None:
    """Pillow looks for the second image when it is asked whether there is one."""
    first, second = (Image.new("L", (2, 2), value) for value in (10, 200))
    first.save(tmp_path / "x.gif", save_all=True, append_images=[second])
    content = (tmp_path / "x.gif").read_bytes()
    damaged = 0
    for size in range(len(content)):
        (tmp_path / "x.gif").write_bytes(content[:size])
        try:
            assert read(tmp_path / "x.gif", port(1, 1, 2, 2))[0].shape == (1, 1, 2, 2)
        except ModelError:
            damaged += 1
    assert damaged


def test_warnings_of_pillow_do_not_reach_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of images with more pixels than it likes Pillow warns; with more than twice as many it refuses them."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(saved(tmp_path, WIDE), port(1, 1, 2, 4))[1] == []
        with pytest.raises(ModelError, match="has more than 10 pixels, which are not read"):
            read(saved(tmp_path, [[0] * 11]), port(1, 1, 2, 4))


def test_other_warnings_of_pillow_are_notes(tmp_path: Path) -> None:
    """The EXIF of this image is cut within its first entry."""
    path = saved(tmp_path, np.zeros((2, 2)), "x.jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert any("orrupt EXIF" in note for note in read(path, port(1, 1, 2, 2))[1])


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        # SamplesPerPixel, which Pillow logs.
        (277, 9),
        # StripOffsets, where libtiff finds nothing that can be decompressed.
        (273, 3),
    ],
)
def test_no_library_prints_what_it_objects_to(
    tag: int, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for logger in (logging.getLogger(), logging.getLogger("PIL")):
        monkeypatch.setattr(logger, "handlers", [])
    path = saved(tmp_path, np.zeros((9, 9, 3)), "x.tif", compression="tiff_adobe_deflate")
    raw = bytearray(path.read_bytes())
    first = int.from_bytes(raw[4:8], "little") + 2
    entry = next(at for at in range(first, len(raw), 12) if int.from_bytes(raw[at : at + 2], "little") == tag)
    raw[entry + 8 : entry + 12] = value.to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(ModelError, match="not a readable image"):
        read(path, port(1, 3, 9, 9))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.bmp", "x.gif", "x.webp", "x.tif", "x.ppm"])
def test_truncated_images_are_one_sentence(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, np.arange(3 * 32 * 32).reshape(32, 32, 3) % 251, name)
    content = path.read_bytes()
    for size in (0, 1, 8, 20, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError, match="not a readable image"):
            read(path, port(1, 3, 32, 32))


def test_without_pillow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError, match="pip install pillow"):
        read(tmp_path / "x.png", port(1, 3, 8, 8))
    assert run(["infer", str(DIGITS / "denoiser.xml"), "-i", "random", "-o", str(tmp_path / "x.png")]) == 4
    assert capsys.readouterr().err == "error: images need Pillow, which is not installed: pip install pillow\n"
