"""Verdicts of compare, and the passes over pairs and rows that they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.ir.dims import ANY
from irexec.ir.graph import Value
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.compare import CompareOptions, blame, compare, pairing
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.pairing import PASSES, Pass, corrected
from irexec.tools.compare.pairs import Pairs, TensorPair, first_pairs
from irexec.tools.compare.rows import Rows, compared
from irexec.tools.compare.run import PASSES as ROW_PASSES
from irexec.tools.compare.run import compared_models
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.engines.runtimes.kinds import OwnRuntime
from irexec.tools.observing.alone import Alone
from irexec.tools.observing.observe import Observed
from irexec.tools.observing.sides import ModelSide
from irexec.tools.run.input_sources import GivenInputs
from tests.tools.compare.models import W2, chain, changed
from tests.tools.compare.test_evidence import channels, folded, scaled


def _relu_of_negatives(weights: np.ndarray) -> Model:
    builder = Builder("m")
    x = builder.parameter("f32", (2, 4), "x")
    y = builder.emit("Relu", x, name="zeros")
    y = builder.emit("Multiply", y, builder.constant(weights, name="w"), name="scaled")
    builder.result(builder.emit("Add", y, x, name="sum"))
    return builder.model()


def test_a_tensor_of_one_value_is_blind() -> None:
    x = -np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    found = compare(
        _relu_of_negatives(np.float32([1, 2, 3, 4])), _relu_of_negatives(np.float32([1, 2, 3, 5])), {"x": x}
    )
    assert found.agrees
    assert [row.b.name for row in found.blind] == ["zeros", "scaled"]
    found = compare(
        _relu_of_negatives(np.float32([1, 2, 3, 4])), _relu_of_negatives(np.float32([1, 2, 3, 5])), {"x": -x}
    )
    assert found.first is not None and found.first.row.b.name == "scaled"
    assert found.blind == ()


def test_tries_with_other_inputs_find_what_the_first_do_not() -> None:
    x = -np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    one, other = _relu_of_negatives(np.float32([1, 2, 3, 4])), _relu_of_negatives(np.float32([1, 2, 3, 5]))
    found = compare(one, other, {"x": x}, CompareOptions(tries=3))
    assert found.first is not None and found.first.row.b.name == "scaled"
    assert found.notes[0].startswith("found with other inputs: those of try ")
    same = compare(one, _relu_of_negatives(np.float32([1, 2, 3, 4])), {"x": x}, CompareOptions(tries=3))
    assert same.agrees and same.blind == ()
    assert same.notes[-1] == "3 tries agree, all but the first with random inputs"


def test_values_that_differ_are_printed_so_that_it_shows() -> None:
    one = np.array([1.0], np.float32)
    found = agreement_of("x", np.nextafter(one, np.float32(2)), one, Tolerance(rtol=0.0, atol=0.0))
    assert found.message == "the value differs at [0]: 1.0000001, the reference has 1"


def test_a_mask_does_not_hide_other_values() -> None:
    """Scores of attention, of which some are -1e4 or the lowest of f32: the mean of all says nothing of the others."""
    scores = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    for fill in (np.finfo(np.float32).min, np.float32(-1e4)):
        masked = np.where(np.tri(8, dtype=bool), scores, scores + fill)
        other = np.where(np.tri(8, dtype=bool), scores * np.float32(1.01), scores + fill)
        tolerance = Tolerance(rtol=1e-4, atol=1e-4, scaled=True)
        assert agreement_of("x", masked, masked, tolerance).agrees
        found = agreement_of("x", other, masked, tolerance)
        assert not found.agrees
        assert found.snr is not None and 39 < found.snr < 41


def _softmax_behind(first: str, second: str) -> Model:
    """Two element-wise layers, of which the last is the result."""
    builder = Builder("m")
    x = builder.parameter("f32", (3, 5), "x")
    builder.result(
        builder.emit(
            second, builder.emit(first, x, name="first"), name="second", **({"axis": 1} if second == "Softmax" else {})
        )
    )
    return builder.model()


def test_a_last_layer_that_is_missing() -> None:
    """B gives what A computes before its last layer; that is its result, and so it has to be A's."""
    builder = Builder("m")
    x = builder.parameter("f32", (3, 5), "x")
    builder.result(builder.emit("Tanh", x, name="first"))
    found = compare(_softmax_behind("Tanh", "Softmax"), builder.model())
    assert not found.agrees and found.verdict == ""
    assert found.first is not None and found.first.row.b.name == "first"


def test_constants_that_a_has_not() -> None:
    def model(weights: np.ndarray, prefix: str, *, transposed: bool) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (3, 6), f"{prefix}x")
        for i in range(3):
            own = weights[i].T.copy() if transposed else weights[i]
            x = builder.emit(
                "MatMul",
                x,
                builder.constant(own, name=f"{prefix}w{i}"),
                transpose_b=transposed,
                name=f"{prefix}product{i}",
            )
            x = builder.emit("Sigmoid" if i % 2 else "Tanh", x, name=f"{prefix}activation{i}")
        builder.result(x)
        return builder.model()

    weights = np.random.default_rng(1).normal(size=(3, 6, 6)).astype(np.float32)
    other = weights.copy()
    other[1, 2, 3] += 1
    found = compare(
        model(weights, "a", transposed=False), model(other, "b", transposed=True), {"ax": np.ones((3, 6), np.float32)}
    )
    assert found.first is not None
    assert [layer.name for layer in found.first.likely] == ["bproduct1"]
    suspects = (found.first.suspect, *found.first.between)
    assert [one.unknown_constants for one in suspects if one.unknown_constants] == [("bw1",)]


def test_a_scale_that_was_folded_into_weights_is_not_a_fault() -> None:
    """A multiplies after its product, B has the scale in its weights: the products differ, and what follows agrees."""

    def model(weights: np.ndarray, scale: np.ndarray | None, prefix: str) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (3, 6), f"{prefix}x")
        y = builder.emit("MatMul", x, builder.constant(weights, name=f"{prefix}w"), name=f"{prefix}product")
        if scale is not None:
            y = builder.emit("Multiply", y, scale, name=f"{prefix}scaled")
        y = builder.emit("Add", builder.emit("Sigmoid", y, name=f"{prefix}sigmoid"), x, name=f"{prefix}sum")
        builder.result(builder.emit("MatMul", y, builder.constant(last, name=f"{prefix}last"), name=f"{prefix}y"))
        return builder.model()

    random = np.random.default_rng(3)
    weights, last = (random.normal(size=(6, 6)).astype(np.float32) for _ in range(2))
    scale = np.linspace(0.1, 3, 6, dtype=np.float32)
    found = compare(
        model(weights, scale, "a"),
        model(weights * scale, None, "b"),
        {"ax": random.normal(size=(3, 6)).astype(np.float32)},
    )
    assert found.agrees, found
    assert found.verdict.startswith("the models agree")


def test_a_plan_of_irexec_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer computes what it should from A's tensors when it is run alone; in the whole model it does not."""
    run_all = OwnRuntime.run_all

    def wrong(self: OwnRuntime, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        found = run_all(self, runs, values)
        is_plan = self.name == "irexec" and self.model.name == "m"
        return [
            [a + 1 if is_plan and v.name == "relu" else a for v, a in zip(values, arrays, strict=True)]
            for arrays in found
        ]

    monkeypatch.setattr(OwnRuntime, "run_all", wrong)
    found = compare(chain(), options=CompareOptions(a_runtime="reference"))
    assert found.first is not None and found.first.row.b.name == "relu"
    assert {row.b.name: row.state for row in found.rows} == {
        "one": "agrees",
        "relu": "differs",
        "two": "agrees",
        "soft": "agrees",
    }


def test_a_result_that_fusing_rounds_otherwise_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """It agrees while all tensors are observed, and is 86 dB from those of A at one value while none is."""
    run_all = OwnRuntime.run_all

    def fused(self: OwnRuntime, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        found = run_all(self, runs, values)
        if self.name == "irexec" and [value.name for value in values] == ["soft"]:
            found[0][0].flat[int(found[0][0].argmin())] += by
        return found

    monkeypatch.setattr(OwnRuntime, "run_all", fused)
    options = CompareOptions(a_runtime="reference")
    by = 6e-5
    found = compare(chain(), options=options)
    assert not found.results[0].agreement.agrees and found.results[0].agreement.snr is not None
    assert 80 < found.results[0].agreement.snr < 90
    assert found.agrees
    by = 0.1
    found = compare(chain(), options=options)
    assert not found.agrees
    assert "soft when no tensor is observed: 1 of " in found._repr_html_()


def test_tries_of_a_model_of_unknown_sizes_have_the_sizes_of_the_first() -> None:
    def model(weight: float) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (ANY, 4), "x")
        builder.result(builder.emit("Multiply", builder.emit("Relu", x, name="relu"), np.float32(weight), name="y"))
        return builder.model()

    x = -np.ones((3, 4), np.float32)
    found = compare(model(1), model(2), {"x": x}, CompareOptions(tries=2))
    assert found.first is not None and found.inputs == {"x": (3, 4)}


def test_another_shape_of_the_same_values_is_not_called_rounding() -> None:
    """An axis of size 1 that a later layer removes anyway."""

    def model(keep_dims: bool) -> Model:
        b = Builder("m")
        x = b.parameter("f32", (2, 3, 4), "x")
        mean = b.emit("ReduceMean", x, np.array([2]), keep_dims=keep_dims, name="mean")
        b.result(b.emit("Reshape", mean, np.array([2, 3]), special_zero=False, name="flat"))
        return b.model()

    found = compare(model(True), model(False), {"x": np.random.default_rng(1).normal(size=(2, 3, 4)).astype("f4")})
    assert found.agrees
    assert found.verdict.startswith("the models agree; 1 tensor has another shape, first 'mean' (ReduceMean")


# The passes over pairs and rows: each alone, and each left out.


X = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)


@contextmanager
def opened(
    a: Model, b: Model, options: CompareOptions | None = None, x: np.ndarray = X
) -> Iterator[tuple[Evidence, Pairs]]:
    """The evidence of two models with an input, and their first pairs."""
    with ExitStack() as stack:
        evidence = compared_models(stack, a, b, GivenInputs((), [{"x": x}]), options or CompareOptions()).evidence
        assert isinstance(evidence.a, ModelSide)
        yield evidence, first_pairs(evidence.a, evidence.b, ())


def names(pairs: Pairs) -> dict[str, str]:
    return {pair.b.name: pair.a if isinstance(pair.a, str) else pair.a.name for pair in pairs.tensors}


def test_a_pass_changes_pairs_once_and_no_others() -> None:
    with opened(channels(last=False), channels(last=True, fault=True)) as (evidence, pairs):
        before = (pairs.tensors, dict(pairs.by_b), pairs.uncompared)
        made = corrected(evidence, pairs, [pairing.by_values_in_another_order])
        assert names(made)["n1"] == "times" and made.orders
        assert (pairs.tensors, dict(pairs.by_b), pairs.uncompared) == before
        assert corrected(evidence, made, [pairing.by_values_in_another_order]).tensors == made.tensors


@pytest.mark.parametrize("left_out", PASSES, ids=lambda one: one.__name__)
def test_every_pass_can_be_left_out(left_out: Pass) -> None:
    """Without the pass for another order of axes, the tensor is compared with no tensor of its own values."""
    with opened(channels(last=False), channels(last=True, fault=True)) as (evidence, pairs):
        made = corrected(evidence, pairs, [one for one in PASSES if one is not left_out])
        is_needed = left_out is pairing.by_values_in_another_order
        assert (names(made).get("n1") == "times") is not is_needed


def test_wrong_guesses_are_dropped_and_listed() -> None:
    """A scale that is folded into weights: the product before it has no partner."""
    with opened(scaled(), folded()) as (evidence, pairs):
        rows = compared(evidence, pairs)
        assert not rows.agree
        made = corrected(evidence, pairs, [pairing.without_wrong_guesses])
        dropped = names(pairs).keys() - names(made).keys()
        assert dropped and compared(evidence, made).agree
        assert dropped <= {one.name for one in made.uncompared if one.side == "B"}


def test_no_pass_corrects_pairs_where_all_guesses_count() -> None:
    with opened(scaled(), folded(), CompareOptions(strict=True)) as (evidence, pairs):
        assert corrected(evidence, pairs).tensors == pairs.tensors


def test_rows_and_trials_are_made_once_for_what_they_rest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = Alone.observed_each

    def counting(self: Alone, values: Sequence[Value], *rest: Any) -> Observed:
        asked.append(len(values))
        return original(self, values, *rest)

    monkeypatch.setattr(Alone, "observed_each", counting)
    with opened(chain(), chain(w2=changed(W2)), x=X.reshape(-1)[:24].reshape(4, 6)) as (evidence, pairs):
        del asked[:]
        rows = compared(evidence, pairs)
        assert compared(evidence, pairs).found == rows.found
        first = blame.trials(evidence, rows, rows.found)
        assert first and blame.trials(evidence, rows, rows.found) == first
        count = sum(asked)
        # Another partner of an input is another basis.
        two = next(value for value in pairs.by_b if value.name == "two")
        relu = next(value for value in pairs.by_b if value.name == "relu")
        other = pairs.with_others([TensorPair(pairs.by_b[two], relu, "value")], evidence.b.positions)
        blame.trials(evidence, compared(evidence, other), rows.found)
        assert sum(asked) > count


@pytest.mark.parametrize("one", ROW_PASSES, ids=lambda one: one.__name__)
def test_a_pass_over_rows_returns_other_rows(one: Callable[[Evidence, Rows], Rows]) -> None:
    with opened(folded(), folded("weight0")) as (evidence, pairs):
        rows = compared(evidence, pairs)
        before = rows.found
        made = one(evidence, rows)
        assert rows.found is before and [found.value for found in made.found] == [found.value for found in before]
        told = [found.row.follows for found in made.found]
        assert (True in told and False in told) is (one is blame.without_followers)
