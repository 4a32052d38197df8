"""What the writer decides by itself, and what must not be lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

import irexec
from irexec import Dim, ModelError, io, opset
from irexec.dtypes.elements import F32, I64
from irexec.io.payload import GraphPayload, LayerPayload
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, ModelGraph, Node, Value
from tests.support.equality import differences
from tests.support.markup import canonical

IRS = sorted((Path(__file__).parent.parent / "data" / "openvino").rglob("*.xml"))


def as_built(graph: Graph) -> None:
    """Remove what a builder would not have given: ids of ports, the order of elements, spellings."""
    for node in graph.walk():
        node.payload = replace(node.payload, layout=())
        node.spelling = None
        for port in (*node.ports, *node.outputs):
            port.port = None
        if node.constant is not None:
            node.attributes = {}


@pytest.mark.parametrize("path", IRS, ids=lambda path: path.stem)
def test_a_built_model_is_written_as_openvino_writes_it(path: Path) -> None:
    """Ids of ports, order of elements, spellings, and offsets of constants are decided by the writer here."""
    model = io.read(path)
    as_built(model)
    xml, weights = io.write_text(model)
    assert canonical(etree.fromstring(xml)) == canonical(etree.fromstring(path.read_bytes()))
    assert weights == path.with_suffix(".bin").read_bytes()


def chain() -> ModelGraph:
    """x -> Add <- constant, and a second constant of the same bytes in another type."""
    x = Node(0, "x", "Parameter", "opset1", attributes={"shape": "2", "element_type": "i64"})
    x.outputs.append(Value(x, 0, Fact(I64, (2,)), ["x"]))
    nodes = [x]
    raw = np.array([1, 2], np.int64).view(np.uint8)
    for i in (1, 2):
        node = Node(i, f"c{i}", "Constant", "opset1", constant=Constant(I64, (2,), raw.copy, 16))
        node.outputs.append(Value(node, 0, Fact(I64, (2,))))
        nodes.append(node)
    add = Node(3, "add", "Add", "opset1", [Input(x.outputs[0]), Input(nodes[1].outputs[0])])
    add.outputs.append(Value(add, 0, Fact(I64, (2,))))
    result = Node(4, "r", "Result", "opset1", [Input(add.outputs[0])])
    return ModelGraph(name="chain", nodes=[*nodes, add, result])


def test_ids_of_ports_run_on_and_equal_bytes_are_written_once() -> None:
    xml, weights = io.write_text(chain())
    assert weights == np.array([1, 2], np.int64).tobytes()
    net = etree.fromstring(xml)
    assert net.xpath("//layer[@id=3]/*/port/@id") == ["0", "1", "2"]
    assert net.xpath("//layer/@type") == ["Parameter", "Const", "Const", "Add", "Result"]
    assert net.xpath("//data/@offset") == ["0", "0"]
    assert net.xpath("//edge/@from-port") == ["0", "0", "2"]
    assert net.xpath("//layer[@id=3]/input/port/@precision") == ["I64", "I64"]


def test_what_a_file_cannot_declare_on_a_port() -> None:
    model = chain()
    model.nodes[0].outputs[0].fact = Fact(None, (Dim(2, 5), Dim(0, None), 3))
    model.nodes[3].outputs[0].fact = Fact(F32, None)
    net = etree.fromstring(io.write_text(model)[0])
    assert net.xpath("//layer[@id=0]//dim/text()") == ["-1", "-1", "3"]
    assert net.xpath("//layer[@id=0]//port/@precision") == ["UNSPECIFIED"]
    assert net.xpath("//layer[@id=3]/output//dim") == []


def test_a_node_that_was_changed_after_reading_is_written_as_it_is_now() -> None:
    model = io.read_text(*io.write_text(chain()))
    model.nodes[3].type = "Relu"
    raw = np.zeros(3, np.float32).view(np.uint8)
    model.nodes[1].constant = Constant(F32, (3,), lambda: raw, 12)
    net = etree.fromstring(io.write_text(model)[0])
    assert net.xpath("//layer[@id=3]/@type") == ["ReLU"]
    assert dict(net.xpath("//layer[@id=1]/data")[0].attrib) == {
        "element_type": "f32",
        "shape": "3",
        "offset": "0",
        "size": "12",
    }


def test_spellings_of_the_file_are_kept() -> None:
    text = """<net name="n" version="11"><layers>
      <layer id="3" name="c" type="Constant" version="opset1"><data offset="2" size="4" shape="1,1" element_type="FP32" extra="1"/>
      <output><port id="8" names="" precision="f32"><dim>1</dim><dim>1</dim></port></output></layer>
      <layer id="1" name="r" type="Softmax" version="opset1"><input><port id="2" precision="dynamic"><dim>1</dim></port></input></layer>
      </layers><edges><edge from-layer="3" from-port="8" to-layer="1" to-port="2"/></edges></net>"""
    model = io.read_text(text, bytes(6))
    assert model.problems == []
    net = etree.fromstring(io.write_text(model)[0])
    assert net.xpath("//layer/@type") == ["Constant", "Softmax"]
    assert net.xpath("//port/@precision") == ["f32", "dynamic"]
    assert net.xpath("//port/@names") == [""]
    assert dict(net.xpath("//data")[0].attrib) == {
        "offset": "0", "size": "4", "shape": "1,1", "element_type": "FP32", "extra": "1",
    }  # fmt: skip


def test_edges_stay_in_the_order_of_the_file() -> None:
    text = io.write_text(chain())[0]
    net = etree.fromstring(text)
    edges = net.find("edges")
    assert edges is not None
    edges[:] = list(reversed(edges))
    model = io.read_text(etree.tostring(net), io.write_text(chain())[1])
    assert [e.get("from-layer") for e in etree.fromstring(io.write_text(model)[0]).iter("edge")] == ["3", "1", "0"]


def _fail(model: ModelGraph, change: str) -> None:
    if change == "no edge arrives at input port 0":
        model.nodes[3].ports[0].source = None
    elif change == "not in the graph":
        del model.nodes[0]
    elif change == "has the id 3, too":
        model.nodes[4].id = 3
    elif change == "'name' of the model":
        model.payload = GraphPayload({"name": "a\x00"})
    elif change == "'a b' of 'x'":
        model.nodes[0].payload = LayerPayload({"a b": "1"})
    elif change == "'odd' of layers":
        model.payload = GraphPayload(parts={"layers": {"odd": "\x00"}})
    elif change == "a tensor name":
        model.nodes[0].outputs[0].names = ["\ud800"]
    else:
        model.nodes[0].attributes["k"] = "\x1b"


FAILURES = [
    "no edge arrives at input port 0", "not in the graph", "has the id 3, too", "'name' of the model", "'a b' of 'x'",
    "'odd' of layers", "a tensor name", "attribute 'k'",
]  # fmt: skip


@pytest.mark.parametrize("message", FAILURES)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(message: str, tmp_path: Path) -> None:
    model = chain()
    _fail(model, message)
    with pytest.raises(ModelError, match=message):
        io.write(model, tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", [0, 1])
def test_a_rename_that_fails_leaves_both_old_files(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for has_old in (False, True):
        if has_old:
            io.write(chain(), tmp_path / "m.xml")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        model = chain()
        model.nodes[1].constant = Constant(I64, (2,), lambda: np.array([7, 8], np.int64).view(np.uint8), 16)
        calls: list[object] = []
        real = os.replace

        def replace(*paths: Path, calls: list[object] = calls, real: Callable[..., None] = real) -> None:
            calls.append(paths)
            if len(calls) == failing + 1:
                raise OSError("interrupted")
            real(*paths)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(ModelError, match="interrupted"):
            io.write(model, tmp_path / "m.xml")
        monkeypatch.undo()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_constant_that_cannot_be_read_leaves_the_old_files(tmp_path: Path) -> None:
    io.write(chain(), tmp_path / "m.xml")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model = chain()
    model.nodes[2].constant = Constant(I64, (2,), lambda: np.zeros(3, np.uint8), 16)
    with pytest.raises(ModelError, match="has 3 bytes, expected 16"):
        io.write(model, tmp_path / "m.xml")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_permissions_of_a_file_that_was_there_are_kept(tmp_path: Path) -> None:
    io.write(chain(), tmp_path / "m.xml")
    (tmp_path / "m.bin").chmod(0o600)
    io.write(chain(), tmp_path / "m.xml")
    assert (tmp_path / "m.bin").stat().st_mode & 0o777 == 0o600


def test_mapped_weights_are_still_the_old_ones(tmp_path: Path) -> None:
    io.write(chain(), tmp_path / "m.xml")
    old = io.read(tmp_path / "m.xml").nodes[1].constant
    assert old is not None
    view = old.raw
    model = chain()
    model.nodes[1].constant = Constant(I64, (1,), lambda: np.array([9], np.int64).view(np.uint8), 8)
    io.write(model, tmp_path / "m.xml")
    np.testing.assert_array_equal(view.view(np.int64), [1, 2])


@pytest.mark.parametrize("path", ["m.bin", "M.BIN", "a\0.xml", ""])
def test_paths_that_cannot_be_written(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError):
        io.write(chain(), path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_model_is_not_written() -> None:
    text = '<net name="n" version="11"><layers/><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
    with pytest.raises(ModelError, match="the model cannot be written: line 1"):
        io.write_text(io.read_text(text))


def _change(owner: Any, **payload: Any) -> None:
    owner.payload = replace(owner.payload, **payload)


CHANGES = {
    "rt_info of a layer": lambda m: _change(m.nodes[1], elements=("<rt_info/>",)),
    "rt_info of the model": lambda m: _change(m, elements=("<rt_info/>",)),
    "rt_info of an output": lambda m: _change(m.nodes[0].outputs[0], elements=("<rt_info><layout_0 layout='[C,N]'/></rt_info>",)),
    "names": lambda m: m.nodes[1].outputs[0].names.append("more"),
    "an element type": lambda m: setattr(m.nodes[1].ports[0], "fact", Fact(I64, (2, 2))),
    "an attribute": lambda m: m.nodes[0].attributes.update(shape="2,3"),
    "a name": lambda m: setattr(m.nodes[0], "name", "z"),
    "a source": lambda m: setattr(m.nodes[2].ports[0], "source", m.nodes[0].outputs[0]),
    "a layer": lambda m: m.nodes.pop(),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_differences_are_seen(what: str) -> None:
    path = next(path for path in IRS if path.stem == "information")
    model, changed = io.read(path), io.read(path)
    assert differences(model, changed, ports=True) == []
    CHANGES[what](changed)
    assert len(differences(model, changed)) == 1


def test_different_data_is_seen() -> None:
    model, changed = chain(), chain()
    changed.nodes[2].constant = Constant(I64, (2,), lambda: np.zeros(16, np.uint8), 16)
    assert differences(model, changed) == ["layer 'c2': the data differs"]


def test_models_of_the_builder_survive() -> None:
    builder = irexec.Builder("b")
    x = builder.parameter(F32, (Dim(2, 5), 3), "x", ["a,b", "c\\d"])
    builder.result(builder.emit("Relu", x))
    model = builder.model()
    assert differences(model, io.read_text(*io.write_text(model))) == []


@pytest.mark.parametrize("name", ["labels.txt", "labels", "labels.bin", ".xml"])
def test_what_lies_beside_another_name_is_not_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / "labels.bin").write_bytes(b"the user's")
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (2,), "x")))
    with pytest.raises(irexec.InputError, match=r"does not end in \.xml, as the name of an IR does"):
        irexec.save_model(builder.model(), tmp_path / name)
    assert (tmp_path / "labels.bin").read_bytes() == b"the user's"
    assert [path.name for path in tmp_path.iterdir()] == ["labels.bin"]


def test_constants_without_elements_have_a_file_with_a_byte(tmp_path: Path) -> None:
    """OpenVINO refuses a Constant in an empty .bin."""
    x = opset.parameter(["?", 3], "f32", name="x")
    irexec.Model([opset.reduce_max(x, np.zeros(0, np.int64))], [x]).save(tmp_path / "m.xml")
    assert (tmp_path / "m.bin").read_bytes() == b"\0"
    assert irexec.validate(tmp_path / "m.xml") == []
    ov = pytest.importorskip("openvino")
    assert str(ov.Core().read_model(tmp_path / "m.xml").output(0).partial_shape) == "[?,3]"
