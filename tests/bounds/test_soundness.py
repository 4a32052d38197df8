"""Bounds are sound: results that are known to be right lie inside; and they have power: planted faults lie outside."""

from __future__ import annotations

import numpy as np
import pytest

from irexec import Builder
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Interval, Unbounded, arithmetic, evaluate, graph_bounds
from irexec.bounds.registry import rule_of
from irexec.errors import InputError, OpError
from irexec.testing import Case, case
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.random_cases import random_cases
from irexec.testing.rows import exact_facts
from tests.bounds.rows import row_bounds
from tests.support.cases import families
from tests.support.goldens import recorded
from tests.support.tiers import some


@pytest.mark.parametrize("pair", sorted(random_cases()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
@pytest.mark.sampled(2)
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


@pytest.mark.parametrize("family", some(sorted(families()), families().keys() - {"recurrent"}))
@pytest.mark.sampled(8)
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


def _bound(row: Case, name: str = "f32") -> Interval | Unbounded:
    return row_bounds(row, ARITHMETICS[name])[0]


def test_subnormal_numbers_may_be_read_as_zero() -> None:
    tiny = np.array([-1e-40, 1e-40], np.float32)
    sign = _bound(case("Sign", 1, tiny, id="a"))
    root = _bound(case("Sqrt", 1, tiny, id="b"))
    assert isinstance(sign, Interval)
    assert isinstance(root, Interval)
    for given in ([-1, 1], [0, 0]):
        assert not sign.outside(np.array(given, np.float32)).any()
    for first in (np.nan, 0.0):
        assert not root.outside(np.array([first, np.sqrt(tiny[1])])).any()
    np.testing.assert_array_equal(sign.outside(np.array([1, -1], np.float32)), True)


def test_nan_is_demanded_where_every_implementation_gives_it() -> None:
    bound = _bound(case("Sqrt", 1, np.array([-1, 4], np.float32), id="a"))
    assert isinstance(bound, Interval)
    np.testing.assert_array_equal(bound.outside(np.array([2, np.nan], np.float32)), True)
    np.testing.assert_array_equal(bound.outside(np.array([np.nan, 2], np.float32)), False)
    np.testing.assert_array_equal(bound.excess(np.array([np.nan, np.nan], np.float32)), [0, np.inf])


def test_masked_rows_of_a_softmax_are_open() -> None:
    bound = _bound(case("Softmax", 8, np.array([[-np.inf, -np.inf], [0, -np.inf]], np.float32), id="a", axis=1))
    assert isinstance(bound, Interval)
    for first in ([np.nan, np.nan], [0, 0], [0.5, 0.5]):
        assert not bound.outside(np.array([first, [1, 0]], np.float32)).any()
    np.testing.assert_array_equal(
        bound.outside(np.array([[0, 0], [np.nan, 0.1]], np.float32)), [[False, False], [True, True]]
    )


@pytest.mark.parametrize(
    ("type", "a", "b"),
    [
        ("Divide", np.array([4], np.int32), np.array([0], np.int32)),
        ("Add", np.array([100], np.int8), np.array([100], np.int8)),
        ("Multiply", np.array([2**40], np.int64), np.array([2**40], np.int64)),
        ("Add", np.array([2**63 - 1], np.int64), np.array([1], np.int64)),
    ],
)
def test_integers_that_runtimes_hold_differently_have_no_bound(type: str, a: np.ndarray, b: np.ndarray) -> None:
    assert isinstance(_bound(case(type, 1, a, b, id="a")), Unbounded)


@pytest.mark.parametrize(
    ("type", "inputs", "right", "attributes"),
    [
        ("Abs", [np.array([-(2**40)])], [2**40], {}),
        ("Add", [np.array([2**40]), np.array([3])], [2**40 + 3], {}),
        ("Multiply", [np.array([2**20]), np.array([2**20])], [2**40], {}),
        ("Clamp", [np.array([2**40, -5])], [2**40, 0], {"min": 0.0, "max": 1e18}),
        ("Maximum", [np.array([2**40], np.uint64), np.array([1], np.uint64)], [2**40], {}),
        ("ReduceSum", [np.array([2**40, 5]), np.array([0])], 2**40 + 5, {}),
        ("CumSum", [np.array([2**40, 5]), np.array(0)], [2**40, 2**40 + 5], {}),
        ("Divide", [np.array([2**40 + 1]), np.array([2])], [2**39], {}),
        ("Power", [np.array([2]), np.array([40])], [2**40], {}),
    ],
)
def test_integers_of_64_bits_have_one_right_value(
    type: str, inputs: list[np.ndarray], right: object, attributes: dict[str, object]
) -> None:
    """OpenVINO's CPU plugin computes them in 32 bits, and saturates or wraps: those values are outside."""
    bound = _bound(case(type, 3 if type == "CumSum" else 1, *inputs, id="a", **attributes))
    assert isinstance(bound, Interval), bound
    expected = np.array(right, inputs[0].dtype)
    assert not bound.outside(expected).any()
    saturated = np.minimum(expected, expected.dtype.type(2**31 - 1))
    assert bound.outside(saturated).any()


def test_functions_of_integers_that_are_cut_or_rounded_have_no_bound() -> None:
    assert isinstance(_bound(case("Exp", 1, np.array([4], np.int32), id="a")), Unbounded)


def test_integers_are_exact() -> None:
    bound = _bound(case("Add", 1, np.array([1], np.int32), np.array([2], np.int32), id="a"))
    assert isinstance(bound, Interval)
    np.testing.assert_array_equal([bound.outside(np.array([n], np.int32))[0] for n in (2, 3, 4)], [True, False, True])


def test_a_region_of_layers_is_as_wide_as_what_may_be_rounded_inside() -> None:
    """(x + 1) * 3 in f16: the sum may be rounded, or not, before it is multiplied."""
    g = Builder()
    x = g.parameter("f32", [1], "x")
    y = g.emit("Multiply", g.emit("Add", x, g.constant(np.float32([1]))), g.constant(np.float32([3])))
    g.result(y, "y")
    model = g.model()
    nodes = [node for node in model.nodes if node.type in ("Constant", "Add", "Multiply")]
    facts = infer_shapes(model).facts
    given = {model.parameters[0].outputs[0]: np.float32([1 / 3])}
    bound = graph_bounds(nodes, given, facts, ARITHMETICS["f16"])[nodes[-1].outputs[0]]
    assert isinstance(bound, Interval)
    third = np.float16(1 / 3)
    inside = [np.float32((1 / 3 + 1) * 3), np.float16((third + np.float16(1)) * np.float16(3)), (third + 1.0) * 3]
    for value in inside:
        assert not bound.outside(np.array([value])).any()
    assert bound.outside(np.array([4.02])).all()


def test_an_unknown_layer_has_no_bound_and_neither_has_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "rule_of", lambda type: None if type == "Relu" else rule_of(type))
    g = Builder()
    x = g.parameter("f32", [2], "x")
    g.result(g.emit("Add", x, g.emit("Relu", x)), "y")
    model = g.model()
    nodes = [node for node in model.nodes if node.type in ("Relu", "Add")]
    found = graph_bounds(nodes, {model.parameters[0].outputs[0]: np.float32([1, 2])}, infer_shapes(model).facts,
                         ARITHMETICS["f32"])  # fmt: skip
    assert isinstance(found[nodes[-1].outputs[0]], Unbounded)


def test_names_of_arithmetics() -> None:
    assert arithmetic("bf16").unit == 2.0**-8
    with pytest.raises(InputError, match="'f15' is not known, expected one of f64, f32"):
        arithmetic("f15")
