"""What is reported of results."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from irexec.cli.main import run
from irexec.errors import InputError
from irexec.tools.run.results import class_axis, describe, predictions, read_labels
from tests.support.paths import DIGITS

CLASSIFIER = DIGITS / "classifier.xml"


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((10,), 0),
        ((1, 1000), 1),
        ((8, 1000), 1),
        ((1, 1000, 1, 1), 1),
        ((1, 1, 1, 1000), 3),
        ((1, 7, 64), 2),
        ((1, 21, 32, 32), 1),
        ((2, 1, 5), 2),
        ((1, 1), 1),
    ],
)
def test_the_axis_of_the_classes(shape: tuple[int, ...], axis: int) -> None:
    assert class_axis(shape) == axis


def test_classes_are_ranked_at_every_position() -> None:
    scores = np.array([[[1, 5, 3], [9, 2, 4]]], np.float32)
    found = [(p.position, p.rank, p.index, p.label, p.score) for p in predictions({"y": scores}, 2, ["a", "b", "c"])]
    assert found == [((0, 0), 1, 1, "b", 5), ((0, 0), 2, 2, "c", 3), ((0, 1), 1, 0, "a", 9), ((0, 1), 2, 2, "c", 4)]
    by_column = [(p.position, p.index) for p in predictions({"y": scores}, 1, axis=1)]
    assert by_column == [((0, 0), 1), ((0, 1), 0), ((0, 2), 1)]


def test_ties_keep_their_order_and_nan_comes_last() -> None:
    assert [p.index for p in predictions({"y": np.array([2, np.nan, 2, 3])}, 4)] == [3, 0, 2, 1]


def test_what_has_no_classes_is_left_out() -> None:
    results = {"scalar": np.float32(1) * np.ones(()), "empty": np.zeros((1, 0)), "text": np.array(["a"], object)}
    assert predictions(results, 1) == []


def test_too_few_labels_and_axes_that_do_not_exist() -> None:
    with pytest.raises(
        InputError, match=r"there are 10 labels for the 1000 classes of result 'y' of shape \[1, 1000\]"
    ):
        predictions({"y": np.zeros((1, 1000))}, 1, ["label"] * 10)
    with pytest.raises(InputError, match=r"--axis 2 is not an axis of result 'y'"):
        predictions({"y": np.zeros((1, 10))}, 1, axis=2)


def test_the_length_of_the_list_is_limited() -> None:
    """A result that is an image has classes at each pixel: a record takes a thousand times the memory of the value."""
    results = {"y": np.zeros((1, 1000)), "mask": np.zeros((1, 3, 600, 1000), np.float16)}
    assert len(predictions(results, 1)) == 1 + 600 * 1000
    message = (
        r"^1,800,000 classes would be listed for result 'mask' of shape \[1, 3, 600, 1000\], "
        r"and 1,000,000 in all is the limit: -o writes the values themselves$"
    )
    with pytest.raises(InputError, match=message):
        predictions(results, 5)


@pytest.mark.parametrize("count", [9, 0])
def test_too_few_labels_are_wrong_usage(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.txt").write_text("label\n" * count)
    out = tmp_path / "out.npz"
    assert (
        run(
            [
                "infer",
                str(CLASSIFIER),
                "-i",
                "random",
                "--topk",
                "1",
                "--labels",
                str(tmp_path / "labels.txt"),
                "-o",
                str(out),
            ]
        )
        == 2
    )
    assert f"there are {count} labels for the 10 classes" in capsys.readouterr().err
    assert not out.exists()


def test_a_signalling_nan_is_a_nan() -> None:
    """Its conversion to another float is an invalid operation, of which NumPy warns."""
    signalling = np.array([[0x7F800001, 0x3F800000]], np.uint32).view(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = describe("y", signalling)
        assert (line.nans, line.min, line.max) == (1, 1, 1)
        assert [p.index for p in predictions({"y": signalling}, 1)] == [1]


def test_labels_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes("\ufeffcat\r\ndog\n".encode())
    assert read_labels(str(tmp_path / "labels.txt")) == ["cat", "dog"]
