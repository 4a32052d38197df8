"""A compiled model is a snapshot: nothing that is done to the model afterwards changes what it gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.dtypes.elements import F32
from irexec.ir.graph import Node
from tests.support.paths import IRS

WEIGHTS = np.float32([1, -2, 3])


def _model(*shape: int | str) -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", shape, "x")
    scaled = builder.emit("Multiply", x, builder.constant(WEIGHTS, name="weights"), name="scaled")
    builder.result(builder.emit("Elu", scaled, alpha=0.5, name="elu"), "y")
    return builder.model()


def _node(model: irexec.Model, name: str) -> Node:
    return next(node for node in model.nodes if node.name == name)


def _change_attribute(model: irexec.Model) -> None:
    _node(model, "elu").attributes["alpha"] = "4"


def _change_type(model: irexec.Model) -> None:
    _node(model, "elu").type = "Relu"
    _node(model, "elu").attributes.clear()


def _change_constant(model: irexec.Model) -> None:
    _node(model, "weights").constant = packed(np.float32([9, 9, 9]), F32)


def _change_bytes(model: irexec.Model) -> None:
    constant = _node(model, "weights").constant
    assert constant is not None
    raw = np.zeros(12, np.uint8)
    constant.fetch = lambda: raw


def _change_edge(model: irexec.Model) -> None:
    _node(model, "elu").ports[0].source = model.parameters[0].outputs[0]


def _change_shape(model: irexec.Model) -> None:
    model.reshape("1,3")


def _remove_nodes(model: irexec.Model) -> None:
    model.nodes.clear()


CHANGES = [_change_attribute, _change_type, _change_constant, _change_bytes, _change_edge, _change_shape, _remove_nodes]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shape", [(2, 3), ("?", 3)], ids=["static", "dynamic"])
@pytest.mark.parametrize("optimize", [True, False])
def test_changes_to_the_model_change_nothing(
    change: Callable[[irexec.Model], None], shape: tuple[int | str, ...], optimize: bool
) -> None:
    model = _model(*shape)
    compiled = irexec.compile_model(model, optimize=optimize)
    change(model)
    x = np.float32([[1, 1, -1], [2, 0, 0.5]])
    scaled = x * WEIGHTS
    np.testing.assert_allclose(compiled(x)["y"], np.where(scaled > 0, scaled, 0.5 * np.expm1(scaled)), rtol=1e-6)
    np.testing.assert_array_equal(compiled.run(x, "scaled")["scaled"], scaled)


def test_an_array_that_became_a_constant_may_change() -> None:
    weights = WEIGHTS.copy()
    builder = irexec.Builder("m")
    builder.result(builder.emit("Add", builder.parameter("f32", (3,), "x"), builder.constant(weights)), "y")
    compiled = irexec.compile_model(builder.model())
    weights[...] = 0
    np.testing.assert_array_equal(compiled(np.zeros(3, np.float32))["y"], WEIGHTS)


def test_constants_are_shared_and_cannot_be_written() -> None:
    model = _model(2, 3)
    constant, copy = (_node(m, "weights").constant for m in (model, irexec.compile_model(model).model))
    assert constant is not None
    assert copy is not None
    assert np.shares_memory(constant.raw, copy.raw)
    assert not constant.raw.flags.writeable


def test_bodies_are_copied_too() -> None:
    model = irexec.read_model(IRS / "loop.xml")
    compiled = irexec.compile_model(model)
    x = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    before = [array.copy() for array in compiled([x, np.zeros((1, 2), np.float32)]).values()]
    (loop,) = (node for node in model.nodes if node.bodies)
    for node in loop.bodies["body"].graph.nodes:
        if node.type == "Add":
            node.type = "Subtract"
    loop.bodies["body"].port_maps.clear()
    for array, expected in zip(compiled([x, np.zeros((1, 2), np.float32)]).values(), before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_values_of_the_model_stand_for_those_of_the_copy() -> None:
    model = _model(2, 3)
    compiled = irexec.compile_model(model)
    x = np.ones((2, 3), np.float32)
    for owner in (model, compiled.model):
        np.testing.assert_array_equal(compiled.values(x, [_node(owner, "scaled").outputs[0]])[0], x * WEIGHTS)
