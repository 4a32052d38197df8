"""Tensors of a model that is being made, and the model that their results make."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Model, Tensor, opset
from irexec.errors import OpError

_A = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
_INDICES = [
    np.s_[0], np.s_[-1], np.s_[..., -1], np.s_[:, None, 1], np.s_[::-1], np.s_[..., ::2], np.s_[1:, ..., None, -2],
    np.s_[:, -1:, 1:-1], np.s_[-1, -1, -1], np.s_[...], np.s_[None], np.s_[:, 2:0:-1], np.s_[:, 5:], np.s_[1, ..., 2:],
    np.s_[..., -3:-1], np.s_[None, 0, ..., None], np.s_[0, None, None, 1], np.s_[:0], np.s_[np.int64(1)], np.s_[..., None],
]  # fmt: skip


def _run(model: Model, *arrays: np.ndarray) -> list[np.ndarray]:
    assert [finding for finding in irexec.validate(model) if finding.severity == "error"] == []
    return list(irexec.compile_model(model)(list(arrays)).values())


@pytest.mark.parametrize("index", _INDICES, ids=str)
def test_indices_are_those_of_numpy(index: Any) -> None:
    x = opset.parameter(_A.shape, "f32", "x")
    part = x[index]
    assert part.shape == _A[index].shape
    np.testing.assert_array_equal(_run(Model([part], [x]), _A)[0], _A[index])


@pytest.mark.parametrize("index", _INDICES, ids=str)
def test_indices_of_a_tensor_of_unknown_rank(index: Any) -> None:
    x = opset.parameter(None, "f32", "x")
    np.testing.assert_array_equal(_run(Model([x[index]], [x]), _A)[0], _A[index])


def test_an_integer_tensor_indexes_the_first_axis() -> None:
    x, i = opset.parameter(_A.shape, "f32", "x"), opset.parameter([2], "i64", "i")
    np.testing.assert_array_equal(_run(Model([x[i]], [x, i]), _A, np.array([1, -2]))[0], _A[[1, -2]])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, OpError, "index 2 is out of range for axis 0 of size 2"),
        ((..., -5), OpError, "index -5 is out of range for axis 2 of size 4"),
        ((0, 0, 0, 0), OpError, "4 indices are given for a tensor of rank 3"),
        ((..., 0, ...), OpError, "an index can only have a single ellipsis ('...')"),
        (slice(None, None, 0), OpError, "the step of a slice is 0"),
        ("x", TypeError, "'x' is not an index: an int, a slice, ... or None"),
        (1.0, TypeError, "1.0 is not an index: an int, a slice, ... or None"),
        (True, TypeError, "True is not an index: an int, a slice, ... or None"),
    ],
)
def test_wrong_indices(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        opset.parameter(_A.shape, "f32", "x")[index]
    assert str(caught.value) == message


_BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.pow, operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("function", _BINARY, ids=lambda function: function.__name__)
@pytest.mark.parametrize("other", [2, 1.5, [1.0, 2.0, 3.0, 4.0], np.full((3, 1), 0.5, np.float32)], ids=str)
def test_arithmetic_is_that_of_numpy(function: Callable[[Any, Any], Any], other: Any) -> None:
    x = opset.parameter(_A.shape, "f32", "x")
    values = np.abs(_A) + 1
    model = Model([function(x, other), function(other, x)], [x])
    array = np.asarray(other, np.float32)
    for got, expected in zip(_run(model, values), [function(values, array), function(array, values)], strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_products_and_signs() -> None:
    x = opset.parameter(_A.shape, "f32", "x")
    right, left = np.ones((4, 2), np.float32), np.ones((2, 3), np.float32)
    got = _run(Model([x @ right, left @ x, -x], [x]), _A)
    for value, expected in zip(got, [_A @ right, left @ _A, -_A], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


@pytest.mark.parametrize("element", ["f16", "bf16", "f64", "f8e4m3", "i4", "i8", "i64", "u8"])
def test_a_number_takes_the_element_type_of_the_tensor(element: str) -> None:
    x = opset.parameter([2], element, "x")
    assert [(x + 1).element, (1 - x).element, opset.maximum(3, x).element] == [x.element] * 3
    assert opset.select([True, False], x, 0).element == x.element


@pytest.mark.parametrize(("element", "number"), [("i64", 2.5), ("u8", 300), ("u8", -1), ("i4", 8)])
def test_a_number_that_the_element_type_lacks(element: str, number: float) -> None:
    with pytest.raises(OpError, match=f"^{number} is not of the element type {element}$"):
        opset.parameter([2], element, "x") + number


def test_an_array_keeps_its_element_type() -> None:
    with pytest.raises(irexec.NodeError, match=r"^layer 'Add' \(Add of opset1\): .*f32\[2\], i64\[2\]"):
        opset.parameter([2], "f32", "x") + np.array([1, 2])


def test_a_tensor_has_no_truth_value_and_no_end() -> None:
    x = opset.parameter([2], "f32", "x")
    with pytest.raises(TypeError, match=r"^<Tensor 'Greater': boolean\[2\]> has no truth value before the model runs"):
        bool(x > 0)
    with pytest.raises(TypeError, match="not iterable"):
        list(x)
    assert {x: 1}[x] == 1


def test_known_values_are_inferred() -> None:
    """The shape of a tensor computes as it does in a model that is read."""
    x = opset.parameter([2, 3, "?"], "f32", "x")
    shape = opset.shape_of(x)
    flat = opset.reshape(x, opset.concat(shape[:1] * shape[1:2], [-1], axis=0), special_zero=False)
    assert flat.shape == (6, irexec.Dim())
    assert (shape[0] + 1).fact.known == 3


def test_names_of_tensors_and_layers() -> None:
    x = opset.parameter([2], "f32", "x", names=["x", "image"])
    y = opset.relu(x, name="rectified", names=["y"])
    z = opset.relu(opset.relu(y)).named("z", "last")
    assert [x.name, x.names, y.name, z.name, z.names] == ["x", ("x", "image"), "y", "z", ("z", "last")]
    model = Model([z, y], [x], name="named")
    assert [node.name for node in model.nodes] == [
        "x", "rectified", "Relu", "Relu_1", "Relu_1/sink_port_0", "rectified/sink_port_0",
    ]  # fmt: skip
    assert [port.names for port in model.outputs] == [
        ("z", "last", "Relu_1", "Relu_1/sink_port_0"),
        ("y", "rectified", "rectified/sink_port_0"),
    ]
    assert model.name == "named"
    assert repr(z) == "<Tensor 'z': f32[2]>"


def test_a_name_that_is_given_comes_before_the_name_of_a_type() -> None:
    x = opset.parameter([2], "f32", "x")
    y = opset.relu(opset.exp(opset.relu(x), name="Relu"), name="Exp")
    assert [node.name for node in Model([y], [x]).nodes] == ["x", "Relu_1", "Relu", "Exp", "Exp/sink_port_0"]


# Models from the tensors of their results: what they collect, in which order, and what they refuse.


def test_a_model_has_what_its_results_need() -> None:
    x, y, unused = (opset.parameter([2], "f32", name) for name in ("x", "y", "unused"))
    opset.exp(x)
    total = (x + y) * 2
    model = Model([total], [y, x, unused])
    assert [node.type for node in model.nodes] == [
        "Parameter", "Parameter", "Parameter", "Add", "Constant", "Multiply", "Result",
    ]  # fmt: skip
    assert [port.name for port in model.inputs] == ["y", "x", "unused"]
    assert irexec.compile_model(model)([[1, 2], [10, 20], [0, 0]])[0].tolist() == [22, 44]


def test_the_order_in_which_tensors_were_made_is_kept() -> None:
    a, b = opset.parameter([2], "f32", "a"), opset.parameter([2], "f32", "b")
    first, second = opset.relu(b, name="first"), opset.relu(a, name="second")
    model = Model([second - first], [a, b])
    assert [node.name for node in model.nodes] == ["a", "b", "first", "second", "Subtract", "Subtract/sink_port_0"]


def test_models_of_the_same_tensors_are_independent() -> None:
    x = opset.parameter([2], "f32", "x")
    y = opset.relu(x)
    one, other = Model([y], [x]), Model([y, x], [x])
    one.nodes[0].name = "changed"
    one.reshape([5])
    assert other.nodes[0].name == "x"
    assert [port.shape for port in other.outputs] == [(2,), (2,)]
    assert y.names == ()


def test_a_part_of_a_model_that_was_read() -> None:
    """A tensor may be one of a model: what its results need is copied."""
    x = opset.parameter([2], "f32", "x")
    model = Model([opset.exp(opset.relu(x, name="middle"))], [x])
    middle = Tensor(model["middle"].outputs[0], irexec.Fact(irexec.f32, (2,)))
    source = Tensor(model["x"].outputs[0], irexec.Fact(irexec.f32, (2,)))
    part = Model([middle * 3], [source])
    assert [node.name for node in part.nodes] == ["x", "middle", "Constant", "Multiply", "Multiply/sink_port_0"]
    assert irexec.compile_model(part)([[-1, 2]])[0].tolist() == [0, 6]
    assert len(model.nodes) == 4


def test_a_parameter_that_is_not_listed() -> None:
    x, y = opset.parameter([2], "f32", "x"), opset.parameter([2], "f32", "y")
    with pytest.raises(irexec.InputError, match=r"^the results depend on 'y', which the inputs do not list$"):
        Model([x + y], [x])


def test_wrong_inputs_and_results() -> None:
    x = opset.parameter([2], "f32", "x")
    with pytest.raises(irexec.InputError, match=r"^input 1 is 'Relu' \(Relu\), expected a Parameter$"):
        Model([x], [x, opset.relu(x)])
    with pytest.raises(irexec.InputError, match=r"^input 'x' is given twice$"):
        Model([x], [x, x])
    result = opset.result(x, name="r")
    with pytest.raises(irexec.InputError, match=r"^result 'r' is given twice$"):
        Model([result, result], [x])
    with pytest.raises(OpError, match=r"^'r' is a Result, which has no output$"):
        opset.relu(result)


def test_results_with_names_of_their_own() -> None:
    x = opset.parameter([2], "f32", "x", names=())
    model = Model([opset.result(opset.relu(x, name="y"), name="last"), x, x], [x])
    assert [node.name for node in model.results] == ["last", "x/sink_port_0", "x/sink_port_0_1"]
    assert [port.name for port in model.outputs] == ["y", "x", "x/sink_port_0_1"]
    assert model["y"].outputs[0].names == []


def test_variables_are_kept_as_sinks(tmp_path: Path) -> None:
    x = opset.parameter([2], "f32", "x")
    total = opset.read_value(np.zeros(2, np.float32), variable_id="sum") + x
    model = Model([total], [x], sinks=[opset.assign(total, variable_id="sum")])
    model.save(tmp_path / "m.xml")
    session = irexec.compile_model(tmp_path / "m.xml").session()
    assert [session([[1, 2]])[0].tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]


def test_a_long_chain() -> None:
    x = y = opset.parameter([2], "f32", "x")
    for _ in range(3000):
        y = opset.relu(y)
    assert len(Model([y], [x]).nodes) == 3002
