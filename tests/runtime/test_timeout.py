"""Runs that end early: timeouts, layers that cannot be run, and damage that shows only then."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.compile.steps import ReferenceCall
from irexec.dtypes.elements import F32
from irexec.errors import OpError, UnsupportedError
from irexec.ir.order import find_value
from irexec.ops.control import _output
from irexec.runtime import execute
from irexec.runtime.arenas import Arenas
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.execute import run
from irexec.schema.bodies import Slice, Wiring
from irexec.schema.registry import newest
from irexec.tools.run.input_sources import random_array
from tests.support.loops import endless_loop
from tests.support.paths import IRS

X = np.zeros((1, 4), np.float32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> itertools.count[int]:
    """A clock that is a second further each time it is looked at."""
    seconds = itertools.count()
    # The clock of limits alone: memory and cores are asked for by another.
    monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    return seconds


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("has_steps", "layer"), [(True, r"loop(/count)?"), (False, "loop")])
def test_an_endless_loop_ends(clock: itertools.count[int], optimize: bool, has_steps: bool, layer: str) -> None:
    compiled = irexec.compile_model(endless_loop(has_steps=has_steps), optimize=optimize)
    with pytest.raises(
        irexec.RunTimeoutError, match=f"^the run took longer than 100 s and was stopped at layer '{layer}'$"
    ) as caught:
        compiled.run({"x": X}, timeout=100)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.seconds == 100
    assert next(clock) == 102


def test_a_chain_of_steps_ends_at_the_next_layer(clock: itertools.count[int]) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (1, 4), "x")
    for i in range(10):
        x = builder.emit("Relu", x, name=f"relu{i}")
    builder.result(x)
    compiled = irexec.compile_model(builder.model(), optimize=False)
    with pytest.raises(irexec.RunTimeoutError, match="'relu5'"):
        compiled.run({"x": X}, timeout=5)
    assert compiled.run({"x": X}, timeout=11)[0].shape == (1, 4)
    with pytest.raises(irexec.RunTimeoutError, match="'relu2'"):
        compiled.profile({"x": X}, 5, timeout=13)
    with pytest.raises(irexec.RunTimeoutError, match="'relu5'"):
        compiled.session().values({"x": X}, [x], timeout=5)


def _sequence(builder: irexec.Builder) -> Any:
    state, lengths = np.zeros((1, 1, 2), np.float32), np.array([60])
    weights = [np.zeros((1, 8, 3), np.float32), np.zeros((1, 8, 2), np.float32), np.zeros((1, 8), np.float32)]
    x = builder.parameter("f32", (1, 60, 3), "x")
    return builder.emit(
        "LSTMSequence", x, state, state, lengths, *weights, name="long", hidden_size=2, direction="forward"
    )


def _regions(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8, 8), "x")
    attributes = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 7, "spatial_scale": 1.0, "mode": "max"}
    return builder.emit("ROIAlign", x, np.array([[0, 0, 7, 7]], np.float32), np.array([0]), name="long", **attributes)


def _large_region(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8, 8), "x")
    attributes = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 1000, "spatial_scale": 1.0, "mode": "max"}
    return builder.emit("ROIAlign", x, np.array([[0, 0, 7, 7]], np.float32), np.array([0]), name="long", **attributes)


def _transposed(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8), "x")
    attributes = {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)}
    return builder.emit("ConvolutionBackpropData", x, np.ones((1, 1, 60), np.float32), name="long", **attributes)


def _small_products(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (4_500, 30, 30), "x")
    return builder.emit("MatMul", x, x, name="long")


def _product_of_integers(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (500, 500), "x")
    return builder.emit(
        "MatMul", builder.emit("Convert", x, destination_type="i32"), np.ones((500, 500), np.int32), name="long"
    )


def _boxes(type: str, coordinates: int = 4, **attributes: Any) -> Any:
    """A suppression of 20 boxes in each of 40 classes, apart and of equal score."""

    def build(builder: irexec.Builder) -> Any:
        x = builder.parameter("f32", (1, 40, 20), "x")
        boxes = np.ones((1, 20, coordinates), np.float32)
        boxes[0, :, :2] = 5 * np.arange(20)[:, None]
        boxes[0, :, 2:4] = 1 if coordinates == 5 else boxes[0, :, :2] + 1
        limits = [np.array(20), np.float32(0.5), np.float32(0)] if "NMS" in type or "NonMax" in type else []
        return builder.emit(type, boxes, x, *limits, name="long", **attributes)

    return build


def _texts(type: str, *constants: Any, **attributes: Any) -> Any:
    def build(builder: irexec.Builder) -> Any:
        x = builder.parameter("f32", (60,), "x")
        text = builder.emit("AsString", x, version="irexec")
        return builder.emit(
            type, text, *(np.array(one, object) for one in constants), name="long", version="irexec", **attributes
        )

    return build


@pytest.mark.parametrize(
    "build",
    [
        _sequence, _regions, _large_region, _transposed, _small_products, _product_of_integers,
        _boxes("NonMaxSuppression"), _boxes("NMSRotated", 5), _boxes("MulticlassNms"), _boxes("MatrixNms"),
        _texts("RegexFullMatch", "1*"), _texts("StringTokenizer", ["1"], "", mode="separators"),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_a_long_kernel_ends_before_it_is_done(build: Any, clock: itertools.count[int]) -> None:
    builder = irexec.Builder("m")
    results = build(builder)
    builder.result(results[0] if isinstance(results, tuple) else results)
    compiled = irexec.compile_model(builder.model(), optimize=False)
    x = np.ones(compiled.inputs[0].shape, np.float32)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([x], timeout=10)
    assert next(clock) == 12
    compiled.run([x], timeout=1000)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_ends_between_its_blocks(
    clock: itertools.count[int], monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """In C, the clock is read at intervals of some nanoseconds."""
    monkeypatch.setattr("irexec.backend.calls.LOOK", 0)
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (4000, 64, 64), "x")
    builder.result(builder.emit("MatMul", x, x, name="long"))
    compiled = irexec.compile_model(builder.model(), threads=threads)
    array = np.ones((4000, 64, 64), np.float32)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([array], timeout=10)
    assert compiled.run([array], timeout=1_000_000)[0][-1, -1, -1] == 64


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_a_pad_ends_between_its_blocks(clock: itertools.count[int], monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Of every axis: the result of [62, 6] is cut into blocks of at most 8 elements."""
    monkeypatch.setattr("irexec.reference.windows._BLOCK", 8)
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (60, 4), "x")
    builder.result(builder.emit("Pad", x, np.array([1, 1]), np.array([1, 1]), version=1, name="long", pad_mode=mode))
    compiled = irexec.compile_model(builder.model(), threads=1, native=False)
    array = np.arange(240, dtype=np.float32).reshape(60, 4)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([array], timeout=10)
    np.testing.assert_array_equal(compiled.run([array], timeout=1000)[0], np.pad(array, 1, mode))  # type: ignore[call-overload]


def test_variables_are_as_before(clock: itertools.count[int]) -> None:
    folder = Path(__file__).parent.parent / "data" / "openvino"
    compiled = irexec.compile_model(folder / "state.xml", optimize=False)
    inputs = [
        np.ones([s if isinstance(s, int) else 1 for s in port.shape or ()], np.float32) for port in compiled.inputs
    ]
    compiled(inputs)
    before = {name: array.copy() for name, array in compiled.variables.items()}
    assert before
    for timeout in range(1, 20):
        try:
            compiled.run(inputs, timeout=timeout)
        except irexec.RunTimeoutError:
            assert {name: array.tolist() for name, array in compiled.variables.items()} == {
                n: a.tolist() for n, a in before.items()
            }
        else:
            break
    assert timeout > 1


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_a_timeout_is_a_positive_number(timeout: Any) -> None:
    with pytest.raises(irexec.InputError, match=r"^timeout is .*, expected a number of seconds above 0$"):
        irexec.compile_model(endless_loop()).run({"x": X}, timeout=timeout)


# Tolerant compilation: a layer that cannot be run is an error only for what depends on it.


# x -> Relu a -> MyAct b -> Relu c -> Result, and a state that MyAct feeds.
UNKNOWN = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,2" element_type="f32"/>
 <output><port id="0" precision="FP32" names="x"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="a" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="b" type="MyAct" version="extension"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="3" name="c" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="4" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
<layer id="5" name="read" type="ReadValue" version="opset6"><data variable_id="v" variable_type="f32" variable_shape="?,2"/>
 <input><port id="0"/></input><output><port id="1" precision="FP32"><dim>-1</dim><dim>2</dim></port></output></layer>
<layer id="6" name="write" type="Assign" version="opset6"><data variable_id="v" variable_type="f32" variable_shape="?,2"/>
 <input><port id="0"/></input></layer>
<layer id="7" name="z" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="5" to-port="0"/><edge from-layer="2" from-port="1" to-layer="6" to-port="0"/>
<edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
</edges></net>"""

TOLERANT_X = np.float32([[-1, 2]])


def _model() -> irexec.Model:
    return irexec.Model.of(io.read_text(UNKNOWN))


def test_what_comes_before_can_be_run_and_the_rest_says_why_not() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    assert compiled.run(TOLERANT_X, "a")["a"].tolist() == [[0, 2]]
    assert compiled.run(TOLERANT_X, "read")["read"].tolist() == [[0, 2]]
    for name in ("b", "c", "y"):
        with pytest.raises(UnsupportedError, match=r"layer 2 'b' .*MyAct of extension"):
            compiled.run(TOLERANT_X, name)
    with pytest.raises(UnsupportedError, match="MyAct"):
        compiled(TOLERANT_X)


def test_require_says_so_before_a_run() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    compiled.require([find_value(compiled.model, "a"), find_value(compiled.model, "read")])
    with pytest.raises(UnsupportedError, match="layer 2 'b'"):
        compiled.require([find_value(compiled.model, "a"), find_value(compiled.model, "c")])


def test_a_variable_whose_new_value_cannot_be_computed_keeps_its_state() -> None:
    compiled = CompiledModel(_model(), tolerant=True)
    compiled.run(TOLERANT_X, "read")
    assert dict(compiled.variables) == {}


def test_without_tolerance_the_model_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="layer 2 'b'"):
        CompiledModel(_model())


BODY = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
 <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="a" type="ReLU" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="loop" type="TensorIterator" version="opset1"><input><port id="0"/></input>
 <output><port id="1" precision="FP32"><dim>2</dim></port></output>
 <port_map><input axis="0" external_port_id="0" internal_layer_id="0"/><output axis="0" external_port_id="1" internal_layer_id="2"/></port_map>
 <body><layers>
 <layer id="0" name="slice" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
  <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
 <layer id="1" name="inner" type="MyAct" version="extension"><input><port id="0"/></input>
  <output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
 <layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
 </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></body></layer>
<layer id="3" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
</edges></net>"""


def test_an_unknown_layer_in_a_body_blocks_the_layer_that_has_the_body() -> None:
    compiled = CompiledModel(irexec.Model.of(io.read_text(BODY)), tolerant=True)
    assert compiled.run(np.float32([-1, 2]), "a")["a"].tolist() == [0, 2]
    with pytest.raises(UnsupportedError, match=r"loop/body > 'inner'"):
        compiled.run(np.float32([-1, 2]), "loop")


@pytest.mark.parametrize("tolerant", [True, False])
def test_f16_after_an_unknown_layer_is_not_blamed(tolerant: bool) -> None:
    """Its declared type is f16, where a known layer would give f32 to the Add."""
    text = UNKNOWN.replace("f32", "f16").replace("FP32", "FP16").replace('name="c" type="ReLU"', 'name="c" type="Add"')
    text = text.replace(
        '<edge from-layer="3"', '<edge from-layer="1" from-port="1" to-layer="3" to-port="2"/><edge from-layer="3"'
    ).replace(
        'type="Add" version="opset1"><input><port id="0"/>',
        'type="Add" version="opset1"><input><port id="0"/><port id="2"/>',
    )
    with pytest.raises(UnsupportedError, match=r"layer 2 'b' .*MyAct of extension"):
        CompiledModel(irexec.Model.of(io.read_text(text)), tolerant=tolerant)(np.float16(TOLERANT_X))


# Damage that shows only when a model runs: a sentence with the location, never an exception of NumPy.


@pytest.mark.parametrize(
    ("ir", "pattern", "instead", "says"),
    [
        ("tensor_iterator", 'stride="1"', 'stride="7"', "port map: iteration 1 takes 7..8 of axis 1 of size 4"),
        ("tensor_iterator", 'start="0"', 'start="-5"', "port map: iteration 0 takes -1..0 of axis 1 of size 4"),
        ("loop", ' purpose="execution_condition"', "", "port map: iteration 3 takes -1..0 of axis 0 of size 3"),
        ("operations/opset_16", r'strides="[^"]*"', 'strides="99999999999999999999"', "'99999999999999999999' is not an integer of 64 bits"),
        ("operations/detection", r'keep_top_k="[^"]*"', 'keep_top_k="99999999999999999999"', "'99999999999999999999' is not an integer of 64 bits"),
    ],
)  # fmt: skip
def test_a_run_says_what_is_wrong(ir: str, pattern: str, instead: str, says: str, tmp_path: Path) -> None:
    text, changes = re.subn(pattern, instead, (IRS / f"{ir}.xml").read_text())
    assert changes
    (tmp_path / "m.xml").write_text(text)
    shutil.copy((IRS / f"{ir}.xml").with_suffix(".bin"), tmp_path / "m.bin")
    with pytest.raises(irexec.NodeError, match=re.escape(says)):
        compiled = irexec.compile_model(irexec.read_model(tmp_path / "m.xml"))
        compiled([random_array(port, 0) for port in compiled.inputs])


def test_a_condition_of_a_wrong_rank() -> None:
    text = (
        (IRS / "branch.xml")
        .read_bytes()
        .replace(b'shape="" element_type="boolean"', b'shape="..." element_type="boolean"')
    )
    model = irexec.compile_model(io.read_text(text, (IRS / "branch.bin").read_bytes()))
    x = np.ones((2, 3), np.float32)
    with pytest.raises(irexec.NodeError, match="cond has rank 2, expected 0, or 1 with a single element"):
        model({"x": x, "y": x, "c": np.zeros((1, 1), np.bool_)})


@pytest.mark.parametrize("count", [0, 2])
def test_kernels_refuse_conditions_that_are_not_one_element(count: int) -> None:
    """Inside a body the shape of a condition may be known only when the kernel runs."""
    condition, trips = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    for type, inputs, bodies, name in (
        ("If", (condition,), ("then_body", "else_body"), "cond"),
        ("Loop", (np.array(1), condition), ("body",), "execution_condition"),
        ("Loop", (trips, np.array(True)), ("body",), "trip_count"),
    ):
        with pytest.raises(OpError, match=f"{name} has {count} elements, expected 1"):
            newest(type)(*inputs, **dict.fromkeys(bodies))


def test_iterations_that_do_not_go_together() -> None:
    wiring = Wiring(
        sources=[], backs=[], outputs=[(0, Slice(axis=-1, start=0, end=-1, stride=1, part=1))], condition=None
    )
    parts = [np.zeros((2, 1)), np.zeros((2, 5)), np.zeros((3, 1))]
    with pytest.raises(
        OpError,
        match=re.escape(
            "iterations give shapes [2, 1] and [2, 5] and [3, 1], which cannot be concatenated along axis 1"
        ),
    ):
        _output(None, wiring, 0, None, parts, ())


def test_an_error_in_irexec_itself_says_where_it_was() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (2,), "x"), name="here"))
    plan = irexec.compile_model(builder.model(), optimize=False).program.plan((), None)

    def broken(*_: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("no reason")

    steps = [dataclasses.replace(step, call=ReferenceCall(broken)) for step in plan.steps]
    with pytest.raises(ZeroDivisionError) as caught:
        run(dataclasses.replace(plan, steps=steps), [np.zeros(2, np.float32)], {}, Arenas())
    assert caught.value.__notes__ == ["in layer 1 'here' (Relu of opset1)"]
