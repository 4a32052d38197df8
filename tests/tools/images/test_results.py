"""Results written as images."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from irexec.cli.main import run
from irexec.errors import InputError
from irexec.tools.images import ImageOptions, result_pixels, write_png
from tests.support.paths import DIGITS
from tests.tools.images.reading import pixels


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
        np.zeros((2, 1, 4, 4)),
        np.zeros((1, 2, 5, 5)),
        np.zeros((5, 6, 7)),
        np.zeros(3),
        np.zeros((0, 4)),
        np.full((2, 2), "a"),
    ],
)
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
