"""f16 and bf16 in f32, or as written. The values of f32 are the answers of OpenVINO 2026.4.1 (CPU, INFERENCE_PRECISION_HINT f32)."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import Precision
from irexec.dtypes.elements import BF16, F8E4M3, F8E5M2, F16, F32, I8, I64, NF4, Element
from irexec.errors import InputError
from irexec.runtime.compiled_model import CompiledModel
from irexec.testing import typed

OPTIMIZE = pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "reference"])


def _half(b: Builder, *values: float) -> object:
    return b.constant(np.array(values if len(values) > 1 else values[0], np.float16), F16)


def state() -> irexec.Model:
    """A sum of x / 3 over runs, as f16."""
    b = Builder("state")
    x = b.parameter(F16, (3,), "x")
    start = b.constant(np.zeros(3, np.float16), F16)
    held = b.emit("ReadValue", start, version=6, variable_id="v", variable_type=F16, variable_shape=(3,))
    total = b.emit("Add", held, b.emit("Multiply", x, _half(b, 1 / 3), version=1), version=1)
    b.emit("Assign", total, version=6, variable_id="v")
    b.result(b.emit("Convert", total, version=1, destination_type=F32))
    b.result(total, "sum")
    return b.model()


@OPTIMIZE
def test_a_state_keeps_its_type_and_what_is_computed_does_not(optimize: bool) -> None:
    compiled = irexec.compile_model(state(), optimize=optimize)
    x = np.float16([1, 2, 3000])
    for exact, rounded in (
        ([0.33325195, 0.66650391, 999.75586], [0.3333, 0.6665, 1000]),
        ([0.66650391, 1.3330078, 1999.7559], [0.6665, 1.333, 2000]),
        ([0.99975586, 1.9995117, 2999.7559], [1, 2, 3000]),
    ):
        wide, narrow = compiled([x]).values()
        np.testing.assert_allclose(wide, np.float32(exact), rtol=2e-7)
        np.testing.assert_array_equal(narrow, np.float16(rounded))
        assert compiled.variables["v"].dtype == np.float16
        np.testing.assert_array_equal(compiled.variables["v"], narrow)


def chain(first: Element, second: Element) -> irexec.Model:
    """x * x, converted and converted back."""
    b = Builder("chain")
    x = b.parameter(F32, (4,), "x")
    square = b.emit("Multiply", x, x, version=1)
    b.result(
        b.emit(
            "Convert", b.emit("Convert", square, version=1, destination_type=first), version=1, destination_type=second
        )
    )
    return b.model()


@OPTIMIZE
@pytest.mark.parametrize("element", [F16, BF16], ids=str)
def test_a_convert_to_16_bits_and_back_changes_nothing(element: Element, optimize: bool) -> None:
    x = np.float32([1 / 3, 1e6, 1e-9, np.inf])
    (found,) = irexec.compile_model(chain(element, F32), optimize=optimize)([x]).values()
    np.testing.assert_allclose(found, np.float32([0.11111112, 1e12, 9.9999994e-19, np.inf]), rtol=2e-7)
    (written,) = irexec.compile_model(chain(element, F32), optimize=optimize, precision="as-written")([x]).values()
    assert abs(written[0] - 1 / 9) > 1e-5


@OPTIMIZE
def test_values_that_f16_cannot_hold_are_lost_only_where_they_are_given_out(optimize: bool) -> None:
    b = Builder("large")
    x = b.parameter(F16, (2,), "x")
    square = b.emit("Multiply", x, x, version=1)
    b.result(b.emit("Multiply", square, _half(b, 0.01), version=1))
    b.result(square)
    given = np.float16([300, 1000])
    small, large = irexec.compile_model(b.model(), optimize=optimize)([given]).values()
    np.testing.assert_array_equal(small, np.float16([900, 10000]))
    np.testing.assert_array_equal(large, np.float16([np.inf, np.inf]))
    small, _ = irexec.compile_model(b.model(), optimize=optimize, precision="as-written")([given]).values()
    np.testing.assert_array_equal(small, np.float16([np.inf, np.inf]))


@OPTIMIZE
def test_sizes_that_are_computed_in_f16(optimize: bool) -> None:
    """floor(10005 * f16(0.3)): 3002 in f16, whose integers have gaps there."""
    b = Builder("sizes")
    x = b.parameter(F32, (1, 2, -1), "x")
    sizes = b.emit("Convert", b.emit("ShapeOf", x, version=3, output_type="i64"), version=1, destination_type=F16)
    scaled = b.emit("Floor", b.emit("Multiply", sizes, _half(b, 1, 1, 0.3), version=1), version=1)
    b.result(b.emit("Convert", scaled, version=1, destination_type=I64))
    (found,) = irexec.compile_model(b.model(), optimize=optimize)([np.zeros((1, 2, 10005), np.float32)]).values()
    np.testing.assert_array_equal(found, [1, 2, 3001])


@OPTIMIZE
def test_operations_that_name_a_type(optimize: bool) -> None:
    b = Builder("named")
    low, high = (b.emit("Convert", b.constant(np.float32(v), F32), version=1, destination_type=F16) for v in (0, 1))
    shape = b.constant(np.int64([6]), I64)
    noise = b.emit("RandomUniform", shape, low, high, version=8, output_type=F16, global_seed=7, op_seed=5)
    b.result(b.emit("Convert", noise, version=1, destination_type=F32))
    stop, step = (
        b.emit("Convert", b.constant(np.float32(v), F32), version=1, destination_type=F16) for v in (0.35, 0.1)
    )
    steps = b.emit("Range", low, stop, step, version=4, output_type=F16)
    b.result(b.emit("Convert", steps, version=1, destination_type=F32))
    random, steps = irexec.compile_model(b.model(), optimize=optimize)([]).values()
    np.testing.assert_allclose(
        random, [0.8669311, 0.00216758, 0.91945195, 0.4260975, 0.81806636, 0.04437065], rtol=1e-5
    )
    assert steps.dtype == np.float32


@OPTIMIZE
def test_sums_are_of_f32(optimize: bool) -> None:
    b = Builder("sums")
    x = b.parameter(F16, (6,), "x")
    sums = b.emit("CumSum", b.emit("Multiply", x, _half(b, 0.1), version=1), b.constant(np.int64(0), I64), version=3)
    b.result(b.emit("Convert", sums, version=1, destination_type=F32))
    (found,) = irexec.compile_model(b.model(), optimize=optimize)([np.float16([1, 2, 3, 1000, 5, 6])]).values()
    expected = [9.9975586e-02, 2.9992676e-01, 5.9985352e-01, 1.0057544e02, 1.0107532e02, 1.0167517e02]
    np.testing.assert_allclose(found, np.float32(expected), rtol=2e-7)


BRANCHES = """<net name="n" version="11"><layers>
<layer id="0" name="c" type="Parameter" version="opset1"><data shape="" element_type="boolean"/><output><port id="0" precision="BOOL"/></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data shape="3" element_type="f16"/>
  <output><port id="0" precision="FP16"><dim>3</dim></port></output></layer>
<layer id="2" name="if" type="If" version="opset8"><input><port id="0" precision="BOOL"/><port id="1" precision="FP16"><dim>3</dim></port></input>
  <output><port id="2" precision="FP16"><dim>3</dim></port></output>
  <then_port_map><input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/></then_port_map>
  <else_port_map><input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/></else_port_map>
  {then_body}{else_body}</layer>
<layer id="3" name="wide" type="Convert" version="opset1"><data destination_type="f32"/><input><port id="0" precision="FP16"><dim>3</dim></port></input>
  <output><port id="1" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="4" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>3</dim></port></input></layer>
<layer id="5" name="s" type="Result" version="opset1"><input><port id="0" precision="FP16"><dim>3</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
<edge from-layer="2" from-port="2" to-layer="5" to-port="0"/></edges></net>"""
BODY = """<{name}><layers>
<layer id="0" name="p" type="Parameter" version="opset1"><data shape="3" element_type="f16"/>
  <output><port id="0" precision="FP16"><dim>3</dim></port></output></layer>
<layer id="1" name="k" type="{type}" version="opset1"><input><port id="0" precision="FP16"><dim>3</dim></port><port id="1" precision="FP16"><dim>3</dim></port></input>
  <output><port id="2" precision="FP16"><dim>3</dim></port></output></layer>
<layer id="2" name="o" type="Result" version="opset1"><input><port id="0" precision="FP16"><dim>3</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/></edges></{name}>"""


@OPTIMIZE
@pytest.mark.parametrize(("condition", "expected"), [(True, 0.11105686), (False, 0.6665039)])
def test_bodies(condition: bool, expected: float, optimize: bool) -> None:
    bodies = {
        name: BODY.format(name=name, type=type) for name, type in (("then_body", "Multiply"), ("else_body", "Add"))
    }
    compiled = irexec.compile_model(io.read_text(BRANCHES.format(**bodies)), optimize=optimize)
    wide, narrow = compiled([np.bool_(condition), np.full(3, 1 / 3, np.float16)]).values()
    np.testing.assert_allclose(wide, np.full(3, expected, np.float32), rtol=1e-7)
    np.testing.assert_array_equal(narrow, wide.astype(np.float16))


def test_tensors_have_the_declared_type_and_inserted_layers_are_not_among_them() -> None:
    compiled = irexec.compile_model(state())
    assert [str(port.element) for port in (*compiled.inputs, *compiled.outputs)] == ["f16", "f32", "f16"]
    found = compiled.run([np.float16([1, 2, 3])], ["x", "sum"])
    assert {array.dtype for array in found.values()} == {np.dtype(np.float16)}


@pytest.mark.parametrize("precision", ["as-written", "f32"])
def test_a_parameter_of_unknown_type_leaves_the_model_as_written(precision: Precision) -> None:
    b = Builder("dynamic")
    b.result(b.emit("Multiply", b.parameter(F16, (2,), "x"), _half(b, 1 / 3), version=1))
    model = b.model()
    model.parameters[0].attributes["element_type"] = "dynamic"
    compiled = irexec.compile_model(model, precision=precision)
    assert compiled([np.float16([1, 2])])[0].dtype == np.float16


@OPTIMIZE
def test_two_types_of_8_bits_are_promoted(optimize: bool) -> None:
    b = Builder("promoted")
    x = b.parameter(F32, (2,), "x")
    one, other = (b.emit("Convert", x, version=1, destination_type=kind) for kind in (F8E4M3, F8E5M2))
    both = b.emit("ConvertPromoteTypes", one, other, version=14, promote_unsafe=True)
    b.result(b.emit("Multiply", *both, version=1))
    assert irexec.compile_model(b.model(), optimize=optimize)([np.float32([1, 2])])[0].tolist() == [1, 4]


def test_what_is_not_a_precision() -> None:
    with pytest.raises(InputError, match="precision is 'f16', expected 'as-written', 'f32' or 'bf16'"):
        CompiledModel(state(), precision="f16")  # type: ignore[arg-type]


def folded(reader: str, integers: bool) -> tuple[irexec.Model, np.ndarray]:
    """A product of constants in f16, of 8-bit integers if asked for, that a layer of f16 reads; the exact product."""
    rng = np.random.default_rng(3)
    stored = rng.integers(-127, 128, (8, 8)) if integers else rng.standard_normal((8, 8)).astype(np.float16)
    scale = (rng.random((8, 1)) * 1e-3 + 1e-3).astype(np.float16)
    b = Builder("folded")
    left = b.constant(stored, I8 if integers else F16)
    left = b.emit("Convert", left, destination_type=F16) if integers else left
    product = b.emit("Multiply", left, b.constant(scale, F16))
    if reader == "Convert":
        b.result(b.emit("Add", b.parameter(F32, (8, 8), "x"), b.emit("Convert", product, destination_type=F32)))
    elif reader == "MatMul":
        x = b.parameter(F16, (8, 8), "x")
        made = b.emit("MatMul", x, product, transpose_a=False, transpose_b=True)
        b.result(b.emit("Convert", made, destination_type=F32))
    else:
        x = b.parameter(F16, (8, 8), "x")
        b.result(b.emit("Convert", b.emit("Add", x, product), destination_type=F32))
    return b.model(), stored.astype(np.float64) * scale


@OPTIMIZE
@pytest.mark.parametrize(
    ("reader", "integers", "is_rounded"),
    [
        ("Add", False, True), ("Add", True, True), ("MatMul", False, True), ("MatMul", True, False),
        ("Convert", False, False), ("Convert", True, False),
    ],
)  # fmt: skip
def test_constants_are_rounded_where_openvino_folds_them(
    reader: str, integers: bool, is_rounded: bool, optimize: bool
) -> None:
    """Measured with OpenVINO 2026.4.1: it rounds once, unless a Convert to f32 follows or MatMul decompresses its weights."""
    model, exact = folded(reader, integers)
    x = np.eye(8) if reader == "MatMul" else np.zeros((8, 8))
    (found,) = irexec.compile_model(model, optimize=optimize)([x.astype(model.inputs[0].element.carrier)]).values()
    expected = exact.astype(np.float16).astype(np.float64) if is_rounded else exact
    expected = expected.T if reader == "MatMul" else expected
    np.testing.assert_allclose(found, expected, rtol=2e-7)


@OPTIMIZE
def test_a_chain_of_constants_is_rounded_once(optimize: bool) -> None:
    b = Builder("chain")
    x = b.parameter(F16, (4,), "x")
    values = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float16)
    product = b.emit(
        "Multiply", b.emit("Multiply", *(b.constant(v, F16) for v in values[:2])), b.constant(values[2], F16)
    )
    b.result(b.emit("Convert", b.emit("Add", x, product), destination_type=F32))
    (found,) = irexec.compile_model(b.model(), optimize=optimize)([np.zeros(4, np.float16)]).values()
    np.testing.assert_array_equal(found, values.astype(np.float64).prod(0).astype(np.float16).astype(np.float32))


@OPTIMIZE
@pytest.mark.parametrize("stored", [F32, NF4], ids=str)
@pytest.mark.parametrize(("is_scaled", "reader"), [(False, "Add"), (False, "MatMul"), (True, "Add"), (True, "MatMul")])
def test_a_convert_of_constants_to_f16_rounds(stored: Element, is_scaled: bool, reader: str, optimize: bool) -> None:
    """Measured with OpenVINO 2026.4.1: it folds the Convert, but for that of 4-bit weights that MatMul scales."""
    rng = np.random.default_rng(5)
    weights = typed(stored.name, rng.uniform(-1, 1, (8, 8)).astype(np.float32)).array
    scale = (rng.random((8, 1)) + 1).astype(np.float16) if is_scaled else np.ones((8, 1), np.float16)
    b = Builder("converted")
    x = b.parameter(F32, (8, 8), "x")
    half = b.emit("Convert", b.constant(weights, stored), destination_type=F16)
    half = b.emit("Multiply", half, b.constant(scale, F16)) if is_scaled else half
    wide = b.emit("Convert", half, destination_type=F32)
    b.result(
        b.emit("Add", x, wide) if reader == "Add" else b.emit("MatMul", x, wide, transpose_a=False, transpose_b=True)
    )
    given = np.zeros((8, 8)) if reader == "Add" else np.eye(8)
    (found,) = irexec.compile_model(b.model(), optimize=optimize)([given.astype(np.float32)]).values()
    decompressed = stored is NF4 and is_scaled and reader == "MatMul"
    exact = (weights if decompressed else weights.astype(np.float16)).astype(np.float64) * scale
    np.testing.assert_allclose(found, exact.T if reader == "MatMul" else exact, rtol=2e-7)
