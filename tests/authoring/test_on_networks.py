"""Each step and option of an edit on many networks: the result validates, OpenVINO loads it, and its values are what the step means."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import irexec
from irexec import opset
from irexec.cli.main import run
from tests.authoring.test_postprocessing import kept_boxes
from tests.support.edited import DEFAULT, NAMES, Original, by_openvino, check_values, content, saved
from tests.support.tiers import some

ov = pytest.importorskip("openvino")


@pytest.fixture(scope="module", params=some(NAMES, DEFAULT))
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(request.param, tmp_path_factory.mktemp("network"))


def test_a_cut_to_a_tensor_gives_the_tensor(original: Original, tmp_path: Path) -> None:
    model, middle = original.model(), original.middle()
    with model.edit() as g:
        g.cut_to(middle.name)
    assert len(model.nodes) < len(original.compiled.model.nodes)
    feed = [original.feed[port.name] for port in model.inputs]
    check_values(by_openvino(saved(model, tmp_path), feed), original.values(middle.name))


def test_a_cut_from_a_tensor_takes_the_tensor(original: Original, tmp_path: Path) -> None:
    model, middle = original.model(), original.middle()
    value = original.values(middle.name)[0]
    with model.edit() as g:
        g.cut_from(middle.name)
    (made,) = [port for port in model.inputs if middle.name in port.names]
    feed = [value if port.name == made.name else original.feed[port.name] for port in model.inputs]
    check_values(by_openvino(saved(model, tmp_path), feed), original.values())


def test_a_further_output_is_the_tensor(original: Original, tmp_path: Path) -> None:
    model, middle = original.model(), original.middle()
    with model.edit() as g:
        g.add_output(middle.name, "further")
    assert "further" in model.outputs[-1].names
    found = by_openvino(saved(model, tmp_path), list(original.feed.values()))
    check_values(found, original.values(*original.outputs, middle.name))


def test_renamed_networks_have_new_names_and_the_same_values(original: Original, tmp_path: Path) -> None:
    model = original.model()
    before = [port.name for port in (*model.inputs, *model.outputs)]
    with model.edit() as g:
        g.rename("*", "net/*")
        for port in model.inputs:
            g.rename(port.name, f"given {port.name}")
    path = saved(model, tmp_path)
    read = ov.Core().read_model(path)
    assert [f"given net/{name}" in port.names for name, port in zip(before, read.inputs, strict=False)] == [True] * len(
        read.inputs
    )
    assert all(name.startswith("net/") for port in read.outputs for name in port.names)
    assert all("net/" in node.name for node in model.walk())
    check_values(by_openvino(path, list(original.feed.values())), original.values())


def test_a_batch_is_set_as_openvino_reshapes(original: Original, tmp_path: Path) -> None:
    """Networks that have no batch axis refuse it, and stay as they were."""
    model, theirs = original.model(), ov.Core().read_model(original.path)
    before = content(model)
    shapes = {port.name: [3, *port.shape[1:]] for port in model.inputs if port.shape}
    try:
        theirs.reshape(
            {name: ov.PartialShape([s if isinstance(s, int) else -1 for s in shape]) for name, shape in shapes.items()}
        )
    except RuntimeError:
        with pytest.raises(irexec.NodeError), model.edit() as g:
            g.set_batch(3)
        assert content(model) == before
        return
    with model.edit() as g:
        g.set_batch(3)
    read = ov.Core().read_model(saved(model, tmp_path))
    assert [port.partial_shape[0].to_string() for port in read.inputs if port.partial_shape.rank.get_length()] == [
        "3"
    ] * len(shapes)
    assert [port.partial_shape for port in read.outputs] == [port.partial_shape for port in theirs.outputs]


def test_shapes_are_set(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.reshape({name: array.shape for name, array in original.feed.items()})
    read = ov.Core().read_model(saved(model, tmp_path))
    assert [tuple(port.shape) for port in read.inputs] == [array.shape for array in original.feed.values()]
    check_values(by_openvino(tmp_path / "edited.xml", list(original.feed.values())), original.values())


@pytest.mark.slow
def test_constants_are_replaced(original: Original, tmp_path: Path) -> None:
    """Every float constant that is read is doubled, which OpenVINO does to its own model."""
    model = original.model()
    core = ov.Core()
    theirs = core.read_model(original.path)
    doubled = [node for node in model.nodes if node.constant is not None and node.constant.element is irexec.f32][-3:]
    with model.edit() as g:
        for node in doubled:
            g.set_constant(node.name, 2 * _array(node))
    for op in theirs.get_ordered_ops():
        if op.friendly_name in {node.name for node in doubled}:
            op.output(0).replace(ov.opset13.constant(2 * op.data).output(0))
    ov.save_model(theirs, tmp_path / "theirs.xml", compress_to_fp16=False)
    feed = list(original.feed.values())
    check_values(by_openvino(saved(model, tmp_path), feed), by_openvino(tmp_path / "theirs.xml", feed))


def _array(node: irexec.Node) -> np.ndarray:
    from irexec.ir.constants import constant_value

    return constant_value(node.constant)


def test_layers_that_fit_are_bypassed(original: Original, tmp_path: Path) -> None:
    """The last layer with one float input of the output's shape is taken out, as OpenVINO does it."""
    model = original.model()
    layer = next(
        (node for node in reversed(model.nodes) if _is_unary(node) and node.name not in original.outputs), None
    )
    if layer is None:
        pytest.skip("every layer has several inputs or changes the shape")
    with model.edit() as g:
        g.remove(layer.name)
    assert layer not in model.nodes
    theirs = ov.Core().read_model(original.path)
    (op,) = [op for op in theirs.get_ordered_ops() if op.friendly_name == layer.name]
    op.output(0).replace(op.input_value(0))
    ov.save_model(theirs, tmp_path / "theirs.xml", compress_to_fp16=False)
    feed = list(original.feed.values())
    check_values(by_openvino(saved(model, tmp_path), feed), by_openvino(tmp_path / "theirs.xml", feed))


def _is_unary(node: irexec.Node) -> bool:
    computed = [value for value in node.inputs if value is not None and value.node.constant is None]
    if len(node.outputs) != 1 or len(computed) != 1 or len(node.inputs) != 1 or node.bodies:
        return False
    return str(computed[0].fact) == str(node.outputs[0].fact) and node.type not in (
        "Result", "Parameter", "Convert", "ReadValue", "Assign",
    )  # fmt: skip


@pytest.mark.slow
def test_attributes_are_set(original: Original, tmp_path: Path) -> None:
    """Every MatMul, Softmax, Convolution, Transpose or sequence is written with the value it has; one with another."""
    model = original.model()
    before, counts = content(model), Counter(node.name for node in model.nodes)
    with model.edit() as g:
        for node in list(model.nodes):
            for name, text in node.attributes.items():
                if node.constant is None and name not in ("offset", "size"):
                    g.set_attribute(node.name if counts[node.name] == 1 else str(node.id), name, text)
    assert content(model) == before
    types = ("Softmax", "Concat", "Gather", "Convolution", "Reshape")
    softmax = next(node for node in model.nodes if node.type in types)
    name, wrong = next(
        (name, wrong)
        for name, wrong in (("axis", 77), ("dilations", "0,0"), ("batch_dims", 99), ("special_zero", "maybe"))
        if name in softmax.attributes
    )
    with pytest.raises(irexec.NodeError), model.edit() as g:
        g.set_attribute(softmax.name, name, wrong)
    assert content(model) == before


def test_rt_info_is_what_openvino_reads(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.set_rt_info("model_info/model_type", "classifier")
        g.set_rt_info(["model_info", "labels"], "a b <c> & d")
        g.set_rt_info("note", 3)
    read = ov.Core().read_model(saved(model, tmp_path))
    assert read.get_rt_info(["model_info", "model_type"]).astype(str) == "classifier"
    assert read.get_rt_info(["model_info", "labels"]).astype(str) == "a b <c> & d"
    assert read.get_rt_info("note").astype(str) == "3"


def test_undo_restores_every_byte(original: Original) -> None:
    model, middle = original.model(), original.middle()
    before = content(model)
    states = [before]
    editor = model.edit()
    steps = [
        lambda: editor.rename("*", "n/*"),
        lambda: editor.set_rt_info("a/b", "c"),
        lambda: editor.add_output(f"n/{middle.name}"),
        lambda: editor.cut_from(f"n/{middle.name}"),
        lambda: editor.rename("n/*", "*"),
    ]
    for step in steps:
        step()
        states.append(content(model))
    assert len(set(states)) == len(states)
    for state in reversed(states[:-1]):
        editor.undo()
        assert content(model) == state
    assert editor.steps == []
    with pytest.raises(irexec.IrexecError, match="1 step cannot be undone: 0 made"):
        editor.undo()


def test_an_error_in_the_block_takes_back_all_of_it(original: Original) -> None:
    model, middle = original.model(), original.middle()
    before = content(model)
    with pytest.raises(irexec.InputError, match="there is no layer 'nowhere'"), model.edit() as g:
        g.rename("*", "n/*")
        g.cut_to(f"n/{middle.name}")
        model.nodes[-1].name = "changed without a step"
        g.remove("nowhere")
    assert content(model) == before
    with pytest.raises(RuntimeError), model.edit() as g:
        g.cut_from(middle.name)
        raise RuntimeError
    assert content(model) == before


# --set, --replace and --append nms of irexec edit on many networks, beside OpenVINO or NumPy.


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
@pytest.mark.slow
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
