"""Pixels as values: bits, channels, mean, scale, and types of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from irexec.dtypes.elements import F16, U8, element
from irexec.errors import InputError
from tests.tools.images.reading import port, read, saved


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


def test_one_deep_channel_is_no_rgba(tmp_path: Path) -> None:
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
    ("i8", 127),
    ("u8", 255),
    ("i16", 32767),
    ("i32", (1 << 31) - 1),
    ("u32", (1 << 32) - 1),
    ("i64", (1 << 63) - 1),
    ("u64", (1 << 64) - 1),
]


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
