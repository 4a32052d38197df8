"""A quantised model beside its original: one layer in it is bad on purpose, and is named first."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.errors import InputError
from irexec.ir.constants import constant_value
from irexec.tools.sensitivity import Sensitivity, SensitivityOptions, sensitivity
from tests.support.paths import DIGITS

_LAYERS, _SIZE = 10, 32
X = {"x": np.random.default_rng(0).standard_normal((4, _SIZE)).astype(np.float32)}


def products(ranges: dict[int, float] | None = None) -> Model:
    """Ten products with Relu between them; before some of them a FakeQuantize of 256 levels up to a number."""
    rng = np.random.default_rng(1)
    b = irexec.Builder("products")
    x = b.parameter("f32", (4, _SIZE), "x")
    for i in range(_LAYERS):
        if ranges is not None:
            top = np.float32(ranges[i])
            x = b.emit("FakeQuantize", x, -top, top, -top, top, levels=256, name=f"quantize{i}")
        weights = (rng.standard_normal((_SIZE, _SIZE)) / np.sqrt(_SIZE)).astype(np.float32)
        product = b.emit("MatMul", x, b.constant(weights, name=f"weights{i}"), name=f"product{i}")
        x = b.emit("Add", b.emit("Relu", product, name=f"relu{i}"), x if i else np.float32(0.1), name=f"add{i}")
    b.result(x, "y")
    return b.model()


def against(other: Model, target: float | None = None) -> Sensitivity:
    return sensitivity(products(), X, SensitivityOptions(against=other, threads=1, target=target))


@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.parametrize("bad", range(0, _LAYERS, 2))
def test_a_layer_whose_scales_are_wrong_is_named_first(mode: str, bad: int) -> None:
    made = copy.copy(products())
    with made.edit() as editor:
        editor.compress(mode, group=_SIZE)
    scale = made[f"weights{bad}/scale"]
    assert scale.constant is not None
    scale.constant = packed(constant_value(scale.constant) * np.float16(1.4), scale.constant.element)
    found = against(made)
    assert found.layers[0].layer.name == f"product{bad}"
    assert len(found.layers) == _LAYERS
    assert found.proposal is None or found.proposal.kept[0] == f"product{bad}"


@pytest.mark.parametrize("bad", range(_LAYERS))
def test_a_range_that_clips_is_named_first(bad: int) -> None:
    exact = products()
    compiled = irexec.compile_model(exact, threads=1)
    names = ["x", *(f"add{i}" for i in range(_LAYERS - 1))]
    held = compiled.session().values(X, [exact[name].outputs[0] for name in names])
    ranges = {i: float(np.abs(array).max()) for i, array in enumerate(held)}
    ranges[bad] /= 4
    found = against(products(ranges), target=20.0)
    assert found.layers[0].layer.name in (f"product{bad}", f"add{bad}")
    assert found.proposal is not None
    assert len(found.proposal.kept) <= 2


def test_layers_that_may_have_fewer_bits_too() -> None:
    made = copy.copy(products())
    with made.edit() as editor:
        editor.compress("int8", keep=[f"product{i}" for i in range(5)])
    found = against(made, target=25.0)
    assert {one.layer.name for one in found.layers} == {f"product{i}" for i in range(5, _LAYERS)}
    assert set(found.further) == {f"product{i}" for i in range(5)}
    assert found.proposal is not None
    assert found.proposal.kept == ()


def test_a_model_without_a_difference_is_refused() -> None:
    with pytest.raises(InputError, match="has no layer whose weights or ranges differ"):
        sensitivity(DIGITS / "classifier.xml", None, SensitivityOptions(against=DIGITS / "classifier.xml"))
