"""Folding, decompressing, inserting, replacing, joining and extracting keep or change values as they say, on many networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.tools.extracting import extract
from tests.support.edited import DEFAULT, NAMES, Original, by_openvino, check_values, content, saved
from tests.support.tiers import some


@pytest.fixture(scope="module", params=some(NAMES, DEFAULT))
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(request.param, tmp_path_factory.mktemp("network"))


def test_folding_keeps_the_values(original: Original, tmp_path: Path) -> None:
    """With static shapes, so that the computation of shapes is constant."""
    model = original.model()
    with model.edit() as g:
        g.reshape({name: array.shape for name, array in original.feed.items()})
        before = len(model.nodes)
        g.fold()
    assert len(model.nodes) <= before
    assert not [node for node in model.nodes if node.type == "ShapeOf" and node.inputs[0].fact.is_static]
    check_values(by_openvino(saved(model, tmp_path), list(original.feed.values())), original.values())


def test_optimizing_keeps_the_values(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.optimize()
    after = len(model.nodes)
    assert after <= len(original.compiled.model.nodes)
    assert [port.names[0] for port in model.outputs] == [port.names[0] for port in original.compiled.model.outputs]
    feed = list(original.feed.values())
    check_values(by_openvino(saved(model, tmp_path), feed), original.values())
    found = irexec.compile_model(model, optimize=False, precision="as-written").session()(feed)
    plain = irexec.compile_model(original.model(), optimize=False, precision="as-written").session()(feed)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found.values(), plain.values(), strict=True))
    with model.edit() as g:
        g.optimize()
    assert len(model.nodes) == after


@pytest.mark.slow
def test_decompressed_f16_is_f16_as_f32(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.compress("f16")
        compressed = by_openvino(saved(model, tmp_path, "f16"), list(original.feed.values()))
        g.decompress()
    assert not [node for node in model.nodes if node.constant is not None and node.constant.element is irexec.f16]
    check_values(by_openvino(saved(model, tmp_path), list(original.feed.values())), compressed)


def test_a_function_is_inserted(original: Original, tmp_path: Path) -> None:
    """Doubling and halving the middle tensor keeps the values; tanh of an output is NumPy's."""
    model, middle = original.model(), original.middle()
    with model.edit() as g:
        g.insert_after(middle.name, lambda x: x * 2)
        (doubled,) = {node.name for node in model.nodes} - {node.name for node in original.compiled.model.nodes} - {
            "Constant"
        } or {""}
        g.insert_after(doubled, lambda x: x * 0.5)
    feed = list(original.feed.values())
    check_values(by_openvino(saved(model, tmp_path), feed), original.values())


def test_what_a_function_returns_is_checked(original: Original) -> None:
    model, middle = original.model(), original.middle()
    with pytest.raises(irexec.InputError, match="the function returned None, expected a tensor"), model.edit() as g:
        g.insert_after(middle.name, lambda x: None)


def test_a_layer_is_replaced(original: Original, tmp_path: Path) -> None:
    """By a function of the same value, and by the model of that layer itself."""
    model = original.model()
    layers = [
        node for node in model.nodes if node.type in ("Add", "Multiply") and str(node.outputs[0].fact.element) == "f32"
    ]
    with model.edit() as g:
        for node in layers[:3]:
            g.replace(node.name, (lambda a, b: a + b) if node.type == "Add" else (lambda a, b: a * b))
    assert all(model[node.name] is not node for node in layers[:3])
    feed = list(original.feed.values())
    check_values(by_openvino(saved(model, tmp_path), feed), original.values())


@pytest.mark.slow
def test_a_network_cut_in_two_is_joined_again(original: Original, tmp_path: Path) -> None:
    first, second, middle = original.model(), original.model(), original.middle()
    with first.edit() as g:
        g.cut_to(middle.name)
    with second.edit() as g:
        g.cut_from(middle.name)
    given = next(port for port in second.inputs if middle.name in port.names or middle.name in (port.node.name,))
    shared = {port.name for port in first.inputs} & {port.name for port in second.inputs}
    mapping = {given.name: first.outputs[0].name}
    joined = irexec.join(first, second, mapping)
    path = saved(joined, tmp_path)
    feed = [original.feed[name] for port in joined.inputs for name in [port.name.removesuffix("_1")]]
    assert len(joined.inputs) == len(first.inputs) + len(second.inputs) - 1
    assert {port.name for port in joined.inputs} >= shared
    check_values(by_openvino(path, feed), original.values())


def test_layers_are_extracted_with_their_inputs(original: Original, tmp_path: Path) -> None:
    model, middle = original.model(), original.middle()
    before = content(model)
    made = extract(model, [middle.name], original.feed)
    assert content(model) == before
    assert [node.name for node in made.layers] == [middle.name]
    feed = [made.inputs[port.name] for port in made.model.inputs]
    check_values(by_openvino(saved(made.model, tmp_path), feed), original.values(middle.name))
