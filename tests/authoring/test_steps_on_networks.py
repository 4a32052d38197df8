"""Each step on many networks: the result validates, OpenVINO loads it, and its values are what the step means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
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
        "Result",
        "Parameter",
        "Convert",
        "ReadValue",
        "Assign",
    )


def test_attributes_are_set(original: Original, tmp_path: Path) -> None:
    """Every MatMul, Softmax, Convolution, Transpose or sequence is written with the value it has; one with another."""
    model = original.model()
    before = content(model)
    with model.edit() as g:
        for node in list(model.nodes):
            for name, text in node.attributes.items():
                if node.constant is None and name not in ("offset", "size"):
                    g.set_attribute(node.name if _is_unique(model, node) else str(node.id), name, text)
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


def _is_unique(model: irexec.Model, node: irexec.Node) -> bool:
    return sum(other.name == node.name for other in model.nodes) == 1


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
