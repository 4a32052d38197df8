"""Requests that run together: which do, that each has its own results, and whose failure is whose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec import InputError, IrexecError
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.serving import Batcher, ServedModel, TooManyRequestsError
from tests.tools.batch import models

Ran = list[tuple[int, int]]


def served(folder: Path, shape: Sequence[Any] = (-1, 3)) -> ServedModel:
    return ServedModel("m", models.twice_plus_one(folder, list(shape)), PredictorOptions())


def submit(model: ServedModel, requests: Sequence[np.ndarray], **options: Any) -> tuple[list[Any], Ran]:
    """The results, or what is raised, of requests that come at the same time; and the requests and items of each run."""
    ran: Ran = []

    async def all_of() -> list[Any]:
        with ThreadPoolExecutor(1) as executor:
            settings = {"max_batch": 4, "max_delay": 0.2} | options
            batcher = Batcher(
                model, executor, asyncio.Semaphore(1), ran=lambda n, items, seconds: ran.append((n, items)), **settings
            )
            waiting: list[Coroutine[Any, Any, Any]] = [batcher.submit(model.bound({"x": each})) for each in requests]
            return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(all_of()), ran


def values(*rows: float) -> np.ndarray:
    return np.repeat(np.array(rows, np.float32)[:, None], 3, axis=1)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1, 1, 1, 1], [(4, 4)]),
        ([1, 1, 1, 1, 1, 1], [(4, 4), (2, 2)]),
        ([3, 2, 1], [(1, 3), (2, 3)]),
        ([9, 1], [(1, 9), (1, 1)]),
        ([1], [(1, 1)]),
    ],
)
def test_requests_run_together_and_each_has_its_own_results(tmp_path: Path, sizes: list[int], expected: Ran) -> None:
    requests = [values(*range(10 * i, 10 * i + size)) for i, size in enumerate(sizes)]
    results, ran = submit(served(tmp_path), requests)
    assert ran == expected
    for request, result in zip(requests, results, strict=True):
        np.testing.assert_array_equal(result["y"], 2 * request + 1)


def test_no_batches(tmp_path: Path) -> None:
    assert submit(served(tmp_path), [values(1), values(2)], max_batch=1)[1] == [(1, 1), (1, 1)]
    fixed = served(tmp_path, (1, 3))
    assert not fixed.takes_batches
    assert submit(fixed, [values(1), values(2)])[1] == [(1, 1), (1, 1)]


def test_other_shapes_run_by_themselves(tmp_path: Path) -> None:
    model = served(tmp_path, (-1, -1))
    results, ran = submit(
        model, [np.ones((1, 2), np.float32), np.ones((1, 3), np.float32), np.zeros((1, 2), np.float32)]
    )
    assert sorted(ran) == [(1, 1), (2, 2)]
    assert [result["y"].tolist() for result in results] == [[[3, 3]], [[3, 3, 3]], [[1, 1]]]


def test_a_request_that_fails_does_not_take_others_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = served(tmp_path)
    run: Callable[[Any], Any] = model.run

    def refusing(requests: Any) -> Any:
        if any((request["x"] == 13).any() for request in requests):
            raise IrexecError("unlucky")
        return run(requests)

    monkeypatch.setattr(model, "run", refusing)
    results, ran = submit(model, [values(1), values(13), values(3)])
    assert ran == [(1, 1), (1, 1)]
    assert [str(each) if isinstance(each, Exception) else each["y"][0, 0] for each in results] == [3, "unlucky", 7]


def test_too_many_requests(tmp_path: Path) -> None:
    results, _ = submit(served(tmp_path), [values(1)] * 5, max_waiting=3)
    assert [isinstance(each, TooManyRequestsError) for each in results] == [False, False, False, True, True]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    model = served(tmp_path)
    for inputs, says in (
        ({}, "no value is given for 'x'"),
        ({"x": values(1), "z": values(1)}, "there is no input 'z'"),
        ({"x": np.ones((1, 4), np.float32)}, r"has shape \[1,4\], the model expects"),
    ):
        with pytest.raises(InputError, match=says):
            model.bound(inputs)
    with pytest.raises(InputError, match="has variables, such as that of layer"):
        ServedModel("c", models.counter(tmp_path), PredictorOptions())
