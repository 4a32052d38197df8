"""A model on columns: what their values may be, and which columns come of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import irexec
import irexec.ray
from irexec import InputError, ModelError
from irexec.tools.batch.columns import ColumnPredictor
from irexec.tools.images import ImageOptions
from tests.support.paths import DIGITS
from tests.tools.batch import models

SCALED = ImageOptions(scale=(255.0,))


def _objects(*values: object) -> np.ndarray:
    found = np.empty(len(values), object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def test_columns_of_inputs_become_those_of_results(tmp_path: Path) -> None:
    model = models.twice_plus_one(tmp_path, [-1, 3])
    batch = {"x": np.ones((2, 3), np.float32), "name": np.array(["a", "b"])}
    found = ColumnPredictor(model)(batch)
    assert list(found) == ["name", "y"]
    np.testing.assert_array_equal(found["y"], np.full((2, 3), 3))
    assert list(ColumnPredictor(model, keep=True)(batch)) == ["x", "name", "y"]
    assert list(pickle.loads(pickle.dumps(ColumnPredictor(model, keep=True)))(batch)) == ["x", "name", "y"]


@pytest.mark.parametrize(
    "column",
    [
        np.array([[0, 1, 2], [3, 4, 5]], np.float64),
        _objects([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]),
        _objects(np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 5.0])),
    ],
    ids=["an array", "lists", "arrays"],
)
@pytest.mark.parametrize("name", ["x", "features"])
def test_lists_of_numbers_are_arrays_of_the_type_of_the_input(column: np.ndarray, name: str, tmp_path: Path) -> None:
    predict = ColumnPredictor(models.twice_plus_one(tmp_path, [-1, 3]), column=None if name == "x" else name)
    found = predict({name: column})["y"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 3, 5], [7, 9, 11]])


def test_lists_of_lists_as_pyarrow_gives_them(tmp_path: Path) -> None:
    row = _objects(_objects(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    found = ColumnPredictor(models.twice_plus_one(tmp_path, [-1, 1, 2, 2]))({"x": _objects(row, row)})["y"]
    np.testing.assert_array_equal(found, [[[[3, 5], [7, 9]]]] * 2)


def test_rows_of_different_shapes(tmp_path: Path) -> None:
    predict = ColumnPredictor(models.twice_plus_one(tmp_path, [-1, -1]))
    found = predict({"x": _objects([1.0], [1.0, 2.0], [5.0])})["y"]
    assert found.dtype == object
    assert [row.tolist() for row in found] == [[3], [3, 5], [11]]


@pytest.mark.parametrize("kind", ["files", "records", "pixels", "pixels of one channel", "color"])
def test_images_are_those_of_infer(kind: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    files = [DIGITS / f"digit_{i}.png" for i in (3, 7)]
    pixels = np.stack([np.asarray(pillow.open(file)) for file in files])
    values = {
        "files": _objects(*(file.read_bytes() for file in files)),
        "records": _objects(*({"bytes": file.read_bytes(), "path": None} for file in files)),
        "pixels": pixels,
        "pixels of one channel": pixels[..., None],
        "color": _objects(*np.repeat(pixels[..., None], 3, axis=3)),
    }
    found = ColumnPredictor(DIGITS / "classifier.xml", column="image", image=SCALED)({"image": values[kind]})
    compiled = irexec.compile_model(str(DIGITS / "classifier.xml"))
    expected = [compiled(each[None, None].astype(np.float32) / 255)["probabilities"][0] for each in pixels]
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({"y": np.ones((1, 3))}, InputError, "no column 'x', but y; the model has x: f32"),
        ({"x": _objects(None)}, InputError, "row 0: has no value for input x"),
        ({"x": _objects([1.0, 2.0, 3.0], [[1.0], [2.0, 3.0]])}, InputError, "row 1: is not an array"),
        ({"x": _objects(b"no image")}, InputError, "x"),
    ],
)
def test_what_does_not_fit_is_said(
    batch: dict[str, np.ndarray], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        ColumnPredictor(models.twice_plus_one(tmp_path, [-1, 3]))(batch)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (b"no image", ModelError, "row 0: not a readable image"),
        (np.zeros((8, 8), np.float32), InputError, r"row 0 is float32\[8, 8\], an image is uint8"),
        (np.zeros((8, 8, 2), np.uint8), InputError, r"row 0 is uint8\[8, 8, 2\]"),
    ],
)
def test_what_is_not_an_image_is_said(value: object, error: type[Exception], message: str) -> None:
    pytest.importorskip("PIL.Image")
    with pytest.raises(error, match=message):
        irexec.ray.Predictor(DIGITS / "classifier.xml", column="image", image=SCALED)({"image": _objects(value)})


def test_a_column_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the batch has no column 'z', but x"):
        ColumnPredictor(models.twice_plus_one(tmp_path, [-1, 3]), column="z")({"x": np.ones((1, 3), np.float32)})
