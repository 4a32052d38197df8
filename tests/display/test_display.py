"""What Python shows at a prompt and in a notebook, for every object that users get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.codes import CODES
from irexec.analysis.execution_graph import executed_layers, times_by_type
from irexec.records import ROWS, Records
from irexec.tools import operations
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.batch.run import BatchReport
from irexec.tools.compare import Comparison, compare
from irexec.tools.diff import diff
from irexec.tools.graph import draw
from irexec.tools.inspect import summary as inspect
from irexec.tools.inspect import weights as stored_weights
from irexec.tools.inspect.cost import cost
from irexec.tools.inspect.memory import memory
from irexec.tools.inspect.precision import precision
from irexec.tools.report import WrittenReport
from irexec.tools.run import results
from irexec.tools.run.infer_report import Assertion, InferReport
from irexec.tools.validation import reports
from tests.display.test_markup import HOSTILE
from tests.support.markup import Element, parse

IRS = Path(__file__).parent.parent / "data" / "openvino"
DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
CLASSIFIER, DAMAGED = DIGITS / "classifier.xml", DIGITS / "damaged.xml"
EXECUTED = DIGITS.parent / "execution_graph.xml"


def _classifier() -> irexec.CompiledModel:
    return irexec.compile_model(CLASSIFIER)


def _step() -> irexec.StepRun:
    found: list[irexec.StepRun] = []
    _classifier().run(np.ones((1, 1, 8, 8), np.float32), on_layer=found.append)
    return found[0]


def _results() -> irexec.Outputs:
    return _classifier()(np.ones((1, 1, 8, 8), np.float32))


def _other() -> irexec.Model:
    model = irexec.read_model(CLASSIFIER)
    next(node for node in model.nodes if node.type == "Softmax").attributes["axis"] = "0"
    return model


def _comparison() -> Comparison:
    return compare(irexec.read_model(CLASSIFIER), _other())


def _node(file: str, type: str) -> Any:
    return next(node for node in irexec.read_model(IRS / file).nodes if node.type == type)


def _session() -> irexec.Session:
    session = irexec.compile_model(IRS / "state.xml").session()
    session([np.ones((1, 3), np.float32)])
    return session


def _report() -> InferReport:
    arrays = {"a": np.arange(4.0)}
    comparison = Assertion((agreement_of("a", arrays["a"], arrays["a"] + 1, Tolerance(rtol=0, atol=0)),), ("b",))
    return InferReport(arrays, tuple(results.predictions(arrays, 2)), comparison)


# What is shown, the start of its repr, and texts of the HTML.
SHOWN: dict[str, tuple[Callable[[], Any], str, list[str]]] = {
    "model": (
        lambda: irexec.read_model(CLASSIFIER),
        "<Model 'digits classifier': 21 layers, image: f32[1,1,8,8]",
        ["image", "[1,10]", "24.4 kB", "Convolution"],
    ),
    "model with errors": (lambda: irexec.read_model(DAMAGED), "<Model", ["problems", "error", "image"]),
    "builder": (lambda: irexec.Builder("net"), "<Builder 'net': 0 layers>", []),
    "node": (lambda: irexec.read_model(CLASSIFIER).nodes[4], "<Node 4 'conv0' Add>", ["auto_broadcast", "from conv0/Convolution", "62"]),
    "node with a body": (lambda: _node("tensor_iterator.xml", "TensorIterator"), "<Node ", ["body", "Graph"]),
    "body": (lambda: _node("tensor_iterator.xml", "TensorIterator").bodies["body"].graph, "<Graph ", ["Parameter"]),
    "port": (lambda: irexec.read_model(CLASSIFIER).inputs[0], "<Port image: f32[1,1,8,8]>", ["image", "f32", "[1,1,8,8]"]),
    "findings": (
        lambda: irexec.validate(irexec.read_model(DAMAGED)),
        "[<Finding IR302 warning, line 15, layer 1 'conv0.w' (Constant): no Result",
        ["9 errors, 1 warning", "IR107", "2 conv0/Convolution (Convolution)"],
    ),
    "some findings": (lambda: irexec.validate(irexec.read_model(DAMAGED))[:2], "[<Finding IR302", ["1 error, 1 warning"]),
    "one finding": (lambda: irexec.validate(irexec.read_model(DAMAGED))[9], "<Finding IR011 error, line 353: an edge from layer 1 goes", ["IR011"]),
    "no findings": (lambda: irexec.validate(irexec.read_model(CLASSIFIER)), "[]", ["no findings"]),
    "code": (lambda: CODES["IR103"], "Code(code='IR103'", ["required attribute"]),
    "compiled model": (_classifier, "<CompiledModel 'digits classifier': image", ["threads", "probabilities"]),
    "session": (_session, "<Session of ", ["float32", "[1,3]"]),
    "variables": (lambda: _session().variables, "VariableStates('", ["float32", "[1,3]"]),
    "outputs": (_results, "Outputs('probabilities': float32[1, 10])", ["1 output", "probabilities", "[1,10]", "histogram of 10 elements"]),
    "step run": (_step, "<StepRun Convolution+Add+Relu 'conv0/Convolution', 'conv0', 'relu1': float32[1, 16, 8, 8], ", ["output 0", "[1,16,8,8]"]),
    "plan": (lambda: _classifier().plan, "<PlanReport 'digits classifier': ", ["conv0/Convolution +2", "f32[1,16,8,8]", "arena"]),
    "step": (lambda: _classifier().plan.steps[0], "<StepRow 1 'conv0/Convolution +2': Convolution+Add+Relu", ["conv0/Convolution +2"]),
    "profile": (lambda: _classifier().profile(np.ones((1, 1, 8, 8), np.float32), 2), "<Profile: ", ["84.2 kMACs", "by layer", "conv3/Convolution"]),
    "profile row": (
        lambda: _classifier().profile(np.ones((1, 1, 8, 8), np.float32), 2).rows("layer", "macs")[0],
        "<ProfileRow 'conv3/Convolution' Convolution: ms ",
        ["73.7 k"],
    ),
    "cost": (lambda: cost(irexec.read_model(CLASSIFIER)).cost, "Cost(macs=84224", ["84224"]),
    "summary": (
        lambda: inspect.summarize(irexec.read_model(CLASSIFIER)),
        "<Summary 'digits classifier': 21 layers, 7 constants of 24.4 kB, image",
        ["21 layers of 10 operations", "Convolution-1"],
    ),
    "layers": (
        lambda: inspect.layers(irexec.read_model(CLASSIFIER)),
        "[<LayerLine 0 'image' Parameter:  -> f32[1,1,8,8], line ",
        ["21 LayerLines", "f32[1,16,8,8]"],
    ),
    "edges": (lambda: inspect.edges(irexec.read_model(CLASSIFIER)), "[EdgeRow(", ["from layer"]),
    "weights": (lambda: stored_weights.weights(irexec.read_model(CLASSIFIER)), "[WeightLine(", ["7 WeightLines", "conv0.w", "[16,1,3,3]"]),
    "validation report": (lambda: next(reports([str(DAMAGED)])), f"<Report {DAMAGED}: 9 errors, 1 warning>", ["IR103"]),
    "unreadable file": (lambda: next(reports(["missing.xml"])), "<Report missing.xml: missing.xml: cannot be read", ["cannot be read"]),
    "results": (_report, "<InferReport 'a': float64[4], differs>", ["most probable classes", "4 of 4 values differ"]),
    "comparison": (_comparison, "<Comparison of ", ["11 agree, 1 differ", "first divergence: 'probabilities' (Softmax, layer 19, line 327)", "axis", "input"]),
    "difference": (lambda: diff(irexec.read_model(CLASSIFIER), _other()), "<Diff ", ["probabilities", "axis"]),
    "costs": (lambda: cost(irexec.read_model(CLASSIFIER)), "<CostReport ", ["conv3/Convolution", "73.7 k"]),
    "cost of a layer": (lambda: cost(irexec.read_model(CLASSIFIER)).rows()[0], "LayerCost(", ["conv3/Convolution", "73728"]),
    "memory": (lambda: memory(irexec.read_model(CLASSIFIER)), "<MemoryReport ", ["8.19 kB"]),
    "element types": (lambda: precision(irexec.read_model(CLASSIFIER)), "<PrecisionReport ", ["6.09 k weights"]),
    "written report": (lambda: WrittenReport("r.html", 123456, 2, {"error": 1}, ("summary",), ()), "WrittenReport(", ["123 kB", "1 error"]),
    "job": (lambda: BatchReport("out.npz", "out.npz.sqlite", 20, 18, 2, 0, 5, 8), "BatchReport(", ["out.npz: 18 of 20 items, 5 of them before, 2 failed"]),
    "tensor": (lambda: results.describe("a", np.arange(4)), "TensorLine(name='a'", ["int64"]),
    "predictions": (lambda: results.predictions({"a": np.arange(4.0)}, 2), "[Prediction(", ["2 Predictions"]),
    "coverage": (operations.coverage, "Coverage(", ["opset"]),
    "operations": (lambda: operations.matching(("softmax",)), "[OperationLine(", ["Softmax"]),
    "execution graph": (lambda: executed_layers(irexec.read_model(EXECUTED)), "[ExecutedLayer(", ["ExecutedLayers"]),
    "times of types": (lambda: times_by_type(executed_layers(irexec.read_model(EXECUTED))), "[TypeTime(", ["microseconds"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str) -> None:
    make, start, texts = SHOWN[name]
    shown = make()
    assert repr(shown).startswith(start)
    if texts:
        found = parse(shown._repr_html_())
        for text in texts:
            assert text in found.text


@pytest.mark.parametrize(
    "name", [name for name in SHOWN if name not in ("findings", "weights", "layers", "edges", "execution graph")]
)
def test_a_repr_is_short(name: str) -> None:
    assert all(len(line) < 500 for line in repr(SHOWN[name][0]()).splitlines())


def test_a_drawing_is_shown() -> None:
    shown = draw(irexec.read_model(CLASSIFIER))
    assert len(repr(shown)) < 100
    assert parse(shown._repr_html_()).all("svg")


def test_findings_are_a_list() -> None:
    findings = irexec.validate(irexec.read_model(DAMAGED))
    assert isinstance(findings, list)
    assert findings == list(findings) == [*findings]
    assert findings + [] == findings
    assert [finding.code for finding in findings[8:]] == ["IR204", "IR011"]
    assert irexec.validate(irexec.read_model(CLASSIFIER)) == []


def test_a_long_list_says_how_many_more_there_are() -> None:
    many = Records(irexec.validate(irexec.read_model(DAMAGED))[:1] * (ROWS + 1234))
    assert repr(many).endswith("... and 1,234 more]")
    assert parse(many._repr_html_()).rows()[-1] == ["and 1,234 more"]
    assert len(repr(many).splitlines()) == ROWS + 1


def _hostile_model(name: str) -> irexec.Model:
    builder = irexec.Builder(name)
    x = builder.parameter("f32", (1, 3), name, [name])
    builder.result(builder.emit("Softmax", x, axis=1, name=f"{name}2"), f"{name}3")
    model = builder.model()
    model.nodes[1].attributes[name] = name
    return model


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "show",
    [
        lambda model: model,
        lambda model: model.nodes[1],
        lambda model: model.inputs[0],
        lambda model: irexec.validate(model),
        lambda model: inspect.layers(model),
        lambda model: cost(model),
        lambda model: memory(model, compiled=False),
        lambda model: precision(model),
        lambda model: inspect.summarize(model),
        lambda model: operations.unsupported(model),
    ],
    ids=["model", "node", "port", "findings", "layers", "costs", "memory", "element types", "summary", "list of texts"],
)
def test_hostile_names_are_shown_and_not_obeyed(show: Callable[[irexec.Model], Any], name: str) -> None:
    def tags(text: str) -> list[str]:
        shown = show(_hostile_model(text))
        return [found.tag for found in parse(shown._repr_html_()).all()] if hasattr(shown, "_repr_html_") else []

    # Texts that XML cannot hold are findings of their own, which are rows more.
    assert set(tags(name)) == set(tags("not a name"))


@pytest.mark.parametrize(
    "array",
    [
        np.array(7, np.int64),
        np.zeros((0, 3), np.float32),
        np.full(3, np.nan, np.float32),
        np.array([np.inf, -np.inf, 1]),
        np.array([1.7e308, -1.7e308]),
        np.array([1.0, np.nextafter(1, 2)]),
        np.array([True, False]),
        np.array(["a", "<b>"], object),
        np.frombuffer(b"\x01\x00\xa0\x7f", np.float32),
        np.arange(3_000_000, dtype=np.float16),
    ],
    ids=["scalar", "empty", "NaN", "infinite", "wide", "narrow", "boolean", "strings", "signalling NaN", "long"],
)
def test_any_array_displays(array: np.ndarray) -> None:
    port = irexec.read_model(CLASSIFIER).outputs[0]
    row = parse(irexec.Outputs([port], [array])._repr_html_()).rows()[1]
    assert row[0] == "probabilities"


def test_statistics_of_an_array() -> None:
    port = irexec.read_model(CLASSIFIER).outputs[0]
    shown: Element = parse(irexec.Outputs([port], [np.array([1, 2, 6, np.nan, np.inf], np.float32)])._repr_html_())
    assert shown.rows() == [
        ["name", "type", "shape", "minimum", "maximum", "mean", "NaN, infinities", "histogram"],
        ["probabilities", "float32", "[5]", "1", "6", "3", "2", "histogram of 3 elements from 1 to 6"],
    ]
