"""Bounds of layers with bodies and of long sequences, iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec import Model, Tensor, opset
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Bound, Interval, Unbounded, graph_bounds
from irexec.testing import Case, case
from irexec.testing.laws import kernel, read_only
from tests.bounds.rows import row_bounds
from tests.support.tiers import some

_ROWS = (np.arange(12, dtype=np.float32).reshape(4, 3) + 1) / 3


def _bounds(model: Model, *arrays: np.ndarray, name: str = "f32") -> list[Bound]:
    nodes = [node for node in model.nodes if node.type not in ("Parameter", "Result")]
    given = {node.outputs[0]: array for node, array in zip(model.parameters, arrays, strict=True)}
    found = graph_bounds(nodes, given, infer_shapes(model).facts, ARITHMETICS[name])
    return [found[node.inputs[0]] for node in model.results if node.inputs[0] is not None]


def _assert_inside(bound: Bound, exact: np.ndarray, width: float) -> None:
    assert isinstance(bound, Interval)
    assert not bound.outside(exact).any()
    assert bound.outside(exact + width * (1 + np.abs(exact))).all()


def test_a_loop_over_slices_adds_what_each_iteration_may_round() -> None:
    x, start = opset.parameter([4, 3], "f32", "x"), opset.parameter([1, 3], "f32", "start")

    def body(index: Tensor, total: Tensor, row: Tensor) -> opset.Iteration:
        total = total + row * 0.1
        return opset.Iteration([total], slices=[total])

    last, totals = opset.loop(body, [start], sliced=[x], trip_count=4)
    model = Model([last, totals], [x, start])
    exact = 1 + 0.1 * np.cumsum(_ROWS.astype(np.float64), 0)
    for name, width in (("f32", 1e-5), ("f16", 0.05)):
        found = _bounds(model, _ROWS, np.ones((1, 3), np.float32), name=name)
        _assert_inside(found[0], exact[-1:], width)
        _assert_inside(found[1], exact, width)


def test_a_tensor_iterator_backwards() -> None:
    x, state = opset.parameter([2, 4], "f32", "x"), opset.parameter([2, 1], "f32", "state")

    def body(before: Tensor, column: Tensor) -> opset.Iteration:
        after = before * 0.3 + column
        return opset.Iteration([after], slices=[opset.Slices(after, 1, True)])

    _, every = opset.tensor_iterator(body, [state], sliced=[opset.Slices(x, 1, True)])
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    value, columns = np.zeros((2, 1)), []
    for i in (3, 2, 1, 0):
        value = value * 0.3 + array[:, [i]]
        columns.append(value)
    _assert_inside(_bounds(Model([every], [x, state]), array, np.zeros((2, 1), np.float32))[0],
                   np.concatenate(columns[::-1], 1), 1e-5)  # fmt: skip


def test_a_condition_near_its_edge_has_no_bound() -> None:
    x = opset.parameter([], "f32", "x")
    (last,) = opset.loop(lambda _, y: opset.Iteration([y * 2], condition=y * 0.2 < 9.6), [x])
    model = Model([last], [x])
    _assert_inside(_bounds(model, np.float32(3.1))[0], np.array(99.2), 1e-5)
    # 48 * 0.2 is 9.6 in some arithmetics, and less in others.
    assert isinstance(_bounds(model, np.float32(3))[0], Unbounded)


def test_the_branch_of_an_if() -> None:
    flag, x = opset.parameter([], "boolean", "flag"), opset.parameter([2], "f32", "x")
    made = opset.if_(flag, lambda: x * 0.1, lambda: x + 1)
    model = Model([made], [flag, x])
    array = np.array([1, 2], np.float32)
    _assert_inside(_bounds(model, np.array(True), array)[0], array * 0.1, 1e-5)
    _assert_inside(_bounds(model, np.array(False), array)[0], array + 1, 1e-5)


def _bound_of(model: Model, given: dict[str, Interval]) -> Bound:
    """The bound of the model's result where the inputs are known as far as the intervals say."""
    nodes = [node for node in model.nodes if node.type not in ("Parameter", "Result")]
    known = {node.outputs[0]: given[node.name] for node in model.parameters}
    (result,) = model.results
    source = result.inputs[0]
    assert source is not None
    return graph_bounds(nodes, known, infer_shapes(model).facts, ARITHMETICS["f32"])[source]


def test_integers_that_may_leave_their_type_are_open() -> None:
    """65,536 in u16 is 0, or 65,535: Convert of a negative number gives either end of the type."""
    x = opset.parameter([3], "f32", "x")
    model = Model([opset.convert(opset.convert(x, destination_type="u16") + np.uint16(1), destination_type="f32")], [x])
    bound = _bound_of(model, {"x": Interval.certain(np.float32([-1.5, 3, 100]))})
    assert isinstance(bound, Interval)
    for first in (0, 65535, 1):
        assert not bound.outside(np.float32([first, 4, 101])).any()
    assert bound.outside(np.float32([0, 5, 100])).tolist() == [False, True, True]


def test_a_number_near_an_integer_becomes_either() -> None:
    """And sums of such integers are integers; one that may leave its type may be any element of it."""
    x = opset.parameter([5], "f32", "x")
    model = Model([opset.convert(x, destination_type="u8") + np.uint8(1)], [x])
    numbers = np.array([2.5, 3, -0.5, 253.99999, 255.5])
    bound = _bound_of(model, {"x": Interval(numbers, numbers - 1e-5, numbers + 1e-5)})
    assert isinstance(bound, Interval) and bound.exact.dtype == np.uint8
    assert bound.low.tolist() == [3, 3, 1, 254, 0] and bound.high.tolist() == [3, 4, 1, 255, 255]


def test_integers_that_are_not_certain_are_not_indices() -> None:
    x, data = opset.parameter([2], "f32", "x"), opset.parameter([4], "f32", "data")
    index = opset.convert(x, destination_type="i64") + np.int64(1)
    model = Model([opset.gather(data, index, np.int64(0))], [x, data])
    near, numbers = np.array([0.99999999, 2.5]), np.float32([1, 2, 3, 4])
    found = _bound_of(model, {"x": Interval(near, near - 1e-5, near + 1e-5), "data": Interval.certain(numbers)})
    assert isinstance(found, Unbounded) and found.reason == "an index is not certain"


def test_a_running_sum_of_integers_is_an_index() -> None:
    """As positions are counted: CumSum of a mask of floats, rounded in any order, times it, less 1."""
    mask, data = opset.parameter([5], "f32", "mask"), opset.parameter([4], "f32", "data")
    counted = opset.multiply(opset.cum_sum(mask, np.int64(0)), mask) - np.float32(1)
    model = Model([opset.gather(data, opset.convert(counted, destination_type="i64"), np.int64(0))], [mask, data])
    inputs = {"mask": np.float32([1, 1, 0, 1, 1]), "data": np.float32([1, 2, 3, 4])}
    found = _bound_of(model, {name: Interval.certain(array) for name, array in inputs.items()})
    assert isinstance(found, Interval) and found.is_certain
    assert found.exact.tolist() == [1, 2, 4, 3, 4]


@pytest.mark.parametrize("form", ["padded", "joined"])
def test_integers_beside_another_number_are_not_all_integers(form: str) -> None:
    """A number near 3, with which integers are padded, or beside which they stand, becomes 2 or 3."""
    x, y = opset.parameter([2], "f32", "x"), opset.parameter([1], "f32", "y")
    whole = opset.round(x, mode="half_to_even")
    ends = (np.int64([0]), np.int64([1]), opset.squeeze(y, np.int64([0])))
    many = opset.pad(whole, *ends, pad_mode="constant") if form == "padded" else opset.concat(whole, y, axis=0)
    model = Model([opset.convert(many, destination_type="i32")], [x, y])
    near, beside = np.array([0.99999, 3.00001]), np.array([3.00001])
    given = {"x": Interval(near, near - 1e-5, near + 1e-5), "y": Interval(beside, beside - 2e-5, beside + 2e-5)}
    found = _bound_of(model, given)
    assert isinstance(found, Interval)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 3, 2], [1, 3, 3])


def test_numbers_that_are_indices_must_be_certain() -> None:
    steps, parents = opset.parameter([3, 1, 2], "f32", "steps"), opset.parameter([3, 1, 2], "f32", "parents")
    model = Model([opset.gather_tree(steps, parents, np.float32([3]), np.float32(9))], [steps, parents])
    array = np.float32([[[1, 2]], [[3, 4]], [[5, 6]]])
    index = np.float32([[[0, 0]], [[1, 0]], [[1, 1]]])
    near = Interval(index, index - np.float32(1e-6), index + np.float32(1e-6))
    assert isinstance(_bound_of(model, {"steps": Interval.certain(array), "parents": near}), Unbounded)
    exact = _bound_of(model, {"steps": Interval.certain(array), "parents": Interval.certain(index)})
    assert isinstance(exact, Interval)


def test_a_shape_that_a_layer_does_not_take_has_no_bound() -> None:
    """A runtime gave a tensor that its layer cannot have; the layers that read it are not judged."""
    x, size = opset.parameter([3, 4], "f32", "x"), opset.parameter([-1], "i64", "size")
    model = Model([opset.reshape(x, size, special_zero=False)], [x, size])
    given = {"x": Interval.certain(np.zeros((3, 5), np.float32)), "size": Interval.certain(np.int64([12]))}
    found = _bound_of(model, given)
    assert isinstance(found, Unbounded) and found.reason == "an input has shape [3, 5], expected [3,4]"
    given["x"] = Interval.certain(np.zeros((3, 4), np.float32))
    given["size"] = Interval.certain(np.int64([5]))
    assert isinstance(_bound_of(model, given), Unbounded)


def test_integers_of_few_bits_are_open_beyond_their_own_limits() -> None:
    x = opset.parameter([2], "u4", "x")
    array = np.uint8([15, 7])
    near = Interval(array, array - np.uint8(1), array)
    bound = _bound_of(Model([x + 1], [x]), {"x": near})
    assert isinstance(bound, Interval)
    assert bound.outside(np.uint8([0, 8])).tolist() == [False, False]
    assert bound.outside(np.uint8([0, 11])).tolist() == [False, True]


# Long sequences are judged step by step, from the hidden states that an array holds.


_STEPS, _SIZE, _FEATURES = 50, 24, 10
_GATES = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}


def _row(type: str, bias: float = 1.0) -> Case:
    rng = np.random.default_rng(1)

    def array(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    rows = _GATES[type] * _SIZE
    states = [array(2, 2, _SIZE) for _ in range(2 if type.startswith("LSTM") else 1)]
    weights = (array(2, rows, _FEATURES, scale=0.3), array(2, rows, _SIZE, scale=0.3))
    more: dict[str, Any] = {"hidden_size": _SIZE, "direction": "bidirectional"}
    lengths = np.array([_STEPS, _STEPS - 9], np.int32)
    offset = array(2, rows) * np.float32(bias)
    return case(type, 5, array(2, _STEPS, _FEATURES), *states, lengths, *weights, offset, id="a", **more)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", some(["f32", "f16", "bf16"], ["f16"]))
@pytest.mark.parametrize("type", _GATES)
def test_a_state_that_does_not_follow_from_the_one_before_is_outside(type: str, name: str) -> None:
    row, of = _row(type), ARITHMETICS[name]
    bound = row_bounds(row, of)[0]
    assert isinstance(bound, Interval)
    right = kernel(row, read_only(row))[0]
    rounded = of.nearest(right)
    assert not bound.outside(right).any()
    assert not bound.outside(rounded).any()
    wrong = right.copy()
    wrong[0, 0, 30, 5] += 0.4
    outside = bound.outside(wrong)
    assert outside[0, 0, 30, 5]
    assert not outside[0, 0, :30].any() and not outside[1].any() and not outside[0, 1].any()


@pytest.mark.parametrize("type", _GATES)
def test_a_sequence_without_its_bias_is_outside(type: str) -> None:
    bound = row_bounds(_row(type), ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    other = _row(type, 0.99)
    outside = bound.outside(kernel(other, read_only(other))[0])
    assert outside[0].mean() > 0.9
    assert not outside[1, 0, _STEPS - 9 :].any()
