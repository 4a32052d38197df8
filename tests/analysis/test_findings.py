"""Rows of small models, each with one finding; together with the rows of test_damage they fire every code there is."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.codes import CODES
from irexec.analysis.model import Model
from irexec.cli.main import run
from irexec.ir.findings import Finding
from tests.analysis.test_damage import ROWS as DAMAGES
from tests.analysis.test_edited_graph import ROWS as EDITS

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
    Row("shapes differ along an edge", "IR205", "Result_1",
        _parameter(0, "?", 1) + _layer(1, "Result", "", _port(0, 2)), _edge(0, 0, 1, 0)),
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
    expected = {code for code in CODES if code.startswith("IR") and not code.startswith(("IR6", "IR9"))}
    assert fired | {"IR007"} == expected, "give the code a row here, in test_damage.py or in test_edited_graph.py"


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
