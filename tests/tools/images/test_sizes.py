"""Images of another size than the input's: stretched, fitted, cropped or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, ModelError
from irexec.tools.images import ImageOptions, read_image
from tests.tools.images.reading import WIDE, port, read, saved


@pytest.mark.parametrize(
    ("resize", "expected"),
    [
        # The wide image between rows of black.
        ("fit", [[0, 0, 0, 0], [0, 0, 255, 255], [0, 0, 255, 255], [0, 0, 0, 0]]),
        ("stretch", [[0, 0, 255, 255]] * 4),
        (None, [[0, 0, 255, 255]] * 4),
    ],
)
def test_an_image_of_other_proportions(resize: Any, expected: list[list[int]], tmp_path: Path) -> None:
    array, notes = read(saved(tmp_path, WIDE), port(1, 1, 4, 4), resize=resize)
    assert array[0, 0].tolist() == expected
    assert len(notes) == (resize is None)
    if notes:
        assert "is stretched from 4x2 to 4x4; --resize fit or crop keeps the proportions" in notes[0]


def test_crop_takes_the_middle(tmp_path: Path) -> None:
    array, notes = read(saved(tmp_path, [[9, 1, 2, 9], [9, 3, 4, 9]]), port(1, 1, 2, 2), resize="crop")
    assert array[0, 0].tolist() == [[1, 2], [3, 4]]
    assert notes == []


def test_no_resizing_is_refused_or_not_needed(tmp_path: Path) -> None:
    path = saved(tmp_path, WIDE)
    assert read(path, port(1, 1, 2, 4), resize="none")[0][0, 0].tolist() == WIDE
    with pytest.raises(InputError, match="is 4x2, the model expects 4x4: --resize"):
        read(path, port(1, 1, 4, 4), resize="none")


def test_the_same_proportions_need_no_note(tmp_path: Path) -> None:
    assert read(saved(tmp_path, np.zeros((4, 8))), port(1, 1, 2, 4))[1] == []


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [(1, [[1, 2], [3, 4]]), (3, [[4, 3], [2, 1]]), (6, [[3, 1], [4, 2]]), (8, [[2, 4], [1, 3]])],
)
def test_the_orientation_of_exif_is_applied(orientation: int, expected: list[list[int]], tmp_path: Path) -> None:
    """6 is a camera held upright: the rows of the file are the columns of the image from right to left."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path, [[1, 2], [3, 4]], exif=exif)
    assert read(path, port(1, 1, 2, 2))[0][0, 0].tolist() == expected


@pytest.mark.parametrize(("size", "axis"), [((1000, 1), 2), ((1, 1000), 3)])
def test_fit_keeps_at_least_a_row_of_a_narrow_image(size: tuple[int, int], axis: int, tmp_path: Path) -> None:
    Image.new("L", size, 200).save(tmp_path / "x.png")
    array, _ = read(tmp_path / "x.png", port(1, 1, 8, 8), resize="fit")
    assert sorted(array.max(axis=5 - axis).ravel().tolist()) == [0] * 7 + [200]


@pytest.mark.parametrize("shape", [(1, 3, 0, 8), (1, 3, 8, 0), (1, 0, 8, 8), (0, 3, 8, 8)])
def test_an_input_without_pixels_takes_no_image(shape: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which has no pixels"):
        read(saved(tmp_path, WIDE), port(*shape), layout="NCHW")


def test_the_size_is_compared_with_the_memory_before_decoding(tmp_path: Path) -> None:
    """The pixels of the file, of which nothing is left but the header, would be 12 bytes each, those of the input 43."""
    path = saved(tmp_path, np.zeros((100, 200)))
    path.write_bytes(path.read_bytes()[:60])
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemAvailable: 237 kB\n")
    memory = MemoryLimit(root=tmp_path)
    for size, needed in ((8, 100 * 200 * 12 + 8 * 8 * 43), (65536, 100 * 200 * 12 + 65536 * 65536 * 43)):
        message = f"x.png: an image of 200x100, resized to {size}x{size}, takes {needed} bytes"
        with pytest.raises(ModelError, match=message):
            read_image(str(path), port(1, 3, size, size), ImageOptions(), print, memory)
    with pytest.raises(ModelError, match="image file is truncated"):
        read(path, port(1, 3, 8, 8))
