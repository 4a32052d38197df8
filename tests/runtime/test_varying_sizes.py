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
    for length in range(3, 40):
        _run(compiled, 5, length)
    assert [[str(size) for size in shape] for shapes in made for shape in shapes] == [
        ["5", "64"], ["3"], ["5", "64"], ["?"],
    ]  # fmt: skip


def test_rows_of_a_product_have_plans_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for rows, length in ((5, 3), (6, 4), (7, 5), (6, 6), (5, 7)):
        _run(compiled, rows, length)
    assert [shapes[0] for shapes in made] == [(5, 64), (6, 64), (7, 64), (5, 64)]
    assert [str(shapes[1][0]) for shapes in made] == ["3", "?", "?", "?"]


def test_a_plan_for_all_sizes_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a length was left unknown, there was a plan for one: that length computes the same bits again."""
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for length in (3, 4, 3, 4, 5, 3):
        _run(compiled, 5, length)
    assert len(made) == 2


def test_sizes_that_come_back_have_the_plan_that_they_had() -> None:
    """Between the runs a second length was left unknown: kernels of a plan for that may give other bits."""
    b = irexec.Builder("scaled twice")
    x = b.emit("MatMul", b.parameter("f32", ("?", 64), "x"), np.eye(64, dtype=np.float32))
    for name in "yz":
        mean = b.emit("ReduceMean", b.parameter("f32", ("?",), name), np.array([0]), keep_dims=True)
        x = b.emit("Multiply", x, mean)
    b.result(x, "out")
    program = irexec.compile_model(b.model()).program
    plans = [program.plan(((5, 64), (y,), (z,)), None) for y, z in ((3, 4), (5, 4), (5, 6), (5, 4), (5, 7))]
    assert plans[1] is plans[3] is not plans[2]
    assert plans[2] is plans[4]


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
