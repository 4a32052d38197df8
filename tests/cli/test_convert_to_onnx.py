"""irexec convert with an .onnx as the output, and irexec upgrade."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.cli.main import run
from irexec.tools.engines.inference_engine import VARIABLE, environments
from tests.converters.legacy_ir.files import OldFile
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


# irexec upgrade: what it writes, what it refuses, and what it compares.


OLD = DIGITS / "classifier_v5.xml"
WRITER = "IR version 5, written by Model Optimizer in 2018 and 2019 (2018 R5, 2019 R1)"


def _upgrade(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What the command writes to stdout and stderr."""
    assert run(["upgrade", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def test_the_new_file_is_the_same_classifier(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "new.xml"
    assert _upgrade(capsys, OLD, "-o", target)[0] == f"{WRITER}\n{target}: 21 layers, IR version 11\n"
    made = irexec.read_model(target)
    assert [issue.code for issue in irexec.validate(made)] == []
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = irexec.infer(DIGITS / "classifier.xml", {"image": image})["probabilities"]
    np.testing.assert_allclose(irexec.infer(made, {"image": image})["probabilities"], expected, rtol=1e-5, atol=1e-6)


def test_openvino_loads_the_new_file(tmp_path: Path, capsys: Capture) -> None:
    openvino = pytest.importorskip("openvino")
    _upgrade(capsys, OLD, "-o", tmp_path / "new.xml")
    model = openvino.Core().read_model(tmp_path / "new.xml")
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == ["image", "probabilities"]


@pytest.mark.parametrize("present", [False, True])
def test_what_was_compared(present: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    if present and not environments():
        pytest.skip("Inference Engine is not installed")
    if not present:
        monkeypatch.delenv(VARIABLE, raising=False)
    out = _upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify")[0]
    old = "Inference Engine 2020.4" if present else "irexec"
    assert f"compared: the old file in {old} with the new file in " in out
    assert ("IREXEC_INFERENCE_ENGINE names a folder" in out) is not present


def test_results_that_differ(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("irexec.tools.upgrading._run_new", lambda new, model, runs: ("other", [[np.zeros((1, 10))]]))
    assert "differs" in _upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify", code=1)[0]


def test_the_old_files_are_not_overwritten(tmp_path: Path, capsys: Capture) -> None:
    for end in ("xml", "bin"):
        shutil.copy(OLD.with_suffix(f".{end}"), tmp_path / f"old.{end}")
    text = (tmp_path / "old.xml").read_bytes()
    err = _upgrade(capsys, tmp_path / "old.xml", "-o", tmp_path / "old.xml", code=2)[1]
    assert "would be overwritten" in err
    assert (tmp_path / "old.xml").read_bytes() == text
    (tmp_path / "other.bin").write_bytes((tmp_path / "old.bin").read_bytes())
    err = _upgrade(capsys, tmp_path / "old.xml", "--bin", tmp_path / "other.bin", "-o", tmp_path / "other.xml", code=2)[
        1
    ]
    assert "would be overwritten" in err


def test_weights_that_do_not_exist_are_named_with_their_model(tmp_path: Path, capsys: Capture) -> None:
    err = _upgrade(capsys, OLD, "--bin", "missing.bin", "-o", tmp_path / "new.xml", code=3)[1]
    assert f"{OLD}: the weights 'missing.bin' cannot be read: missing.bin does not exist" in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_today_is_refused(tmp_path: Path, capsys: Capture) -> None:
    err = _upgrade(capsys, DIGITS / "classifier.xml", "-o", tmp_path / "new.xml", code=2)[1]
    assert "is an IR of version 11, expected one of version 2 to 7" in err
    err = _upgrade(capsys, DIGITS / "classifier.onnx", "-o", tmp_path / "new.xml", code=2)[1]
    assert "is an ONNX model, expected an IR of version 2 to 7" in err


def test_nothing_is_written_if_a_layer_cannot_be_translated(tmp_path: Path, capsys: Capture) -> None:
    file = OldFile(5)
    x = file.input("x", (2, 3))
    file.layer("Swoosh", "one", [(x, 0, (2, 3))], [(2, 3)])
    (tmp_path / "old.xml").write_bytes(file.text)
    err = _upgrade(capsys, tmp_path / "old.xml", "-o", tmp_path / "new.xml", code=4)[1]
    assert "layer 1 'one' (Swoosh)" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.xml"]


def test_json(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(_upgrade(capsys, OLD, "-o", tmp_path / "new.xml", "--verify", "--json")[0])
    assert document["old"] == WRITER
    assert [one["agrees"] for one in document["verify"]["outputs"]] == [True]
