"""Resize where the arithmetic of IR's Interpolate differs from that of ONNX: ties, old versions, sizes by scales."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import converters
import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.reference.resize import coordinates, nearest
from tests.support.onnx_models import model_of, run

_ROUNDING = {
    "round_prefer_floor": lambda q: math.ceil(q - Fraction(1, 2)),
    "round_prefer_ceil": lambda q: math.floor(q + Fraction(1, 2)),
}
_POSITION = {
    "half_pixel": lambda i, size, out: Fraction((2 * i + 1) * size, 2 * out) - Fraction(1, 2),
    "pytorch_half_pixel": lambda i, size, out: (
        Fraction((2 * i + 1) * size, 2 * out) - Fraction(1, 2) if out > 1 else Fraction(0)
    ),
    "asymmetric": lambda i, size, out: Fraction(i * size, out),
    "tf_half_pixel_for_nn": lambda i, size, out: Fraction((2 * i + 1) * size, 2 * out),
}


def _exact(transformation: str, rounding: str, size: int, out: int) -> list[int]:
    picked = (_ROUNDING[rounding](_POSITION[transformation](i, size, out)) for i in range(out))
    return [min(max(index, 0), size - 1) for index in picked]


def _ties(transformation: str, rounding: str) -> list[tuple[int, int]]:
    """Every fifth pair of sizes up to 32 and 48 where f32 picks other pixels than exact arithmetic."""
    found = []
    for size in range(1, 33):
        for out in set(range(1, 49)) - {size}:
            scale = float(np.float32(out) / np.float32(size))
            taps = nearest(coordinates(transformation, size, out, scale), rounding, size, scale)
            if taps.index[:, 0].tolist() != _exact(transformation, rounding, size, out):
                found.append((size, out))
    return found[::5]


@pytest.mark.parametrize("by", ["sizes", "scales"])
@pytest.mark.parametrize("rounding", list(_ROUNDING))
@pytest.mark.parametrize("transformation", list(_POSITION))
@pytest.mark.sampled(2)
def test_ties_are_exact(transformation: str, rounding: str, by: str) -> None:
    """As in ONNX Runtime since 1.31 (onnxruntime#28291) and onnx.reference. Opset 11 has all of these transformations."""
    attributes = f'mode = "nearest", coordinate_transformation_mode = "{transformation}", nearest_mode = "{rounding}"'
    pairs = _ties(transformation, rounding)
    assert pairs
    for size, out in pairs:
        if by == "scales" and int(np.float32(size) * np.float32(out / size)) != out:
            continue
        given = {"z": np.array([1, out])} if by == "sizes" else {"z": np.array([1, out / size], np.float32)}
        inputs = "x, r, q, z" if by == "sizes" else "x, r, z"
        text = f"(float[1,{size}] x) => (float[1,{out}] y) <float[0] r = {{}}, float[0] q = {{}}> {{ y = Resize <{attributes}> ({inputs}) }}"
        (result,) = run(model_of(text, 11, **given), np.arange(size, dtype=np.float32)[None])
        assert result[0].tolist() == _exact(transformation, rounding, size, out), (size, out)


def test_ties_follow_a_new_size_of_the_input() -> None:
    """The pixels are computed from the sizes, so that the IR may be reshaped: 20 and 10 to 6."""
    text = '(float[1,20] x) => (float[1,6] y) <float[0] q = {}, int64[2] z = {1, 6}> { y = Resize <nearest_mode = "round_prefer_ceil"> (x, , q, z) }'
    model = converters.convert(model_of(text, 19))
    for size in (20, 10):
        model.reshape(f"1,{size}")
        (result,) = irexec.compile_model(model)([np.arange(size, dtype=np.float32)[None]]).values()
        assert result[0].tolist() == _exact("half_pixel", "round_prefer_ceil", size, 6)


@pytest.mark.parametrize("rounding", list(_ROUNDING))
@pytest.mark.parametrize("transformation", list(_POSITION))
def test_a_sum_of_f64_does_not_follow_another(transformation: str, rounding: str) -> None:
    """OpenVINO 2026.4 does not end compiling two of them that depend on a ShapeOf, whatever is multiplied between."""
    size, out = _ties(transformation, rounding)[0]
    attributes = f'mode = "nearest", coordinate_transformation_mode = "{transformation}", nearest_mode = "{rounding}"'
    text = f"(float[1,{size}] x) => (float[1,{out}] y) <float[0] q = {{}}, int64[2] z = {{1, {out}}}> {{ y = Resize <{attributes}> (x, , q, z) }}"
    model = converters.convert(model_of(text, 19))
    facts = infer_shapes(model).facts
    summed: set[irexec.Node] = set()
    for node in model.nodes:
        above = [value.node for value in node.inputs if value is not None and value.node in summed]
        if node.type in ("Add", "Subtract") and str(facts[node.outputs[0]].element) == "f64":
            assert not above
            summed.add(node)
        elif node.type in ("Multiply", "Divide") and above:
            summed.add(node)


def test_sizes_without_ties_are_one_interpolate() -> None:
    text = "(float[1,4] x) => (float[1,8] y) <float[0] q = {}, int64[2] z = {1, 8}> { y = Resize (x, , q, z) }"
    types = [node.type for node in converters.convert(model_of(text, 19)).nodes]
    assert types == ["Parameter", "Constant", "Constant", "Interpolate", "Result"]


@pytest.mark.parametrize("known", [True, False])
def test_resize_10_rounds_up_where_it_shrinks(known: bool) -> None:
    """The example of ONNX 1.5: 1 2 3 4 by 0.6 is 1 3; by 1.5, 1 1 2 3 3 4. ONNX Runtime agrees."""
    x = np.array([[1, 2, 3, 4]], np.float32)
    for scale, expected in ((0.6, [1, 3]), (1.5, [1, 1, 2, 3, 3, 4])):
        scales = np.array([1, scale], np.float32)
        if known:
            results = run(model_of("(float[1,4] x) => (float[1,?] y) { y = Resize (x, s) }", 10, s=scales), x)
        else:
            results = run(model_of("(float[1,4] x, float[2] s) => (float[?,?] y) { y = Resize (x, s) }", 10), x, scales)
        assert results[0].tolist() == [expected]


@pytest.mark.parametrize("attributes", ['mode = "linear", antialias = 1', 'mode = "cubic", exclude_outside = 1', 'mode = "linear"'])  # fmt: skip
def test_the_size_by_a_scale_is_computed_in_f32(attributes: str) -> None:
    """6 times 5/6, rounded to f32, is 5 in f32 and less in exact arithmetic. ONNX Runtime 1.32 gives 5 (onnx.reference 4)."""
    text = f"(float[1,1,6,6] x) => (float[1,1,?,?] y) {{ y = Resize <{attributes}> (x, , s) }}"
    (result,) = run(model_of(text, 19, s=np.array([1, 1, 1, 5 / 6], np.float32)), np.zeros((1, 1, 6, 6), np.float32))
    assert result.shape == (1, 1, 6, 5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_size_by_a_scale_that_interpolate_would_round_up(mode: str) -> None:
    """22 times 13/22 is 12 in f32 (ONNX Runtime 1.32 and onnx.reference); Interpolate adds 1e-6 to the scale: 13."""
    text = f'(float[1,1,2,22] x) => (float[1,1,?,?] y) {{ y = Resize <mode = "{mode}"> (x, , s) }}'
    model = model_of(text, 19, s=np.array([1, 1, 1, 13 / 22], np.float32))
    (result,) = run(model, np.zeros((1, 1, 2, 22), np.float32))
    assert result.shape == (1, 1, 2, 12)


@pytest.mark.parametrize("size", [2, 4, 6])
@pytest.mark.parametrize("rank", [3, 4])
def test_lrn_of_an_even_size(size: int, rank: int) -> None:
    """Channels c - floor((size - 1) / 2) to c + ceil((size - 1) / 2), as the specification has it; onnx.reference agrees.

    ONNX Runtime refuses even sizes.
    """
    x = np.random.default_rng(0).standard_normal((2, 5, 3, 2)[:rank]).astype(np.float32)
    before, after = (size - 1) // 2, -(-(size - 1) // 2)
    windows = [(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(5)]
    expected = x / (2 + 0.3 / size * np.stack(windows, 1)) ** 0.6
    shape = ",".join(map(str, x.shape))
    text = f"(float[{shape}] x) => (float[{shape}] y) {{ y = LRN <size = {size}, alpha = 0.3, beta = 0.6, bias = 2.0> (x) }}"
    np.testing.assert_allclose(run(model_of(text, 13), x)[0], expected, rtol=1e-5)
