"""What compare says: who is at fault, what only follows, and what cannot be told with these inputs."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model
from irexec.tools.agreement import Tolerance, agreement_of
from irexec.tools.compare import CompareOptions, compare


def _relu_of_negatives(weights: np.ndarray) -> Model:
    builder = Builder("m")
    x = builder.parameter("f32", (2, 4), "x")
    y = builder.emit("Relu", x, name="zeros")
    y = builder.emit("Multiply", y, builder.constant(weights, name="w"), name="scaled")
    builder.result(builder.emit("Add", y, x, name="sum"))
    return builder.model()


def test_a_tensor_of_one_value_is_blind() -> None:
    x = -np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    found = compare(_relu_of_negatives(np.float32([1, 2, 3, 4])), _relu_of_negatives(np.float32([1, 2, 3, 5])), {"x": x})
    assert found.agrees
    assert [row.b.name for row in found.blind] == ["zeros", "scaled"]
    found = compare(_relu_of_negatives(np.float32([1, 2, 3, 4])), _relu_of_negatives(np.float32([1, 2, 3, 5])), {"x": -x})
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
        builder.emit(second, builder.emit(first, x, name="first"), name="second", **({"axis": 1} if second == "Softmax" else {}))
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
            x = builder.emit("MatMul", x, builder.constant(own, name=f"{prefix}w{i}"), transpose_b=transposed, name=f"{prefix}product{i}")
            x = builder.emit("Sigmoid" if i % 2 else "Tanh", x, name=f"{prefix}activation{i}")
        builder.result(x)
        return builder.model()

    weights = np.random.default_rng(1).normal(size=(3, 6, 6)).astype(np.float32)
    other = weights.copy()
    other[1, 2, 3] += 1
    found = compare(model(weights, "a", transposed=False), model(other, "b", transposed=True), {"ax": np.ones((3, 6), np.float32)})
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
    found = compare(model(weights, scale, "a"), model(weights * scale, None, "b"), {"ax": random.normal(size=(3, 6)).astype(np.float32)})
    assert found.agrees, found
    assert found.verdict.startswith("the models agree")
