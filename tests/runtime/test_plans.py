"""The cache of plans: small, least recently used out first, and never in the way of another thread."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.runtime.plans import PlanCache


def _compiled() -> irexec.CompiledModel:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", ("?", 3), "x")), "y")
    return irexec.compile_model(builder.model())


def _rows(count: int) -> np.ndarray:
    return np.full((count, 3), count, np.float32)


def test_a_size_that_comes_back_has_a_plan_of_its_own_whatever_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = _compiled()
    made: list[Any] = []
    original = compiled.program._make
    monkeypatch.setattr(
        compiled.program, "_make", lambda shapes, targets: made.append(shapes) or original(shapes, targets)
    )
    for count in range(1, 100):
        np.testing.assert_array_equal(compiled(_rows(count))["y"], _rows(count))
    # The first sizes have plans; of a stream of sizes that do not come back none has, but the one for any size.
    assert len(made) == 9
    assert made[-1] == ()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(_rows(500))["y"], _rows(500))
    assert made[-1] == ((500, 3),)
    assert len(made) == 10


def test_an_arena_of_a_smaller_plan_is_not_used() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", ("?", 64), "x")
    for weights in (np.eye(64), 2 * np.eye(64), 3 * np.eye(64)):
        x = builder.emit("Softmax", builder.emit("MatMul", x, weights.astype(np.float32)), axis=1)
    builder.result(x, "y")
    compiled = irexec.compile_model(builder.model(), threads=1)
    for rows in (100, 130, 170, 220):
        # Equal elements stay equal: a softmax of them is one over their number.
        np.testing.assert_allclose(
            compiled(np.full((rows, 64), rows, np.float32))["y"], np.full((rows, 64), 1 / 64), rtol=1e-5
        )


def test_the_least_recently_used_plan_is_dropped() -> None:
    cache = PlanCache(size=2)
    plans = {key: cache.get(key, lambda key=key: f"plan {key}") for key in ("a", "b")}
    assert cache.get("a", lambda: "made again") == plans["a"]
    cache.get("c", lambda: "plan c")
    assert len(cache) == 2
    assert cache.get("a", lambda: "made again") == plans["a"]
    assert cache.get("b", lambda: "made again") == "made again"


def test_only_what_was_asked_for_before_is_worth_a_plan_of_a_full_cache() -> None:
    cache = PlanCache(size=1, remembered=2)
    assert cache.is_worth_a_plan("a")
    cache.get("a", lambda: "plan a")
    assert [cache.is_worth_a_plan(key) for key in ("a", "b", "b", "c", "d", "e", "c")] == [
        True,
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_thread_that_plans_stops_no_other() -> None:
    cache = PlanCache()
    cache.get("ready", lambda: "plan")
    started, finish = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert finish.wait(10)
        return "slow"

    thread = threading.Thread(target=lambda: cache.get("new", slow))
    thread.start()
    assert started.wait(10)
    assert cache.get("ready", lambda: "made again") == "plan"
    # Another thread may plan the same; the first that is done is kept.
    assert cache.get("new", lambda: "quick") == "quick"
    finish.set()
    thread.join()
    assert cache.get("new", lambda: "made again") == "quick"


def test_threads_with_sizes_of_their_own_agree() -> None:
    compiled, wrong = _compiled(), []

    def work(start: int) -> None:
        for count in range(start, start + 20):
            if not np.array_equal(compiled(_rows(count))["y"], _rows(count)):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(start,)) for start in (1, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
