"""Damage: each row changes one line of a valid IR; validate reports code, layer and line, infer refuses the model or warns."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import irexec
from irexec.cli.main import run
from irexec.errors import ModelError, NodeError
from irexec.runtime.compiled_model import CompiledModel

_GOOD = Path(__file__).parent.parent / "data" / "openvino"

RUNS, FINDS, INVALID, UNSUPPORTED = 0, 1, 3, 4


@dataclass(frozen=True)
class Damage:
    """``old`` in one line of a valid file becomes ``new``.

    Attributes:
        name: what is wrong.
        file: the valid file.
        line: the line that is changed, from 1.
        old, new: the text before and after.
        code: the finding that must be reported.
        layer: the name of its layer; None for one that belongs to no layer.
        at: the line that it must name.
        infer: the exit code of infer; 0 where the model runs, with a warning if a port is wrong.
    """

    name: str
    file: str
    line: int
    old: str
    new: str
    code: str
    layer: str | None
    at: int
    infer: int = INVALID


C, L, S, N, D = "convolutions", "loop", "state", "names", "dynamic"
CONV, ADD, POOL, UP, MEAN, SOFT = (
    "Convolution_3", "Add_5", "MaxPool_7", "GroupConvolutionBackpropData_9", "ReduceMean_11", "Softmax_16",
)  # fmt: skip
LOOP = "Loop_206"

ROWS = [
    Damage("output dim", C, 44, "<dim>1<", "<dim>2<", "IR201", CONV, 43, RUNS),
    Damage("output dim of a size", C, 46, ">16<", ">15<", "IR201", CONV, 43, RUNS),
    Damage("output rank", C, 47, "<dim>16</dim>", "", "IR201", CONV, 43, RUNS),
    Damage("output precision", C, 43, "FP32", "FP16", "IR202", CONV, 43, RUNS),
    Damage("input dim", C, 31, ">3<", ">4<", "IR203", CONV, 29, RUNS),
    Damage("input precision", C, 29, "FP32", "I32", "IR204", CONV, 29, RUNS),
    Damage("parameter dim on the port", C, 9, "<dim>3<", "<dim>4<", "IR201", "x", 7, RUNS),
    Damage("parameter shape", C, 5, "1,3,16,16", "1,4,16,16", "IR107", CONV, 26),
    Damage("parameter shape that is not a shape", C, 5, "1,3,16,16", "1,3,x,16", "IR104", "x", 4),
    Damage("parameter shape in digits of another script", C, 5, "1,3,16,16", "1,٣,16,16", "IR104", "x", 4),
    Damage("strides as Python writes them", C, 27, 'strides="1, 1"', 'strides="0_1, 1"', "IR104", CONV, 26),
    Damage("strides in digits of another script", C, 27, 'strides="1, 1"', 'strides="١, 1"', "IR104", CONV, 26),
    Damage("parameter without a type", C, 5, 'element_type="f32"', "", "IR103", "x", 4),
    Damage("parameter of an unknown type", C, 5, '"f32"', '"f33"', "IR104", "x", 4),
    Damage("missing strides", C, 27, 'strides="1, 1" ', "", "IR103", CONV, 26),
    Damage("strides of the wrong length", C, 27, 'strides="1, 1"', 'strides="1"', "IR107", CONV, 26),
    Damage("strides of 0", C, 27, 'strides="1, 1"', 'strides="0, 1"', "IR105", CONV, 26),
    Damage("strides that are not integers", C, 27, 'strides="1, 1"', 'strides="a, b"', "IR104", CONV, 26),
    Damage("negative pads", C, 106, 'pads_begin="0, 0"', 'pads_begin="-1, 0"', "IR105", POOL, 105),
    Damage("unknown auto_pad", C, 27, '"explicit"', '"implicit"', "IR105", CONV, 26),
    Damage("unknown attribute", C, 63, "auto_broadcast=", 'colour="red" auto_broadcast=', "IR106", ADD, 62, RUNS),
    Damage("part of an attribute", C, 63, "auto_broadcast=", 'auto_broadcast.offset="1" auto_broadcast=', "IR108", ADD, 62),
    Damage("keep_dims that is not a boolean", C, 177, '"true"', '"maybe"', "IR104", MEAN, 176),
    Damage("more outputs than the operation has", C, 103, "</output>", '<port id="2" precision="FP32" /></output>', "IR107", "Relu_6", 87),
    Damage("axis out of range", C, 255, 'axis="1"', 'axis="7"', "IR107", SOFT, 254),
    Damage("unknown type", C, 26, '"Convolution" ', '"Convolutoin" ', "IR101", CONV, 26, UNSUPPORTED),
    Damage("version before the type", C, 105, '"opset8"', '"opset0"', "IR102", POOL, 105, UNSUPPORTED),
    Damage("version of a later opset", C, 105, '"opset8"', '"opset99"', "IR102", POOL, 105, UNSUPPORTED),
    Damage("version that is not an opset", C, 62, '"opset1"', '"one"', "IR102", ADD, 62, UNSUPPORTED),
    Damage("edge from a missing layer", C, 281, 'from-layer="2"', 'from-layer="77"', "IR010", None, 281),
    Damage("edge from a missing port", C, 281, 'from-port="2"', 'from-port="9"', "IR010", CONV, 281),
    Damage("edge to a missing layer", C, 281, 'to-layer="4"', 'to-layer="77"', "IR011", None, 281),
    Damage("edge to a missing port", C, 281, 'to-port="0"', 'to-port="5"', "IR011", ADD, 281),
    Damage("edge with a fraction", C, 281, 'from-layer="2"', 'from-layer="2.5"', "IR006", None, 281),
    Damage("missing edge", C, 282, '<edge from-layer="3" from-port="0" to-layer="4" to-port="1" />', "", "IR013", ADD, 71),
    Damage("second edge to a port", C, 282, 'to-port="1"', 'to-port="0"', "IR012", ADD, 282),
    Damage("duplicate id", C, 87, 'id="5"', 'id="4"', "IR002", "Relu_6", 87),
    Damage("id that is not a number", C, 87, 'id="5"', 'id="five"', "IR006", "Relu_6", 87),
    Damage("layer without a type", C, 87, 'type="ReLU" ', "", "IR001", "Relu_6", 87),
    Damage("layer without a version", C, 87, ' version="opset1"', "", "IR001", "Relu_6", 87),
    Damage("layer without a name", C, 87, 'name="Relu_6" ', "", "IR001", "", 87),
    Damage("duplicate port id", C, 35, 'id="1"', 'id="0"', "IR003", CONV, 26),
    Damage("dim that is not a number", C, 46, ">16<", ">wide<", "IR004", CONV, 46),
    Damage("dim of -2", C, 46, ">16<", ">-2<", "IR004", CONV, 46),
    Damage("dim beyond 64 bits", C, 46, ">16<", ">99999999999999999999<", "IR004", CONV, 46),
    Damage("unknown precision", C, 43, "FP32", "FP31", "IR005", CONV, 43),
    Damage("cycle", C, 281, 'from-layer="2" from-port="2"', 'from-layer="5" from-port="1"', "IR301", ADD, 62),
    Damage("unused layer", C, 294, 'from-layer="15" from-port="1"', 'from-layer="14" from-port="2"', "IR302", SOFT, 254, RUNS),
    Damage("constant larger than its shape", C, 52, 'size="32"', 'size="36"', "IR401", "Constant_4", 51),
    Damage("constant smaller than its shape", C, 52, 'size="32"', 'size="28"', "IR401", "Constant_4", 51),
    Damage("constant of another type", C, 52, '"f32"', '"f16"', "IR401", "Constant_4", 51),
    Damage("constant of another shape", C, 52, "1, 8, 1, 1", "1, 9, 1, 1", "IR401", "Constant_4", 51),
    Damage("constant of 66 axes", C, 52, "1, 8, 1, 1", "8" + ", 1" * 65, "IR401", "Constant_4", 51),
    Damage("constant outside the file", C, 52, 'offset="864"', 'offset="86400"', "IR021", "Constant_4", 51),
    Damage("constant at a negative offset", C, 52, 'offset="864"', 'offset="-4"', "IR020", "Constant_4", 51),
    Damage("constant beyond 64 bits", C, 52, 'offset="864"', 'offset="99999999999999999999"', "IR020", "Constant_4", 51),
    Damage("constant without a size", C, 52, 'size="32"', "", "IR020", "Constant_4", 51),
    Damage("constant of an unknown type", C, 52, '"f32"', '"f3"', "IR020", "Constant_4", 51),
    Damage("constants that overlap", C, 52, 'offset="864"', 'offset="862"', "IR402", "Constant_4", 51, RUNS),
    Damage("unused bytes", C, 52, 'offset="864"', 'offset="0"', "IR403", None, 0, RUNS),
    Damage("two tensors of one name", C, 43, 'precision="FP32"', 'precision="FP32" names="x"', "IR304", CONV, 43, RUNS),
    Damage("result without its edge", C, 294, '<edge from-layer="15" from-port="1" to-layer="16" to-port="0" />', "", "IR013", "Result_17", 271),
    Damage("port map to a missing Parameter", L, 38, 'internal_layer_id="2"', 'internal_layer_id="9"', "IR501", LOOP, 38),
    Damage("port map from a missing port", L, 38, 'external_port_id="3"', 'external_port_id="8"', "IR501", LOOP, 38),
    Damage("port map to a missing Result", L, 39, 'internal_layer_id="11"', 'internal_layer_id="3"', "IR501", LOOP, 39),
    Damage("port map without a number", L, 38, 'external_port_id="3" ', "", "IR030", LOOP, 38),
    Damage("port map with a stride of 0", L, 37, 'stride="-1"', 'stride="0"', "IR501", LOOP, 37),
    Damage("port map with an axis that is not an integer", L, 37, 'axis="0"', 'axis="zero"', "IR501", LOOP, 37),
    Damage("parameter of a body without an input", L, 38, '<input external_port_id="3" internal_layer_id="2" />', "", "IR502", LOOP, 35),
    Damage("back edge from a missing Result", L, 45, 'from-layer="11"', 'from-layer="5"', "IR503", LOOP, 45),
    Damage("back edge to a missing Parameter", L, 45, 'to-layer="2"', 'to-layer="5"', "IR503", LOOP, 45),
    Damage("damage inside a body", L, 125, '"numpy"', '"numb"', "IR105", "Add_192", 124),
    Damage("another type inside a body", L, 90, '"f32"', '"f16"', "IR202", "Parameter_188", 89, RUNS),
    Damage("edge inside a body", L, 213, 'to-port="0"', 'to-port="7"', "IR011", "Add_192", 213),
    Damage("variable without its pair", S, 57, '"counter"', '"other"', "IR504", "Assign_301", 56, RUNS),
    Damage("variable of another type", S, 23, 'variable_type="f32"', 'variable_type="i32"', "IR107", "ReadValue_298", 22),
]  # fmt: skip


def _damaged(row: Damage, folder: Path) -> Path:
    lines = (_GOOD / f"{row.file}.xml").read_text(encoding="utf-8").split("\n")
    assert row.old in lines[row.line - 1], f"line {row.line} of {row.file}.xml is {lines[row.line - 1]!r}"
    lines[row.line - 1] = lines[row.line - 1].replace(row.old, row.new, 1)
    path = folder / "damaged.xml"
    path.write_text("\n".join(lines), encoding="utf-8")
    shutil.copy(_GOOD / f"{row.file}.bin", folder / "damaged.bin")
    return path


def test_there_are_enough() -> None:
    assert len(ROWS) >= 40
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_validate_finds_it(row: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["validate", "--json", str(_damaged(row, tmp_path))])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    found = [(f["code"], f["layer_name"], f["line"] or 0) for f in document["findings"]]
    assert (row.code, row.layer, row.at) in found, found
    assert code == FINDS


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_infer_refuses_or_warns(row: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _damaged(row, tmp_path)
    code = run(["infer", str(path), "-i", "random"])
    err = capsys.readouterr().err
    assert code == row.infer, err
    assert "Traceback" not in err
    assert "error in irexec itself" not in err
    if code:
        assert err.count("\n") == 1, err
        assert err.startswith("error: ")
    elif row.code in ("IR201", "IR202", "IR203", "IR204"):
        assert err.startswith("warning: ")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.infer == RUNS and row.code.startswith("IR20")], ids=lambda row: row.name
)
def test_strict_refuses_every_error(row: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infer", "--strict", str(_damaged(row, tmp_path)), "-i", "random"]) == INVALID
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("path", sorted(_GOOD.rglob("*.xml")), ids=lambda path: path.stem)
def test_what_openvino_wrote_is_clean(path: Path) -> None:
    assert irexec.validate(irexec.read_model(path)) == []


def test_one_damage_does_not_hide_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (_GOOD / "convolutions.xml").read_text(encoding="utf-8")
    text = (
        text.replace('strides="1, 1" ', "", 1)
        .replace('keep_dims="true"', 'keep_dims="maybe"')
        .replace('axis="1"', 'axis="7"')
    )
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    shutil.copy(_GOOD / "convolutions.bin", tmp_path / "m.bin")
    run(["validate", "--json", str(tmp_path / "m.xml")])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(f["code"], f["layer_name"]) for f in findings] == [("IR103", CONV), ("IR104", MEAN), ("IR107", SOFT)]


def test_missing_bin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(_GOOD / "convolutions.xml", tmp_path / "m.xml")
    assert run(["validate", "--json", str(tmp_path / "m.xml")]) == FINDS
    codes = {f["code"] for f in json.loads(capsys.readouterr().out)["findings"]}
    assert codes == {"IR022"}
    assert run(["infer", str(tmp_path / "m.xml"), "-i", "random"]) == INVALID


def test_weights_that_are_not_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(_GOOD / "convolutions.xml", tmp_path / "m.xml")
    data = bytearray((_GOOD / "convolutions.bin").read_bytes())
    data[864:868] = b"\x00\x00\xc0\x7f"
    (tmp_path / "m.bin").write_bytes(data)
    assert run(["validate", str(tmp_path / "m.xml")]) == 0
    capsys.readouterr()
    assert run(["validate", "--weights", "--json", str(tmp_path / "m.xml")]) == FINDS
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["layer_name"], finding["line"]) == ("IR404", "Constant_4", 51)


def test_a_parameter_without_an_output() -> None:
    layer = '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="i32"/></layer>'
    model = irexec.read_model(f'<net name="n" version="11"><layers>{layer}</layers><edges/></net>'.encode())
    assert "has no output, expected 1; inputs none" in [finding.message for finding in irexec.validate(model)]
    with pytest.raises(NodeError, match=r"^layer 0 'x' \(Parameter of opset1, line 1\): has no output, expected 1"):
        irexec.compile_model(model)
    with pytest.raises(ModelError, match=r"^layer 0 'x' \(Parameter\) has no output$"):
        CompiledModel(model, tolerant=True)()
