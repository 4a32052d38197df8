"""irexec inside: the cache of OpenVINO as it is laid out, the operations of its plugin, and the two verdicts."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.builder import Builder, packed
from irexec.errors import ModelError, UnsupportedError
from irexec.tools.inside import parts
from irexec.tools.inside.published import published
from tests.support.networks import difference, feeds, unpacked
from tests.support.paths import DIGITS, ROOT
from tests.support.tiers import some

_XML = b'<?xml version="1.0"?>\n<net name="n" version="11"/>'


def _blob(model: bytes, *, is_relative: bool) -> bytes:
    """A file of the cache: a line, six numbers, notes, constants and the model."""
    head = b'<?xml version="1.0"?><compiled_blob/>\n'
    notes, constants = b"<cnndata/>", b"\x01\x02"
    first = 48 if is_relative else len(head) + 48
    begins = (first, first + len(notes), first + len(notes) + len(constants))
    places = [number for pair in zip(begins, map(len, (notes, constants, model)), strict=True) for number in pair]
    return head + struct.pack("<6Q", *places) + notes + constants + model


@pytest.mark.parametrize("is_relative", [True, False])
def test_parts_of_a_cache(is_relative: bool) -> None:
    found = parts(_blob(_XML + b"\0", is_relative=is_relative), "2026.4")
    assert (found.xml, found.constants, found.version) == (_XML, b"\x01\x02", "2026.4")


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (_blob(b"\x80" * 40, is_relative=True), "OpenVINO 2026.4 has scrambled the model in its cache"),
        (b"nothing of the kind" * 9, "is laid out as in no release"),
        (b"", "is laid out as in no release"),
    ],
)
def test_a_cache_that_cannot_be_read(blob: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parts(blob, "2026.4")


def _plugin(layer: str, element: str = "FP32") -> irexec.Model:
    """A model with one layer of the plugin between an input of two numbers and a result."""
    port = f'<port id="{{}}" precision="{element}"><dim>2</dim></port>'
    return irexec.Model.of(
        io.read(
            f"""<net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
            <output>{port.format(0)}</output></layer>
            <layer id="1" name="y" {layer}<input>{port.format(0)}</input><output>{port.format(1)}</output></layer>
            <layer id="2" name="r" type="Result" version="opset1"><input>{port.format(0)}</input></layer></layers>
            <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>""".encode(),
            b"",
        )
    )


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ('type="PowerStatic" version="cpu_plugin_opset"><data scale="2" shift="1" power="3"/>', [-1, 343]),
        ('type="PowerStatic" version="cpu_plugin_opset"><data scale="1" shift="0" power="1"/>', [-1, 3]),
        ('type="LeakyRelu" version="cpu_plugin_opset"><data negative_slope="0.5"/>', [-0.5, 3]),
        ('type="SwishCPU" version="cpu_plugin_opset"><data alpha="1"/>', [-0.26894142, 2.8577223]),
        ('type="ConvertSaturation" version="SnippetsOpset"><data destination_type="i8"/>', [-1, 3]),
        ('type="Relu" version="type_relaxed_opset1"><data type_relax="true" output_data_types="u8"/>', [0, 3]),
    ],
)
def test_operations_of_the_plugin(layer: str, expected: list[float]) -> None:
    """The values follow from the formulas of the plugin's sources."""
    model = published(_plugin(layer)).model()
    assert model["y"].name == "y"
    found = irexec.infer(model, np.float32([-1, 3]))[0]
    assert np.allclose(found.astype(np.float64), expected)


def test_an_operation_that_is_not_known_is_named() -> None:
    with pytest.raises(UnsupportedError, match="the transformed model has Interaction, which irexec does not know"):
        published(_plugin('type="Interaction" version="cpu_plugin_opset">'))


@pytest.mark.slow
@pytest.mark.parametrize("name", some(["bert_sdpa", "llama_sdpa", "faster_rcnn"], ["bert_sdpa"]))
def test_a_transformed_network_has_the_values_of_its_source(name: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = unpacked(name, tmp_path)
    found = irexec.inside(path)
    assert found.rewritten and not [one for one in irexec.validate(found.model) if one.severity == "error"]
    source, made = irexec.compile_model(path), irexec.compile_model(found.model)
    for given in feeds(path, source.inputs)[:2]:
        inputs = dict(zip((port.name for port in source.inputs), given, strict=True))
        expected, outputs = source(given), made(inputs)
        assert max(difference(outputs[i], expected[i]) for i in range(len(expected))) < 1e-5


@pytest.mark.slow
def test_the_verdict_of_a_wrong_transformation(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.inside import check

    path = DIGITS / "classifier.xml"
    found = irexec.inside(path)
    assert check(path, found).verdict == "neither"
    bias = found.model["conv3.b_1"]
    bias.constant = packed(2 * bias.array, irexec.f32)
    assert check(path, found).verdict == "transformation"


@pytest.mark.parametrize("is_judged", [False, True])
def test_the_verdict_of_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch, is_judged: bool) -> None:
    """A runtime with a bias that is twice as large as in the model, which OpenVINO has transformed rightly."""
    pytest.importorskip("openvino")
    from irexec.tools.compare import CompareOptions
    from irexec.tools.inside import check
    from irexec.tools.judge import JudgeOptions
    from tests.tools.judge.faulty import plant

    def damage(model: irexec.Model, values: object) -> None:
        for node in model.nodes:
            if node.name == "conv3.b_1":
                node.constant = packed(2 * node.array, irexec.f32)

    path = DIGITS / "classifier.xml"
    runtime = plant(monkeypatch, damage)
    options = JudgeOptions(runtime=runtime) if is_judged else CompareOptions(b_runtime=runtime)
    found = check(path, irexec.inside(path), options)
    assert found.verdict == "kernel" and "conv3" in str(found.sections()[0])


@pytest.mark.slow
def test_the_layers_that_a_layer_was_made_of(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.inside import check

    path = DIGITS / "classifier.xml"
    found = irexec.inside(path)
    names = {node.name for node in irexec.read_model(path).nodes}
    layer = next(name for name in found.fused if len(found.fused[name]) > 1)
    assert set(found.fused[layer]) & names
    assert [one for made in found.fused.values() for one in made if one != one.strip()] == []
    for node in found.model.nodes:
        if node.constant is not None and node.constant.element is irexec.f32 and node.constant.count == 10:
            # Not the same for every class, which Softmax would not show.
            node.constant = packed(node.array + np.arange(10, dtype=np.float32).reshape(node.array.shape), irexec.f32)
    checked = check(path, found, output=str(tmp_path / "page.html"))
    assert checked.verdict == "transformation" and "made of" in checked.sections()[0]
    assert "irexec-beside" in (tmp_path / "page.html").read_text("utf-8")


_LEFT_OPEN = "neither: the transformed model is the source; left open: OpenVINO is known to differ, IR913"


@pytest.mark.parametrize(
    ("element", "type", "x", "constant", "compared", "judged"),
    [
        # OpenVINO computes i64 in i32, which its transformations say.
        pytest.param("i64", "Multiply", np.int64([1, 2**33, -(2**40), 5]), np.int64([1, 1, 1, 3]), "transformation", "transformation", marks=pytest.mark.slow),
        # OpenVINO's sum of u8 saturates: a judgement, which confirms a wrong kernel, leaves it open.
        ("u8", "Add", np.uint8([1, 10, 100, 255]), np.uint8([250]), _LEFT_OPEN, _LEFT_OPEN),
        pytest.param("f32", "SoftPlus", np.float32([-20, -15, -12, 1]), None, "neither", "kernel", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_real_differences(
    element: str, type: str, x: np.ndarray, constant: np.ndarray | None, compared: str, judged: str, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    from irexec.tools.compare import CompareOptions
    from irexec.tools.inside import check
    from irexec.tools.judge import JudgeOptions
    from irexec.tools.run.input_sources import InputSource

    builder = Builder("real")
    value = builder.parameter(element, x.shape, "x")
    operands = [value] if constant is None else [value, builder.constant(constant, element, "w")]
    builder.result(builder.emit(type, *operands), "y")
    irexec.save_model(irexec.Model.of(builder.model()), tmp_path / "m.xml")
    np.savez(tmp_path / "x.npz", x=x)
    found = irexec.inside(tmp_path / "m.xml")
    sources = [InputSource(None, str(tmp_path / "x.npz"))]
    for options, expected in ((CompareOptions(), compared), (JudgeOptions(), judged)):
        assert str(check(tmp_path / "m.xml", found, options, sources=sources).sections()[0]).startswith(expected)


@pytest.mark.slow
def test_equal_scores_are_not_a_fault_of_a_kernel(tmp_path: Path) -> None:
    """OpenVINO's TopK takes others of 300 values that are often equal, which its specification allows."""
    pytest.importorskip("openvino")
    from irexec.tools.inside import check
    from irexec.tools.run.input_sources import InputSource

    builder = Builder("ties")
    _, indices = builder.emit("TopK", builder.parameter("f32", (1, 300), "x"), 10, axis=1, mode="max", sort="value")
    builder.result(indices, "y")
    irexec.save_model(irexec.Model.of(builder.model()), tmp_path / "m.xml")
    np.savez(tmp_path / "x.npz", x=np.round(np.random.default_rng(0).normal(size=(1, 300))).astype(np.float32))
    checked = check(
        tmp_path / "m.xml", irexec.inside(tmp_path / "m.xml"), sources=[InputSource(None, str(tmp_path / "x.npz"))]
    )
    assert (checked.verdict, checked.kernel.verdict) == ("neither", "precision")


@pytest.mark.slow
def test_the_page_of_ten_networks_shows_this_release(tmp_path: Path) -> None:
    """One row of docs/inside-openvino.md, where the release is that of the page."""
    from tests.networks.inside import NETWORKS, row

    page = (ROOT / "docs" / "inside-openvino.md").read_text("utf-8")
    found = irexec.inside(unpacked("resnet50", tmp_path))
    if f"OpenVINO {found.version.partition('-')[0]} " not in page:
        pytest.skip("the page is of another release")
    assert row("resnet50", found) in page
    assert all((ROOT / "docs" / path).exists() for path in re.findall(r"\((_static/inside/[^)]+)\)", page))
    assert len(re.findall(r"^\| ", page, re.MULTILINE)) > len(NETWORKS)
