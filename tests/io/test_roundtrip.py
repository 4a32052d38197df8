"""Reading, writing and copying: nothing is lost, and what OpenVINO wrote comes out as OpenVINO wrote it."""

from __future__ import annotations

import copy
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import irexec
from irexec import io
from irexec.dtypes.elements import F32, element
from irexec.io.xml import decode_names, encode_names
from irexec.ir.constants import constant_value
from tests.support.equality import differences
from tests.support.markup import canonical

_WRITTEN = sorted((Path(__file__).parent.parent / "data" / "openvino").rglob("*.xml"))


@pytest.mark.parametrize("path", _WRITTEN, ids=lambda path: path.stem)
def test_what_openvino_wrote_comes_out_the_same(path: Path) -> None:
    xml, weights = io.write_text(io.read(path))
    assert canonical(etree.fromstring(xml)) == canonical(etree.fromstring(path.read_bytes()))
    assert weights == path.with_suffix(".bin").read_bytes()


@pytest.mark.parametrize("path", _WRITTEN, ids=lambda path: path.stem)
def test_reading_what_was_written_gives_the_model_again(path: Path, tmp_path: Path) -> None:
    model = irexec.read_model(path)
    irexec.save_model(model, tmp_path / "m.xml")
    assert differences(model, irexec.read_model(tmp_path / "m.xml"), ports=True) == []


def test_every_element_type_is_read_exactly() -> None:
    model = irexec.read_model(next(path for path in _WRITTEN if path.stem == "types"))
    values = {
        str(node.constant.element): constant_value(node.constant).tolist()
        for node in model.nodes
        if node.constant is not None
    }
    assert values == {
        "boolean": [True, False, True], "u1": [1, 0, 1, 1, 0, 0, 1, 0, 1], "u2": [0, 1, 2, 3, 1], "u3": [0, 1, 2, 3, 4, 5, 6, 7, 5],
        "u4": [1, 2, 15], "u6": [0, 1, 33, 63, 17], "u8": [1, 255], "u16": [1, 65535], "u32": [1, 70000], "u64": [1, 7], "i4": [-8, 7, -1],
        "i8": [-1, 3], "i16": [-300, 2], "i32": [-70000], "i64": [-1, 2], "bf16": [1.5, -2.0], "f16": [0.5], "f32": [np.float32(0.1).item()],
        "f64": [np.float32(0.1).item()], "nf4": [0.0, 1.0, -1.0], "f8e4m3": [1.5, 448.0], "f8e5m2": [1.5, -2.0], "f8e8m0": [1.0, 2.0, 4.0],
        "f4e2m1": [1.0, 6.0, -0.5], "string": ["one", "", "drei"],
    }  # fmt: skip


UNKNOWN = """<net name="n" version="11" colour="red">
<layers many="3">
  <layer id="0" name="x" type="Parameter" version="opset1" weird="1"><data shape="?,2..5" element_type="f32" odd="2"/>
    <output loud="4"><port id="0" precision="FP32" names="a\\,b,c" strange="3"><dim>-1</dim><dim>-1</dim><rt_info><k value="v"/></rt_info></port></output></layer>
  <layer id="5" name="y" type="Frobnicate" version="extension"><data a="1" b=""/><surprise><inner t="1">text</inner></surprise>
    <input quiet="5"><port id="7" precision="FP32"><dim>-1</dim><dim>-1</dim></port></input>
    <output><port id="9" precision="FP32"><dim>1</dim></port></output></layer>
  <layer id="6" name="r" type="Result" version="opset1" output_names="out"><input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>
</layers>
<edges few="6"><edge from-layer="0" from-port="0" to-layer="5" to-port="7" thick="7"/><edge from-layer="5" from-port="9" to-layer="6" to-port="0"/></edges>
<meta_data><cli/></meta_data><rt_info><deep><er value="1"/></deep></rt_info>
</net>"""


def test_what_is_not_known_survives() -> None:
    model = io.read_text(UNKNOWN)
    assert model.nodes[0].outputs[0].names == ["a,b", "c"]
    written, _ = io.write_text(model)
    assert canonical(etree.fromstring(written)) == canonical(etree.fromstring(UNKNOWN))


def test_other_attributes_in_bodies_survive() -> None:
    text = (Path(__file__).parents[1] / "data/openvino/loop.xml").read_text()
    for tag in ("body", "port_map", "back_edges"):
        text = text.replace(f"<{tag}>", f'<{tag} odd="{tag}">')
    text = re.sub(r"(<edge [^>]*?) */>", r'\1 odd="edge"/>', text)
    assert text.count("odd=") > 5
    weights = (Path(__file__).parents[1] / "data/openvino/loop.bin").read_bytes()
    model = io.read_text(text, weights)
    written, packed = io.write_text(model)
    assert canonical(etree.fromstring(written)) == canonical(etree.fromstring(text.encode()))
    assert differences(model, io.read_text(written, packed), ports=True) == []


def test_names_with_prefixes_mixed_text_and_deep_elements_survive() -> None:
    text = UNKNOWN.replace("<net ", '<net xmlns:p="http://q" ').replace(
        "<meta_data>", '<p:k p:v="&lt;&#10;&#9;&quot;é">a &amp; b<b/> tail</p:k><meta_data>'
    )
    text = text.replace("<deep>", "<d>" * 240 + "<deep>").replace("</deep>", "</deep>" + "</d>" * 240)
    model = io.read_text(text)
    written, _ = io.write_text(model)
    assert canonical(etree.fromstring(written)) == canonical(etree.fromstring(text))
    assert b"> tail</p:k>" in written.replace(b"<b/", b"")
    assert io.read_text(written).payload == model.payload


@pytest.mark.parametrize("name", ["a\0b", "\x1b[0m", "\ud800", "\ufffe"])
def test_characters_that_xml_cannot_contain_are_not_written(name: str) -> None:
    model = io.read_text(UNKNOWN)
    model.nodes[1].name = name
    with pytest.raises(irexec.ModelError, match="characters that XML cannot contain"):
        io.write_text(model)


@pytest.mark.parametrize("value", ["length µ:m", "area m²:x", " xmlns:a", "a > b:c", "it's p:k='1'", "p:k"])
def test_what_looks_like_a_prefix_in_a_text_is_not_one(value: str) -> None:
    """µ and ² are letters and digits to Python, but no name in XML has them."""
    texts = f'<k value="{value}">{value}</k><p:k p:v="{value}"/><meta_data>'
    text = UNKNOWN.replace("<net ", '<net xmlns:p="http://q" ').replace("<meta_data>", texts)
    model = io.read_text(text)
    written, _ = io.write_text(model)
    assert canonical(etree.fromstring(written)) == canonical(etree.fromstring(text.encode()))
    assert differences(model, io.read_text(written)) == []


@pytest.mark.parametrize("key", ["µ", "m²", "1st", "a b", "a=", "", "a\u00d7"])
def test_attributes_whose_names_xml_cannot_have_are_not_written(key: str) -> None:
    """By the rule for names of XML 1.0, fifth edition."""
    model = io.read_text(UNKNOWN)
    model.nodes[1].attributes[key] = "1"
    with pytest.raises(irexec.ModelError, match="characters that XML cannot contain"):
        io.write_text(model)


@pytest.mark.parametrize("key", ["é", "a·b", "_", "名", "a-b.c1", "\U00010000"])
def test_attributes_with_any_name_of_xml_are_written(key: str) -> None:
    model = io.read_text(UNKNOWN)
    model.nodes[1].attributes[key] = "1"
    assert etree.fromstring(io.write_text(model)[0]).find(f".//data[@{key}]") is not None


def test_version_10_stays_version_10() -> None:
    """Version 11 would mean other types of inputs and outputs, see irexec.analysis.version_10."""
    text = UNKNOWN.replace('version="11"', 'version="10"')
    model = io.read_text(text)
    assert model.version == 10
    assert canonical(etree.fromstring(io.write_text(model)[0])) == canonical(etree.fromstring(text))


def test_lines_are_exact_however_long_the_file() -> None:
    text = UNKNOWN.replace('<layer id="6"', "\n" * 70_000 + '<layer id="6"')
    model = io.read_text(text)
    assert model.nodes[2].line == text[: text.index('<layer id="6"')].count("\n") + 1


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\\", exclude_categories=["Cc", "Cs"]), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_names_survive(names: list[str]) -> None:
    assert decode_names(encode_names(names)) == names


_TYPES = ("f32", "f16", "bf16", "i64", "u8", "boolean", "i4", "u1", "f8e4m3")


@given(st.data())
def test_any_graph_survives(data: st.DataObject) -> None:
    builder = irexec.Builder("random")
    sizes = st.integers(0, 3) | st.just(irexec.Dim(0, None)) | st.just(irexec.Dim(2, 5))
    shape = tuple(data.draw(st.lists(sizes, max_size=4)))
    values = [builder.parameter(F32, shape, "x", ["x"])]
    for i in range(data.draw(st.integers(0, 6))):
        kind = data.draw(st.sampled_from(["Relu", "Add", "Constant"]))
        if kind == "Constant":
            name = data.draw(st.sampled_from(_TYPES))
            count = data.draw(st.integers(0, 9))
            builder.constant(np.arange(count) % 2, element(name), f"constant {i}")
        elif kind == "Relu":
            values.append(builder.emit("Relu", data.draw(st.sampled_from(values)), names=[f"t,{i}"]))
        else:
            values.append(builder.emit("Add", data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))))
    builder.result(values[-1])
    model = builder.model()
    read = io.read_text(*io.write_text(model))
    assert differences(model, read) == []
    assert differences(read, io.read_text(*io.write_text(read)), ports=True) == []


# Models, findings and results can be copied and sent to other processes.


IRS = sorted((Path(__file__).parent.parent / "data" / "openvino").rglob("*.xml"))
COPIES = {"pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy, "copy": copy.copy}


def _in_another_process(model: irexec.Model) -> tuple[irexec.Model, list[irexec.Finding], irexec.Outputs]:
    inputs = [
        np.ones([size if isinstance(size, int) else 2 for size in port.shape or ()], np.float32)
        for port in model.inputs
    ]
    return model, irexec.validate(model), irexec.compile_model(model)(inputs)


@pytest.mark.parametrize("path", IRS, ids=lambda path: path.stem)
def test_copies_of_models_are_equal(path: Path) -> None:
    model = irexec.read_model(path)
    for how in COPIES.values():
        copied = how(model)
        assert type(copied) is irexec.Model
        assert differences(model, copied, ports=True) == []
        assert io.write_text(copied) == io.write_text(model)


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
def test_a_copy_shares_no_node(how: object) -> None:
    model = irexec.read_model(next(path for path in IRS if path.stem == "loop"))
    assert callable(how)
    copied = how(model)
    assert not {id(node) for node in copied.walk()} & {id(node) for node in model.walk()}
    copied.nodes[0].attributes["shape"] = "changed"
    copied.nodes[0].outputs[0].names.append("changed")
    assert differences(model, irexec.read_model(model.path)) == []


@pytest.mark.parametrize(
    "weights", [None, b"\0\0\x80\x3f\0\0\0\x40", np.array([1, 2], np.float32)], ids=["file", "bytes", "array"]
)
@pytest.mark.sampled(6)
def test_results_come_back_from_a_process(weights: object, tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant([1.0, 2.0]), names=["y"]))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml", weights)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        copied, findings, outputs = pool.submit(_in_another_process, model).result()
    assert differences(model, copied, ports=True) == []
    assert findings == []
    np.testing.assert_array_equal(outputs["y"], [2, 3])
    np.testing.assert_array_equal(outputs[0], [2, 3])


def test_a_built_model_can_be_pickled() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant([1.0, -2.0])))
    model = pickle.loads(pickle.dumps(builder.model()))
    np.testing.assert_array_equal(irexec.compile_model(model)()[0], [1, 0])


@pytest.mark.slow
def test_long_models_do_not_recurse() -> None:
    builder = irexec.Builder("long")
    value = builder.parameter(F32, (2,), "x")
    for _ in range(3000):
        value = builder.emit("Relu", value)
    builder.result(value)
    model = builder.model()
    for how in COPIES.values():
        assert differences(model, how(model)) == []
    assert len(repr(model)) < 200


def test_results_do_not_carry_the_model() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant(np.ones((100_000, 2), np.float32))))
    model = builder.model()
    assert len(pickle.dumps(irexec.compile_model(builder.model()).inputs)) < 2000
    port = pickle.loads(pickle.dumps(model.inputs[0]))
    assert (str(port), port.node.name, port.node.ports) == ("x: f32[2]", "x", [])


def test_findings_can_be_pickled() -> None:
    model = io.read_text('<net name="n" version="11"><layers/><edges/></net>')
    findings = irexec.validate(model)
    assert pickle.loads(pickle.dumps(findings)) == findings != []
