"""Weights in fewer bits: f16 as OpenVINO stores them, integers as NNCF's data-free modes make them, byte for byte."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.authoring.compression import FORMATS
from irexec.dtypes.elements import pack
from irexec.ir.constants import constant_value
from tests.support.edited import DEFAULT, NAMES, Original, by_openvino, check_values, content, saved
from tests.support.networks import difference
from tests.support.paths import DATA, DIGITS
from tests.support.tiers import some

ov = pytest.importorskip("openvino")

RECORDED = np.load(DATA / "nncf_weights.npz")
"""Weights, and what nncf.compress_weights of NNCF 3.4.0 made of them, in groups of 16, and 32 for scales of f8e8m0.

The bytes of modes other than int8_asym and int4_sym are as they stand in the file.
"""
AXES = {"conv": (1, 2, 3), "group": (2, 3, 4), "deconv": (0, 2, 3), "groupdeconv": (1, 3, 4)}
CASES = sorted(name for name in RECORDED.files if name.count(".") == 3 and name.endswith(".w"))


@pytest.fixture(scope="module", params=some(NAMES, DEFAULT))
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(request.param, tmp_path_factory.mktemp("network"))


@pytest.mark.parametrize("case", CASES)
def test_integers_and_scales_are_those_of_nncf(case: str) -> None:
    name, mode, order, _ = case.split(".")
    weights = RECORDED[f"{name}.w"] if order == "t" else RECORDED[f"{name}.w"].T
    axes, format = AXES.get(name, (1,) if order == "t" else (0,)), FORMATS[mode]
    if format.group is not None:
        group, axis = min(16 if format.scale is irexec.f16 else 32, weights.shape[axes[0]]), axes[0]
        weights = weights.reshape(*weights.shape[:axis], -1, group, *weights.shape[axis + 1 :])
        axes = (axis + 1,)
    made = format.quantize(weights, axes, format)
    expected = [pack(format.element, made.values), pack(format.scale, made.scale.astype(format.scale.carrier))]
    names = [case, f"{case}_scale"]
    if made.zero_point is not None:
        expected.append(pack(format.element, made.zero_point))
        names.append(f"{case}_zero_point")
    for array, key in zip(expected, names, strict=True):
        assert np.array_equal(array, RECORDED[key].view(np.uint8).ravel()), key


def _floats(model: irexec.Model) -> Counter[tuple[str, tuple[int, ...], bytes]]:
    constants = [node.constant for node in model.walk() if node.constant is not None]
    return Counter((str(c.element), c.shape, bytes(c.raw)) for c in constants if c.element.is_float)


def test_f16_is_what_openvino_stores(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.compress("f16")
    ov.save_model(ov.Core().read_model(original.path), tmp_path / "theirs.xml", compress_to_fp16=True)
    path = saved(model, tmp_path)
    assert _floats(irexec.read_model(path)) == _floats(irexec.read_model(tmp_path / "theirs.xml"))
    feed = list(original.feed.values())
    check_values(by_openvino(path, feed), by_openvino(tmp_path / "theirs.xml", feed))


@pytest.mark.parametrize(("mode", "group"), [("int8", 128), ("int4", 4)])
def test_integers_stand_for_the_weights(mode: str, group: int, original: Original, tmp_path: Path) -> None:
    """Every weight is at most half a step, and the rounding of its scale to f16, from what it was."""
    model, before = original.model(), original.model()
    try:
        with model.edit() as g:
            g.compress(mode, group=group)
    except irexec.InputError as error:
        assert "no weights" in str(error)
        assert content(model) == content(before)
        return
    path = saved(model, tmp_path)
    sizes = [sum(node.constant.size for node in m.nodes if node.constant is not None) for m in (model, before)]
    assert sizes[0] < sizes[1]
    folded = irexec.read_model(path)
    with folded.edit() as g:
        g.decompress()
    for node in before.nodes:
        held = node.constant
        if held is None or not held.element.is_float or len(held.shape) < 2:
            continue
        found = constant_value(folded[node.name].constant)
        step = np.ptp(constant_value(held)) / (255 if mode == "int8" else 15)
        assert found.shape == held.shape
        assert np.abs(found - constant_value(held)).max() <= 1.2 * step + 1e-6
    found, expected = by_openvino(path, list(original.feed.values())), original.values()
    assert [array.shape for array in found] == [array.shape for array in expected] or original.name == "yolo"
    if mode == "int8" and original.name not in ("yolo", "rnn_tagger"):
        assert difference(found[0], expected[0]) < 0.2


def _three_products() -> irexec.Model:
    """Products of 32, 12 and 32 inputs."""
    rng = np.random.default_rng(2)
    b = irexec.Builder("products")
    x = b.parameter("f32", (2, 32), "x")
    for i, (rows, columns) in enumerate(((32, 12), (12, 32), (32, 4))):
        weights = rng.standard_normal((rows, columns)).astype(np.float32)
        x = b.emit("MatMul", x, b.constant(weights, name=f"weights{i}"), name=f"product{i}")
    b.result(x, "y")
    return b.model()


@pytest.mark.parametrize("mode", FORMATS)
def test_openvino_computes_with_every_format(mode: str, tmp_path: Path) -> None:
    model = _three_products()
    with model.edit() as g:
        g.compress(mode, group=16)
    x = np.random.default_rng(3).standard_normal((2, 32)).astype(np.float32)
    exact = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "INFERENCE_PRECISION_HINT": "f32"}
    (found,) = ov.Core().compile_model(saved(model, tmp_path), "CPU", exact)([x]).values()
    (expected,) = irexec.infer(model, {"x": x}).values()
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_product_that_groups_do_not_divide_has_8_bits() -> None:
    model = _three_products()
    with model.edit() as g:
        g.compress("int4", group=16)
        notes = g.notes
    assert notes[0].endswith("; weights: int4 1, int8 2, kept 0")
    assert notes[1:] == ["'product1' in int8: groups of 16 do not divide its 12 inputs"]
    elements = {str(node.constant.element) for node in model.nodes if node.constant is not None}
    assert {"i4", "u8"} <= elements


@pytest.mark.parametrize(
    ("mode", "keep", "counts"),
    [
        ("f16", (), "f16 6, kept 0"),
        ("int8", (), "int8 3, kept 0"),
        ("int8", ("dense6/MatMul",), "int8 2, kept 1"),
        ("nf4", (), "nf4 0, int8 3, kept 0"),
    ],
)
def test_a_note_counts_what_is_stored_and_what_is_kept(mode: str, keep: tuple[str, ...], counts: str) -> None:
    """The classifier has two convolutions and a product, each with a bias, which f16 stores too."""
    model = irexec.read_model(DIGITS / "classifier.xml")
    with model.edit() as g:
        g.compress(mode, keep=keep)
        assert g.notes[0].endswith(f"; weights: {counts}")
