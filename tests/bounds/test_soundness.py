"""Bounds are sound: results that are known to be right lie inside; and they have power: planted faults lie outside."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval, Unbounded
from irexec.errors import OpError
from irexec.testing import Case, case
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.partial_facts import exact_facts
from irexec.testing.random_cases import random_cases
from tests.bounds.rows import row_bounds
from tests.support.cases import families
from tests.support.goldens import recorded


@pytest.mark.parametrize("pair", sorted(random_cases()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_results_in_f32_are_inside(pair: tuple[str, int]) -> None:
    for seed in range(2):
        row = random_cases()[pair](np.random.default_rng(seed))
        try:
            infer(row, exact_facts(row))
            results = kernel(row, read_only(row))
        except OpError:
            continue
        for result, bound in zip(results, row_bounds(row, ARITHMETICS["f32"]), strict=True):
            assert isinstance(bound, Unbounded) or not bound.outside(result).any()


@pytest.mark.parametrize("family", sorted(families()))
def test_recorded_answers_are_inside(family: str) -> None:
    """OpenVINO's answers to the rows, and those that rows give themselves."""
    for row in families()[family]:
        if not isinstance(row, Case):
            continue
        expected = row.gives if row.gives is not None else recorded(family, row.id, row.digest)
        for array, bound in zip(expected, row_bounds(row, ARITHMETICS["f32"]), strict=True):
            assert isinstance(bound, Unbounded) or not bound.outside(np.asarray(array)).any(), row.id


@pytest.mark.parametrize("name", ["f32", "tf32", "f16", "bf16"])
def test_sums_in_another_order_and_rounded_are_inside(name: str) -> None:
    """A product of f16 arithmetic emulated by NumPy: inputs rounded, sums in f32, the result rounded."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((7, 50)).astype(np.float32), rng.standard_normal((50, 9)).astype(np.float32)
    row = case("MatMul", 1, a, b, id="a", tolerance=1.0)
    of = ARITHMETICS[name]
    (bound,) = row_bounds(row, of)
    assert isinstance(bound, Interval)
    left, right = (of.nearest_factor(x).astype(np.float32) for x in (a, b))
    for order in (rng.permutation(50) for _ in range(5)):
        total = np.zeros((7, 9), np.float32)
        for i in order:
            total += left[:, i, None] * right[None, i]
        assert not bound.outside(of.nearest(total)).any()
    assert bound.outside(total + np.float32(of.factor_unit * 20000)).all()
