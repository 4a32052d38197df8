"""irexec convert with an .onnx as the output: the files, the options, the error that lists layers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.cli.main import run
from tests.support.paths import DIGITS, IRS, ROOT

Capture = pytest.CaptureFixture[str]
CLASSIFIER = DIGITS / "classifier.xml"


def _convert(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """Contents of stdout and stderr."""
    assert run(["convert", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def _saved(folder: Path, builder: Builder) -> Path:
    path = folder / "m.xml"
    irexec.save_model(builder.model(), path)
    return path


def _refused(folder: Path) -> Path:
    """A model with two layers that ONNX cannot express."""
    builder = Builder("m")
    x = builder.parameter("f32", [2], "x")
    one = builder.emit("Convert", x, destination_type="u1", name="bits")
    builder.result(builder.emit("Convert", one, destination_type="f32"))
    builder.result(builder.emit("Convert", x, destination_type="nf4", name="normal"))
    return _saved(folder, builder)


def test_writes_and_verifies(tmp_path: Path, capsys: Capture) -> None:
    out, _ = _convert(capsys, CLASSIFIER, "-o", tmp_path / "c.onnx", "--verify")
    assert "probabilities  agrees" in out
    model = onnx.load(tmp_path / "c.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [info.name for info in model.graph.input] == ["image"]
    assert [info.name for info in model.graph.output] == ["probabilities"]


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_opsets(opset: int, tmp_path: Path, capsys: Capture) -> None:
    _convert(capsys, CLASSIFIER, "-o", tmp_path / "c.onnx", "--opset", opset, "--verify")
    assert onnx.load(tmp_path / "c.onnx").opset_import[0].version == opset


def test_an_opset_that_is_not_written(tmp_path: Path, capsys: Capture) -> None:
    _, err = _convert(capsys, CLASSIFIER, "-o", tmp_path / "c.onnx", "--opset", 12, code=2)
    assert "opset 12 cannot be written: the opsets are 13 to" in err


def test_external_data(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c.onnx"
    _convert(capsys, CLASSIFIER, "-o", path, "--external-data", "--verify")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["c.onnx", "c.onnx.data"]
    whole = irexec.to_onnx(CLASSIFIER)
    read = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    for tensor in whole.graph.initializer:
        np.testing.assert_array_equal(read[tensor.name], onnx.numpy_helper.to_array(tensor))


def test_the_default_output_is_beside_the_model(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.xml"
    irexec.save_model(irexec.read_model(CLASSIFIER), path)
    _convert(capsys, path)
    assert (tmp_path / "m.onnx").exists()
    _, err = _convert(capsys, path, code=2)
    assert "exists: -o names another file to write" in err


def test_all_refused_layers_are_listed(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "r.json"
    path = _refused(tmp_path)
    _, err = _convert(capsys, path, "-o", tmp_path / "m.onnx", "--report", report, code=4)
    assert "2 layers cannot be written as ONNX: layer 'bits' (Convert, line" in err
    assert "layer 'normal' (Convert, line" in err
    assert not (tmp_path / "m.onnx").exists()
    document = json.loads(report.read_text("utf-8"))
    assert [layer["name"] for layer in document["refused"]] == ["bits", "normal"]
    _check(document)
    with pytest.raises(irexec.ConversionError) as caught:
        irexec.to_onnx(path)
    assert [layer.name for layer in caught.value.layers] == ["bits", "normal"]


def test_the_report_lists_operators(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "r.json"
    _convert(capsys, CLASSIFIER, "-o", tmp_path / "m.onnx", "--report", report)
    document = json.loads(report.read_text("utf-8"))
    _check(document)
    assert {"Conv", "Relu"} <= {name for layer in document["written"] for name in layer["operators"]}


def _check(document: object) -> None:
    schema = json.loads((ROOT / "docs/reference/schemas/convert.json").read_text("utf-8"))
    jsonschema.validate(document, schema)


def test_nothing_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(irexec.to_onnx(CLASSIFIER), path)
    before = path.read_bytes()
    _, err = _convert(capsys, path, "-o", path, code=2)
    assert "which would be overwritten" in err
    assert path.read_bytes() == before


def test_options_of_onnx_are_refused_for_an_ir(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(irexec.to_onnx(CLASSIFIER), path)
    _, err = _convert(capsys, path, "-o", tmp_path / "m.xml", "--opset", 17, code=2)
    assert "--opset is for an .onnx, and the output is an IR" in err


def test_shapes_of_inputs(tmp_path: Path, capsys: Capture) -> None:
    builder = Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", None, "x"), name="y"))
    path = _saved(tmp_path, builder)
    _, err = _convert(capsys, path, "-o", tmp_path / "m.onnx", code=2)
    assert "the rank of input 'x' is not known, and ONNX needs it: give it a shape with --input \"x[...]\"" in err
    _convert(capsys, path, "-o", tmp_path / "m.onnx", "--input", "x[?,3]", "--verify")
    shape = onnx.load(tmp_path / "m.onnx").graph.output[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["x.0", 3]


def test_a_damaged_model_is_refused_with_its_place(capsys: Capture, tmp_path: Path) -> None:
    for arguments in (["-o", tmp_path / "m.onnx"], ["-o", tmp_path / "m.xml", "--for", "2021.4"]):
        _, err = _convert(capsys, DIGITS / "damaged.xml", *arguments, code=3)
        assert "damaged.xml, line 353: an edge from layer 1 goes to layer 999, which does not exist" in err
    assert not list(tmp_path.iterdir())


def test_an_ir_is_not_written_as_something_else(capsys: Capture, tmp_path: Path) -> None:
    _, err = _convert(capsys, CLASSIFIER, "-o", tmp_path / "m.tflite", code=2)
    assert "MODEL is an IR, which is written as an .onnx, or with --for as an .xml" in err
    assert not list(tmp_path.iterdir())


def test_states_are_named(tmp_path: Path, capsys: Capture) -> None:
    g = Builder("m")
    x = g.parameter("f32", [2], "x")
    state = g.emit("ReadValue", g.constant(np.zeros(2, np.float32)), variable_id="sum", variable_type="f32",
                   variable_shape=(2,))  # fmt: skip
    g.emit("Assign", g.emit("Add", x, state), variable_id="sum")
    g.result(g.emit("Relu", x), "y")
    path, report = _saved(tmp_path, g), tmp_path / "r.json"
    out, _ = _convert(capsys, path, "-o", tmp_path / "m.onnx", "--report", report)
    assert "state 'sum' is input 'sum' and output 'sum/next'; an output is passed to the next run" in out
    document = json.loads(report.read_text("utf-8"))
    assert document["states"] == [{"variable": "sum", "input": "sum", "output": "sum/next"}]
    _check(document)


def test_an_empty_constant_that_declares_a_byte(tmp_path: Path, capsys: Capture) -> None:
    """OpenVINO writes such constants; a tensor of ONNX may not have the byte."""
    _convert(capsys, IRS / "operations" / "empty.xml", "-o", tmp_path / "e.onnx", "--verify")
    model = onnx.load(tmp_path / "e.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {tensor.raw_data for tensor in model.graph.initializer if 0 in tensor.dims} <= {b""}


def test_layers_of_f16_are_written_as_they_are_declared_or_as_they_are_computed(
    tmp_path: Path, capsys: Capture
) -> None:
    builder = Builder("m")
    x = builder.parameter("f16", (2, 3), "x")
    builder.result(builder.emit("Multiply", builder.emit("Exp", x), builder.constant(np.float16(300))))
    path = _saved(tmp_path, builder)
    _, err = _convert(capsys, path, "-o", tmp_path / "a.onnx")
    assert "2 layers, such as 'Exp', will compute in f16" in err
    _, err = _convert(capsys, path, "-o", tmp_path / "b.onnx", "--arithmetic", "f32")
    assert err == ""
    types = {
        name: onnx.load(tmp_path / name).graph.output[0].type.tensor_type.elem_type for name in ("a.onnx", "b.onnx")
    }
    assert types == {"a.onnx": onnx.TensorProto.FLOAT16, "b.onnx": onnx.TensorProto.FLOAT}
    large = np.full((2, 3), 6, np.float16)
    halves, floats = (next(iter(irexec.infer(tmp_path / name, {"x": large}).values())) for name in ("a.onnx", "b.onnx"))
    # 300 e^6 is 121,029, above the largest value of f16.
    np.testing.assert_allclose(floats, 300 * np.exp(6.0), rtol=1e-3)
    assert halves.dtype == np.float16
