"""Rows of small models, each with one finding; together with the rows of test_damage they fire every code there is. Sizes, and checks of plug-ins."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis import codes
from irexec.analysis.builder import Builder
from irexec.analysis.codes import CODES, findings
from irexec.analysis.model import Model
from irexec.analysis.validate import PLUGIN_CHECKS
from irexec.cli.main import run
from irexec.errors import InputError, OpError, PluginError
from irexec.ir import codes as code_table
from irexec.ir.codes import by_number
from irexec.ir.dims import Dim, check_sizes
from irexec.ir.findings import Finding
from irexec.ir.shape_text import as_shape, parse_shape, write_shape
from irexec.schema.plugins import VARIABLE
from tests.analysis.test_builder import ROWS as EDITS
from tests.analysis.test_damage import ROWS as DAMAGES
from tests.support.paths import DIGITS
from tests.support.processes import commands, said

EXECUTION_GRAPHS = [Path(__file__).parent.parent.parent / "samples" / "execution_graph.xml"]
Capture = pytest.CaptureFixture[str]


def _layer(id: int, type: str, data: str = "", inputs: str = "", outputs: str = "", more: str = "") -> str:
    version = "opset6" if type in ("ReadValue", "Assign") else "opset1"
    input, output = (
        f"<{tag}>{ports}</{tag}>" if ports else "" for tag, ports in (("input", inputs), ("output", outputs))
    )
    return f'<layer id="{id}" name="{type}_{id}" type="{type}" version="{version}"><data {data}/>{input}{output}{more}</layer>\n'


def _port(id: int, *dims: int, precision: str = "FP32") -> str:
    return f'<port id="{id}" precision="{precision}">{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'


def _edge(source: int, source_port: int, target: int, target_port: int) -> str:
    return f'<edge from-layer="{source}" from-port="{source_port}" to-layer="{target}" to-port="{target_port}"/>\n'


def _parameter(id: int, shape: str, *dims: int, type: str = "f32", precision: str = "FP32") -> str:
    return _layer(
        id, "Parameter", f'shape="{shape}" element_type="{type}"', outputs=_port(0, *dims, precision=precision)
    )


def _constant(id: int, type: str, size: int, precision: str, count: int = 2, offset: int = 0) -> str:
    data = f'element_type="{type}" shape="{count}" offset="{offset}" size="{size}"'
    return _layer(id, "Const", data, outputs=_port(0, count, precision=precision))


def _stored_weights() -> str:
    """i8 weights of two channels with an f16 scale."""
    data = 'element_type="i8" shape="2,1" offset="0" size="2"'
    return (
        _layer(0, "Const", data, outputs=_port(0, 2, 1, precision="I8"))
        + _constant(1, "f16", 2, "FP16", 1, 2)
        + _layer(2, "Convert", 'destination_type="f16"', _port(0, 2, 1, precision="I8"), _port(1, 2, 1, precision="FP16"))
        + _layer(3, "Multiply", "", _port(0, 2, 1, precision="FP16") + _port(1, 1, precision="FP16"), _port(2, 2, 1, precision="FP16"))
        + _layer(4, "Result", "", _port(0, 2, 1, precision="FP16"))
    )  # fmt: skip


_STORED_EDGES = "".join(_edge(*four) for four in ((0, 0, 2, 0), (2, 1, 3, 0), (1, 0, 3, 1), (3, 2, 4, 0)))


def _variable(id: int, type: str, name: str) -> str:
    data = f'variable_id="{name}"' + ' variable_shape="2" variable_type="f32"' * (type == "ReadValue")
    return _layer(id, type, data, _port(0, 2), _port(1, 2))


@dataclass(frozen=True)
class Row:
    """A model of few layers.

    Attributes:
        name: what is wrong with it.
        code, layer: the finding; no layer where it is that of the model.
        layers, edges: the XML.
        weights: the bytes of the .bin; None for no .bin.
        net: further attributes of <net>, which make the .bin a file beside the .xml.
        others: further codes that are found.
    """

    name: str
    code: str
    layer: str | None
    layers: str
    edges: str = ""
    weights: bytes | None = b""
    others: frozenset[str] = frozenset()
    net: str = ""


ROWS = [
    Row("no .bin", "IR022", None, _constant(0, "f32", 8, "FP32") + _layer(1, "Result", "", _port(0, 2)), _edge(0, 0, 1, 0), None),
    Row("a .bin that is cut off", "IR021", "Const_0",
        _constant(0, "f32", 8, "FP32") + _constant(1, "f32", 8, "FP32") + _layer(2, "Concat", 'axis="0"', _port(0, 2) + _port(1, 2), _port(2, 4))
        + _layer(3, "Result", "", _port(0, 4)), _edge(0, 0, 2, 0) + _edge(1, 0, 2, 1) + _edge(2, 2, 3, 0), bytes(4)),
    Row("a .bin of another size than that of its .xml", "IR023", None,
        _constant(0, "f32", 8, "FP32") + _layer(1, "Result", "", _port(0, 2)), _edge(0, 0, 1, 0), bytes(8),
        net='bin_size="12" bin_sample="0" bin_crc32="0"'),
    Row("back edge without a number", "IR031", "TensorIterator_0",
        _layer(0, "TensorIterator", more='<back_edges><edge from-layer="1" to-layer="two"/></back_edges><body><layers/><edges/></body>'),
        others=frozenset({"IR303"})),
    Row("port map without a body", "IR032", "If_0", _layer(0, "If", more="<then_port_map/>").replace("opset1", "opset8"), others=frozenset({"IR303"})),
    Row("shapes differ along an edge", "IR205", "Result_1", _parameter(0, "?", 1) + _layer(1, "Result", "", _port(0, 2)), _edge(0, 0, 1, 0)),
    Row("an operation that OpenVINO does not have", "IR109", "RegexFullMatch_2",
        _parameter(0, "2", 2, type="string", precision="STRING") + _parameter(1, "", type="string", precision="STRING")
        + _layer(2, "RegexFullMatch", "", _port(0, 2, precision="STRING") + _port(1, precision="STRING"), _port(2, 2, precision="BOOL")).replace("opset1", "irexec")
        + _layer(3, "Result", "", _port(0, 2, precision="BOOL")), _edge(0, 0, 2, 0) + _edge(1, 0, 2, 1) + _edge(2, 2, 3, 0)),
    Row("an operation that OpenVINO writes and does not read", "IR110", "RMS_2",
        _parameter(0, "2", 2) + _parameter(1, "2", 2)
        + _layer(2, "RMS", 'epsilon="0.1"', _port(0, 2) + _port(1, 2), _port(2, 2)).replace("opset1", "ie_internal_opset")
        + _layer(3, "Result", "", _port(0, 2)), _edge(0, 0, 2, 0) + _edge(1, 0, 2, 1) + _edge(2, 2, 3, 0)),
    Row("types differ along an edge", "IR206", "Result_1",
        _parameter(0, "2", 2, type="dynamic") + _layer(1, "Result", "", _port(0, 2, precision="I32")), _edge(0, 0, 1, 0)),
    Row("a port without dims in a dynamic model", "IR207", "ReLU_1",
        _parameter(0, "2", 2) + _layer(1, "ReLU", "", _port(0, 2), _port(1)) + _layer(2, "Result", "", _port(0, 2)) + _parameter(3, "?", -1),
        _edge(0, 0, 1, 0) + _edge(1, 1, 2, 0)),
    Row("an open axis that a layer takes in one size", "IR308", "Reshape_2",
        _parameter(0, "?,2", -1, 2) + _constant(1, "i64", 16, "I64") + _layer(2, "Reshape", 'special_zero="false"',
        _port(0, -1, 2) + _port(1, 2, precision="I64"), _port(2, 3, 2)) + _layer(3, "Result", "", _port(0, 3, 2)),
        _edge(0, 0, 2, 0) + _edge(1, 0, 2, 1) + _edge(2, 2, 3, 0), np.array([3, 2]).tobytes()),
    Row("no Result", "IR303", None, _parameter(0, "2", 2)),
    Row("NaN and infinities", "IR404", "Const_0",
        _constant(0, "f16", 4, "FP16") + _layer(1, "Result", "", _port(0, 2, precision="FP16")), _edge(0, 0, 1, 0), b"\0\x7e\0\x7c"),
    Row("a value beyond f16", "IR406", "Const_0",
        _constant(0, "f32", 8, "FP32") + _layer(1, "Result", "", _port(0, 2)), _edge(0, 0, 1, 0),
        np.array([70000, 1e-9], np.float32).tobytes()),
    Row("a scale beyond f16", "IR407", "Multiply_3", _stored_weights(), _STORED_EDGES,
        np.array([100, 1], np.int8).tobytes() + np.array([2000], np.float16).tobytes()),
    Row("a channel of zeros", "IR408", "Multiply_3", _stored_weights(), _STORED_EDGES,
        np.array([0, 1], np.int8).tobytes() + np.array([2], np.float16).tobytes()),
    Row("a range that clips", "IR409", "FakeQuantize_3", "".join(_constant(i, "f32", 8 if i == 0 else 4, "FP32", 2 if i == 0 else 1, 0 if i == 0 else 4 + 4 * i) for i in range(3))
        + _layer(3, "FakeQuantize", 'levels="256"', _port(0, 2) + "".join(_port(i, 1) for i in range(1, 5)), _port(5, 2)) + _layer(4, "Result", "", _port(0, 2)),
        _edge(0, 0, 3, 0) + "".join(_edge(1 + i % 2, 0, 3, 1 + i) for i in range(4)) + _edge(3, 5, 4, 0),
        np.array([0.5, 3, -1, 1], np.float32).tobytes()),
    Row("strings that are cut off", "IR405", "Const_0",
        _constant(0, "string", 3, "STRING", 5000) + _layer(1, "Result", "", _port(0, 5000, precision="STRING")), _edge(0, 0, 1, 0), b"\2\0\0"),
    Row("a variable that two layers assign", "IR505", "Assign_3",
        _parameter(0, "2", 2) + _variable(1, "ReadValue", "v") + _variable(2, "Assign", "v") + _variable(3, "Assign", "v"),
        _edge(0, 0, 1, 0) + _edge(1, 1, 2, 0) + _edge(1, 1, 3, 0)),
    Row("a value of another shape than its variable", "IR507", "Assign_2",
        _parameter(0, "2", 2) + _variable(1, "ReadValue", "v") + _layer(2, "Assign", 'variable_id="v"', _port(0, 3), _port(1, 3))
        + _parameter(3, "3", 3) + _layer(4, "Result", "", _port(0, 2)),
        _edge(0, 0, 1, 0) + _edge(3, 0, 2, 0) + _edge(1, 1, 4, 0)),
    Row("a variable that is only read", "IR506", "ReadValue_1",
        _parameter(0, "2", 2) + _variable(1, "ReadValue", "v") + _layer(2, "Result", "", _port(0, 2)),
        _edge(0, 0, 1, 0) + _edge(1, 1, 2, 0)),
]  # fmt: skip


def _model(row: Row, folder: Path) -> Model:
    text = f'<net name="row" version="11" {row.net}><layers>\n{row.layers}</layers><edges>\n{row.edges}</edges></net>'
    if not row.net:
        return Model.of(io.read_text(text, row.weights))
    (folder / "m.xml").write_text(text)
    (folder / "m.bin").write_bytes(row.weights or b"")
    return irexec.read_model(folder / "m.xml")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_found(row: Row, tmp_path: Path) -> None:
    found = irexec.validate(_model(row, tmp_path), weights=True)
    assert (row.code, row.layer) in [(finding.code, finding.layer_name) for finding in found]
    assert {finding.code for finding in found} == {row.code} | row.others
    assert all(finding.severity == CODES[finding.code].severity for finding in found)


def test_progress_is_whole_when_the_last_check_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str | float] = []

    def check(*_: object) -> list[Finding]:
        done.append("check")
        return []

    monkeypatch.setattr(importlib.import_module("irexec.analysis.validate"), "CHECKS", (check, check, check))
    irexec.validate(_model(ROWS[0], tmp_path), progress=done.append)
    assert done == [0.25, "check", 0.25, "check", 0.25, "check", 0.25]


def test_every_code_has_a_row() -> None:
    fired = {row.code for rows in (ROWS, DAMAGES, EDITS.values()) for row in rows}
    # Those of other implementations are in test_portability.py, those of old versions in tests/converters/legacy_ir.
    numbers = {code: by_number(code)[1] for code in CODES if code.startswith("IR")}
    expected = {code for code, number in numbers.items() if number < 600 or 700 <= number < 900}
    assert fired | {"IR007"} == expected, "give the code a row here, in test_damage.py or in test_builder.py"


def test_codes_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["IR1000", "IR999", "ON101", "IR101"], key=by_number) == ["IR101", "IR999", "IR1000", "ON101"]
    assert list(findings())[:1] == ["IR001"] and list(findings()).index("IR1000") == list(findings()).index("IR999") + 1


@pytest.mark.parametrize("path", EXECUTION_GRAPHS, ids=lambda path: path.stem)
def test_an_execution_graph_is_one_finding(path: Path) -> None:
    """Written by openvino's serialize(compiled.get_runtime_model())."""
    (finding,) = irexec.validate(irexec.read_model(path))
    assert (finding.code, finding.severity, finding.layer_id) == ("IR007", "info", None)
    assert "29 layers as a device ran them" in finding.message
    with pytest.raises(
        irexec.ModelError, match=r"execution_graph\.xml: an execution graph .* run the model that was compiled"
    ):
        irexec.compile_model(irexec.read_model(path))


def test_a_model_with_the_attributes_of_an_execution_graph_is_a_model() -> None:
    attributes = 'execTimeMcs="1" originalLayersNames="x"'
    text = (
        f'<net name="n" version="11"><layers>{_layer(0, "ReLU", attributes, outputs=_port(0))}</layers><edges/></net>'
    )
    assert "IR007" not in {finding.code for finding in irexec.validate(Model.of(io.read_text(text)))}


def test_weights_are_read_in_blocks(tmp_path: Path, capsys: Capture) -> None:
    """A NaN after the first block is found as well as one in it."""
    count = (1 << 17) + 5
    xml = f"""<net name="n" version="11"><layers>
{_layer(0, "Const", f'element_type="f32" shape="{count}" offset="0" size="{4 * count}"', outputs=_port(0, count))}
{_layer(1, "Result", "", _port(0, count))}</layers><edges>{_edge(0, 0, 1, 0)}</edges></net>"""
    (tmp_path / "m.xml").write_text(xml)
    data = bytearray(4 * count)
    data[:4] = data[-4:] = b"\0\0\xc0\x7f"
    (tmp_path / "m.bin").write_bytes(data)
    assert run(["validate", "--weights", "--json", str(tmp_path / "m.xml")]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["message"] == f"contains 2 NaN and 0 infinities among {count} values"


@pytest.mark.parametrize("path", EXECUTION_GRAPHS, ids=lambda path: path.stem)
def test_infer_says_once_what_an_execution_graph_is(path: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copy(path, tmp_path / "exec.xml")
    for arguments in (
        ["infer", str(tmp_path / "exec.xml"), "-i", "random"],
        ["ops", "--check", str(tmp_path / "exec.xml")],
    ):
        assert run(arguments) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"error: {tmp_path / 'exec.xml'}: an execution graph (of get_runtime_model()")
        assert err.count("\n") == 1


# Versions of NonMaxSuppression whose declared shape is not the one that they give.


@pytest.mark.parametrize("since", [1, 3, 4])
def test_constant_boxes_may_declare_room_for_all(since: int) -> None:
    """OpenVINO declares a row for each box that could be selected, also where the boxes are constants."""
    builder = Builder("boxes")
    boxes = builder.constant(np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6]]]))
    scores = builder.constant(np.float32([[[0.9, 0.8, 0.7]]]))
    limits = [builder.constant(np.array(3)), builder.constant(np.float32(0.5)), builder.constant(np.float32(0.1))]
    builder.result(builder.emit("NonMaxSuppression", boxes, scores, *limits, version=since))
    text, weights = io.write_text(builder.model())
    declared = io.read_text(text.replace(b"<dim>-1</dim>", b"<dim>3</dim>"), weights)
    assert irexec.validate(declared) == []
    assert irexec.compile_model(declared)({})[0].tolist() == [[0, 0, 0], [0, 0, 2]]


# No size of a shape is beyond 64 bits: not one that is inferred, and not one that is read or written.


HUGE = (1 << 63) - 1
_CONCAT = (
    '<net name="n" version="11"><layers>'
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{size}" element_type="f32"/>'
    '<output><port id="0" precision="FP32"><dim>{size}</dim></port></output></layer>'
    '<layer id="1" name="twice" type="Concat" version="opset1"><data axis="0"/>'
    '<input><port id="0"><dim>{size}</dim></port><port id="1"><dim>{size}</dim></port></input>'
    '<output><port id="2" precision="FP32"><dim>{size}</dim></port></output></layer>'
    '<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"><dim>{size}</dim></port></input></layer></layers>'
    '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>'
    '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/></edges></net>'
)


def test_a_size_that_is_inferred_is_a_finding() -> None:
    model = Model.of(io.read_text(_CONCAT.format(size=HUGE), b""))
    says = f"the result would have shape [{2 * HUGE}], of which size {2 * HUGE} is larger than 2**63 - 1"
    assert [(f.layer_name, f.code) for f in irexec.validate(model) if says in f.message] == [("twice", "IR107")]
    with pytest.raises(irexec.NodeError, match=r"larger than 2\*\*63 - 1"):
        irexec.compile_model(model)


def test_a_negative_size() -> None:
    with pytest.raises(OpError, match=r"^the result would have shape \[3,-1\], of which size -1 is negative$"):
        check_sizes((3, -1))
    check_sizes((HUGE, Dim(-1, 4), Dim(3, None)))


def test_an_empty_array_that_numpy_does_not_have() -> None:
    check_sizes((0, HUGE >> 5, Dim(-1, 4), Dim(1, None)))
    with pytest.raises(OpError, match="empty, but with other sizes that are too large for an array"):
        check_sizes((0, HUGE, Dim(-1, 4), Dim(3, None)))
    with pytest.raises(ValueError, match=r"too (big|large)|[mM]aximum"):
        np.empty((0, HUGE, 3), dtype=np.float64)


@pytest.mark.parametrize("text", ["9223372036854775808", "1..9223372036854775808", "9223372036854775808.."])
def test_a_size_that_is_read(text: str) -> None:
    assert parse_shape(text.replace("808", "807")) is not None
    with pytest.raises(OpError, match=r"is not a size: the largest is 2\*\*63 - 1$"):
        parse_shape(text)


@pytest.mark.parametrize("size", [HUGE + 1, (0, HUGE + 1), str(HUGE + 1)])
def test_a_size_that_a_caller_gives(size: Any) -> None:
    with pytest.raises(OpError, match=r"is not a size: the largest is 2\*\*63 - 1$"):
        as_shape([size])


def test_a_bound_that_cannot_be_read_again_is_not_written() -> None:
    assert write_shape((Dim(2, HUGE), Dim(2, HUGE + 1), Dim(0, 1 << 70))) == f"2..{HUGE},2..,?"


# Finding codes and checks of plug-ins: part of validate, explained like irexec's own, and every fault is one sentence.


CHECK = """
import irexec
from irexec.plugins import finding_check, finding_code

LONG = finding_code(
    "lint:long", "{severity}", "long layer name", meaning="the name of a layer is longer than allowed",
    example='<layer id="0" name="a_very_long_name" type="Relu" version="opset1"/>', repair="Shorten the name.",
)

@finding_check
def long_names(model: irexec.Graph, inference: irexec.Inference):
    for node in model.walk():
        if len(node.name) > 5 and node.type == "MatMul":
            assert inference.facts[node.outputs[0]].rank == 2
            yield node.finding(LONG, f"the name has {len(node.name)} characters, more than 5")
"""
MODEL = str(DIGITS / "classifier.xml")


def _irexec(folder: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[str, str]:
    return said(folder, "-m", "irexec", *arguments, code=code, **variables)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a plug-in that has a check."""
    (tmp_path / "lint.py").write_text(CHECK.replace("{severity}", "warning"))
    return tmp_path


def _matmul(folder: Path) -> str:
    x = irexec.opset.parameter([2, 3], "f32", "x")
    irexec.save_model(
        irexec.Model([irexec.opset.matmul(x, x, transpose_b=True, name="product")], [x]), folder / "m.xml"
    )
    return "m.xml"


@pytest.mark.slow
def test_findings_in_every_format(folder: Path) -> None:
    model = _matmul(folder)
    message = "the name has 7 characters, more than 5"
    forms = ["--explain"], ["--json"], *(["--format", form] for form in ("sarif", "github", "junit"))
    done = commands(folder, *(["validate", model, "--plugin", "lint.py", *form] for form in forms))
    assert [code for code, *_ in done] == [1] * len(forms)
    text, document_text, log_text, *others = (shown for _, shown, _ in done)
    assert "lint:long" in text and message in text and "Repair: Shorten the name." in text
    document = json.loads(document_text)
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"], finding["layer_name"]) == ("lint:long", "warning", "product")
    log = json.loads(log_text)
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["lint:long"]
    assert run["results"][0]["message"]["text"].endswith(message)
    assert all(message in shown for shown in others)
    assert _irexec(folder, "validate", model, code=1, IREXEC_PLUGINS="lint.py")[0] == text.split("\n\nlint")[0] + "\n"
    assert _irexec(folder, "validate", model, "--plugin", "lint.py", "--ignore", "LINT:long")[0] == "m.xml: 1 ignored\n"
    assert _irexec(folder, "validate", model)[0] == "m.xml: no findings\n"


def test_an_error_of_a_check_is_exit_code_1(folder: Path) -> None:
    (folder / "lint.py").write_text(CHECK.replace("{severity}", "error"))
    assert "m.xml: 1 error" in _irexec(folder, "validate", _matmul(folder), "--plugin", "lint.py", code=1)[0]


@pytest.mark.slow
def test_a_code_is_explained(folder: Path) -> None:
    for code in ("lint:long", "LINT:LONG"):
        assert _irexec(folder, "explain", code, "--plugin", "lint.py")[0].startswith(
            "lint:long long layer name (warning)"
        )
    assert "lint:long" in _irexec(folder, "explain", IREXEC_PLUGINS="lint.py")[0]
    error = _irexec(folder, "explain", "lint:lung", "--plugin", "lint.py", code=2)[1]
    assert error == "error: there is no finding code 'lint:lung'; similar codes are lint:long\n"


@pytest.mark.slow
def test_a_model_is_reduced_to_a_finding_of_a_plugin(folder: Path) -> None:
    _irexec(folder, "reduce", _matmul(folder), "--finding", "lint:long", "-o", "small.xml", "--plugin", "lint.py")
    assert "lint:long" in _irexec(folder, "validate", "small.xml", "--plugin", "lint.py", code=1)[0]


_FAULTS = {
    "raise KeyError('x')": "raises KeyError: 'x'",
    "yield 'wrong'": "yields str, expected a Finding of node.finding(...)",
    "yield node.finding('lint:none', 'text')": "raises KeyError: 'lint:none'",
    "return 3": "raises TypeError: 'int' object is not iterable",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_of_a_check_is_one_sentence(folder: Path, fault: str) -> None:
    source = f"from irexec.plugins import finding_check\n@finding_check\ndef bad(model, inference):\n    node = model.nodes[0]\n    {fault}\n"
    (folder / "bad.py").write_text(source)
    _, error = _irexec(folder, "validate", MODEL, "--plugin", "bad.py", code=3)
    assert f"the check bad of plug-in 'bad.py' ({folder / 'bad.py'}) {_FAULTS[fault]}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "severity", "message"),
    [
        ("IR103", "error", "expected a namespace and an identifier, such as 'my.ops:101'"),
        ("lint:a b", "error", "expected a namespace and an identifier"),
        ("lint:a", "fatal", "the severity is 'fatal', expected error, warning or info"),
    ],
)
def test_a_code_that_is_not_valid(code: str, severity: str, message: str) -> None:
    with pytest.raises(PluginError, match=message.replace(".", r"\.")):
        irexec.finding_code(code, severity, "a name", meaning="m", example="e", repair="r")  # type: ignore[arg-type]
    assert code == "IR103" or codes.find_code(code) is None


def test_a_plugin_that_fails_leaves_no_code_and_no_check(folder: Path) -> None:
    (folder / "lint.py").write_text(CHECK.replace("{severity}", "error") + "\nraise ValueError('no')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "lint.py"))
        with pytest.raises(PluginError, match="ValueError: no"):
            irexec.findings()
    assert "lint:long" not in code_table.CODES
    assert not [key for key in PLUGIN_CHECKS if "lint.py" in key[0]]


def test_a_name_or_code_is_used_once(folder: Path) -> None:
    (folder / "again.py").write_text(CHECK.replace("{severity}", "error").replace("long layer name", "another name"))
    error = _irexec(folder, "validate", MODEL, "--plugin", "lint.py", "--plugin", "again.py", code=3)[1]
    assert "again.py" in error and "the code lint:long or the name 'another name' is used twice" in error
    with pytest.raises(InputError):
        irexec.explain("lint:nothing")
