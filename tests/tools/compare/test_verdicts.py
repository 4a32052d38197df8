"""Verdicts of compare: layers at fault, layers that only follow, and what these inputs cannot show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.ir.dims import ANY
from irexec.ir.graph import Value
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.engines.runtimes.kinds import OwnRuntime
from tests.tools.compare.models import chain


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


def test_a_scale_that_was_folded_into_weights_is_no_fault() -> None:
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
    assert not compare(chain(), options=options).agrees


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
