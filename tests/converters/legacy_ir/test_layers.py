"""Files of versions 2 to 7: each layer type, states, findings, damage, and constants in other forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from converters.legacy_ir.registry import find
from irexec.analysis.codes import CODES
from irexec.cli.main import run
from irexec.errors import ConversionError
from tests.converters.legacy_ir import (
    convolution_rows,
    detection_rows,
    elementwise_rows,
    normalization_rows,
    recurrence_rows,
    shape_rows,
)
from tests.converters.legacy_ir.files import OldFile, port, single
from tests.converters.legacy_ir.rows import Row, random

ROWS: list[Row] = [
    *convolution_rows.ROWS, *elementwise_rows.ROWS, *shape_rows.ROWS, *normalization_rows.ROWS, *recurrence_rows.ROWS,
    *detection_rows.ROWS,
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.type}: {row.name}")
def test_a_layer_gives_its_values(row: Row) -> None:
    file, inputs = row.file()
    model = irexec.read_model(file.text, file.data)
    assert [finding for finding in irexec.validate(model) if finding.severity != "info"] == []
    outputs = irexec.infer(model, inputs)
    names = ["y"] if len(row.gives) == 1 else [f"y.{index}" for index in range(len(row.gives))]
    for name, expected in zip(names, row.gives, strict=True):
        assert outputs[name].shape == expected.shape
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-4, atol=1e-5)


# TensorIterator, Memory pairs, pre-processing, results and their names.


S, H = random(2, 3, 4), random(2, 4)


def _iterator(start: int, end: int, stride: int) -> OldFile:
    """h = tanh(x_t + h), with x_t squeezed by a Reshape; outputs: every h, and the last one."""
    file = OldFile(7)
    s, h = file.input("s", S.shape), file.input("h", H.shape)
    sliced = f'axis="1" start="{start}" end="{end}" stride="{stride}" part_size="1"'
    shape = (2, 4)
    body = (
        "<body><layers>"
        '<layer id="0" name="flat" type="Reshape" precision="FP32"><data dim="2,4"/>'
        f"<input>{port(0, (2, 1, 4))}</input><output>{port(1, shape)}</output></layer>"
        '<layer id="1" name="sum" type="Eltwise" precision="FP32"><data operation="sum"/>'
        f"<input>{port(0, shape)}{port(1, shape)}</input><output>{port(2, shape)}</output></layer>"
        f'<layer id="2" name="out" type="TanH" precision="FP32"><input>{port(0, shape)}</input>'
        f"<output>{port(1, shape)}</output></layer>"
        '<layer id="3" name="row" type="Reshape" precision="FP32"><data dim="2,1,4"/>'
        f"<input>{port(0, shape)}</input><output>{port(1, (2, 1, 4))}</output></layer></layers><edges>"
        '<edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>'
        '<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></body>'
        f'<port_map><input external_port_id="0" internal_layer_id="0" internal_port_id="0" {sliced}/>'
        '<input external_port_id="1" internal_layer_id="1" internal_port_id="1"/>'
        f'<output external_port_id="2" internal_layer_id="3" internal_port_id="1" {sliced}/>'
        '<output external_port_id="3" internal_layer_id="2" internal_port_id="1"/></port_map>'
        '<back_edges><edge from-layer="2" from-port="1" to-layer="1" to-port="1"/></back_edges>'
    )
    file.layer("TensorIterator", "y", [(s, 0, S.shape), (h, 0, H.shape)], [S.shape, H.shape], inside=body)
    return file


@pytest.mark.parametrize(("steps", "times"), [((0, -1, 1), [0, 1, 2]), ((-1, 0, -1), [2, 1, 0])])
def test_an_iterator(steps: tuple[int, int, int], times: list[int]) -> None:
    file = _iterator(*steps)
    model = irexec.read_model(file.text, file.data)
    assert list(irexec.validate(model)) == []
    outputs = irexec.infer(model, {"s": S, "h": H})
    h, found = H, np.zeros_like(S)
    for time in times:
        h = np.tanh(S[:, time] + h)
        found[:, time] = h
    np.testing.assert_allclose(outputs["y.0"], found, rtol=1e-5)
    np.testing.assert_allclose(outputs["y.1"], h, rtol=1e-5)


def test_a_fault_in_a_body_is_found_there() -> None:
    file = _iterator(0, -1, 1)
    file.layers[2] = file.layers[2].replace('type="TanH"', 'type="TanG"')
    with pytest.raises(irexec.ConversionError, match=r"layer 2 'out' \(TanG\): 'TanG' is not a layer type"):
        irexec.read_model(file.text, file.data)


def test_a_memory_pair_keeps_its_value() -> None:
    file = OldFile(7)
    x = file.input("x", (1, 3))
    before = file.layer("Memory", "read", (), [(1, 3)], {"id": "m", "index": "1", "size": "2"})
    total = file.layer("Eltwise", "sum", [(x, 0, (1, 3)), (before, 0, (1, 3))], [(1, 3)], {"operation": "sum"})
    file.layer("Memory", "write", [(total, 2, (1, 3))], (), {"id": "m", "index": "0", "size": "2"})
    file.layer("Power", "y", [(total, 2, (1, 3))], [(1, 3)], {"power": 1, "scale": 2, "shift": 0})
    model = irexec.read_model(file.text, file.data)
    assert list(irexec.validate(model)) == []
    assert [output.name for output in model.outputs] == ["y"]
    compiled = irexec.compile_model(model)
    one = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(compiled({"x": one})["y"], 2 * one)
    np.testing.assert_array_equal(compiled({"x": one})["y"], 4 * one)


@pytest.mark.parametrize("precision", ["FP32", "U8", "FP16"])
def test_means_are_subtracted(precision: str) -> None:
    file = OldFile(6)
    x = file.input("data", (1, 2, 2, 3), precision)
    file.layer("ReLU", "y", [(x, 0, (1, 2, 2, 3))], [(1, 2, 2, 3)])
    image = np.arange(6, dtype=np.float32)
    file.data = image.tobytes()
    file.after = (
        '<pre-process reference-layer-name="data" mean-precision="FP32"><channel id="1"><mean value="3.5"/></channel>'
        '<channel id="0"><mean offset="0" size="24"/></channel></pre-process>'
    )
    model = irexec.read_model(file.text, file.data)
    assert str(model.inputs[0].element) == {"FP32": "f32", "U8": "u8", "FP16": "f32"}[precision]
    given = np.full((1, 2, 2, 3), 4, np.uint8 if precision == "U8" else np.float32)
    expected = np.stack([np.maximum(4 - image.reshape(2, 3), 0), np.full((2, 3), 0.5)])[None]
    np.testing.assert_array_equal(irexec.infer(model, {"data": given})["y"], expected)


def test_results_are_the_ports_that_nobody_reads() -> None:
    file = OldFile(6)
    x = file.input("x", (1, 4))
    parts = file.layer("Split", "a/b:c", [(x, 0, (1, 4))], [(1, 2), (1, 2)], {"axis": 1})
    file.layer("ReLU", "second", [(parts, 1, (1, 2))], [(1, 2)])
    model = irexec.read_model(file.text, file.data)
    assert [output.name for output in model.outputs] == ["a/b:c.1", "second"]
    assert [node.id for node in model.nodes if node.name in ("x", "a/b:c", "second")] == [0, 1, 2]


def test_an_output_of_i64_is_given_as_i32() -> None:
    file = OldFile(7)
    x = file.input("x", (2,), "I64")
    file.layer(
        "Unsqueeze", "y", [(x, 0, (2,)), (file.const("a", np.int32([0])), 0, (1,))], [(1, 2)], precisions=["I64"]
    )

    model = irexec.read_model(file.text, file.data)
    assert str(model.outputs[0]) == "y: i32[1,2]"


def test_a_written_model_is_of_version_11(tmp_path) -> None:
    file = OldFile(2)
    x = file.input("x", (1, 2, 3, 3))
    weights = random(1, 2, 3, 3)
    file.layer("Convolution", "y", [(x, 0, (1, 2, 3, 3))], [(1, 1, 1, 1)], {"kernel-x": 3, "kernel-y": 3, "output": 1},
               {"weights": weights.astype(np.float16)}, "FP16", tag="convolution_data")  # fmt: skip
    model = irexec.read_model(file.text, file.data)
    model.save(tmp_path / "new.xml")
    again = irexec.read_model(tmp_path / "new.xml")
    given = {"x": random(1, 2, 3, 3)}
    assert again.version == 11
    np.testing.assert_array_equal(irexec.infer(again, given)["y"], irexec.infer(model, given)["y"])


# Findings of files of version 2 to 7: all at once, each with its code, layer and line.


X = np.ones((1, 2, 3, 3), np.float32)


def _with(after: str) -> OldFile:
    file, _ = single("ReLU", [X], [X.shape])
    file.after = after
    return file


FILES: dict[str, OldFile] = {
    "IR601": single("Swoosh", [X], [X.shape])[0],
    "IR602": single("Activation", [X], [X.shape], {"type": "mish"})[0],
    "IR603": single("Clamp", [X], [X.shape], {"min": 0})[0],
    "IR604": single("ScaleShift", [X], [X.shape], blobs={"weights": np.ones(5, np.float32)})[0],
    "IR605": _with("<statistics><layer><name>y</name><min>0</min></layer></statistics>"),
    "IR606": _with('<pre-process reference-layer-name="x0"><channel id="0"><scale value="2"/></channel></pre-process>'),
    "IR607": single("Resample", [X], [(1, 2, 4, 4)], {"type": "caffe.ResampleParameter.NEAREST"})[0],
    "IR608": single("Gelu", [X], [X.shape])[0],
    "IR010": _with('<edges><edge from-layer="9" from-port="0" to-layer="1" to-port="0"/></edges>'),
    "IR201": single("ReLU", [X], [(1, 2, 3, 4)])[0],
    "IR203": single("ReLU", [X], [X.shape])[0],
}
FILES["IR203"].layers[1] = FILES["IR203"].layers[1].replace("<dim>3</dim>", "<dim>4</dim>", 1)


@pytest.mark.parametrize("code", FILES)
def test_a_code_is_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(FILES[code].text)
    (tmp_path / "m.bin").write_bytes(FILES[code].data)
    found = irexec.validate(tmp_path / "m.xml")
    assert [one.code for one in found] == [code]
    assert found[0].severity == CODES[code].severity


def test_every_code_of_old_versions_has_a_file() -> None:
    assert {code for code in FILES if code.startswith("IR6")} == {code for code in CODES if code.startswith("IR6")}


def test_all_findings_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = OldFile(5)
    x = file.input("x", X.shape)
    first = file.layer("Swoosh", "one", [(x, 0, X.shape)], [X.shape])
    second = file.layer("Clamp", "two", [(first, 1, X.shape)], [X.shape], {"min": 1})
    file.layer("ScaleShift", "three", [(second, 1, X.shape)], [X.shape])
    file.after = '<meta_data><MO_version value="1.5.12.49d067a0"/></meta_data>'
    (tmp_path / "m.xml").write_bytes(file.text)
    with pytest.raises(ConversionError) as caught:
        irexec.read_model(tmp_path / "m.xml")
    text = str(caught.value)
    assert "IR version 5, written by Model Optimizer 1.5.12.49d067a0): line" in text
    assert "line 7, layer 1 'one' (Swoosh): 'Swoosh' is not a layer type" in text
    assert "line 11, layer 2 'two' (Clamp): the attribute max is missing" in text
    assert "layer 3 'three' (ScaleShift): the layer has no weights" in text
    assert run(["validate", str(tmp_path / "m.xml")]) == 1
    printed = capsys.readouterr().out
    assert [code for code in ("IR601", "IR603", "IR604") if code not in printed] == []


def test_a_warning_of_a_read_model_is_a_python_warning(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(FILES["IR607"].text)
    with pytest.warns(irexec.ConversionWarning, match=r"m\.xml, line 7, layer 1 'y' \(Resample\): release 2020\.1"):
        irexec.read_model(tmp_path / "m.xml")


def test_inspect_says_who_wrote_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.xml").write_bytes(_with('<meta_data><MO_version value="2019.2.0-436"/></meta_data>').text)
    assert run(["inspect", "m.xml"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "m.xml: old, IR version 6, written by Model Optimizer 2019.2.0-436" in printed


def test_a_model_without_its_bin_is_read(tmp_path: Path) -> None:
    file, _ = single("ScaleShift", [X], [X.shape], blobs={"weights": np.ones(2, np.float32)})
    (tmp_path / "m.xml").write_bytes(file.text)
    model = irexec.read_model(tmp_path / "m.xml")
    assert [finding.code for finding in irexec.validate(model)] == ["IR022"]
    with pytest.raises(irexec.ModelError, match=r"m\.bin does not exist"):
        irexec.compile_model(model)


# Constants in other forms than their declared ones.


def test_i64_in_four_bytes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    file = OldFile(7)
    data = file.input("x", x.shape)
    blobs = {"custom": np.array([2, 0], np.int32)}
    indices = file.layer("Const", "indices", (), [(2,)], blobs=blobs, precision="I64", precisions=["I64"])
    file.layer("Gather", "y", [(data, 0, x.shape), (indices, 0, (2,))], [(2, 4)], {"axis": 0})
    found = irexec.infer(irexec.read_model(file.text, file.data), {"x": x})
    np.testing.assert_array_equal(found["y"], x[[2, 0]])


# Every layer type of the catalogue has a translator.


# Legacy_IR_Layers_Catalog_Spec.md of OpenVINO 2020, with the types that stand in one section.
CATALOGUE = [
    "Activation", "ArgMax", "BatchNormalization", "BinaryConvolution", "Bucketize", "Broadcast", "Clamp", "Concat",
    "Const", "Convolution", "Crop", "CTCGreedyDecoder", "Deconvolution", "DeformableConvolution", "DepthToSpace",
    "DetectionOutput", "Erf", "Eltwise", "Fill", "Flatten", "FullyConnected", "Gather", "GRN", "GRUCell", "Input",
    "Interp", "LSTMCell", "Memory", "MVN", "NonMaxSuppression", "Norm", "Normalize", "OneHot", "Pad", "Permute",
    "Pooling", "Power", "PReLU", "PriorBox", "PriorBoxClustered", "Proposal", "PSROIPooling", "FakeQuantize",
    "Range", "RegionYolo", "ReLU", "ReorgYolo", "Resample", "Reshape", "ReverseSequence", "RNNCell", "ROIPooling",
    "ExperimentalDetectronROIFeatureExtractor", "ExperimentalSparseWeightedSum", "ScaleShift", "Select", "Shape",
    "ShuffleChannels", "SimplerNMS", "Slice", "SoftMax", "SparseFillEmptyRows", "SparseSegmentMean",
    "SparseSegmentSqrtN", "SparseSegmentSum", "SparseToDense", "Split", "Squeeze", "StridedSlice", "TensorIterator",
    "Tile", "TopK", "Unique", "Unsqueeze",
]  # fmt: skip


def test_every_type_of_the_catalogue_has_a_translator() -> None:
    assert [type for type in CATALOGUE if find(type) is None] == []


def test_types_compare_without_regard_to_case() -> None:
    assert find("softmax") is find("SoftMax") is find("Softmax")
