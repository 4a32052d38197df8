"""The cache of plans: small, least recently used out first, and never in the way of another thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.runtime.program import PLANS, PlanCache


def _compiled() -> irexec.CompiledModel:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", ("?", 3), "x")), "y")
    return irexec.compile_model(builder.model())


def _rows(count: int) -> np.ndarray:
    return np.full((count, 3), count, np.float32)


def test_every_size_has_its_plan_and_a_dropped_one_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = _compiled()
    made: list[Any] = []
    original = compiled.program._make
    monkeypatch.setattr(
        compiled.program, "_make", lambda shapes, targets: made.append(shapes[0][0]) or original(shapes, targets)
    )
    for count in (*range(1, PLANS + 2), PLANS, 1):
        np.testing.assert_array_equal(compiled(_rows(count))["y"], _rows(count))
    assert made == [*range(1, PLANS + 2), 1]


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


@dataclass(eq=False)
class _Made:
    name: str
    steps: tuple[int, ...] = (0,)


def test_the_least_recently_used_plan_is_dropped() -> None:
    cache = PlanCache(size=2)
    plans = {key: cache.get(key, lambda key=key: _Made(key)) for key in ("a", "b")}
    again = _Made("made again")
    assert cache.get("a", lambda: again) is plans["a"]
    cache.get("c", lambda: _Made("c"))
    assert len(cache) == 2
    assert cache.get("a", lambda: again) is plans["a"]
    assert cache.get("b", lambda: again) is again


def test_as_many_plans_are_kept_as_their_steps_allow() -> None:
    cache = PlanCache(size=8, steps=10)
    for key, steps in (("a", 4), ("b", 4), ("c", 3)):
        cache.get(key, lambda steps=steps: _Made("", (0,) * steps))
    assert len(cache) == 2
    large = _Made("", (0,) * 100)
    assert cache.get("large", lambda: large) is cache.get("large", lambda: _Made("again")) is large
    assert len(cache) == 1


def test_a_thread_that_plans_stops_no_other() -> None:
    cache = PlanCache()
    ready, first = _Made("ready"), _Made("first")
    cache.get("ready", lambda: ready)
    started, finish = threading.Event(), threading.Event()

    def slow() -> _Made:
        started.set()
        assert finish.wait(10)
        return _Made("slow")

    thread = threading.Thread(target=lambda: cache.get("new", slow))
    thread.start()
    assert started.wait(10)
    assert cache.get("ready", lambda: _Made("again")) is ready
    # Another thread may plan the same; the first that is done is kept.
    assert cache.get("new", lambda: first) is first
    finish.set()
    thread.join()
    assert cache.get("new", lambda: _Made("again")) is first


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
