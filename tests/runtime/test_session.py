"""Compiled models: inputs, results, any tensor, state, reshape."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irexec
from irexec.compile.storage.layout import STAGED
from irexec.dtypes.elements import F32, I64, element
from tests.support.paths import IRS

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _model() -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (irexec.Dim(1, 8, "batch"), 3), "x", ["data", "alias"])
    k = builder.parameter(I64, (), "k")
    y = builder.emit("Relu", builder.emit("Add", x, builder.constant([1.0, -2.0, 3.0]), name="sum"), names=["out"])
    builder.result(y, "first")
    builder.result(y, "second")
    builder.result(x, "third")
    builder.result(k, "fourth")
    return builder.model()


def test_inputs_and_outputs_have_names_types_and_partial_shapes() -> None:
    model = _model()
    assert [(p.name, p.names, str(p.element), str(p.shape)) for p in model.inputs] == [
        ("data", ("data", "alias", "x"), "f32", "(Dim(1, 8), 3)"),
        ("k", ("k", "fourth"), "i64", "()"),
    ]
    assert [p.shape for p in model.outputs] == [(irexec.Dim(1, 8), 3)] * 3 + [()]


@pytest.mark.parametrize(
    "inputs",
    [{"data": X, "k": 2}, {"x": X, 1: 2}, {"alias": X, "k": 2}, [X, 2], (X.tolist(), 2), {0: X, 1: np.int64(2)}],
)
def test_inputs_by_any_name_or_position(inputs: object) -> None:
    result = irexec.compile_model(_model())(inputs)
    np.testing.assert_array_equal(result["out"], np.maximum(X + [1, -2, 3], 0))


def test_results_are_never_dropped() -> None:
    result = irexec.compile_model(_model())([X, 2])
    assert len(result) == len(list(result.values())) == 4
    assert list(result) == ["out", "first" if "first" in list(result) else list(result)[1], "data", "k"]
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result["third"], X)
    assert result[-1] == 2
    with pytest.raises(KeyError, match=r"there is no output 'nothing': the model has out: f32"):
        result["nothing"]


def test_results_belong_to_the_caller() -> None:
    compiled = irexec.compile_model(_model())
    x = X.copy()
    result = compiled([x, 2])
    for array in result.values():
        array[...] = 99
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(compiled([X, 2])[0], np.maximum(X + [1, -2, 3], 0))


def test_large_results_that_are_views_of_an_input_belong_to_the_caller() -> None:
    """They are larger than results that leave the arena by a copy."""
    builder = irexec.Builder("view")
    x = np.ones((STAGED // 4 + 1, 2), np.float32)
    builder.result(builder.emit("Reshape", builder.parameter("f32", x.shape, "x"), np.array([-1]), special_zero=False))
    assert not np.shares_memory(irexec.compile_model(builder.model())(x)[0], x)


def test_any_tensor_without_changing_the_graph() -> None:
    compiled = irexec.compile_model(_model())
    result = compiled.run([X, 2], outputs=["sum", "out", "sum:0"])
    np.testing.assert_array_equal(result["sum"], X + np.float32([1, -2, 3]))
    assert list(result) == ["sum", "out", "sum:0"]
    with pytest.raises(irexec.InputError, match="there is no tensor or layer 'summ'; similar names are 'sum'"):
        compiled.run([X, 2], outputs=["summ"])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"data": X}, "no value is given for 'k'"),
        ({"data": X, "k": 1, "z": 2}, "there is no input 'z'"),
        ([X, 1, 2], "3 inputs given, the model has 2"),
        ([X[:, :2], 1], "has shape"),
        ([X.astype(np.complex64), 1], "is complex64, the model expects float32"),
        ([X, 1.5], "is float64, the model expects int64 (k: i64[]), which cannot hold 1.5: convert it, or pass allow_cast=True"),
        ([np.zeros((9, 3), np.float32), 1], "the model expects"),
        ({"data": X, "x": X, "k": 1}, "given twice"),
    ],
)  # fmt: skip
def test_wrong_inputs_are_refused(inputs: object, message: str) -> None:
    with pytest.raises(irexec.InputError, match=re.escape(message)):
        irexec.compile_model(_model())(inputs)


def test_products_of_types_that_numpy_lacks_are_rounded() -> None:
    """(1 + 2^-7)^2 is 1 + 2^-6 in bf16; its carrier holds the 2^-14 too."""
    builder = irexec.Builder("m")
    x = builder.parameter(element("bf16"), (1, 1), "x")
    builder.result(builder.emit("MatMul", x, x))
    result = irexec.compile_model(builder.model(), precision="as-written")(np.float32([[1 + 2**-7]]))
    assert result[0].tolist() == [[1 + 2**-6]]


def test_types_that_numpy_lacks_come_and_go_as_carriers() -> None:
    builder = irexec.Builder("m")
    x, n = builder.parameter(element("bf16"), (3,), "x"), builder.parameter(element("u4"), (2,), "n")
    builder.result(builder.emit("Add", x, x))
    builder.result(builder.emit("Add", n, n))
    compiled = irexec.compile_model(builder.model())
    result = compiled([np.float32([1.00390625, 1.01, 2]), np.uint8([7, 9])])
    np.testing.assert_array_equal(result[0], np.float32([2.0, 2.015625, 4.0]))
    np.testing.assert_array_equal(result[1], np.uint8([14, 2]))
    with pytest.raises(irexec.InputError, match=r"outside 0\.\.15"):
        compiled([np.float32([1, 1, 2]), np.uint8([16, 0])])


@pytest.mark.parametrize(
    ("name", "extension"), [("bf16", "bfloat16"), ("f8e4m3", "float8_e4m3fn"), ("i4", "int4"), ("u4", "uint4")]
)
def test_types_that_ml_dtypes_adds_to_numpy_are_taken(name: str, extension: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    builder = irexec.Builder("same")
    builder.result(builder.emit("Identity", builder.parameter(element(name), (3,), "x"), version=16))
    given = np.array([1, 2, 3]).astype(getattr(ml_dtypes, extension))
    assert irexec.compile_model(builder.model())(given)[0].tolist() == [1, 2, 3]


def test_state_lives_in_the_session() -> None:
    compiled = irexec.compile_model(irexec.read_model(IRS / "state.xml"))
    one = np.ones((1, 3), np.float32)
    assert [float(compiled([one])[0][0, 0]) for _ in range(3)] == [1, 2, 3]
    other = compiled.session()
    assert float(other([one])[0][0, 0]) == 1
    assert float(compiled([one])[0][0, 0]) == 4
    other.variables["counter"] = np.full((1, 3), 10, np.float32)
    assert float(other([one])[0][0, 0]) == 11
    other.reset()
    assert float(other([one])[0][0, 0]) == 1


@pytest.mark.parametrize("optimize", [True, False])
def test_a_run_reads_the_state_before_it(optimize: bool) -> None:
    """The second ReadValue comes after the Assign."""
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    kind = {"variable_id": "v", "variable_type": F32, "variable_shape": (2,)}
    first = builder.emit("ReadValue", x, version=6, **kind)
    builder.emit("Assign", builder.emit("Add", first, x), version=6, variable_id="v")
    builder.result(builder.emit("ReadValue", builder.emit("Multiply", first, 10.0), version=6, **kind))
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    found = [compiled(np.float32([1, 2]))[0].tolist() for _ in range(4)]
    assert found == [[10, 20], [2, 4], [3, 6], [4, 8]]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("counter", np.zeros((7, 7), np.float32), "variable 'counter' has shape [7,7], the model expects counter: f32[1,3]"),
        ("counter", np.full((1, 3), 0.1), "variable 'counter' is float64, the model expects float32 (counter: f32[1,3]), which cannot hold 0.1"),
        ("counter", "text", "variable 'counter' is not an array of f32: it holds <U4"),
        ("clock", np.zeros((1, 3), np.float32), "there is no variable 'clock': the model has counter: f32[1,3]"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(name: str, value: object, message: str) -> None:
    compiled = irexec.compile_model(irexec.read_model(IRS / "state.xml"))
    with pytest.raises(irexec.InputError, match=re.escape(message)):
        compiled.variables[name] = value
    assert dict(compiled.variables) == {}


def test_the_state_of_calls_can_be_set_and_reset() -> None:
    compiled = irexec.compile_model(irexec.read_model(IRS / "state.xml"))
    one, ten = np.ones((1, 3), np.float32), np.full((1, 3), 10, np.float32)
    compiled.variables["counter"] = ten
    ten[...] = 99
    assert float(compiled([one])[0][0, 0]) == 11
    assert list(compiled.variables) == ["counter"]
    del compiled.variables["counter"]
    assert float(compiled([one])[0][0, 0]) == 1
    compiled.reset()
    assert len(compiled.variables) == 0


def test_tensors_inside_bodies_are_refused() -> None:
    compiled = irexec.compile_model(irexec.read_model(IRS / "loop.xml"))
    inputs = [np.zeros((3, 1, 2), np.float32), np.zeros((1, 2), np.float32)]
    loop = next(node for node in compiled.model.nodes if node.bodies)
    inner = loop.bodies["body"].graph.nodes[4]
    for key in (inner.name, f"{loop.name}/body/{inner.name}"):
        with pytest.raises(irexec.InputError, match=f"'{key}' is in body of layer '{loop.name}'"):
            compiled.run(inputs, outputs=[key])
    with pytest.raises(irexec.InputError, match=f"'{inner.name}' is not a layer of the graph itself"):
        compiled.values(inputs, [inner.outputs[0]])


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(irexec.InputError, match="the model is a int, expected a path"):
        irexec.compile_model(5)
    compiled = irexec.compile_model(_model())
    for inputs in (object(), {1, 2}, (x for x in [X])):
        with pytest.raises(irexec.InputError, match="expected a mapping, a sequence or one array"):
            compiled(inputs)
    with pytest.raises(irexec.InputError, match="there is no output 9"):
        compiled.run([X, 2], outputs=[9])
    with pytest.raises(irexec.InputError, match="asked for by None"):
        compiled.run([X, 2], outputs=[None])
    assert list(compiled.run([X, 2], outputs="sum")) == ["sum"]
    for threads in (0, 2.5, "2"):
        with pytest.raises(irexec.InputError, match="threads is"):
            irexec.compile_model(_model(), threads=threads)
    for shape in (5, [1.5], "1,x", {"data": (1.5, 3)}, {"data": ((5, 2), 3)}):
        with pytest.raises(irexec.InputError, match="shape"):
            _model().reshape(shape if isinstance(shape, dict) else {"data": shape})


def test_one_number_is_the_input_of_a_model_of_one() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(element("f32"), (), "x")))
    assert irexec.compile_model(builder.model())(2.5)[0] == np.float32(2.5)


def test_loops_run_as_written() -> None:
    """Three slices in reverse order, stopped after the third by its condition (0 < 2, 1 < 2, not 2 < 2)."""
    x = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    result = irexec.compile_model(irexec.read_model(IRS / "loop.xml"))([x, np.zeros((1, 2), np.float32)])
    sums = np.cumsum(x[::-1, 0], 0)
    np.testing.assert_array_equal(result[0], sums[-1:])
    np.testing.assert_array_equal(result[1], sums[:, None])


def test_tensor_iterators_run_as_written() -> None:
    x = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    result = irexec.compile_model(irexec.read_model(IRS / "tensor_iterator.xml"))([x, np.zeros((2, 3), np.float32)])
    state = np.zeros((2, 3), np.float32)
    for i in range(4):
        state = np.tanh(x[:, i] + state)
        np.testing.assert_allclose(result[1][:, i], state, rtol=1e-5)
    np.testing.assert_allclose(result[0], state, rtol=1e-5)


@pytest.mark.parametrize("condition", [True, False])
def test_branches_run_as_written(condition: bool) -> None:
    x, y = X - 3, X * 2
    result = irexec.compile_model(irexec.read_model(IRS / "branch.xml"))([x, y, condition])
    expected = (np.maximum(x, 0), x + y) if condition else (-y, np.maximum(y, 0))
    for array, reference in zip(result.values(), expected, strict=True):
        np.testing.assert_array_equal(array, reference)


def test_reshape_declares_every_port() -> None:
    model = irexec.read_model(IRS / "convolutions.xml")
    model.reshape({"x": [2, 3, 32, 32]})
    assert irexec.validate(model) == []
    assert model.outputs[0].shape == (2, 4)
    model.reshape("?,3,16..32,16")
    assert model.outputs[0].shape == (irexec.Dim(), 4)
    before = [node.attributes.get("shape") for node in model.parameters]
    with pytest.raises(irexec.NodeError, match=r"layer 2 'Convolution_3' .*data has 4 channels, the filter takes 3"):
        model.reshape({"x": [1, 4, 16, 16]})
    assert [node.attributes.get("shape") for node in model.parameters] == before
    with pytest.raises(irexec.InputError, match="there is no input 'y'"):
        model.reshape({"y": [1]})
    with pytest.raises(irexec.InputError, match="is not a size"):
        model.reshape({"x": "1,a"})


def test_shapes_that_change_from_call_to_call() -> None:
    compiled = irexec.compile_model(irexec.read_model(IRS / "dynamic.xml"))
    for batch in (*range(1, 30), 3, 1):
        result = compiled(
            {"x": np.ones((batch, 2 + batch % 4, 3), np.float32), "any rank": np.ones((1,) * (batch % 5), np.float32)}
        )
        assert result[0].shape == (batch, (2 + batch % 4) * 3)


def test_element_types_that_were_not_known_are_checked_by_the_run() -> None:
    parameter = (
        '<data shape="3" element_type="dynamic"/><output><port id="0" precision="dynamic"><dim>3</dim></port></output>'
    )
    ports = '<input><port id="0"><dim>3</dim></port></input><output><port id="1"><dim>3</dim></port></output>'
    xml = f"""<net name="types" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1">{parameter}</layer>
        <layer id="1" name="elu" type="Elu" version="opset1"><data alpha="1"/>{ports}</layer>
        <layer id="2" name="out" type="Result" version="opset1"><input><port id="0"><dim>3</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""
    run = irexec.compile_model(irexec.read_model(xml.encode()))
    assert run(np.float32([1, 0, 2]))[0].tolist() == [1, 0, 2]
    with pytest.raises(irexec.NodeError, match="data has element type string, expected a numeric type"):
        run(np.array(["a", "b", "c"], object))
