"""Errors of layers in fewer bits, computed by hand, and a quantised model beside its original."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.errors import InputError
from irexec.ir.constants import constant_value
from irexec.tools.sensitivity import Sensitivity, SensitivityOptions, sensitivity
from tests.support.paths import DIGITS
from tests.support.tiers import some


def difference() -> Model:
    """2 x + 1000 - 1000."""
    b = irexec.Builder("difference")
    x = b.parameter("f32", (2,), "x")
    thousand = b.constant(np.array([1000], np.float32))
    scaled = b.emit("Multiply", x, b.constant(np.array([2], np.float32)), name="scaled")
    b.result(b.emit("Subtract", b.emit("Add", scaled, thousand, name="sum"), thousand, name="rest"))
    return b.model()


X = {"x": np.array([0.125, 0.25], np.float32)}
"""Twice of it is [0.25, 0.5]. Beside 1000 numbers of f16 are 0.5 apart: 1000.25 is half-way and becomes 1000."""


def test_the_error_that_one_rounding_to_f16_makes() -> None:
    found = sensitivity(difference(), X, SensitivityOptions(type="f16"))
    # [0, 0.5] in place of [0.25, 0.5]: 0.25 / sqrt(0.25^2 + 0.5^2) = sqrt(1 / 5). The subtraction alone rounds its input.
    by_name = {one.layer.name: one for one in found.layers}
    assert by_name["sum"].error == by_name["rest"].error == pytest.approx(math.sqrt(0.2))
    assert by_name["scaled"].error == 0
    assert [by_name[name].share for name in ("scaled", "sum", "rest")] == pytest.approx([0, 0.5, 0.5])
    assert by_name["sum"].snr == pytest.approx(10 * math.log10(5))
    assert found.together == pytest.approx(math.sqrt(0.2))


def test_the_fewest_layers_in_f32_and_the_command_that_keeps_them() -> None:
    found = sensitivity(difference(), X, SensitivityOptions(type="f16"))
    assert found.proposal is not None
    assert sorted(found.proposal.kept) == ["rest", "sum"]
    assert found.proposal.error == 0
    assert (
        found.proposal.ignored_scope
        == f'nncf.IgnoredScope(names=["{found.proposal.kept[0]}", "{found.proposal.kept[1]}"])'
    )
    assert "--precise sum" in found.proposal.command


def test_bf16_is_coarser() -> None:
    # 1000.25 and 1000.5 both become 1000 (numbers of bf16 are 4 apart): nothing is left.
    found = sensitivity(difference(), X, SensitivityOptions(type="bf16"))
    assert {one.layer.name: one.error for one in found.layers}["sum"] == 1


def test_what_f16_cannot_hold_is_counted() -> None:
    b = irexec.Builder("large")
    x = b.parameter("f32", (3,), "x")
    b.result(b.emit("Multiply", x, b.constant(np.float32([1000])), name="large"))
    found = sensitivity(b.model(), {"x": np.float32([1, 65, 66])}, SensitivityOptions(type="f16"))
    # 66,000 is beyond 65,504, and 65,000 is not.
    assert found.layers[0].saturated == 1
    assert found.layers[0].error == math.inf
    assert found.layers[0].share == 1


def test_channels_that_are_zero_throughout() -> None:
    b = irexec.Builder("dead")
    x = b.parameter("f32", (1, 3, 2, 2), "x")
    b.result(b.emit("Relu", x, name="relu"))
    image = np.ones((1, 3, 2, 2), np.float32) * np.float32([1, -1, 2]).reshape(1, 3, 1, 1)
    found = sensitivity(b.model(), {"x": image}, SensitivityOptions(type="f16"))
    assert (found.layers[0].dead, found.layers[0].channels) == (1, 3)


def two_products() -> Model:
    """Weights of 0 to 255 in steps of 1, which 8 bits hold, and then weights of which one does not fit."""
    b = irexec.Builder("products")
    x = b.parameter("f32", (1, 2), "x")
    first = b.constant(np.array([[255, 1], [0, 3]], np.float32), name="w")
    second = b.constant(np.array([[255, 0], [100.25, 255]], np.float32), name="v")
    # Channels lie along the last axis: each column has its own scale.
    y = b.emit("MatMul", x, first, name="exact")
    b.result(b.emit("MatMul", y, second, name="rounded"))
    return b.model()


def test_the_error_of_weights_in_8_bits() -> None:
    x = {"x": np.array([[1, 0]], np.float32)}
    found = sensitivity(two_products(), x, SensitivityOptions(type="int8"))
    by_name = {one.layer.name: one.error for one in found.layers}
    # Column [1, 3] of w: scale 3 / 255 as f16, and 1 is 85 of it.
    # [255, 1] v = [255 * 255 + 100.25, 255]: 100.25 becomes 100, so that 0.25 is lost.
    assert by_name["rounded"] == pytest.approx(0.25 / math.hypot(65125.25, 255), rel=1e-3)
    scale = float(np.float16(np.float32(3) / np.float32(255)))
    lost = abs(float(np.float16(85 * np.float16(scale))) - 1)
    assert by_name["exact"] == pytest.approx(lost * math.hypot(100.25, 255) / math.hypot(65125.25, 255), rel=1e-3)


@pytest.mark.parametrize("selection", ["TopK", "NonMaxSuppression"])
def test_a_selection_is_measured_at_what_it_selects_from(selection: str) -> None:
    """A score that crosses a threshold changes the rows of the results, and says nothing of the size of the error."""
    b = irexec.Builder("selection")
    # Scores of 1000.25 and 1000.5, which f16 makes 1000 and 1000.5.
    scores = b.emit("Add", b.parameter("f32", (1, 1, 2), "x"), b.constant(np.float32([1000])), name="scores")
    if selection == "TopK":
        _, indices = b.emit("TopK", scores, np.int64(1), axis=2, mode="max", sort="value", index_element_type="i64")
        b.result(b.emit("Gather", scores, b.emit("Reshape", indices, [1], special_zero=False), np.int64(2)))
    else:
        boxes = b.constant(np.float32([[[0, 0, 1, 1], [5, 5, 6, 6]]]))
        limits = (np.int64(9), np.float32(0.5), np.float32(1000.1))
        rows, *_ = b.emit("NonMaxSuppression", boxes, scores, *limits, version="opset9", output_type="i64")
        b.result(b.emit("GatherND", b.emit("Reshape", boxes, [2, 4], special_zero=False),
                        b.emit("Slice", rows, np.int64([2]), np.int64([3]), np.int64([1]), np.int64([1]))))  # fmt: skip
    found = sensitivity(b.model(), {"x": np.float32([[[0.25, 0.5]]])}, SensitivityOptions(type="f16"))
    error = {one.layer.name: one.error for one in found.layers}["scores"]
    assert error == pytest.approx(0.25 / math.hypot(1000.25, 1000.5))


def test_rows_of_a_table_are_not_a_selection() -> None:
    """Integers that are an input choose the same rows, whatever the bits: the table is measured."""
    b = irexec.Builder("table")
    table = b.constant(np.float32([[255, 0.25], [0, 255]]))
    b.result(b.emit("Gather", table, b.parameter("i64", (2,), "x"), np.int64(0), batch_dims=0, name="rows"))
    found = sensitivity(b.model(), {"x": np.int64([0, 1])}, SensitivityOptions(type="int8"))
    # 0.25 is a quarter of the step of its row, 255 / 255.
    assert found.layers[0].error == pytest.approx(0.25 / math.sqrt(2 * 255**2 + 0.25**2), rel=1e-3)


def test_the_proposal_is_what_edit_makes() -> None:
    rng = np.random.default_rng(0)
    b = irexec.Builder("layers")
    y = b.parameter("f32", (4, 8), "x")
    for i in range(3):
        w = rng.standard_normal((8, 8)).astype(np.float32)
        # Outliers in the second layer take the range of its channels.
        w[0] *= 100 if i == 1 else 1
        y = b.emit("Tanh", b.emit("MatMul", y, b.constant(w, name=f"w{i}"), name=f"product{i}"), name=f"tanh{i}")
    b.result(y)
    model, x = b.model(), {"x": rng.standard_normal((4, 8)).astype(np.float32)}
    exact = irexec.infer(model, x)["tanh2"]
    whole = sensitivity(model, x, SensitivityOptions(type="int8"))
    target = (whole.layers[1].snr + whole.layers[0].snr) / 2
    found = sensitivity(model, x, SensitivityOptions(type="int8", target=target))
    assert found.proposal is not None
    assert 0 < len(found.proposal.kept) < 3
    with model.edit() as editor:
        editor.compress("int8", keep=found.proposal.kept)
    mixed = irexec.infer(model, x)["tanh2"]
    assert float(np.linalg.norm(mixed - exact) / np.linalg.norm(exact)) == pytest.approx(found.proposal.error, rel=1e-3)


def test_nothing_is_proposed_if_all_layers_would_be_kept() -> None:
    b = irexec.Builder("third")
    b.result(b.emit("Multiply", b.parameter("f32", (1,), "x"), b.constant(np.float32([1 / 3])), name="third"))
    found = sensitivity(b.model(), {"x": np.float32([1])}, SensitivityOptions(type="f16", target=200))
    assert found.proposal is None


def test_samples_count_together() -> None:
    samples = [X, {"x": np.array([0.5, 0.5], np.float32)}]
    found = sensitivity(difference(), samples, SensitivityOptions(type="f16"))
    # The second sample is exact: 0.25 / sqrt(0.25^2 + 0.5^2 + 1 + 1).
    assert found.samples == 2
    assert found.together == pytest.approx(0.25 / math.sqrt(2.3125))


def test_a_model_without_such_layers() -> None:
    with pytest.raises(InputError, match="no layer that int8 changes"):
        sensitivity(difference(), X, SensitivityOptions(type="int8"))


# A quantised model beside its original: one layer in it is bad on purpose, and is named first.


_LAYERS, _SIZE = 10, 32
AGAINST_X = {"x": np.random.default_rng(0).standard_normal((4, _SIZE)).astype(np.float32)}


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
    return sensitivity(products(), AGAINST_X, SensitivityOptions(against=other, threads=1, target=target))


@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.parametrize("bad", some(range(0, _LAYERS, 2), [4]))
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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bad", some(range(_LAYERS), [0, 6]))
def test_a_range_that_clips_is_named_first(bad: int) -> None:
    exact = products()
    compiled = irexec.compile_model(exact, threads=1)
    names = ["x", *(f"add{i}" for i in range(_LAYERS - 1))]
    held = compiled.session().values(AGAINST_X, [exact[name].outputs[0] for name in names])
    ranges = {i: float(np.abs(array).max()) for i, array in enumerate(held)}
    ranges[bad] /= 4
    found = against(products(ranges), target=20.0)
    assert found.layers[0].layer.name in (f"product{bad}", f"add{bad}")
    assert found.proposal is not None
    assert len(found.proposal.kept) <= 2


@pytest.mark.slow
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
