"""Sizes that plans leave unknown: those that no product needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec


def _scaled(weights: bool = True) -> irexec.Model:
    """A product of rows, scaled by the mean of a vector of any length."""
    b = irexec.Builder("scaled")
    x, y = b.parameter("f32", ("?", 64), "x"), b.parameter("f32", ("?",), "y")
    x = b.emit("MatMul", x, np.eye(64, dtype=np.float32) * 2) if weights else b.emit("Multiply", x, 2.0)
    mean = b.emit("ReduceMean", b.emit("Multiply", y, 0.5), np.array([0]), keep_dims=True)
    b.result(b.emit("Multiply", x, mean), "out")
    return b.model()


def _planned(compiled: irexec.CompiledModel, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes for which plans are made from now on."""
    made: list[Any] = []
    original = compiled.program._make
    monkeypatch.setattr(
        compiled.program, "_make", lambda shapes, targets: made.append(shapes) or original(shapes, targets)
    )
    return made


def _run(compiled: irexec.CompiledModel, rows: int, length: int) -> None:
    given = np.full((rows, 64), rows, np.float32), np.full(length, length, np.float32)
    np.testing.assert_allclose(compiled(given)["out"], np.full((rows, 64), rows * length), rtol=1e-6)


def test_a_length_that_grows_has_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for length in range(2, 40):
        _run(compiled, 50, length)
    assert [[str(size) for size in shape] for shapes in made for shape in shapes] == [["50", "64"], ["?"]]


def test_rows_of_a_product_have_plans_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for rows, length in ((5, 3), (6, 4), (7, 5), (5, 7)):
        _run(compiled, rows, length)
    assert [shapes[0] for shapes in made] == [(5, 64), (6, 64), (7, 64)]
    assert [str(shapes[1][0]) for shapes in made] == ["?", "?", "?"]


def test_sizes_that_are_equal_are_known_or_unknown_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ran before: rows and length may be the same size of the model, of which products need the rows."""
    for first in ((), ((6, 4), (5, 6), (7, 6))):
        compiled = irexec.compile_model(_scaled())
        for rows, length in first:
            _run(compiled, rows, length)
        made = _planned(compiled, monkeypatch)
        _run(compiled, 6, 6)
        assert made == [((6, 64), (6,))]


def _cached(axis: int) -> irexec.Model:
    """Attention of new rows to a cache of keys that is given and returned."""
    b = irexec.Builder("cached")
    x, past = b.parameter("f32", (1, 2, "?", 64), "x"), b.parameter("f32", ("?", 2, "?", 64), "past")
    mask = b.parameter("f32", (1, 1, 1, "?"), "mask")
    beams = b.emit("Gather", past, b.parameter("i64", ("?",), "beams"), np.array(0))
    new = b.emit("MatMul", x, np.eye(64, dtype=np.float32))
    keys = b.emit("Concat", beams, new, axis=axis)
    scores = b.emit("Add", b.emit("MatMul", new, keys, transpose_b=True), mask)
    b.result(b.emit("MatMul", scores, keys), "out")
    b.result(keys, "present")
    b.result(b.emit("MatMul", new, 2 * np.eye(64, dtype=np.float32)), "other")
    b.result(b.emit("MatMul", new, 3 * np.eye(64, dtype=np.float32)), "another")
    return b.model()


@pytest.mark.parametrize("axis", [2, -2])
def test_a_cache_that_grows_has_one_plan(monkeypatch: pytest.MonkeyPatch, axis: int) -> None:
    """Although products depend on its length, which the mask has too."""
    compiled = irexec.compile_model(_cached(axis=axis))
    made = _planned(compiled, monkeypatch)
    cache = np.zeros((1, 2, 0, 64), np.float32)
    for length in range(1, 12):
        x, mask = np.full((1, 2, 1, 64), length, np.float32), np.zeros((1, 1, 1, length), np.float32)
        results = compiled([x, cache, mask, np.array([0])])
        cache = results["present"]
        np.testing.assert_array_equal(cache[0, 0, :, 0], np.arange(1, length + 1))
        squares = float((np.arange(1, length + 1) ** 2).sum())
        np.testing.assert_allclose(results["out"], np.full((1, 2, 1, 64), 64 * length * squares), rtol=1e-5)
    # The first one has an empty cache and a mask of one: sizes of 1 stay.
    assert len(made) == 2


def test_inputs_that_are_joined_and_returned_are_known_where_all_products_need_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = irexec.Builder("joined")
    x = b.parameter("f32", ("?", 8), "x")
    b.result(b.emit("Concat", x, b.emit("MatMul", x, 2 * np.eye(8, dtype=np.float32)), axis=0), "out")
    compiled = irexec.compile_model(b.model())
    made = _planned(compiled, monkeypatch)
    for rows in (5, 6):
        given = np.full((rows, 8), rows, np.float32)
        np.testing.assert_array_equal(compiled(given)["out"], np.concatenate([given, 2 * given]))
    assert made == [((5, 8),), ((6, 8),)]


def test_without_products_every_size_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled(weights=False))
    made = _planned(compiled, monkeypatch)
    for length in (3, 4, 5):
        _run(compiled, 5, length)
    assert [shapes[1] for shapes in made] == [(3,), (4,), (5,)]


def test_sizes_that_change_together_are_tried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rows change from 5 to 6, and the sum needs them to be equal."""
    b = irexec.Builder("sum")
    x, y = (b.parameter("f32", ("?", 64), name) for name in "xy")
    b.result(b.emit("Add", b.emit("MatMul", x, np.eye(64, dtype=np.float32)), y), "out")
    compiled = irexec.compile_model(b.model())
    made = _planned(compiled, monkeypatch)
    for rows in (5, 6):
        ones = np.ones((rows, 64), np.float32)
        np.testing.assert_array_equal(compiled([ones, ones])["out"], 2 * ones)
    assert made == [((5, 64), (5, 64)), ((6, 64), (6, 64))]
