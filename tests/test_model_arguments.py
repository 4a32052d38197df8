"""Functions that take a model take what read_model takes: a path as text or as a Path, bytes, an open file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.diff import diff
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.inspect.cost import cost
from irexec.tools.inspect.memory import memory
from irexec.tools.inspect.precision import precision
from irexec.tools.inspect.summary import layers, summarize, tree
from irexec.tools.measure import BenchOptions, bench
from irexec.tools.operations import unsupported
from irexec.tools.reduce import CommandCheck, reduce
from irexec.tools.run.input_sources import InputSource
from irexec.tools.trapping.trap import record_ranges, trap
from tests.support.fake_releases import fake_releases
from tests.support.paths import DIGITS

XML = DIGITS / "classifier.xml"
X = np.ones((1, 1, 8, 8), np.float32)
NO_GRAPH = irexec.ReportOptions(has_graph=False)
REFERENCE = CompareOptions(b_runtime="reference")


def _relu(*shape: int) -> irexec.Model:
    x = irexec.opset.parameter(shape, "f32", "x")
    return irexec.Model([irexec.opset.relu(x, name="y", names=["y"])], [x])


def _ports(model: irexec.Model) -> list[str]:
    return [str(port) for port in (*model.inputs, *model.outputs)]


def _bisected(model: Any, folder: Path) -> str:
    made = folder / "releases"
    if not made.exists():
        fake_releases(made, {"2024.0.0": "refuses"})
    return irexec.bisect(
        model, options=irexec.BisectOptions(openvino="2024.0", installed=True, environments=str(made))
    ).summary


FUNCTIONS: dict[str, Callable[[Any, Path], Any]] = {
    "validate": lambda model, folder: irexec.validate(model),
    "compile_model": lambda model, folder: irexec.compile_model(model)([X])[0].tolist(),
    "infer": lambda model, folder: irexec.infer(model, X)[0].tolist(),
    "save_model": lambda model, folder: (irexec.save_model(model, folder / "m.xml"), (folder / "m.bin").read_bytes())[1],
    "diff, as a": lambda model, folder: diff(model, XML).counts,
    "diff, as b": lambda model, folder: irexec.diff(XML, model).counts,
    "compare": lambda model, folder: compare(model, options=REFERENCE).agrees,
    "judge": lambda model, folder: irexec.judge(model, runtime="reference").verdict,
    "sensitivity": lambda model, folder: irexec.sensitivity(model).together,
    "cost": lambda model, folder: cost(model),
    "inspect": lambda model, folder: irexec.inspect(model).layers,
    "tree": lambda model, folder: tree(model).root,
    "precision": lambda model, folder: precision(model),
    "memory": lambda model, folder: memory(model).peak,
    "graph": lambda model, folder: irexec.graph(model).boxes,
    "report": lambda model, folder: irexec.report(model, folder / "r.html", NO_GRAPH).sections,
    "report_page": lambda model, folder: irexec.report_page(model, NO_GRAPH)[:100],
    "summarize": lambda model, folder: summarize(model).layers,
    "layers": lambda model, folder: layers(model),
    "unsupported": lambda model, folder: unsupported(model),
    "open_runtime": lambda model, folder: open_runtime("irexec", model).model.name,
    "trap": lambda model, folder: trap(model, [X]).trap,
    "record_ranges": lambda model, folder: record_ranges(model, [[X]], str(folder / "ranges.json")).model,
    "join, as a": lambda model, folder: _ports(irexec.join(model, _relu(1, 10), {"x": "probabilities"})),
    "join, as b": lambda model, folder: _ports(irexec.join(_relu(1, 1, 8, 8), model, {"image": "y"})),
    "script": lambda model, folder: irexec.script(model, folder / "m.py", overwrite=True).layers,
    "reduce": lambda model, folder: reduce(model, CommandCheck("test ! -e {}", 60)).before,
    "bisect": lambda model, folder: _bisected(model, folder),
    "check_against": lambda model, folder: irexec.check_against(model).identity,
    "to_onnx": lambda model, folder: irexec.to_onnx(model).SerializeToString(),
}  # fmt: skip
_OF_PATHS: dict[str, Callable[[Any, Path], Any]] = {
    "bench": lambda model, folder: bench(model, [InputSource(None, "zeros")], BenchOptions(runs=1), print).shapes
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_that_take_a_model_take_its_path(call: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    expected = call(irexec.read_model(XML), tmp_path)
    assert call(str(XML), tmp_path) == expected
    assert call(XML, tmp_path) == expected


@pytest.mark.parametrize("call", _OF_PATHS.values(), ids=_OF_PATHS)
def test_functions_that_take_a_path_take_both_kinds(call: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    assert call(str(XML), tmp_path) == call(XML, tmp_path)


def test_every_public_function_of_a_model_is_in_the_table() -> None:
    taking = {
        name
        for name in irexec.__all__
        if inspect.isfunction(value := getattr(irexec, name))
        and {"model", "a", "other"} & inspect.signature(value).parameters.keys()
    }
    # The processes of a batch read the file, convert takes ONNX models alone, and agreement_of takes arrays.
    assert taking - {"read_model", "convert", "batch", "agreement_of"} == {
        name.partition(",")[0] for name in FUNCTIONS
    } & set(irexec.__all__)


def test_an_onnx_model_that_cannot_be_converted_is_validated(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from tests.support.onnx_models import model_of

    parts = "s = SplitToSequence <axis = 2, keepdims = 1> (x) y = ConcatFromSequence <axis = 2> (s)"
    onnx.save(model_of(f"(float[N,C,H,W] x) => (float[N,C,P,Q] y) {{ {parts} }}"), tmp_path / "m.onnx")
    assert [finding.code[:2] for finding in irexec.validate(tmp_path / "m.onnx")] == ["ON"]
    assert irexec.validate(DIGITS / "classifier.onnx") == []


def test_bytes_and_files() -> None:
    data = XML.read_bytes()
    with XML.open("rb") as file:
        assert [irexec.validate(data), irexec.validate(file)] == [irexec.validate(irexec.read_model(data))] * 2


@pytest.mark.parametrize(
    "call", [irexec.validate, lambda m: irexec.save_model(m, "m.xml"), lambda m: irexec.diff(XML, m), cost]
)
def test_what_is_not_a_model(call: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(irexec.InputError, match="the model is a int, expected a path"):
        call(5)
    with pytest.raises(irexec.ModelError, match=r"nowhere\.xml"):
        call("nowhere.xml")


def test_convert_takes_a_path_or_bytes_of_an_onnx_model() -> None:
    pytest.importorskip("onnx")
    path = DIGITS / "classifier.onnx"
    names = [node.name for node in irexec.read_model(path).nodes]
    with path.open("rb") as file:
        for model in (str(path), path, path.read_bytes(), file):
            assert [node.name for node in irexec.convert(model).nodes] == names
    assert str(irexec.convert(path, inputs={"image": "1..8,1,8,8"}).inputs[0]) == "image: f32[1..8,1,8,8]"
    with pytest.raises(irexec.InputError, match=r"classifier\.xml is not an ONNX model"):
        irexec.convert(XML)


def test_convert_warns_at_the_line_that_calls_it(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from tests.support.onnx_models import model_of

    onnx.save(model_of("(float[2] x) => (float[3] y) { y = Relu (x) }"), tmp_path / "m.onnx")
    for call in (irexec.convert, irexec.read_model):
        with pytest.warns(irexec.ConversionWarning) as caught:
            call(tmp_path / "m.onnx")
        assert caught[0].filename == __file__
    with pytest.raises(irexec.ConversionError):
        irexec.convert(tmp_path / "m.onnx", strict=True)


def test_infer_runs_once_and_returns_any_tensor() -> None:
    compiled = irexec.compile_model(XML)
    assert (irexec.infer(XML, {"image": X})["probabilities"] == compiled(X)[0]).all()
    assert irexec.infer(XML, X, "conv0")["conv0"].shape == (1, 16, 8, 8)
    with pytest.raises(irexec.RunTimeoutError):
        irexec.infer(XML, X, timeout=1e-9)


def test_reduce_against_a_model(tmp_path: Path) -> None:
    wrong = irexec.read_model(XML)
    for node in wrong.nodes:
        if node.type == "MaxPool":
            node.attributes["pads_begin"], node.attributes["pads_end"] = "1, 1", "0, 0"
            break
    found = irexec.reduce(wrong, inputs={"image": X}, against=XML)
    assert [layer.name for layer in found.layers] == ["maxpool2"]
    with pytest.raises(irexec.InputError, match="give either check, or against"):
        irexec.reduce(XML)
    with pytest.raises(irexec.InputError, match="give either check, or against"):
        irexec.reduce(XML, CommandCheck("test ! -e {}"), against=XML)


@pytest.mark.parametrize("given", [X, [X], "x.png"], ids=["array", "arrays", "path"])
@pytest.mark.parametrize(
    "tool",
    [
        lambda given: irexec.compare(XML, inputs=given, options=irexec.CompareOptions(b_runtime="reference")),
        lambda given: irexec.judge(XML, given, runtime="reference"),
        lambda given: irexec.sensitivity(XML, given),
        lambda given: irexec.reduce(XML, inputs=given, against="reference"),
        lambda given: irexec.Predictor(XML)(given),
    ],
    ids=["compare", "judge", "sensitivity", "reduce", "predictor"],
)
def test_inputs_of_runs_have_names(tool: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(irexec.InputError, match=r"expected (inputs|a batch) by name, .*, and not (ndarray|list|str)"):
        tool(given)


def test_reports_print_what_the_command_shows() -> None:
    judged = irexec.judge(XML, {"image": X}, runtime="reference")
    assert str(judged).splitlines()[-1] == "12 tensors of reference in f32: 12 inside"
    assert str(irexec.trap(XML, X)) == "trap nan,inf: nothing found in 12 layers"


@pytest.mark.slow
def test_batch_writes_the_classes_of_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    image = irexec.ImageOptions(scale=(255.0,))
    report = irexec.batch(XML, DIGITS.glob("digit_[01].png"), tmp_path / "c.jsonl", topk=1, image=image, jobs=1)
    assert (report.done, report.failed) == (2, 0)
    classes = [json.loads(line)["probabilities.class"][0] for line in (tmp_path / "c.jsonl").open()]
    assert sorted(classes) == [0, 1]


def test_finding_codes() -> None:
    assert irexec.explain("ir103") == irexec.findings()["IR103"]
    with pytest.raises(irexec.InputError, match="there is no finding code 'IR118'; similar codes are IR110, IR911"):
        irexec.explain("IR118")
