"""--set, --replace and --append nms of irexec edit on many networks, beside OpenVINO or NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import irexec
from irexec import opset
from irexec.cli.main import run
from tests.authoring.test_postprocessing import kept_boxes
from tests.support.edited import DEFAULT, NAMES, Original, by_openvino, check_values, saved
from tests.support.tiers import some

ov = pytest.importorskip("openvino")

_EPS = {"type": "MVN", "eps": "0.5"}
_DILATED = {"type": "Convolution", "auto_pad": "same_upper", "dilations": "2,2"}
SETTINGS = {
    "convnext": _EPS, "swin": _EPS, "vit_sdpa": _EPS, "bert_sdpa": _EPS, "gpt2_sdpa": _EPS, "whisper_encoder": _EPS, "segformer": _EPS, "deberta": _EPS, "wavlm": _EPS,
    "resnet18": _DILATED, "unet": _DILATED, "gemma2": {"type": "Softmax", "axis": "2"}, "t5": {"type": "ScaledDotProductAttention", "causal": "true"},
}  # fmt: skip
"""Attributes to set in a layer of a type, by network; the shapes stay what they are."""


def _edit(model: Path, folder: Path, *words: str) -> Path:
    assert run(["edit", str(model), "-o", str(folder / "edited.xml"), *words]) == 0
    return saved(irexec.read_model(folder / "edited.xml"), folder)


@pytest.mark.parametrize("name", some(SETTINGS, ("resnet18", "bert_sdpa")))
def test_attributes_that_are_set_count(name: str, tmp_path: Path) -> None:
    """OpenVINO reads the .xml in which the attributes of the layer were written by hand."""
    original, wanted = Original(name, tmp_path), dict(SETTINGS[name])
    kind = wanted.pop("type")
    layers = [node for node in original.compiled.model.find(type=kind) if kind != "Convolution" or _keeps_size(node)]
    layer = layers[-1]
    document = etree.parse(original.path)
    (data,) = document.xpath(f"/net/layers/layer[@id='{layer.id}']/data")
    data.attrib.update(wanted)
    document.write(tmp_path / "theirs.xml")
    (tmp_path / "theirs.bin").write_bytes(original.path.with_suffix(".bin").read_bytes())
    steps = [word for key, value in wanted.items() for word in ("--set", f"{layer.name}.{key}={value}")]
    feed = list(original.feed.values())
    found = by_openvino(_edit(original.path, tmp_path, *steps), feed)
    check_values(found, by_openvino(tmp_path / "theirs.xml", feed))
    before = by_openvino(original.path, feed)
    assert any(not np.allclose(one, other, atol=1e-6) for one, other in zip(found, before, strict=True))


def _keeps_size(node: irexec.Node) -> bool:
    wanted = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    return all(node.attributes[key].replace(" ", "") == value for key, value in wanted.items())


@pytest.mark.parametrize("name", some(NAMES, DEFAULT))
def test_a_layer_becomes_the_model_of_a_file(name: str, tmp_path: Path) -> None:
    """An Add becomes a + 2 b, which OpenVINO puts in the same place of its own model."""
    original = Original(name, tmp_path)
    layer = next(node for node in reversed(original.compiled.model.find(type="Add")) if _is_float(node))
    a, b = (opset.parameter("...", "f32", name) for name in ("first", "second"))
    irexec.Model([a + 2 * b], [a, b]).save(tmp_path / "other.xml")
    theirs = ov.Core().read_model(original.path)
    (op,) = [op for op in theirs.get_ops() if op.friendly_name == layer.name]
    first, second = op.input_values()
    op.output(0).replace(ov.opset13.add(first, ov.opset13.multiply(second, np.float32(2))).output(0))
    ov.save_model(theirs, tmp_path / "theirs.xml", compress_to_fp16=False)
    feed = list(original.feed.values())
    path = _edit(original.path, tmp_path, "--replace", f"{layer.name}={tmp_path / 'other.xml'}")
    edited = irexec.read_model(path)
    assert edited[layer.name].type == "Add"
    assert [port.name for port in edited.outputs] == original.outputs
    check_values(by_openvino(path, feed), by_openvino(tmp_path / "theirs.xml", feed))


def _is_float(node: irexec.Node) -> bool:
    return all(value is not None and value.fact.element is irexec.f32 for value in node.inputs)


@pytest.mark.parametrize("name", some(NAMES, DEFAULT))
def test_boxes_of_a_network_are_selected(name: str, tmp_path: Path) -> None:
    """Twelve boxes of two classes, made of the first float output, and those that a loop in NumPy keeps."""
    original = Original(name, tmp_path)
    model = original.model()
    index, values = next((i, x) for i, x in enumerate(original.values()) if x.dtype == np.float32 and x.size)
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, values.size, 72)
    weights, offsets = rng.uniform(-1, 1, (2, 72)).astype(np.float32)
    x = opset.parameter("...", "f32", name="features")
    picked = opset.gather(opset.reshape(x, np.array([-1]), special_zero=False), chosen, np.int64(0))
    numbers = opset.sigmoid(opset.tanh(picked) * weights + offsets * 3)
    low, size = (opset.reshape(numbers[part], np.array([1, 12, 2]), special_zero=False) for part in _PARTS[:2])
    boxes = opset.concat(low, low + size * 0.5, axis=-1).named("boxes")
    scores = opset.reshape(numbers[_PARTS[2]], np.array([1, 2, 12]), special_zero=False).named("scores")
    joined = irexec.join(model, irexec.Model([boxes, scores], [x]), {"features": original.outputs[index]})
    joined.save(tmp_path / "joined.xml")
    options = "nms:boxes=boxes,scores=scores,iou=0.4,score=0.3,max=5"
    path = _edit(tmp_path / "joined.xml", tmp_path, "--append", options)
    assert [port.name for port in irexec.read_model(path).outputs][-3:] == list(_SELECTED)
    found = by_openvino(path, list(original.feed.values()))
    given = 1 / (1 + np.exp(-(np.tanh(values.ravel()[chosen]) * weights + offsets * 3)))
    corners = given[_PARTS[0]].reshape(12, 2), given[_PARTS[1]].reshape(12, 2)
    all_boxes, all_scores = (
        np.concatenate([corners[0], corners[0] + corners[1] / 2], -1),
        given[_PARTS[2]].reshape(2, 12),
    )
    kept = [(0, c, i) for c in range(2) for i in kept_boxes(all_boxes, all_scores[c], iou=0.4, score=0.3, most=5)]
    indices, chosen_scores, count = found[-3:]
    number = int(count.reshape(-1)[0])
    assert sorted(map(tuple, indices[:number].tolist())) == sorted(kept)
    check_values([chosen_scores[:number, 2]], [all_scores[indices[:number, 1], indices[:number, 2]]])


_PARTS = (slice(0, 24), slice(24, 48), slice(48, 72))
_SELECTED = ("selected_indices", "selected_scores", "valid_outputs")
