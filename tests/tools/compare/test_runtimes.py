"""compare: one model in several runtimes, and what is known of them: half precision, products of bytes, known differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, InputError, Model, save_model
from irexec.cli.main import run as run_cli
from irexec.testing import typed
from irexec.tools.arrays.agreement import Agreement, Tolerance
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.compare.blame import is_more_than_rounding
from irexec.tools.compare.comparison import Known
from irexec.tools.compare.layers import levels_apart
from irexec.tools.compare.options import computed_from_bf16
from tests.support.paths import DIGITS
from tests.tools.compare.models import chain, stand_in


def test_one_model_needs_two_runtimes() -> None:
    with pytest.raises(InputError, match="nothing to be compared with"):
        compare(chain())
    assert compare(chain(), options=CompareOptions(a_runtime="reference")).agrees


@pytest.mark.slow
def test_the_sample_in_other_runtimes() -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    xml, onnx = DIGITS / "classifier.xml", DIGITS / "classifier.onnx"
    for options in (
        {"b_runtime": "openvino"}, {"b_runtime": "openvino", "isolate": True}, {"a_runtime": "onnxruntime"}, {"a_runtime": "onnx"},
    ):  # fmt: skip
        a = onnx if str(options.get("a_runtime", "")).startswith("onnx") else xml
        found = compare(a, xml, options=CompareOptions(**options))
        assert found.agrees
        assert len(found.rows) >= 6


STAND_IN = """
import os
__version__ = "1"
class Core:
    def read_model(self, *files):
        os._exit(9)
"""


@pytest.mark.slow
def test_a_runtime_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openvino.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(irexec.EngineError, match="the process of openvino ended with exit code 9"):
        compare(chain(), options=CompareOptions(b_runtime="openvino"))


@pytest.mark.slow
def test_many_layers_take_few_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.engines.runtimes.kinds import OpenVINORuntime

    builder = Builder("m")
    y = builder.parameter("f32", (1, 8), "x")
    for i in range(150):
        y = builder.emit(("Sin", "Tanh", "Sigmoid")[i % 3], y, name=f"layer{i}")
    builder.result(y)
    counts: list[int] = []
    run_all = OpenVINORuntime.run_all
    monkeypatch.setattr(
        OpenVINORuntime, "run_all", lambda self, runs, values: counts.append(len(values)) or run_all(self, runs, values)
    )
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"))
    assert found.agrees and len(found.rows) == 150
    assert counts == [150, 1]
    assert found.b.startswith("m (openvino 20")
    counts.clear()
    assert len(compare(builder.model(), options=CompareOptions(b_runtime="openvino", isolate=True)).rows) == 150
    assert counts == [150]


def test_a_layer_that_openvino_refuses_is_left_out() -> None:
    pytest.importorskip("openvino")
    builder = Builder("m")
    x = builder.emit("Relu", builder.parameter("f32", (1, 4, 5, 5), "x"), name="good")
    weights = np.ones((1, 4, 3, 3, 3), np.float32)
    sizes = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = builder.emit("GroupConvolutionBackpropData", x, weights, name="up", **sizes)
    builder.result(builder.emit("Sigmoid", y, name="after"))
    builder.result(builder.emit("Tanh", x, name="beside"))
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"))
    assert {row.b.name for row in found.rows} == {"good", "beside"}
    reasons = {one.name: one.reason for one in found.uncompared}
    assert "could not create a primitive descriptor" in reasons["up"]
    assert reasons["after"] == "it depends on 'up', which openvino does not run"
    assert found.missing_results == ("after",)


# compare: what is known of OpenVINO, for layers that differ.


X = np.array([-4, -3, 2, 5], np.int32)


def halves() -> Model:
    """Integers halved; -3 / 2 is -2 by the specification, and -1 in the CPU plugin of OpenVINO 2026.4."""
    builder = Builder("m")
    x = builder.emit(
        "Add", builder.parameter("i32", (4,), "x"), builder.constant(np.array([1], np.int32)), name="shifted"
    )
    y = builder.emit("Divide", x, builder.constant(np.array([2], np.int32)), m_pythondiv=True, name="halves")
    builder.result(builder.emit("Convert", y, destination_type="f32", name="out"))
    return builder.model()


# As OpenVINO 2026.4.1 gives them.
RECORDED = {
    "x": X,
    "shifted": X + 1,
    "halves": np.array([-1, -1, 1, 3], np.int32),
    "out": np.array([-1, -1, 1, 3], np.float32),
}


def _check(known: tuple[Known, ...], right: str = "irexec") -> None:
    (one,) = known
    assert (one.code, one.layer.name, one.right) == ("IR911", "halves", right)
    assert "rounds quotients of integers towards zero" in one.message


@pytest.mark.parametrize(
    "options", [CompareOptions(a_runtime="openvino"), CompareOptions(b_runtime="openvino")], ids=["a", "b"]
)
def test_a_difference_of_openvino_is_known(options: CompareOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    found = compare(halves(), options=options, inputs={"x": X})
    assert found.first is not None and found.first.row.b.name == "halves"
    _check(found.known)
    assert "known: " in found._repr_html_() and "IR911" in found._repr_html_()
    assert found.as_dict()["known"][0]["code"] == "IR911"


def test_nothing_is_known_where_nothing_differs_or_openvino_has_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    monkeypatch.setitem(RECORDED, "halves", np.array([-2, -1, 1, 3], np.int32))
    monkeypatch.setitem(RECORDED, "out", np.array([-2, -1, 1, 3], np.float32))
    assert compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X}).known == ()
    other = halves()
    next(node for node in other.nodes if node.name == "halves").attributes["m_pythondiv"] = "false"
    found = compare(halves(), other, inputs={"x": X})
    assert found.first is not None and found.known == ()


def test_another_layer_at_fault_has_no_known_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    monkeypatch.setitem(RECORDED, "shifted", X + 2)
    found = compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X})
    assert found.first is not None and found.first.row.b.name == "shifted"
    assert "IR911" not in {one.code for one in found.known if one.layer.name == "shifted"}


def test_recorded_tensors_may_be_of_openvino(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", **RECORDED)
    save_model(halves(), tmp_path / "m.xml")
    _check(compare(tmp_path / "a.npz", tmp_path / "m.xml").known)
    assert run_cli(["compare", str(tmp_path / "a.npz"), str(tmp_path / "m.xml")]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "known: IR911 if A was recorded from OpenVINO: the CPU plugin rounds quotients of integers" in shown
    assert "; irexec agrees with the specification" in shown


def test_openvino_itself() -> None:
    pytest.importorskip("openvino")
    found = compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X})
    _check(found.known)


@pytest.mark.parametrize(("level", "is_known"), [(0.5, True), (1.0, False)])
def test_a_value_between_two_levels_may_have_either(
    level: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter lies between the levels 0 and 0.5, and is not on the level 1."""
    builder = Builder("edge")
    ends = [builder.constant(np.float32(0)), builder.constant(np.float32(1))]
    held = builder.emit("FakeQuantize", builder.parameter("f32", (3,), "x"), *ends, *ends, levels=3, name="held")
    builder.result(builder.emit("Multiply", held, builder.constant(np.float32(3)), name="out"))
    x = np.array([0.25, 0.1, 0.6], np.float32)
    (own,) = irexec.compile_model(builder.model())({"x": x}).values()
    assert own[0] in (0.0, 1.5)
    theirs = np.array([0.5 - own[0] / 3 if is_known else level, 0, 0.5], np.float32)
    stand_in(monkeypatch, "openvino", lambda feeds: {"x": x, "held": theirs, "out": 3 * theirs})
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"), inputs={"x": x})
    assert found.first is not None and found.first.row.b.name == "held"
    text = "1 value on an edge between two levels: rounding decides, and either is right"
    assert [str(one) for one in found.known if not one.code] == [text] * is_known
    assert found.first.row.agreement.message.endswith("; 1 of 3 values one level off") or not is_known


def test_levels_are_counted_through_layers_that_keep_them() -> None:
    """By channel, and behind a MaxPool; a scale by channel is not followed through a Reshape."""
    builder = Builder("levels")
    x = builder.parameter("f32", (1, 2, 2, 2), "x")
    values = {}
    for name, high in (("one", np.float32(51)), ("channels", np.array([[[[51.0]], [[5.1]]]], np.float32))):
        ends = np.zeros_like(high), high
        values[name] = builder.emit("FakeQuantize", x, *ends, *ends, levels=256)
        values[f"{name} moved"] = builder.emit("Reshape", builder.emit("Relu", values[name]), [-1], special_zero=False)
    one, other = np.zeros((1, 2, 2, 2), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    other[0, 0, 0, 1], other[0, 1, 1, 1] = 0.2, 0.4
    for name, expected in (("one", [1, 2]), ("channels", [1, 20])):
        apart = levels_apart(values[name], one, other)
        assert apart is not None and apart[apart > 0].tolist() == expected
    moved = levels_apart(values["one moved"], one.reshape(-1), other.reshape(-1))
    assert moved is not None and moved[moved > 0].tolist() == [1, 2]
    assert levels_apart(values["channels moved"], one.reshape(-1), other.reshape(-1)) is None


# compare beside OpenVINO: f16 and bf16 tensors are observed rounded, and computed on from unrounded values, or from
# rounded ones.


HALF_X = np.float32([1.0002, 1.0004, 1.01])
SUM = np.float32(3.0106)
"""Exact but for rounding of f32; 3.015625 in bf16."""


def summed() -> Model:
    """A sum in bf16, which is converted to f32 and doubled."""
    builder = Builder("m")
    half = builder.emit("Convert", builder.parameter("f32", (3,), "x"), destination_type="bf16", name="half")
    total = builder.emit("ReduceSum", half, np.array([0]), keep_dims=False, name="total")
    wide = builder.emit("Convert", total, destination_type="f32", name="wide")
    builder.result(builder.emit("Add", wide, wide, name="doubled"))
    return builder.model()


def less_one() -> Model:
    """A difference in f16 that nearly cancels out, converted to f32 and multiplied."""
    builder = Builder("m")
    half = builder.emit("Convert", builder.parameter("f32", (3,), "x"), destination_type="f16", name="half")
    less = builder.emit("Subtract", half, builder.constant(1.0, "f16"), name="less")
    wide = builder.emit("Convert", less, destination_type="f32", name="wide")
    builder.result(builder.emit("Multiply", wide, np.float32(1000), name="out"))
    return builder.model()


def _beside_openvino(monkeypatch: pytest.MonkeyPatch, model: Model, recorded: dict[str, np.ndarray]) -> Comparison:
    stand_in(monkeypatch, "openvino", lambda feeds: {"x": HALF_X} | recorded)
    return compare(model, options=CompareOptions(b_runtime="openvino"), inputs={"x": HALF_X})


def _sums(factor: float) -> dict[str, np.ndarray]:
    """The answers of OpenVINO 2026.4.1 on a processor with bf16, with another factor at the end."""
    total = np.float32(3.015625)
    return {"half": typed("bf16", HALF_X).array, "total": total, "wide": total, "doubled": np.float32(factor) * total}


def test_what_is_computed_from_bf16_has_its_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _beside_openvino(monkeypatch, summed(), _sums(2))
    assert found.agrees and found.first is None
    assert any("OpenVINO rounds every bf16 result" in note for note in found.notes)
    found = _beside_openvino(monkeypatch, summed(), _sums(2.5))
    assert found.first is not None and found.first.row.b.name == "doubled"


def test_values_that_are_computed_from_bf16() -> None:
    model = summed()
    names = {value.node.name for value in computed_from_bf16(model)}
    assert names == {"half", "total", "wide", "doubled"}
    assert computed_from_bf16(less_one()) == set()


def test_equal_tensors_are_not_blamed_for_what_rounding_their_inputs_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What irexec computes from 1.0002 as observed, which is 1 in f16, is 0; the fault is in another branch."""
    builder = Builder("m")
    x = builder.parameter("f32", (3,), "x")
    half = builder.emit("Convert", x, destination_type="f16", name="half")
    less = builder.emit("Subtract", half, builder.constant(1.0, "f16"), name="less")
    builder.result(builder.emit("Convert", less, destination_type="f32", name="wide"))
    scaled = builder.emit("Multiply", x, np.float32(30), name="scaled")
    builder.result(builder.emit("Exp", scaled, name="exp"))
    less_one, off = HALF_X - np.float32(1), HALF_X * np.float32(30 * (1 + 5e-5))
    right = {"half": HALF_X.astype(np.float16), "less": less_one.astype(np.float16), "wide": less_one}
    found = _beside_openvino(monkeypatch, builder.model(), right | {"scaled": off, "exp": np.exp(off)})
    assert found.first is not None and found.first.row.b.name == "scaled"


@pytest.mark.parametrize(("factor", "name"), [(1.0002, None), (1.0005, "less"), (1.003, "less")])
def test_a_layer_of_f16_in_front_of_f32_is_named_from_a_unit_on(
    factor: float, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The conversion reads unrounded values, which differ from the stored ones by half a unit of f16, 2.4e-4."""
    less = (HALF_X - np.float32(1)) * np.float32(factor)
    recorded = {"half": HALF_X.astype(np.float16), "less": less.astype(np.float16), "wide": less, "out": less * 1000}
    found = _beside_openvino(monkeypatch, less_one(), recorded)
    assert (found.first and found.first.row.b.name) == name
    assert next(row for row in found.rows if row.b.name == "wide").state == "follows"


@pytest.mark.parametrize(("rtol", "snr", "expected"), [(1e-4, 75, True), (1e-2, 75, False), (1e-2, 45, True)])
def test_more_than_rounding(rtol: float, snr: float, expected: bool) -> None:
    agreement = Agreement("x", True, 1e-3, "", snr=snr)
    assert is_more_than_rounding(agreement, Tolerance(rtol=rtol)) is expected


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_isolated_layers_of_one_model_read_the_same_rounded_tensors(element: str) -> None:
    """In a run in f32 the difference is computed from a product that is not rounded."""
    builder = Builder("m")
    x = builder.parameter(element, (64,), "x")
    product = builder.emit("Multiply", x, builder.constant(1.01, element), name="product")
    builder.result(builder.emit("Subtract", product, x, name="difference"))
    options = CompareOptions(b_runtime="reference", precision="f32", isolate=True)
    values = typed(element, np.linspace(0.5, 3, 64)).array
    assert compare(builder.model(), options=options, inputs={"x": values}).agrees


def test_a_rounding_to_f16_that_one_model_leaves_out_is_not_a_difference() -> None:
    """Weights that one model decompresses in f16, which irexec computes in f32, and the other in f32, stored as f16."""
    codes = np.random.default_rng(0).integers(0, 255, (16, 16)).astype(np.uint8)
    x = np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)

    def model(element: str, scale: float) -> Model:
        builder = Builder("m")
        weights = builder.emit("Convert", builder.constant(codes), destination_type=element)
        weights = builder.emit("Multiply", weights, builder.constant(scale, element))
        weights = weights if element == "f16" else builder.emit("Convert", weights, destination_type="f16")
        weights = builder.emit("Reshape", weights, np.array([16, 16]), special_zero=False, name="stored")
        weights = builder.emit("Convert", weights, destination_type="f32", name="wide")
        builder.result(builder.emit("MatMul", builder.parameter("f32", (2, 16), "x"), weights, name="product"))
        return builder.model()

    scale = float(np.float16(0.0123))
    found = compare(model("f16", scale), model("f32", scale), {"x": x})
    assert found.agrees and any("rounded to f16 in one of them" in row.agreement.message for row in found.rows)
    found = compare(model("f16", scale), model("f32", scale * 1.003), {"x": x})
    assert not found.agrees and found.first is not None


def test_a_conversion_from_f16_that_reads_unrounded_values_is_innocent() -> None:
    """A run in f32 converts the values in front of their rounding to f16; alone the layer reads the rounded ones."""
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)

    def model(*factors: float) -> Model:
        builder = Builder("m")
        value = builder.emit("Convert", builder.parameter("f32", (4, 16), "x"), destination_type="f16")
        for i, factor in enumerate(factors, start=2 - len(factors)):
            value = builder.emit("Multiply", value, builder.constant(factor, "f16"), name=f"product {i}")
        value = builder.emit("Negative", value, name="half")
        builder.result(builder.emit("Convert", value, destination_type="f32", name="wide"), name="y")
        return builder.model()

    found = compare(model(1.48, 1.4), model(float(np.float16(1.48)) * float(np.float16(1.4))), {"x": x})
    wide = next(row for row in found.rows if row.b.name == "wide")
    assert found.agrees and wide.state == "follows"
