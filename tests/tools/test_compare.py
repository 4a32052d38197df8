"""irexec.tools.compare: the first divergence, what is matched and what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, InputError, Model
from irexec.tools.compare import CompareOptions, compare

DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
RNG = np.random.default_rng(0)
W1, W2 = (RNG.standard_normal((6, 6)).astype(np.float32) for _ in range(2))


def chain(w1: np.ndarray = W1, w2: np.ndarray = W2, *, relu: str = "Relu", prefix: str = "", first: str = "MatMul") -> Model:
    """Two products with a Relu between them."""
    builder = Builder("m")
    x = builder.parameter("f32", (4, 6), f"{prefix}x")
    y = builder.emit(first, x, builder.constant(w1, name=f"{prefix}w1"), name=f"{prefix}one")
    y = builder.emit(relu, y, name=f"{prefix}relu")
    y = builder.emit("MatMul", y, builder.constant(w2, name=f"{prefix}w2"), name=f"{prefix}two")
    builder.result(builder.emit("Softmax", y, axis=1, name=f"{prefix}soft"))
    return builder.model()


def changed(weights: np.ndarray) -> np.ndarray:
    other = weights.copy()
    other[:, 3] += 5
    return other


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


def test_a_difference_that_is_masked_is_seen_where_it_can_be() -> None:
    """A Relu that gives 0 for both hides what is in front of it; the first product is compared itself, so it is named."""
    bias = np.full((1, 6), -1000, np.float32)

    def model(offset: float) -> Model:
        builder = Builder("m")
        y = builder.emit("Add", builder.parameter("f32", (4, 6), "x"), builder.constant(bias + offset, name="b"), name="add")
        builder.result(builder.emit("Relu", y, name="relu"))
        return builder.model()

    found = compare(model(0), model(1))
    assert found.first is not None and found.first.row.b.name == "add"
    assert not found.agrees
    assert "the results agree: the difference does not reach any of them" in found.notes


def test_layers_of_one_side_are_listed_and_named_in_front() -> None:
    def model(with_scale: float | None) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        y = x if with_scale is None else builder.emit("Multiply", x, np.float32(with_scale), name="scale")
        builder.result(builder.emit("Sigmoid", builder.emit("Exp", y, name="exp"), name="out"))
        return builder.model()

    found = compare(model(None), model(2))
    assert found.first is not None and found.first.row.b.name == "exp"
    assert [suspect.layer.name for suspect in found.first.between] == ["scale"]
    assert [(one.side, one.name, one.reason) for one in found.uncompared] == [("B", "scale", "only B has it")]
    assert compare(model(None), model(1)).agrees


def test_map() -> None:
    def model(*names: str) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        values = [builder.emit("Multiply", x, np.float32(scale), name=name) for name, scale in zip(names, (2, 3), strict=True)]
        builder.result(builder.emit("Concat", *values, axis=1, name="both"))
        return builder.model()

    found = compare(model("a", "b"), model("b", "a"), options=CompareOptions(maps=(("a", "b"), ("b", "a"))))
    assert [(row.a.name, row.b.name, row.how) for row in found.rows if row.a and row.how == "map"] == [("a", "b", "map"), ("b", "a", "map")]
    assert found.agrees
    with pytest.raises(InputError, match="there is no tensor or layer 'c'"):
        compare(model("a", "b"), model("b", "a"), options=CompareOptions(maps=(("a", "c"),)))


def test_state_over_runs() -> None:
    def model(factor: float) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (2,), "x")
        start = builder.constant(np.zeros(2, np.float32), name="start")
        old = builder.emit("ReadValue", start, variable_id="s", variable_shape="2", variable_type="f32", name="old")
        builder.result(builder.emit("Add", old, x, name="sum"))
        kept = builder.emit("Multiply", x, np.float32(factor), name="kept")
        builder.emit("Assign", kept, variable_id="s", name="assign")
        return builder.model()

    found = compare(model(1), model(2))
    assert found.runs == 2
    assert found.first is not None and (found.first.row.b.name, found.first.row.run) == ("kept", 1)
    rows = {row.b.name: row for row in found.rows}
    assert (rows["old"].agreement.agrees, rows["old"].run, rows["sum"].run) == (False, 2, 2)
    assert [layer.name for layer in found.independent] == ["kept"]
    assert compare(model(1), model(1)).agrees


def test_random_layers_are_left_out() -> None:
    def model() -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4,), "x")
        noise = builder.emit("RandomUniform", np.array([4]), np.float32(0), np.float32(1), output_type="f32", name="noise")
        builder.result(builder.emit("Add", builder.emit("Relu", x, name="relu"), noise, name="noisy"))
        return builder.model()

    found = compare(model(), model())
    assert [row.b.name for row in found.rows] == ["relu"]
    assert [(one.name, one.reason) for one in found.uncompared] == [
        ("noise", "its values are random"), ("noisy", "it depends on 'noise', whose values are random"),
    ]  # fmt: skip
    assert found.agrees


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


def test_recorded_tensors(tmp_path: Path) -> None:
    model = chain()
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    relu = np.maximum(x @ W1, 0)
    np.savez(tmp_path / "t.npz", x=x, relu=relu, two=relu @ W2 + np.eye(4, 6), unknown=x)
    found = compare(tmp_path / "t.npz", model)
    assert [(row.b.name, row.agreement.agrees) for row in found.rows] == [("relu", True), ("two", False)]
    assert [(one.side, one.name) for one in found.uncompared] == [("A", "unknown"), ("B", "one"), ("B", "soft")]
    np.savez(tmp_path / "no_input.npz", relu=relu)
    with pytest.raises(InputError, match="does not hold the inputs"):
        compare(tmp_path / "no_input.npz", model)
    np.savez(tmp_path / "other.npz", y=relu)
    with pytest.raises(InputError, match=r"no tensor of .* has the name of a tensor or layer"):
        compare(tmp_path / "other.npz", model)


def test_a_part_is_fed_from_the_whole() -> None:
    builder = Builder("part")
    builder.result(builder.emit("MatMul", builder.parameter("f32", (4, 6), "relu"), builder.constant(W2, name="w2"), name="two"))
    part = builder.model()
    found = compare(chain(), part, options=CompareOptions(inputs_of="A"))
    assert [(row.b.name, row.agreement.agrees) for row in found.rows] == [("two", True)]
    found = compare(part, chain(w2=changed(W2)), options=CompareOptions(inputs_of="B"))
    assert found.first is not None and found.first.row.b.name == "two"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": 1.0, "metric": "snr"}, "rtol and atol are for the metric max"),
        ({"threshold": 1.0}, "a threshold is for the metrics rel, cosine and snr"),
        ({"runs": 0}, "runs is 0, expected at least 1"),
        ({"b_runtime": "tensorrt"}, "there is no runtime 'tensorrt'"),
        ({"b_runtime": "onnx", "isolate": True}, "onnx runs whole .onnx files"),
    ],
)
def test_what_is_wrong(options: dict[str, object], message: str) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match=message):
        compare(chain(), chain(), options=CompareOptions(**options))


def test_one_model_needs_two_runtimes() -> None:
    with pytest.raises(InputError, match="nothing to be compared with"):
        compare(chain())
    assert compare(chain(), options=CompareOptions(a_runtime="reference")).agrees


def test_a_layer_that_cannot_be_run_is_left_out() -> None:
    def model() -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        good = builder.emit("Relu", x, name="good")
        builder.result(builder.emit("Sigmoid", builder.emit("Softmax", good, axis=1, name="bad"), name="behind"))
        made = builder.model()
        next(node for node in made.nodes if node.name == "bad").attributes["axis"] = "7"
        return made

    found = compare(model(), model())
    assert [row.b.name for row in found.rows] == ["good"]
    assert [one.name for one in found.uncompared] == ["bad", "behind"]
    assert "axis 7" in found.uncompared[0].reason
    assert found.missing_results == ("behind",)
    assert not found.agrees
    assert found.uncompared[1].reason == "it depends on 'bad', which irexec does not run"


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


def test_public_results_display() -> None:
    found = compare(chain(), chain(w1=changed(W1)))
    assert "first" in found._repr_html_()
    assert isinstance(found, irexec.html.Record)


IRS = Path(__file__).parent.parent / "data" / "openvino"


def body_of(model: Model) -> irexec.ir.graph.Graph:
    return next(body.graph for node in model.nodes for body in node.bodies.values())


def replaced(graph: irexec.ir.graph.Graph, old: str, new: str) -> str:
    """Make the layer of one type one of another; its name."""
    node = next(node for node in graph.nodes if node.type == old)
    node.type = new
    return node.name


@pytest.mark.parametrize(
    ("file", "old", "new", "iteration"),
    [("tensor_iterator", "Tanh", "Sigmoid", (0,)), ("tensor_iterator", "Add", "Multiply", (0,)), ("loop", "Add", "Maximum", (0,))],
)
def test_a_layer_in_a_body(file: str, old: str, new: str, iteration: tuple[int, ...]) -> None:
    a, b = irexec.read_model(IRS / f"{file}.xml"), irexec.read_model(IRS / f"{file}.xml")
    name = replaced(body_of(b), old, new)
    found = compare(a, b)
    assert found.first is not None
    assert found.first.row.b.name.endswith(f"/body/{name}")
    assert found.first.row.iteration == iteration
    assert [layer.name for layer in found.independent] == [found.first.row.b.name]
    assert compare(a, a, options=CompareOptions(a_runtime="reference")).agrees


def test_a_later_iteration() -> None:
    """Inputs of which only the third step differs: a layer that clips above 5 is the same before."""

    def model(limit: float) -> Model:
        made = irexec.read_model(IRS / "tensor_iterator.xml")
        node = next(node for node in body_of(made).nodes if node.type == "Tanh")
        node.type, node.attributes = "Clamp", {"min": "-100", "max": str(limit)}
        return made

    x = np.ones((2, 4, 3), np.float32)
    inputs = {"x": x, "start": np.zeros((2, 3), np.float32)}
    found = compare(model(2.5), model(100), inputs)
    assert found.first is not None
    assert found.first.row.iteration == (2,)
    assert found.first.inputs_agree is True


def test_a_branch_that_is_not_taken_is_listed() -> None:
    a, b = irexec.read_model(IRS / "branch.xml"), irexec.read_model(IRS / "branch.xml")
    found = compare(a, b)
    assert found.agrees
    assert {one.reason for one in found.uncompared} == {"its body does not run with these inputs"}


def test_batches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(chain(), chain(w2=changed(W2)))
    parts: list[float] = []
    monkeypatch.setattr("irexec.tools.compare.run._BUDGET", 1)
    apart = compare(chain(), chain(w2=changed(W2)), advance=parts.append)
    assert apart.rows == whole.rows
    assert len(parts) > 2 * len(whole.rows)
    assert sum(parts) <= 1 + 1e-9


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


def test_where_values_begin_to_differ() -> None:
    """A difference within the tolerance that a later layer makes larger."""

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
    assert found.first is not None and found.first.row.b.name == "cancel"
    assert found.first.begins is not None and found.first.begins.name == "begin"


def test_inputs_for_several_runs() -> None:
    runs = [{"x": np.full((4, 6), value, np.float32)} for value in (1, 2, 3)]
    assert compare(chain(), chain(), runs).runs == 3
    with pytest.raises(InputError, match="inputs are given for 3 runs, and runs is 2"):
        compare(chain(), chain(), runs, CompareOptions(runs=2))


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


STAND_IN = """
import os
__version__ = "1"
class Core:
    def read_model(self, *files):
        os._exit(9)
"""


def test_a_runtime_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openvino.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(irexec.EngineError, match="the process of openvino ended with exit code 9"):
        compare(chain(), options=CompareOptions(b_runtime="openvino"))


def test_many_layers_take_few_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.runtimes.openvino import OpenVINORuntime

    builder = Builder("m")
    y = builder.parameter("f32", (1, 8), "x")
    for i in range(150):
        y = builder.emit(("Sin", "Tanh", "Sigmoid")[i % 3], y, name=f"layer{i}")
    builder.result(y)
    counts: list[int] = []
    run_all = OpenVINORuntime.run_all
    monkeypatch.setattr(OpenVINORuntime, "run_all", lambda self, runs, values: counts.append(len(values)) or run_all(self, runs, values))
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
    builder.result(builder.emit("Sigmoid", y, name="behind"))
    builder.result(builder.emit("Tanh", x, name="beside"))
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"))
    assert {row.b.name for row in found.rows} == {"good", "beside"}
    reasons = {one.name: one.reason for one in found.uncompared}
    assert "could not create a primitive descriptor" in reasons["up"]
    assert reasons["behind"] == "it depends on 'up', which openvino does not run"
    assert found.missing_results == ("behind",)
