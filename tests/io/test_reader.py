"""Reading files, valid and damaged. The expected values were read from the text by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import ModelError, io
from irexec.analysis.codes import CODES
from irexec.dtypes.elements import F32
from irexec.io import plain
from irexec.ir.constants import constant_value
from irexec.ir.dims import ANY
from irexec.ir.findings import Finding
from irexec.ir.graph import Node

IRS = Path(__file__).parent.parent / "data" / "openvino"
NET = '<net name="n" version="11">\n<layers>\n{}</layers>\n<edges>\n{}</edges>\n</net>'
X = '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output>{}</output></layer>\n'
PORT = '<port id="{}" precision="FP32"><dim>2</dim></port>'
Y = '<layer id="1" name="y" type="ReLU" version="opset1"><input>{}</input><output>{}</output></layer>\n'
EDGE = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>\n'
VALID = X.format(PORT.format(0)) + Y.format(PORT.format(0), PORT.format(1))


def _problems(layers: str, edges: str, weights: bytes | None = None) -> list[Finding]:
    problems = io.read_text(NET.format(layers, edges), weights).problems
    assert {problem.code for problem in problems} <= set(CODES)
    return problems


def test_a_layer() -> None:
    model = io.read_text(NET.format(VALID, EDGE.format(0, 0, 1, 0)))
    assert model.problems == []
    x, y = model.nodes
    assert (y.id, y.name, y.type, y.spelling, y.version, y.line) == (1, "y", "Relu", "ReLU", "opset1", 4)
    assert y.inputs == (x.outputs[0],)
    assert x.attributes == {"shape": "2", "element_type": "f32"}
    assert (y.outputs[0].port, y.outputs[0].line) == (1, 4)
    assert y.outputs[0].fact is not None
    assert (y.outputs[0].fact.element, y.outputs[0].fact.shape) == (F32, (2,))


@pytest.mark.parametrize(
    "written, read", [("Const", "Constant"), ("ReLU", "Relu"), ("PReLU", "PRelu"), ("SoftMax", "Softmax")]
)
def test_types_with_two_spellings(written: str, read: str) -> None:
    for spelling in (written, read):
        node = io.read_text(NET.format(f'<layer id="0" name="a" type="{spelling}" version="opset1"/>', "")).nodes[0]
        assert (node.type, node.spelling) == (read, spelling)


def test_ports_without_a_precision_declare_no_element_type() -> None:
    for text in ("", 'precision="UNSPECIFIED"', 'precision="dynamic"'):
        port = f'<port id="0" {text}><dim>-1</dim><dim>7</dim></port>'
        value = io.read_text(NET.format(X.format(port), "")).nodes[0].outputs[0]
        assert value.fact is not None
        assert (value.fact.element, value.fact.shape) == (None, (ANY, 7))


DAMAGE = {
    "from no layer": (VALID, EDGE.format(7, 0, 1, 0), ["IR010", "IR013"]),
    "from no port": (VALID, EDGE.format(0, 7, 1, 0), ["IR010", "IR013"]),
    "to no layer": (VALID, EDGE.format(0, 0, 1, 0) + EDGE.format(0, 0, 7, 0), ["IR011"]),
    "to no port": (VALID, EDGE.format(0, 0, 1, 0) + EDGE.format(0, 0, 1, 1), ["IR011"]),
    "from no layer to no layer": (VALID, EDGE.format(0, 0, 1, 0) + EDGE.format(7, 0, 8, 0), ["IR010", "IR011"]),
    "two to one port": (VALID, EDGE.format(0, 0, 1, 0) * 2, ["IR012"]),
    "no edge": (VALID, "", ["IR013"]),
    "an edge to a layer without id": (
        VALID.replace('id="0" name', "name"), EDGE.format(-1, 0, 1, 0), ["IR001", "IR010", "IR013"],
    ),
    "two layers of one id": (VALID + X.format(PORT.format(0)), EDGE.format(0, 0, 1, 0), ["IR002"]),
    "two ports of one id": (X.format(PORT.format(0) * 2), "", ["IR003"]),
    "a port without id": (X.format('<port precision="FP32"/>'), "", ["IR006"]),
    "a dim in words": (X.format(PORT.format(0).replace(">2<", ">two<")), "", ["IR004"]),
    "a dim without text": (X.format("<port id='0'><dim/></port>"), "", ["IR004"]),
    "a precision that does not exist": (X.format(PORT.format(0).replace("FP32", "FP33")), "", ["IR005"]),
    "half an edge": (VALID, EDGE.format(0, 0, 1, 0) + '<edge from-layer="0"/>', ["IR006", "IR006", "IR006"]),
    "a port map without a body": ('<layer id="0" name="l" type="Loop" version="opset5"><port_map/></layer>', "", ["IR032"]),
}  # fmt: skip


@pytest.mark.parametrize("layers, edges, codes", DAMAGE.values(), ids=DAMAGE)
def test_damage_becomes_problems(layers: str, edges: str, codes: list[str]) -> None:
    assert sorted(problem.code for problem in _problems(layers, edges)) == codes


CONSTANT = '<layer id="0" name="c" type="Const" version="opset1"><data element_type="{}" shape="{}" offset="{}" size="{}"/></layer>'


@pytest.mark.parametrize(
    "texts, code",
    [
        (("f32", "2", "0", "8"), None),
        (("f32", "2", "8", "8"), None),
        (("f32", "2", "9", "8"), "IR021"),
        (("f32", "0", "16", "0"), None),
        (("f32", "2", "9223372036854775807", "9223372036854775807"), "IR021"),
        (("f32", "2", "18446744073709551616", "8"), "IR020"),
        (("f32", "2", "-1", "8"), "IR020"),
        (("f32", "2", "0", "-8"), "IR020"),
        (("f32", "?", "0", "8"), "IR020"),
        (("f33", "2", "0", "8"), "IR020"),
    ],
)
def test_where_the_bytes_of_a_constant_are(texts: tuple[str, ...], code: str | None) -> None:
    assert [problem.code for problem in _problems(CONSTANT.format(*texts), "", bytes(16))] == (
        [] if code is None else [code]
    )


def test_version_10_without_precisions_on_inputs_and_with_attribute_elements() -> None:
    text = """<net name="old" version="10"><layers>
      <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/>
        <rt_info><attribute name="fused_names" version="0" value="x"/></rt_info>
        <output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>2</dim></port></output></layer>
      <layer id="1" name="r" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>2</dim></port></input></layer>
    </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>
    <meta_data><MO_version value="2021.4"/><cli_parameters><input_model value="DIR"/></cli_parameters></meta_data></net>"""
    model = io.read_text(text)
    assert (model.version, model.problems) == (10, [])
    assert model.nodes[1].ports[0].fact is not None
    assert model.nodes[1].ports[0].fact.element is None
    assert plain(model.nodes[0].payload)["elements"][1] == (
        "attribute",
        {"name": "fused_names", "version": "0", "value": "x"},
        "",
        0,
    )
    assert [tag for tag, *_ in plain(model.payload)["elements"]] == [
        "meta_data",
        "MO_version",
        "cli_parameters",
        "input_model",
    ]
    assert io.write_text(model)[0].count(b"precision") == 1


def test_bodies_with_their_wiring() -> None:
    model = io.read(IRS / "loop.xml")
    loop = next(node for node in model.nodes if node.type == "Loop")
    body = loop.bodies["body"]
    assert [(e.kind, e.external, e.internal, e.attributes.get("purpose")) for e in body.port_maps] == [
        ("input", 2, 1, None), ("input", 3, 2, None), ("output", 4, 11, None), ("output", 5, 12, None),
        ("input", -1, 0, "current_iteration"), ("output", -1, 10, "execution_condition"),
    ]  # fmt: skip
    assert body.port_maps[0].attributes == {"axis": "0", "start": "-1", "end": "0", "stride": "-1", "part_size": "1"}
    assert [(edge.source, edge.target) for edge in body.back_edges] == [(11, 2)]
    assert (loop.line, body.port_maps[0].line, body.back_edges[0].line) == (35, 37, 45)


def test_bodies_in_bodies() -> None:
    def depth(nodes: list[Node]) -> int:
        return max((1 + depth(body.graph.nodes) for node in nodes for body in node.bodies.values()), default=0)

    assert depth(io.read(IRS / "operations" / "loop_of_branches.xml").nodes) == 3


def test_names_as_openvino_escapes_them() -> None:
    """The names were given as {"comma,", ",", "back\\slash", "größe", "日本", "tab\\there", "a\\,b"}."""
    model = io.read(IRS / "operations" / "strange_names.xml")
    assert model.name == "größe <&>"
    assert model.nodes[0].outputs[0].names == [",", "a\\,b", "back\\slash", "comma,", "größe", "tab\there", "日本"]
    assert model.nodes[1].name == "line\nbreak"


def test_empty_constants_as_openvino_writes_them() -> None:
    """Of no bytes or of one: their shapes are those that the models were made with."""
    model = irexec.read_model(IRS / "operations" / "empty.xml")
    assert irexec.validate(model, weights=True) == []
    constants = [node.constant for node in model.nodes if node.constant is not None and node.constant.count == 0]
    assert sorted(constant.size for constant in constants) == [0, 0, 1, 1, 1, 8]
    assert sorted(constant_value(constant).shape for constant in constants) == [
        (0,),
        (0,),
        (0,),
        (0, 3),
        (0, 3),
        (2, 0),
    ]


def test_wide_layers_are_joined_in_linear_time() -> None:
    """Looked up one by one, the ports of these 40,000 edges would take a minute."""
    count = 40_000
    ports = "".join(f'<port id="{i}"/>' for i in range(count))
    layers = X.format(ports) + Y.format(ports, "")
    text = NET.format(layers, "".join(EDGE.format(0, i, 1, i) for i in range(count)))
    model = io.read_text(text)
    assert model.problems == []
    assert model.nodes[1].inputs[-1] is model.nodes[0].outputs[-1]


@pytest.mark.parametrize("path", ["nul\0.xml", "", ".", "no such file.xml"])
def test_files_that_cannot_be_read(path: str) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        io.read(path)


def test_weights_of_any_array() -> None:
    values = np.arange(4, dtype=np.float32)[::2]
    node = io.read_text(NET.format(CONSTANT.format("f32", "2", "0", "8"), ""), values).nodes[0]
    assert node.constant is not None
    assert node.constant.raw.tobytes() == np.array([0, 2], np.float32).tobytes()
    assert not node.constant.raw.flags.writeable


def test_progress_is_the_fraction_that_is_read() -> None:
    text = b'<net name="n" version="11"><layers/><edges/>' + b" " * (5 << 19) + b"</net>"
    parts: list[float] = []
    irexec.read_model(text, progress=parts.append)
    assert len(parts) == 3
    assert sum(parts) == pytest.approx(1)
