"""Processes that die: their part is done again, and an item of which they die is an error."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, MutableSequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from irexec import InputError, ModelError
from irexec.tools.batch.items import Item
from irexec.tools.batch.parts import BATCH as RUNNING
from irexec.tools.batch.parts import POSITION, BatchJob, PartResult, PartTask
from irexec.tools.batch.pool import Processes
from tests.support.paths import ROOT

BATCH, ITEMS = 2, 6


class Dying:
    """Does parts of six items in batches of two; the process ends at what its job's model names, so many times in all."""

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


def test_a_process_that_dies_once_loses_nothing(tmp_path: Path) -> None:
    found = results("1.3*1", tmp_path)
    assert all(error is None for each in found.values() for error in each.errors)
    assert deaths(tmp_path) == 1


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.sampled(2)
def test_the_item_of_which_processes_die_is_an_error_and_no_other(tmp_path: Path, jobs: int) -> None:
    found = results("1.3", tmp_path, jobs)
    assert [(number, i) for number, each in found.items() for i, error in enumerate(each.errors) if error] == [(1, 3)]
    assert "ended" in str(found[1].errors[3])
    # In its batch, in its batch again, and by itself.
    assert deaths(tmp_path) == 3


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
