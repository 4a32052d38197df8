"""If, Loop and TensorIterator from functions of Python, and models inside of models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, Tensor, opset
from irexec.errors import OpError

_ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _run(model: Model, *arrays: object) -> list[np.ndarray]:
    assert [finding for finding in irexec.validate(model) if finding.severity == "error"] == []
    ours = list(irexec.compile_model(model)(list(arrays)).values())
    reference = list(irexec.compile_model(model, optimize=False)(list(arrays)).values())
    for a, b in zip(ours, reference, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return ours


def test_the_branches_of_an_if_capture_tensors() -> None:
    flag, x, y = (
        opset.parameter([], "boolean", "flag"),
        opset.parameter([2], "f32", "x"),
        opset.parameter([2], "f32", "y"),
    )
    scale = opset.constant([2.0, 3.0], name="scale")
    made = opset.if_(flag, lambda: x * scale + y, lambda: opset.relu(y), name="choice", names=["z"])
    assert made.shape == (2,)
    model = Model([made], [flag, x, y])
    node = model["choice"]
    assert [value.name for value in node.inputs] == ["flag", "x", "y"]
    assert [n.name for n in node.bodies["then_body"].graph.parameters] == ["x", "y"]
    assert [n.name for n in node.bodies["else_body"].graph.parameters] == ["y"]
    assert [n.name for n in node.bodies["then_body"].graph.nodes if n.constant] == ["scale"]
    assert _run(model, True, [1, 2], [-5, 5])[0].tolist() == [-3, 11]
    assert _run(model, False, [1, 2], [-5, 5])[0].tolist() == [0, 5]


def test_an_if_of_several_results_and_none_computed() -> None:
    flag, x, y = (
        opset.parameter([], "boolean", "flag"),
        opset.parameter([2], "f32", "x"),
        opset.parameter([2], "f32", "y"),
    )
    first, second = opset.if_(flag, lambda: (x, y), lambda: [y, x])
    assert [v.tolist() for v in _run(Model([first, second], [flag, x, y]), False, [1, 2], [3, 4])] == [[3, 4], [1, 2]]


def test_a_loop_carries_slices_and_concatenates() -> None:
    x, start = opset.parameter([4, 3], "f32", "x"), opset.parameter([1, 3], "f32", "start")
    factor = opset.parameter([], "f32", "factor")

    def body(index: Tensor, total: Tensor, row: Tensor) -> opset.Iteration:
        total = total + row * factor
        return opset.Iteration(
            [total], slices=[total, opset.Slices(opset.convert(opset.unsqueeze(index, 0), destination_type="f32"))]
        )

    last, totals, counts = opset.loop(body, [start], sliced=[x])
    assert [t.shape for t in (last, totals, counts)] == [(1, 3), (4, 3), (4,)]
    found = _run(Model([last, totals, counts], [x, start, factor]), _ROWS, np.ones((1, 3), np.float32), np.float32(2))
    expected = 1 + 2 * np.cumsum(_ROWS, 0)
    for value, right in zip(found, [expected[-1:], expected, np.arange(4)], strict=True):
        np.testing.assert_array_equal(value, right)


def test_a_loop_ends_by_its_condition() -> None:
    x = opset.parameter([], "f32", "x")
    (last,) = opset.loop(lambda _, y: opset.Iteration([y * 2], condition=y * 2 < 100), [x])
    assert _run(Model([last], [x]), np.float32(3))[0] == 192


def test_a_trip_count_and_a_first_condition() -> None:
    x, trips, go = (
        opset.parameter([], "f32", "x"),
        opset.parameter([], "i64", "trips"),
        opset.parameter([], "boolean", "go"),
    )
    (last,) = opset.loop(lambda i, y: opset.Iteration([y + 1]), [x], trip_count=trips, condition=go)
    model = Model([last], [x, trips, go])
    assert [_run(model, np.float32(0), n, go)[0] for n, go in ((3, True), (0, True), (3, False))] == [3, 0, 0]


def test_a_state_that_grows() -> None:
    """The shapes of carried values are those of every iteration."""
    x = opset.parameter([1], "f32", "x")
    (last,) = opset.loop(lambda _, y: opset.Iteration([opset.concat(y, y, axis=0)]), [x], trip_count=3)
    assert last.shape == (irexec.Dim(1),) or last.shape == (irexec.Dim(),)
    assert _run(Model([last], [x]), [7])[0].tolist() == [7] * 8


@pytest.mark.parametrize("reverse", [False, True])
def test_a_tensor_iterator(reverse: bool) -> None:
    x, state = opset.parameter([2, 4], "f32", "x"), opset.parameter([2, 1], "f32", "state")

    def body(before: Tensor, column: Tensor) -> opset.Iteration:
        after = before * 0.5 + column
        return opset.Iteration([after], slices=[opset.Slices(after, 1, reverse)])

    last, every = opset.tensor_iterator(body, [state], sliced=[opset.Slices(x, 1, reverse)])
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = _run(Model([last, every], [x, state]), array, np.zeros((2, 1), np.float32))
    columns, value = [], np.zeros((2, 1), np.float32)
    for i in range(4):
        value = value * 0.5 + array[:, [3 - i if reverse else i]]
        columns.append(value)
    np.testing.assert_array_equal(found[0], value)
    np.testing.assert_array_equal(found[1], np.concatenate(columns[::-1] if reverse else columns, 1))


def test_bodies_inside_bodies() -> None:
    x, limit = opset.parameter([3], "f32", "x"), opset.parameter([], "f32", "limit")

    def outer(_: Tensor, y: Tensor) -> opset.Iteration:
        def inner(_: Tensor, z: Tensor) -> opset.Iteration:
            return opset.Iteration([opset.if_(opset.reduce_sum(z, 0) > limit, lambda: z, lambda: z + y)])

        return opset.Iteration(opset.loop(inner, [y], trip_count=2))

    (last,) = opset.loop(outer, [x], trip_count=2)
    value = np.array([1, 2, 3], np.float32)
    expected = value
    for _ in range(2):
        y = z = expected
        for _ in range(2):
            z = z if z.sum() > 20 else z + y
        expected = z
    np.testing.assert_array_equal(_run(Model([last], [x, limit]), value, np.float32(20))[0], expected)


def test_openvino_runs_the_same(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    x, flag = opset.parameter([4, 3], "f32", "x"), opset.parameter([], "boolean", "flag")
    start = opset.constant(np.zeros((1, 3), np.float32))
    last, sums = opset.loop(
        lambda i, total, row: opset.Iteration([total + row], slices=[total * opset.convert(i, destination_type="f32")]),
        [start],
        sliced=[x],
    )
    chosen = opset.if_(flag, lambda: last * 2, lambda: opset.relu(last - 20))
    _, columns = opset.tensor_iterator(
        lambda state, column: opset.Iteration([state + column], slices=[opset.Slices(state + column, 1)]),
        [opset.constant(np.zeros((4, 1), np.float32))],
        sliced=[opset.Slices(x, 1)],
    )
    model = Model([sums, chosen, columns], [x, flag])
    model.save(tmp_path / "m.xml")
    theirs = ov.Core().compile_model(str(tmp_path / "m.xml"), "CPU")([_ROWS, np.array(False)])
    for i, value in enumerate(_run(model, _ROWS, False)):
        np.testing.assert_allclose(value, theirs[i], rtol=1e-6)


def test_a_tensor_of_a_body_is_not_one_of_the_model() -> None:
    flag, x = opset.parameter([], "boolean", "flag"), opset.parameter([2], "f32", "x")
    kept: list[Tensor] = []

    def then() -> Tensor:
        kept.append(opset.exp(x, name="inner"))
        return kept[0]

    opset.if_(flag, then, lambda: x)
    with pytest.raises(OpError, match=r"^<Tensor 'inner': f32\[2\]> was made inside of another body"):
        opset.relu(kept[0])
    with pytest.raises(OpError, match="was made inside of another body"):
        opset.if_(flag, lambda: x, lambda: kept[0])


def test_wrong_bodies() -> None:
    x = opset.parameter([2], "f32", "x")
    with pytest.raises(OpError, match=r"^a body returned <Tensor 'x'.*>, expected an Iteration$"):
        opset.loop(lambda _, y: y, [x])  # type: ignore[arg-type, return-value]
    with pytest.raises(OpError, match=r"^an iteration carries 0 values, expected 1$"):
        opset.loop(lambda _, y: opset.Iteration(), [x])
    with pytest.raises(OpError, match=r"^a carried value is f32\[2\] before an iteration and i64\[2\] after it$"):
        opset.loop(lambda _, y: opset.Iteration([opset.convert(y, destination_type="i64")]), [x])
    with pytest.raises(OpError, match=r"^a Loop has its slices in ascending order: use tensor_iterator$"):
        opset.loop(lambda _, y: opset.Iteration(), sliced=[opset.Slices(x, 0, reverse=True)])
    with pytest.raises(OpError, match=r"^the body of a TensorIterator has no condition: use loop$"):
        opset.tensor_iterator(lambda y: opset.Iteration(condition=y), sliced=[x])
    with pytest.raises(irexec.NodeError, match=r"layer 'wrong' \(Add of opset1\)"):
        opset.loop(lambda _, y: opset.Iteration([opset.add(y, np.zeros(3, np.float32), name="wrong")]), [x])


def _scaled() -> Model:
    x = opset.parameter(["?", 2], "f32", "x")
    return Model(
        [opset.softmax(x * opset.constant([1.0, 2.0], name="weights"), axis=1, name="scores").named("y")],
        [x],
        name="scaled",
    )


def test_a_model_inside_of_another() -> None:
    inner = _scaled()
    x = opset.parameter([3, 2], "f32", "x")
    first = opset.embed(inner, {"x": x * 2}, prefix="first/")["y"]
    second = opset.embed(inner, {"x": first}, prefix="second/")["y"]
    assert (second.shape, second.names) == ((3, 2), ("second/y",))
    model = Model([second], [x])
    assert len({node.name for node in model.nodes}) == len(model.nodes)
    assert [node.name for node in model.find("*scores")] == ["first/scores", "second/scores"]
    run = irexec.compile_model(inner)
    array = _ROWS[:3, :2]
    np.testing.assert_allclose(_run(model, array)[0], run([run([array * 2])[0]])[0], rtol=1e-6)


def test_what_cannot_be_embedded() -> None:
    with pytest.raises(irexec.InputError, match=r"^no value is given for x: f32\[\?,2\]$"):
        opset.embed(_scaled(), {})
    with pytest.raises(irexec.InputError, match=r"^there is no input 'z': the model has x"):
        opset.embed(_scaled(), {"z": 1})
    with pytest.raises(irexec.InputError, match=r"^input 'x' is i64\[3,2\], expected f32$"):
        opset.embed(_scaled(), {"x": opset.parameter([3, 2], "i64", "x")})
    with pytest.raises(irexec.NodeError, match=r"cannot be broadcast"):
        opset.embed(_scaled(), {"x": opset.parameter([3, 5], "f32", "x")})
    x = opset.parameter([2], "f32", "x")
    state = opset.read_value(np.zeros(2, np.float32), variable_id="v")
    counting = Model([x + state], [x], sinks=[opset.assign(x, variable_id="v")], name="counting")
    with pytest.raises(irexec.UnsupportedError, match=r"^model 'counting' has variables, which cannot be embedded$"):
        opset.embed(counting, {"x": x})
