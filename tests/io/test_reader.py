"""Reading files, valid, damaged and hostile. The expected values were read from the text by hand."""

from __future__ import annotations

import builtins
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import ModelError, io
from irexec.analysis.codes import CODES
from irexec.cli.main import run
from irexec.dtypes.elements import F32
from irexec.io import plain, xml
from irexec.io.xml import tag_lines
from irexec.ir.constants import constant_value
from irexec.ir.dims import ANY
from irexec.ir.findings import Finding
from irexec.ir.graph import Node
from tests.fuzz.targets.xml import generate
from tests.support.memory import peak_kilobytes

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
    "an edge to a layer without id": (VALID.replace('id="0" name', "name"), EDGE.format(-1, 0, 1, 0), ["IR001", "IR010", "IR013"]),
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
        (0,), (0,), (0,), (0, 3), (0, 3), (2, 0),
    ]  # fmt: skip


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


# XML that is not trusted: refused quickly, in bounded memory, and nothing but the model's own .bin is opened.


LAUGHS = (
    '<!DOCTYPE net [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY a{i} "{"&a" + str(i - 1) + ";" if i > 1 else "&a;"}{"&a;" * 9}">' for i in range(1, 12))
    + "]>"
)
HOSTILE_NET = '<net name="n" version="11"><layers>{}</layers><edges/></net>'
PARAMETER = (
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{0}" element_type="f32"/>'
    '<output><port id="0" precision="FP32"/></output></layer>'
    '<layer id="1" name="r" type="Relu" version="opset1"><input><port id="0" precision="FP32"/></input>'
    '<output><port id="1" precision="FP32"/></output></layer>'
)
BODY = '<layer id="0" name="l" type="TensorIterator" version="opset1"><port_map/><body><layers>'

ROWS = {
    "external entity": '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]><net name="&e;" version="11"/>',
    "external DTD": '<!DOCTYPE net SYSTEM "file:///etc/passwd"><net name="n" version="11"/>',
    "document type after a comment": '<!-- hello --><?xml-stylesheet href="x"?><!DOCTYPE net><net name="n" version="11"/>',
    "entity expansion": LAUGHS + '<net name="&a11;" version="11"/>',
    "entity that is not declared": '<net name="&e;" version="11"/>',
    "deep nesting": "<net>" + "<a>" * 100_000 + "</a>" * 100_000 + "</net>",
    "nesting that the parser would allow": "<net version='11'>" + "<a>" * 1000 + "</a>" * 1000 + "</net>",
    "a tag without an end": '<net name="' + "a" * (35 << 20),
    "bodies in bodies": HOSTILE_NET.format(BODY * 300 + "</layers><edges/></body></layer>" * 300),
    "nothing": "",
    "not XML": "\x7fELF\x01\x02",
    "cut in the middle": '<net name="n" version="11"><layers><layer id="0"',
    "UTF-16 without a mark, hiding entity expansion": ('<?xml version="1.0"?>' + LAUGHS + '<net name="&a11;" version="11"/>').encode("utf-16-le"),
    "UTF-16": '<net name="n" version="11"/>'.encode("utf-16"),
    "an encoding that hides a document type": b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE net+AD4-<net/>',
    "another root": "<html/>",
    "another version": '<net name="n" version="9"/>',
    "no version": '<net name="n"/>',
}  # fmt: skip


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
def test_is_refused(text: str | bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    memory, start = peak_kilobytes(), time.process_time()
    for command in (["validate"], ["infer"], ["inspect"]):
        assert run([*command, str(tmp_path / "m.xml")]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: ")
        assert captured.err.count("\n") == 1
        assert "root:" not in captured.err
    assert time.process_time() - start < 5
    assert peak_kilobytes() - memory < 200_000


VAST = [
    "1099511627776,1099511627776",
    "9223372036854775807,9223372036854775807,9223372036854775807",
    "99999999999999999999999999",
]


@pytest.mark.parametrize("shape", VAST)
def test_vast_shapes_cost_nothing(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_text(HOSTILE_NET.format(PARAMETER.format(shape)), encoding="utf-8")
    memory = peak_kilobytes()
    run(["validate", str(tmp_path / "m.xml")])
    assert run(["infer", str(tmp_path / "m.xml"), "-i", "random"]) == 3
    assert "irexec itself" not in capsys.readouterr().err
    assert peak_kilobytes() - memory < 200_000


HOSTILE_CONSTANT = '<layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" shape="{shape}" offset="{offset}" size="{size}"/><output><port id="0" precision="FP32"/></output></layer>'
CONSTANTS = {
    "a gigabyte of shape": {"shape": "1073741824,1073741824", "offset": "0", "size": "4"},
    "a gigabyte of size": {"shape": "1", "offset": "0", "size": "1152921504606846976"},
    "an offset beyond 64 bits": {"shape": "1", "offset": "340282366920938463463374607431768211456", "size": "4"},
    "a negative offset": {"shape": "1", "offset": "-4", "size": "4"},
    "a negative size": {"shape": "1", "offset": "0", "size": "-4"},
    "a negative shape": {"shape": "-1", "offset": "0", "size": "4"},
    "a size of 5000 digits": {"shape": "9" * 5000, "offset": "0", "size": "4"},
}


@pytest.mark.parametrize("texts", CONSTANTS.values(), ids=CONSTANTS)
def test_impossible_constants(texts: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_text(HOSTILE_NET.format(HOSTILE_CONSTANT.format(**texts)), encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(bytes(64))
    for arguments in (["validate"], ["validate", "--weights"]):
        assert run([*arguments, str(tmp_path / "m.xml")]) == 1
        captured = capsys.readouterr()
        assert "IR02" in captured.out or "IR4" in captured.out
        assert "irexec itself" not in captured.err


def test_nothing_else_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    irexec.save_model(io_model(), tmp_path / "m.xml")
    opened: list[str] = []
    real = builtins.open

    def spy(file: object, *arguments: object, **options: object) -> object:
        opened.append(str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", spy)
    model = irexec.read_model(tmp_path / "m.xml")
    irexec.validate(model, weights=True)
    assert {Path(name).name for name in opened} <= {"m.xml", "m.bin"}


def io_model() -> irexec.Model:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant([1.0, 2.0])))
    return builder.model()


def test_text_is_read_without_a_file() -> None:
    assert io.read_text('<net name="n" version="11"/>').name == "n"


def test_text_with_a_surrogate_is_not_xml() -> None:
    with pytest.raises(irexec.ModelError, match="line 1: not well-formed XML"):
        io.read_text("<net name='\ud800' version='11'/>")


# expat beside lxml: the same elements, lines and refusals of the fuzzer's files; the words of a syntax error differ.


_NOT_WELL_FORMED = re.compile("not well-formed XML|contains no XML element")


def _parsed(data: bytes, monkeypatch: pytest.MonkeyPatch, with_lxml: bool) -> object:
    """Every element of a file, or why it is refused."""
    with monkeypatch.context() as patched:
        if not with_lxml:
            patched.setattr(xml, "etree", None)
        try:
            root = xml.parse(data, "m.xml")
        except ModelError as error:
            return "not well-formed" if _NOT_WELL_FORMED.search(str(error)) else str(error)
    return [(x.tag, dict(x.attributes), x.text, x.tail, x.line) for x in root.walk()]


def test_expat_reads_the_fuzzers_files_as_lxml_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, kinds = random.Random(5), set()
    for number in range(150):
        data = generate(rng, number).files["m.xml"]
        read = _parsed(data, monkeypatch, True)
        assert _parsed(data, monkeypatch, False) == read, data
        kinds.add(type(read))
    assert kinds == {str, list}


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"<a", b"<a>", b"<a></b>", b'<a b="1" b="2"/>', b"<a/><b/>", b"<a>&lt;&#65;\r\n</a>", b"<a>&x;</a>",
        b"<a>\xff</a>", b"<a><![CDATA[ x<y ]]></a>", b"<!DOCTYPE a><a/>", b"<a>t<b/>u</a>", b'<a b="x\ny"/>', b"<a>\x01</a>",
        b"<?xml version='1.0' encoding='latin-1'?><a b='\xe9'/>",
    ],
)  # fmt: skip
def test_small_files(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _parsed(data, monkeypatch, False) == _parsed(data, monkeypatch, True)


@pytest.mark.parametrize("with_lxml", [True, False])
def test_a_prefix_stays_in_the_name(with_lxml: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """lxml drops a prefix that nothing declares; the reader of OpenVINO (pugixml) keeps every name as it is written."""
    read = _parsed(b'<a:net x:y="1" xmlns:z="u"><z:b/></a:net>', monkeypatch, with_lxml)
    assert isinstance(read, list)
    assert [(tag, attributes) for tag, attributes, *_ in read] == [("a:net", {"x:y": "1", "xmlns:z": "u"}), ("z:b", {})]
    assert _parsed(b"<a:b/><c/>", monkeypatch, with_lxml) == "not well-formed"


# Lines of tags, which libxml2 counts up to 65,535 only.


LINE_ROWS = {
    "one line": (b"<a><b/></a>", [1, 1]),
    "each on its own": (b"<a>\n<b/>\n\n<c>\n</c></a>", [1, 2, 4]),
    "declaration": (b'<?xml version="1.0"?>\n<a>\n<b/></a>', [2, 3]),
    "mark and white space": (b"\xef\xbb\xbf\n\n<a/>", [3]),
    "comment": (b"<a>\n<!-- <b>\n</b> --><c/></a>", [1, 3]),
    "instruction": (b"<a>\n<?x <b>\n?><c/></a>", [1, 3]),
    "CDATA": (b"<a>\n<![CDATA[<b>\n<c/>]]><d/></a>", [1, 3]),
    "lines in attributes": (b'<a\nx="1\n2">\n<b/></a>', [1, 4]),
    "carriage returns": (b"<a>\r\n<b/>\r\n<c/></a>", [1, 2, 3]),
    "ends in a tag": (b"<a>\n<", [1]),
}


@pytest.mark.parametrize(("data", "lines"), LINE_ROWS.values(), ids=LINE_ROWS)
def test_lines(data: bytes, lines: list[int]) -> None:
    assert list(tag_lines(data)) == lines


@pytest.mark.parametrize("comment", ["", "<!-- < -->"], ids=["tags only", "comment"])
def test_lines_are_exact_in_a_long_file(comment: str) -> None:
    """Tags at many offsets from the ends of the blocks of 1 MiB in which a file is read."""
    layer = '<layer id="{0}" name="n{0}" type="Frobnicate" version="opset1"/>'
    count = 40_000
    layers = "".join(layer.format(number) + "\n" * (1 + number % 5) for number in range(count))
    model = io.read_text(f'<net name="n" version="11">{comment}<layers>\n{layers}</layers><edges/></net>')
    line = 2
    for number, node in enumerate(model.nodes):
        assert node.line == line
        line += 1 + number % 5
    assert len(model.nodes) == count
    assert line > 65_535
