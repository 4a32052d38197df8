"""Images as inputs and as results: formats, sizes, and pixels as values."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from irexec.cli.main import run
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F16, U8, element
from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.tools.images import ImageOptions, read_image, result_pixels, write_png
from tests.support.paths import DIGITS
from tests.tools.images.reading import WIDE, pixels, port, read, saved


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.float32, [[0.1, 0.25], [0.5, 1.0]]),
        (np.uint16, [[0, 300], [1000, 65535]]),
        (np.int32, [[-5, 0], [7, 1 << 20]]),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_values_of_more_than_8_bits_stay(dtype: Any, values: list[list[float]], channels: int, tmp_path: Path) -> None:
    array, notes = read(saved(tmp_path, values, "x.tif", dtype), port(1, channels, 2, 2))
    for channel in array[0]:
        np.testing.assert_array_equal(channel, np.asarray(values, np.float32))
    assert "taken as they are, not as 0..255" in notes[0]


def test_one_deep_channel_is_not_rgba(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one channel of more than 8 bits, the model expects 4"):
        read(saved(tmp_path, [[0.5]], "x.tif", np.float32), port(1, 4, 1, 1))


def test_mean_scale_and_channel_order(tmp_path: Path) -> None:
    path = saved(tmp_path, [[[10, 20, 30]]])
    assert read(path, port(1, 3, 1, 1), mean=(10.0,), scale=(10.0,))[0].ravel().tolist() == [0, 1, 2]
    assert read(path, port(1, 1, 1, 3), layout="NHWC", mean=(1.0, 2.0, 3.0), bgr=True)[0].ravel().tolist() == [
        29,
        18,
        7,
    ]
    with pytest.raises(InputError, match="--mean has 2 values, the image has 3 channels"):
        read(path, port(1, 3, 1, 1), mean=(1.0, 2.0))


def test_integer_inputs_are_rounded_and_cut(tmp_path: Path) -> None:
    path = saved(tmp_path, [[0, 101, 255]])
    assert read(path, port(1, 3, element=U8), mean=(50.0,), scale=(0.4,))[0].tolist() == [[0, 128, 255]]


@pytest.mark.parametrize(
    ("mode", "pixel", "expected"),
    [
        ("1", 1, [255, 255, 255]),
        ("L", 7, [7, 7, 7]),
        ("LA", (7, 9), [7, 7, 7]),
        ("RGBA", (1, 2, 3, 9), [1, 2, 3]),
        # Full cyan without black.
        ("CMYK", (255, 0, 0, 0), [0, 255, 255]),
    ],
)
def test_other_modes_become_the_channels_of_the_model(
    mode: str, pixel: Any, expected: list[int], tmp_path: Path
) -> None:
    Image.new(mode, (2, 2), pixel).save(tmp_path / "x.tif")
    assert read(tmp_path / "x.tif", port(1, 3, 2, 2))[0][0, :, 1, 1].tolist() == expected


def test_a_palette_is_looked_up(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([1, 0])
    image.save(tmp_path / "x.gif")
    assert read(tmp_path / "x.gif", port(1, 3, 1, 2))[0][0, :, 0].tolist() == [[40, 10], [50, 20], [60, 30]]


INTEGERS = [
    ("i8", 127), ("u8", 255), ("i16", 32767), ("i32", (1 << 31) - 1), ("u32", (1 << 32) - 1), ("i64", (1 << 63) - 1),
    ("u64", (1 << 64) - 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "maximum"), INTEGERS)
def test_integer_inputs_are_cut_before_they_are_converted(name: str, maximum: int, tmp_path: Path) -> None:
    minimum = 0 if name.startswith("u") else -maximum - 1
    path = saved(tmp_path, [[0, 100, 101, 255]])
    for scale in (1e-40, 1e-18):
        values = read(path, port(1, 4, element=element(name)), layout="HW", mean=(100.0,), scale=(scale,))[0]
        assert values.ravel().tolist() == [
            minimum,
            0,
            maximum if scale == 1e-40 else min(maximum, int(np.float32(1 / np.float32(scale)))),
            maximum,
        ]


def test_float_inputs_must_hold_what_mean_and_scale_give(tmp_path: Path) -> None:
    path = saved(tmp_path, [[0, 255]])
    with pytest.raises(InputError, match=r"x.png has values that f32 cannot hold after --mean and --scale"):
        read(path, port(1, 2), layout="HW", scale=(1e-40,))
    with pytest.raises(InputError, match="--scale 1e-50 has a value that is not finite, or is 0, in 32 bits"):
        read(path, port(1, 2), layout="HW", scale=(1e-50,))
    with pytest.raises(InputError, match=r"--mean 1e\+60 has a value that is not finite in 32 bits"):
        read(path, port(1, 2), layout="HW", mean=(1e60,))
    deep = saved(tmp_path, [[0, 65535]], "x.tif", np.uint16)
    with pytest.raises(InputError, match="has values that f16 cannot hold"):
        read(deep, port(1, 2, element=F16), layout="HW")
    assert read(deep, port(1, 2, element=F16), layout="HW", scale=(65535.0,))[0].tolist() == [[0, 1]]


def test_nan_of_an_image_stays_where_the_input_can_hold_it(tmp_path: Path) -> None:
    path = saved(tmp_path, [[0.5, np.nan]], "x.tif", np.float32)
    np.testing.assert_array_equal(read(path, port(1, 2), layout="HW")[0], [[0.5, np.nan]])
    with pytest.raises(InputError, match=r"has NaN, which input x: u8.* cannot hold"):
        read(path, port(1, 2, element=U8), layout="HW")


# Formats: which are read, animations, damaged files, and what libraries print.


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


# Results written as images.


@pytest.mark.parametrize(
    ("result", "options", "expected"),
    [
        ([[[[0.0, 1.0], [0.5, 0.25]]]], {"scale": (255.0,)}, [[0, 255], [128, 64]]),
        ([[0.0, 1.0]], {"scale": (100.0,), "mean": (50.0,)}, [[50, 150]]),
        ([[[[1.0]], [[2.0]], [[3.0]]]], {"mean": (10.0, 20.0, 30.0)}, [[[11, 22, 33]]]),
        ([[[[1.0]], [[2.0]], [[3.0]]]], {"bgr": True}, [[[3, 2, 1]]]),
        ([[[1.0, 2.0, 3.0]]], {"layout": "HWC"}, [[[1, 2, 3]]]),
        # 3 rows of 4 channels, named by the layout.
        ([[[[1.0, 2.0, 3.0, 4.0]]]], {"layout": "nhwc"}, [[[1, 2, 3, 4]]]),
    ],
)
def test_the_inverse_of_mean_and_scale(result: Any, options: dict[str, Any], expected: Any) -> None:
    assert pixels(result, **options) == (expected, [])


def test_what_no_pixel_can_hold_is_cut_and_said() -> None:
    values, notes = pixels([[-3.0, 300.0, 255.4, -0.4]])
    assert values == [[0, 255, 255, 0]]
    assert "2 of 4 pixel values of result 'y' are outside 0..255 and are cut" in notes[0]


@pytest.mark.parametrize(
    "result",
    [
        np.zeros((2, 1, 4, 4)), np.zeros((1, 2, 5, 5)), np.zeros((5, 6, 7)), np.zeros(3), np.zeros((0, 4)),
        np.full((2, 2), "a"),
    ],
)  # fmt: skip
def test_what_is_not_one_image(result: np.ndarray) -> None:
    with pytest.raises(InputError, match="which is not one image of 1, 3 or 4 channels"):
        result_pixels("y", result, ImageOptions(), list[str]().append)


def test_not_finite() -> None:
    with pytest.raises(InputError, match="has NaN or infinities"):
        pixels([[np.nan]])


def test_a_png_is_what_pillow_reads_back() -> None:
    buffer = io.BytesIO()
    write_png(buffer, np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    assert np.asarray(Image.open(buffer)).tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_the_denoiser_writes_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["infer", str(DIGITS / "denoiser.xml"), "-i", str(DIGITS / "noisy_3.png"), "--scale", "255"]
    for name in ("y.png", "y.npz"):
        assert run([*options, "-o", str(tmp_path / name)]) == 0
    expected = np.clip(np.rint(np.load(tmp_path / "y.npz")["cleaned"][0, 0] * 255), 0, 255)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "y.png")), expected)
    assert run([*options, "--all", "-o", str(tmp_path / "z.png")]) == 2
    assert "takes one result, there are" in capsys.readouterr().err
    assert not (tmp_path / "z.png").exists()


def test_a_result_that_overflows_has_infinities() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="has NaN or infinities"):
            pixels([[1e308]], np.float64, scale=(255.0,))


# Images of another size than the input's: stretched, fitted, cropped or refused.


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
