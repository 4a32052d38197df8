"""compare: the first layer that differs, whatever differs."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import Builder, Model
from irexec.errors import InputError
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.reduce import check_against, reduce
from tests.tools.compare.models import W1, W2, chain, changed


def test_a_weight() -> None:
    found = compare(chain(), chain(w2=changed(W2)))
    assert found.first is not None
    assert (found.first.row.b.name, found.first.row.b.type) == ("two", "MatMul")
    assert found.first.inputs_agree is False
    assert [(one.name, one.agrees) for one in found.first.suspect.inputs] == [("relu", True), ("w2", False)]
    assert "6 of 36 values differ, the first at [0, 3]" in found.first.suspect.inputs[1].message
    assert [row.agreement.agrees for row in found.rows] == [True, True, False, False]
    assert [layer.name for layer in found.independent] == ["two"]
    assert not found.agrees
    assert [row.b.tensor for row in found.results] == ["soft"]


def test_the_same() -> None:
    found = compare(chain(), chain())
    assert found.agrees and found.first is None and found.independent == ()
    assert "4 tensors, all agree" in repr(found)


def test_an_attribute_and_a_type() -> None:
    other = chain()
    next(node for node in other.nodes if node.name == "soft").attributes["axis"] = "0"
    found = compare(chain(), other)
    assert found.first is not None and found.first.row.b.name == "soft"
    assert found.first.suspect.attributes == {"axis": ("1", "0")}
    assert found.first.inputs_agree is True
    found = compare(chain(), chain(relu="Abs"))
    assert found.first is not None and found.first.row.b.name == "relu"
    assert found.first.suspect.attributes == {"type": ("Relu", "Abs")}


def test_names_do_not_matter() -> None:
    found = compare(chain(), chain(w1=changed(W1), prefix="other/"))
    assert found.first is not None
    assert found.first.row.b.name == "other/one"
    assert found.first.row.a is not None and found.first.row.a.name == "one"
    assert len(found.rows) == 4


def test_isolate() -> None:
    wrong = chain(w1=changed(W1), w2=changed(W2))
    found = compare(chain(), wrong)
    assert [row.agreement.agrees for row in found.rows] == [False, False, False, False]
    found = compare(chain(), wrong, options=CompareOptions(isolate=True))
    assert [row.agreement.agrees for row in found.rows] == [False, True, False, True]
    assert [layer.name for layer in found.independent] == ["one", "two"]
    assert found.isolated and found.results == ()


@pytest.mark.parametrize("runtime", ["irexec", "openvino"])
def test_isolate_where_an_input_is_a_result(runtime: str) -> None:
    """The input has no layer to run alone; it is compared beside those that have one."""
    if runtime == "openvino":
        pytest.importorskip("openvino")
    models = []
    for _ in range(2):
        builder = Builder("m")
        x = builder.parameter("f32", (2,), "x")
        for value in (x, builder.emit("Relu", x, name="relu"), builder.constant([1.0, 2.0], name="constant")):
            builder.result(value)
        models.append(builder.model())
    found = compare(*models, options=CompareOptions(isolate=True, b_runtime=runtime))
    assert found.agrees and found.uncompared == ()
    assert [row.b.name for row in found.rows] == ["x", "constant", "relu"]


def test_a_model_without_layers_is_not_compared_with_one_that_has_some() -> None:
    """Its result is an input, which the other model does not compute."""
    models = []
    for computes in (True, False):
        builder = Builder("m")
        x = builder.parameter("f32", (2,), "x")
        builder.result(builder.emit("Relu", x, name="relu") if computes else x)
        models.append(builder.model())
    with pytest.raises(InputError, match="has no layers but inputs and results: there is nothing to compare"):
        compare(*models)
    assert compare(models[1], models[1].clone()).agrees


def test_a_difference_that_is_masked_is_seen_where_it_can_be() -> None:
    """A Relu that gives 0 for both hides what is in front of it; the first product is compared itself, so it is named."""
    bias = np.full((1, 6), -1000, np.float32)

    def model(offset: float) -> Model:
        builder = Builder("m")
        y = builder.emit(
            "Add", builder.parameter("f32", (4, 6), "x"), builder.constant(bias + offset, name="b"), name="add"
        )
        builder.result(builder.emit("Relu", y, name="relu"))
        return builder.model()

    found = compare(model(0), model(1))
    assert found.first is not None and found.first.row.b.name == "add"
    assert not found.agrees
    assert "the results agree: the difference does not reach any of them" in found.notes


def test_halves_against_singles() -> None:
    def model(element: str) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        w = builder.constant(W1, element, name="w")
        w = w if element == "f32" else builder.emit("Convert", w, destination_type="f32", name="converted")
        builder.result(builder.emit("MatMul", x, w, name="y"))
        return builder.model()

    assert compare(model("f32"), model("f16")).agrees
    assert not compare(model("f32"), model("f16"), options=CompareOptions(rtol=1e-5)).agrees


def test_public_results_display() -> None:
    found = compare(chain(), chain(w1=changed(W1)))
    assert "first" in found._repr_html_()
    assert isinstance(found, irexec.records.Record)


def test_an_input_of_another_type_and_name() -> None:
    def model(element: str, name: str) -> Model:
        builder = Builder("m")
        x = builder.parameter(element, (4, 6), name)
        x = x if element == "f32" else builder.emit("Convert", x, destination_type="f32", name="wide")
        builder.result(builder.emit("MatMul", x, builder.constant(W1, name="w"), name="y"))
        return builder.model()

    found = compare(model("f32", "x"), model("f16", "image"))
    assert [row.b.name for row in found.rows] == ["y"]
    assert found.inputs == {"image": (4, 6)}
    assert found.rows[0].agreement.largest > 0


def test_a_rewired_layer() -> None:
    """The tensor that arrives is right by itself, and another one than in A."""

    def model(swapped: bool) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        values = [builder.emit(kind, x, name=name) for kind, name in (("Exp", "one"), ("Sin", "two"), ("Cos", "three"))]
        used = values[1] if swapped else values[0]
        y = builder.emit("Subtract", used, values[2], name="y")
        builder.result(builder.emit("Concat", y, *values, axis=1, name="all"))
        return builder.model()

    found = compare(model(False), model(True))
    assert found.first is not None and found.first.row.b.name == "y"
    assert found.first.suspect.inputs[0].message == "A reads 'one' here"
    assert found.first.inputs_agree is False


def test_nan_and_infinities_are_equal() -> None:
    def model() -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (3,), "x")
        builder.result(builder.emit("Log", x, name="log"))
        return builder.model()

    x = np.array([-1, 0, 1], np.float32)
    assert compare(model(), model(), {"x": x}, CompareOptions(a_runtime="reference")).agrees


def test_a_fault_within_the_tolerance_that_a_later_layer_makes_larger() -> None:

    def model(offset: float) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4,), "x")
        y = builder.emit("Add", x, np.float32(offset), name="begin")
        y = builder.emit("Multiply", y, np.float32(1), name="pass")
        y = builder.emit("Subtract", y, np.array([1, 2, 3, 4], np.float32), name="cancel")
        builder.result(y)
        return builder.model()

    x = np.array([1, 2, 3, 4], np.float32) + np.float32(0.01)
    found = compare(model(0), model(1e-5), {"x": x})
    assert found.first is not None and found.first.row.b.name == "begin"
    assert "within the tolerance" in found.first.row.agreement.message
    assert {row.b.name: row.state for row in found.rows} == {"begin": "differs", "pass": "agrees", "cancel": "follows"}
    assert [layer.name for layer in found.independent] == ["begin"]


@pytest.mark.parametrize("names", ["xy", "ab"])
def test_inputs_are_paired_by_name_or_position(names: str) -> None:
    """Structure alone would say that the inputs of ``x - y`` and ``y - x`` have changed their names."""

    def model(names: str, *, is_swapped: bool) -> Model:
        builder = Builder("m")
        x, y = (builder.parameter("f32", (64,), name) for name in names)
        builder.result(builder.emit("Subtract", *((y, x) if is_swapped else (x, y)), name="difference"))
        return builder.model()

    assert compare(model("xy", is_swapped=False), model(names, is_swapped=False)).agrees
    found = compare(model("xy", is_swapped=False), model(names, is_swapped=True))
    assert found.first is not None and found.first.row.b.name == "difference"
    assert [row.message for row in found.first.suspect.inputs] == ["A reads 'x' here", "A reads 'y' here"]


def test_rounding_that_a_later_layer_makes_larger_is_not_a_fault() -> None:
    """Sums of three values, added in two orders: the same on every machine, and different in the last bit."""

    def model(*, is_left_first: bool) -> Model:
        builder = Builder("m")
        x, y, z = (builder.parameter("f32", (64,), name) for name in "xyz")
        inner = builder.emit("Add", x, y) if is_left_first else builder.emit("Add", y, z)
        total = (
            builder.emit("Add", inner, z, name="sum") if is_left_first else builder.emit("Add", x, inner, name="sum")
        )
        rest = builder.emit("Subtract", total, near, name="cancel")
        builder.result(builder.emit("Exp", rest, name="y"))
        return builder.model()

    arrays = dict(zip("xyz", np.random.default_rng(5).random((3, 64), np.float32), strict=True))
    near = (sum(arrays.values()) * np.float32(1 + 2e-6)).astype(np.float32)
    found = compare(
        model(is_left_first=True), model(is_left_first=False), arrays, CompareOptions(maps=(("sum", "sum"),))
    )
    assert [row.state for row in found.rows if row.b.name == "cancel"] == ["follows"]
    assert not any(row.is_fault for row in found.rows if row.b.name in ("sum", "cancel", "y"))


def test_a_quantised_model_is_compared_by_its_noise() -> None:
    def model(levels: int | None) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        low, high = np.float32(0), np.float32(1)
        y = x if levels is None else builder.emit("FakeQuantize", x, low, high, low, high, levels=levels, name="fq")
        builder.result(builder.emit("MatMul", y, builder.constant(W1, name="w"), name="y"))
        return builder.model()

    found = compare(model(None), model(256))
    assert found.agrees and found.tolerance == "SNR >= 20 dB"
    found = compare(model(None), model(3))
    assert found.first is not None and found.first.row.b.name == "y"
    assert [suspect.layer.name for suspect in found.first.between] == ["fq"]


def detector(exchanged: float = 0.0) -> Model:
    """Boxes and scores, two of which are equal up to rounding; the boxes of the best scores, moved."""
    b = Builder("detector")
    boxes = b.parameter("f32", (1, 6, 4), "boxes")
    scores = b.emit("Add", b.parameter("f32", (1, 1, 6), "scores"), np.array([0, exchanged, 0, 0, 0, 0], np.float32))
    limits = [b.constant(np.array(value, kind)) for value, kind in ((6, np.int64), (0.9, np.float32), (0, np.float32))]
    chosen = b.emit("NonMaxSuppression", boxes, scores, *limits, sort_result_descending=False, version=9, name="nms")
    rows = b.emit("Gather", chosen[0], np.array([2]), np.array(1), name="rows")
    picked = b.emit("Gather", boxes, b.emit("Squeeze", rows, np.array([1])), np.array(1), name="picked")
    b.result(b.emit("Multiply", picked, np.float32(2), name="y"))
    return b.model()


def test_detections_of_equal_scores_have_no_order() -> None:
    """The rows of a box suppression change places with a score, and so do all tensors behind them."""
    corners = np.arange(6, dtype=np.float32)[:, None] * 10
    boxes = (
        np.concatenate([corners, corners, corners + 5, corners + 5], axis=1) + np.random.default_rng(0).random((6, 4))
    )[None]
    scores = np.array([0.9, 0.5, 0.5, 0.4, 0.3, 0.2], np.float32)[None, None]
    given = {"boxes": boxes.astype(np.float32), "scores": scores}
    found = compare(detector(), detector(-1e-6), given)
    assert found.agrees and any("in another order" in row.agreement.message for row in found.rows)
    given["scores"] = np.array([0.9, 0.5, 0.4, 0.45, 0.3, 0.2], np.float32)[None, None]
    assert not compare(detector(), detector(-0.2), given).agrees


def head(name: str, axis: int, index: int) -> Model:
    """Softmax of a reshaped head; the number of channels comes from a shape, by one of two ways."""
    b = Builder(name)
    x = b.parameter("f32", (1, 8, 6), "x")
    shape = b.emit("ShapeOf", x, name=f"{name}.shape")
    size = b.emit("Gather", shape, np.array([index]), np.array(0), name=f"{name}.size")
    sizes = [np.array([1, 2, 4]), size] if index == 2 else [size, np.array([2, 4, 6])]
    target = b.emit("Concat", *(one if one is size else b.constant(one) for one in sizes), axis=0, name=f"{name}.to")
    heads = b.emit("Reshape", b.emit("Tanh", x, name=f"{name}.tanh"), target, special_zero=False, name=f"{name}.heads")
    soft = b.emit("Softmax", heads, axis=axis, name=f"{name}.soft")
    total = b.emit("ReduceSum", b.emit("Multiply", soft, heads), np.array([1]), keep_dims=False, name=f"{name}.sum")
    b.result(b.emit("Multiply", total, np.float32(2), name=f"{name}.y"))
    return b.model()


def test_another_axis_comes_before_a_guess_about_sizes() -> None:
    """Two Gathers of a shape are a guess: exporters compute sizes in different layers."""
    assert compare(head("A", 1, 0), head("B", 1, 2)).agrees
    found = compare(head("A", 1, 0), head("B", 2, 2))
    assert found.first is not None and found.first.row.b.name == "B.soft"
    report = reduce(head("B", 2, 2), check_against(head("A", 1, 0)))
    assert report.found.inputs and report.blame is not None
    assert [one.layer.name for one in report.blame.suspects] == ["B.soft"]
