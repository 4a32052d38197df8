"""Predictor: items along axis 0, whatever the model's own batch is."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from irexec import InputError
from irexec.tools.batch.predictor import Predictor, PredictorOptions
from tests.tools.batch import models

ITEMS = np.arange(21, dtype=np.float32).reshape(7, 3)


@pytest.mark.parametrize("batch", [-1, 1, 2, 4, 7, 9])
def test_any_number_of_items_whatever_the_batch_of_the_model(tmp_path: Path, batch: int) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [batch, 3]))
    result = predict({"x": ITEMS})
    np.testing.assert_array_equal(result["y"], 2 * ITEMS + 1)
    assert predict({"x": ITEMS[:0]})["y"].shape[0] == 0


def test_a_copy_of_another_process_loads_the_model_again(tmp_path: Path) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [-1, 3])).load()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predict))({"x": ITEMS})["y"], 2 * ITEMS + 1)


def test_results_that_cannot_be_cut_are_those_of_one_item(tmp_path: Path) -> None:
    predict = Predictor(models.positions_of_values(tmp_path))
    assert not predict.batching.is_divisible
    values = np.array([[0, 1, 0, 1], [1, 0, 0, 0]], np.float32)
    assert [array.tolist() for array in predict({"x": values})["y"]] == [[[0, 0], [1, 3]], [[0], [0]]]


def test_rebatch(tmp_path: Path) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [4, 3]), PredictorOptions(rebatch=True))
    assert predict.batching.fixed is None
    np.testing.assert_array_equal(predict({"x": ITEMS})["y"], 2 * ITEMS + 1)
    with pytest.raises(InputError, match=r"does not take a batch of another size \(--rebatch\)"):
        Predictor(models.reshaped(tmp_path), PredictorOptions(rebatch=True, tensors=("y",))).load()


def test_an_input_without_an_axis_of_items(tmp_path: Path) -> None:
    predict = Predictor(models.rank_one(tmp_path))
    np.testing.assert_array_equal(predict({"x": np.ones((3, 10), np.float32)})["y"], [[10], [10], [10]])


def test_variables_begin_anew_in_every_run(tmp_path: Path) -> None:
    predict = Predictor(models.counter(tmp_path))
    np.testing.assert_array_equal(predict({"x": np.ones((3, 2), np.float32)})["y"], np.ones((3, 2)))


@pytest.mark.parametrize(
    "batch, says",
    [
        ({"x": np.zeros((2, 3), np.float32), "z": np.zeros((2, 3), np.float32)}, "there is no input 'z'"),
        ({}, "expected the same number"),
        ({"x": np.float32(0)}, "expected the same number"),
        ({"x": np.zeros((2, 1, 1, 1, 3), np.float32)}, r"the item has shape \[1,1,1,3\] for input x"),
        ({"x": np.zeros((2, 4), np.float32)}, r"has shape \[2,4\], the model expects"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, batch: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Predictor(models.twice_plus_one(tmp_path, [-1, 3]))(batch)
