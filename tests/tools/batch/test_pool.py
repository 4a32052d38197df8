"""Processes that die, and predictors of items along axis 0."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, MutableSequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from irexec import InputError, ModelError
from irexec.tools.batch.items import Item
from irexec.tools.batch.parts import BATCH as RUNNING
from irexec.tools.batch.parts import POSITION, BatchJob, PartResult, PartTask
from irexec.tools.batch.pool import Processes
from irexec.tools.batch.predictor import Predictor, PredictorOptions
from tests.support.paths import ROOT
from tests.support.tiers import some
from tests.tools.batch import models

BATCH, ITEMS = 2, 6


class Dying:
    """Does parts of six items in batches of two; the process ends at the item that its job's model names, this number of times in all."""

    def __init__(self, job: BatchJob, progress: MutableSequence[int]) -> None:
        self._what, _, times = job.model.partition("*")
        self._progress, self._times, self._folder = progress, int(times or 99), Path(job.column or "")
        if self._what == "load":
            self._die()

    def __call__(self, task: PartTask) -> PartResult:
        errors: list[str | None] = [None] * ITEMS
        for number in range(ITEMS // BATCH):
            self._progress[RUNNING] = number
            for position in range(number * BATCH, (number + 1) * BATCH):
                alone = number in task.singly
                self._progress[POSITION] = position if alone else -1
                if position in task.skipped:
                    errors[position] = task.skipped[position]
                elif f"{task.number}.{position}" == self._what:
                    self._die()
            self._progress[RUNNING] = self._progress[POSITION] = -1
        return PartResult(task.number, tuple(None if error else i for i, error in enumerate(errors)), tuple(errors))

    def _die(self) -> None:
        deaths = len(list(self._folder.iterdir()))
        if deaths < self._times:
            (self._folder / str(deaths)).touch()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def results(model: str, folder: Path, jobs: int = 1) -> dict[int, PartResult]:
    tasks = [PartTask(number, folder / "x", (Item("x", "image"),) * ITEMS) for number in range(3)]
    make: Callable[[BatchJob, MutableSequence[int]], Dying] = Dying
    found = list(Processes(BatchJob(model=model, column=str(folder)), jobs, make).run(iter(tasks), lambda done: None))
    assert sorted(each.number for each in found) == [0, 1, 2]
    return {each.number: each for each in found}


def deaths(folder: Path) -> int:
    return len(list(folder.iterdir()))


@pytest.mark.slow
def test_a_process_that_dies_once_loses_nothing(tmp_path: Path) -> None:
    found = results("1.3*1", tmp_path)
    assert all(error is None for each in found.values() for error in each.errors)
    assert deaths(tmp_path) == 1


@pytest.mark.parametrize("jobs", some([1, 2], [1]))
@pytest.mark.slow
def test_the_item_of_which_processes_die_is_an_error_and_no_other(tmp_path: Path, jobs: int) -> None:
    found = results("1.3", tmp_path, jobs)
    assert [(number, i) for number, each in found.items() for i, error in enumerate(each.errors) if error] == [(1, 3)]
    assert "ended" in str(found[1].errors[3])
    # In its batch, in its batch again, and by itself.
    assert deaths(tmp_path) == 3


@pytest.mark.slow
def test_a_model_of_which_processes_die_ends_the_job(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="ended twice before it ran the model"):
        results("load", tmp_path)
    assert deaths(tmp_path) == 2


def test_a_daemonic_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(daemon=True))
    with pytest.raises(InputError, match="cannot be started from a daemonic process"):
        Processes(BatchJob(model="model.xml"), 1)


def test_a_script_on_stdin_is_refused_and_leaves_no_files(tmp_path: Path) -> None:
    digits = ROOT / "samples" / "digits"
    call = f"irexec.batch({str(digits / 'classifier.xml')!r}, {str(digits / 'digit_7.png')!r}, 'o.jsonl')"
    script = f'import irexec\n\nif __name__ == "__main__":\n    {call}\n'
    ended = subprocess.run(
        [sys.executable], input=script, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "InputError" in ended.stderr
    assert "<stdin> is not a file: write the script to a file" in ended.stderr
    assert list(tmp_path.iterdir()) == []


# Predictor: items along axis 0, whatever the model's own batch is.


PREDICTED_ITEMS = np.arange(21, dtype=np.float32).reshape(7, 3)


@pytest.mark.parametrize("batch", [-1, 1, 2, 4, 7, 9])
def test_any_number_of_items_whatever_the_batch_of_the_model(tmp_path: Path, batch: int) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [batch, 3]))
    result = predict({"x": PREDICTED_ITEMS})
    np.testing.assert_array_equal(result["y"], 2 * PREDICTED_ITEMS + 1)
    assert predict({"x": PREDICTED_ITEMS[:0]})["y"].shape[0] == 0


def test_a_copy_of_another_process_loads_the_model_again(tmp_path: Path) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [-1, 3])).load()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(predict))({"x": PREDICTED_ITEMS})["y"], 2 * PREDICTED_ITEMS + 1
    )


def test_results_that_cannot_be_cut_are_those_of_one_item(tmp_path: Path) -> None:
    predict = Predictor(models.positions_of_values(tmp_path))
    assert not predict.batching.is_divisible
    values = np.array([[0, 1, 0, 1], [1, 0, 0, 0]], np.float32)
    assert [array.tolist() for array in predict({"x": values})["y"]] == [[[0, 0], [1, 3]], [[0], [0]]]


def test_rebatch(tmp_path: Path) -> None:
    predict = Predictor(models.twice_plus_one(tmp_path, [4, 3]), PredictorOptions(rebatch=True))
    assert predict.batching.fixed is None
    np.testing.assert_array_equal(predict({"x": PREDICTED_ITEMS})["y"], 2 * PREDICTED_ITEMS + 1)
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
