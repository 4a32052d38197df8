"""Products of quantised tensors in integers, beside the reference kernels in f64: levels, zero points, groups, paddings, residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.backend.native import integer_products, integers
from irexec.dtypes.elements import F32
from irexec.native.library import library
from irexec.schema.registry import resolve
from tests.support.processes import python
from tests.support.quantised_network import NEAR, Network, check

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(100))
def test_random_networks(seed: int) -> None:
    assert check(seed, 1) == check(seed, 3)


@pytest.mark.parametrize("seed", range(100, 220))
def test_tiles_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that are too small for them, too."""
    found = library()
    if found is None or not found.has_tiles:
        pytest.skip("this processor has no tiles, or the system does not let the process use them")
    monkeypatch.setattr(integer_products, "uses_tiles", lambda rows, taps, depth: taps > 0)
    tiled = check(seed, seed % 4 + 1)
    monkeypatch.setattr(integer_products, "uses_tiles", lambda rows, taps, depth: False)
    assert tiled == check(seed, 1)


@pytest.mark.slow
def test_all_instruction_sets_give_the_same_bits() -> None:
    """Levels of the library that this processor has, in processes of their own."""
    digests = {}
    for level in ("portable", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx"):
        done = python("-m", "tests.support.quantised_network", "100", "25", IREXEC_NATIVE=level)
        if "was built here" not in done.stderr:
            assert done.returncode == 0, done.stderr
            digests[level] = done.stdout
    assert len(set(digests.values())) <= 1, digests.keys()


@pytest.mark.slow
def test_values_of_levels_are_rounded_twice_by_all_instruction_sets() -> None:
    """Once as product and once as sum: a network of the sweep in which it matters."""
    program = "from tests.integer_sweep.networks import check; print(check(568, 1))"
    found = {python("-c", program, IREXEC_NATIVE=level).stdout for level in ("portable", "x86-64-v3")}
    assert len(found) == 1 and len(found.pop()) > 10


def small_network(spread: float = 2.0) -> Builder:
    """Quantise, convolution with i8 weights, quantise, convolution."""
    network = Network(3)
    b = network.builder
    x = b.parameter(F32, (1, 4, 6, 6), "x")
    low, high = np.float32(-spread), np.float32(spread * 127 / 128)
    for channels in (8, 5):
        x = b.emit("FakeQuantize", x, low, high, low, high, levels=256)
        integers = network.rng.integers(-127, 128, (channels, 4 if channels == 8 else 8, 3, 3)).astype(np.int8)
        scale = np.full((channels, 1, 1, 1), 0.01, np.float32)
        weights = b.emit("Multiply", b.emit("Convert", b.constant(integers), destination_type="f32"), scale)
        ones, zeros = (1, 1), (1, 1)
        x = b.emit("Convolution", x, weights, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)
    b.result(x)
    return b


def test_a_product_ends_in_the_levels_of_the_next_one() -> None:
    plan = str(irexec.compile_model(small_network().model()).plan)
    assert "IntegerConvolution+Quantize" in plan
    assert plan.count("IntegerConvolution") == 2


def test_levels_pass_splits_joins_and_maxima() -> None:
    """Between two convolutions: two halves, of which one is pooled, side by side again."""
    b, rng = Builder("m"), np.random.default_rng(5)
    x, bounds = b.parameter(F32, (1, 16, 6, 6), "x"), np.array([-2, 2 * 127 / 128] * 2, np.float32)
    attributes: dict[str, Any] = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    for again in (True, False):
        x = b.emit("FakeQuantize", x, *bounds, levels=256)
        if not again:
            first, second = b.emit("VariadicSplit", x, np.array(1), np.array([8, 8]))
            pool = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "kernel": (3, 3)}
            pooled = b.emit("MaxPool", second, version="opset1", **pool)
            x = b.emit("Concat", b.emit("FakeQuantize", pooled, *bounds, levels=256), first, axis=1)
        integers = b.constant(rng.integers(-127, 128, (16, 16, 3, 3)).astype(np.int8))
        scale = np.full((16, 1, 1, 1), 0.003, np.float32)
        weights = b.emit("Multiply", b.emit("Convert", integers, destination_type="f32"), scale)
        x = b.emit("Convolution", x, weights, **attributes)
    b.result(x)
    compiled = irexec.compile_model(b.model())
    plan = str(compiled.plan)
    assert plan.count("IntegerConvolution") == 2
    assert "5 steps for" in plan, "levels that are rounded again stay"
    data = {"x": rng.normal(size=(1, 16, 6, 6)).astype(np.float32)}
    expected = irexec.compile_model(b.model(), optimize=False)(data)
    (result,), (exact,) = compiled(data).values(), expected.values()
    # A level between the convolutions may be the neighbouring one.
    np.testing.assert_allclose(result, exact, atol=0.02)


def test_a_window_in_the_padding_alone_has_no_level() -> None:
    """Its maximum is the least value of f32, which no level stands for."""
    b, bounds = Builder("m"), np.array([-2, 2 * 127 / 128] * 2, np.float32)
    x = b.emit("FakeQuantize", b.parameter(F32, (1, 4, 3, 3), "x"), *bounds, levels=256)
    x = b.emit("MaxPool", x, version="opset1", strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), kernel=(1, 1))
    integers = b.emit("Convert", b.constant(np.full((5, 4, 1, 1), 3, np.int8)), destination_type="f32")
    weights = b.emit("Multiply", integers, np.full((5, 1, 1, 1), 0.5, np.float32))
    b.result(
        b.emit(
            "Convolution",
            x,
            weights,
            **dict.fromkeys(("strides", "dilations"), (1, 1)),
            pads_begin=(0, 0),
            pads_end=(0, 0),
        )
    )
    data = {"x": np.ones((1, 4, 3, 3), np.float32)}
    compiled = irexec.compile_model(b.model())
    (result,) = compiled(data).values()
    (expected,) = irexec.compile_model(b.model(), optimize=False)(data).values()
    assert "Integer" not in str(compiled.plan)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("channels", [1, 16, 24, 72, 96])
@pytest.mark.parametrize(
    "kernel, strides, dilations",
    [
        ((5, 5), (1, 1), (1, 1)), ((5, 3), (2, 2), (2, 2)), ((9, 2), (1, 3), (1, 5)), ((3, 3, 3), (1, 2, 1), (2, 1, 1)),
        ((31,), (1,), (1,)), ((33,), (2,), (1,)), ((9,), (1,), (4,)),
    ],
)  # fmt: skip
def test_depthwise_kernels(kernel: Any, strides: Any, dilations: Any, channels: int) -> None:
    """Kernels of more rows than a word has, wider than a strip of pixels, and with gaps; borders of half a kernel."""
    network = Network(channels)
    sizes = (70,) if len(kernel) == 1 else tuple(int(network.pick(11, 13)) for _ in kernel)
    data, last = network.rng.normal(size=(1, *sizes, channels)), len(sizes) + 1
    x, exact, _ = network.quantise(network.builder.parameter(F32, data.shape, "x"), data, 2.0)
    network.feeds["x"] = exact.astype(np.float32)
    # The kernel is for channels that follow each other.
    x = network.builder.emit("Transpose", x, np.array([0, last, *range(1, last)]))
    made, values = network.weights((channels, 1, 1, *kernel), (0, 1))
    half = tuple(size // 2 for size in kernel)
    attributes = {"strides": strides, "dilations": dilations, "pads_begin": half, "pads_end": half}
    x = network.builder.emit("GroupConvolution", x, made, **attributes)
    network.builder.result(network.builder.emit("Transpose", x, np.array([0, *range(2, last + 1), 1])))
    definition = resolve("GroupConvolution", "opset1")
    expected = definition.kernel(np.moveaxis(exact, -1, 1), values, **definition.arguments(attributes))
    compiled = irexec.compile_model(network.builder.model(), threads=2)
    is_wide = channels == 1 or kernel[-1] > 32
    assert is_wide or "depthwise convolution of integers" in str(compiled.plan), compiled.plan
    (result,) = compiled(network.feeds).values()
    tolerance = 2e-5 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(np.moveaxis(result, -1, 1), expected, atol=tolerance)


@pytest.mark.parametrize("sizes", [(3, 3), (4, 7), (9, 5), (14, 14), (2, 31)])
@pytest.mark.parametrize("channels, outputs", [(32, 1), (64, 40), (96, 33)])
def test_winograd_is_exact(
    sizes: tuple[int, int], channels: int, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole and half tiles, zero points, borders of up to two pixels, images, and the largest integers."""
    if integer_products.unit() == 4:
        pytest.skip("bytes are multiplied directly")
    monkeypatch.setattr(integers, "_winograd_cost", lambda geometry: 0.0)
    rng = np.random.default_rng([channels, *sizes])
    b, levels = Builder("winograd"), rng.choice([0, 255], (2, *sizes, channels)).astype(np.float32)
    x = b.parameter(F32, levels.shape, "x")
    low, high = np.float32(-64), np.float32(191)
    x = b.emit("FakeQuantize", x, low, high, low, high, levels=256)
    x = b.emit("Transpose", x, np.array([0, 3, 1, 2]))
    weights = rng.choice([-127, 127], (outputs, channels, 3, 3)).astype(np.int8)
    scale = np.full((outputs, 1, 1, 1), 2.0**-20, np.float32)
    stored = b.emit("Multiply", b.emit("Convert", b.constant(weights), destination_type="f32"), scale)
    attributes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (2, 1), "pads_end": (1, 2)}
    b.result(b.emit("Convolution", x, stored, **attributes))
    compiled = irexec.compile_model(b.model(), threads=2)
    assert "Winograd F(2x2, 3x3) of integers" in str(compiled.plan)
    (result,) = compiled({"x": levels - 64}).values()
    definition = resolve("Convolution", "opset1")
    data = np.moveaxis(levels - 64, -1, 1).astype(np.float64)
    sums = definition.kernel(data, weights.astype(np.float64), **definition.arguments(attributes))
    np.testing.assert_array_equal(result, (sums * 2.0**-20).astype(np.float32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(40))
def test_attention_to_levels(seed: int) -> None:
    """Scores of quantised queries and keys, beside f64: zero points, sizes that are not whole words, masks, heads."""
    network = Network(seed, smooth=False)
    b, pick, rng = network.builder, network.pick, network.rng
    heads, rows, columns, width = pick(1, 3), pick(1, 7, 60), pick(1, 5, 33, 600), pick(1, 3, 16, 64, 70)
    values, is_causal, mask = pick(1, 16, 33), bool(pick(0, 0, 1)), pick(None, "f32", "boolean")
    given, exact = [], []
    for size, name in ((rows, "q"), (columns, "k")):
        data = rng.normal(size=(2, size, heads * width))
        made, levels, _ = network.quantise(b.parameter(F32, data.shape, name), data, 2.0)
        network.feeds[name] = levels.astype(np.float32)
        made = b.emit("Reshape", made, np.array([2, size, heads, width]), special_zero=False)
        given.append(b.emit("Transpose", made, np.array([0, 2, 1, 3])))
        exact.append(levels.reshape(2, size, heads, width).transpose(0, 2, 1, 3))
    exact.append(rng.normal(size=(2, heads, columns, values)).astype(np.float32).astype(float))
    network.feeds["v"] = exact[2].astype(np.float32)
    inputs = [*given, b.parameter(F32, exact[2].shape, "v")]
    if mask is not None:
        drawn = rng.normal(size=(rows, columns)).astype(np.float32)
        whole = np.concatenate([np.ones((rows, 1), bool), drawn[:, 1:] > 0], 1) if mask == "boolean" else drawn
        inputs.append(b.constant(whole))
        exact.append(whole)
        if pick(0, 1):
            more = [np.array(0.2, np.float32), rng.normal(size=(1, heads, 1, 1)).astype(np.float32)]
            inputs += map(b.constant, more)
            exact += more
    attention = resolve("ScaledDotProductAttention", "opset13")
    expected = attention.kernel(*exact, causal=is_causal)
    b.result(b.emit("ScaledDotProductAttention", *inputs, causal=is_causal))
    results = []
    for threads in (1, 3):
        compiled = irexec.compile_model(b.model(), threads=threads)
        assert "IntegerAttention" in str(compiled.plan)
        results.append(next(iter(compiled(network.feeds).values())))
        np.testing.assert_allclose(
            results[-1], expected, atol=2e-6 * max(1.0, float(np.abs(exact[2]).max())), rtol=1e-5
        )
    np.testing.assert_array_equal(*results)


def test_attention_of_primitives_reads_levels() -> None:
    """Two products and a Softmax are one attention; a NaN of the queries repeats the run in f32."""
    b, bounds = Builder("m"), np.array([-2, 2 * 127 / 128] * 2, np.float32)
    query, key, value = (b.parameter(F32, (1, 2, 6, 8), name) for name in "qkv")
    quantised = [b.emit("FakeQuantize", x, *bounds, levels=256) for x in (query, key)]
    scores = b.emit("MatMul", b.emit("Multiply", quantised[0], np.float32(0.25)), quantised[1], transpose_b=True)
    b.result(b.emit("MatMul", b.emit("Softmax", scores, version="opset8", axis=-1), value))
    rng = np.random.default_rng(0)
    feeds = {name: rng.normal(size=(1, 2, 6, 8)).astype(np.float32) for name in "qkv"}
    compiled, reference = irexec.compile_model(b.model()), irexec.compile_model(b.model(), optimize=False)
    assert "IntegerAttention" in str(compiled.plan)
    for _ in range(2):
        (result,), (expected,) = (one(feeds).values() for one in (compiled, reference))
        np.testing.assert_allclose(result, expected, atol=1e-6)
        feeds["q"][0, 1, 2, 3] = np.nan


def test_nan_and_infinities_are_those_of_floats() -> None:
    """A NaN has no level: the run is repeated in floating point; an infinity is clipped."""
    model = small_network().model()
    compiled, reference = irexec.compile_model(model), irexec.compile_model(model, optimize=False)
    x = np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype(np.float32)
    before = next(iter(compiled({"x": x}).values())).copy()
    for value in (np.nan, np.inf, -np.inf):
        changed = x.copy()
        changed[0, 1, 2, 3] = value
        result, expected = (next(iter(one({"x": changed}).values())) for one in (compiled, reference))
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        # Levels in between may be neighbours.
        np.testing.assert_allclose(result, expected, atol=0.1)
        assert compiled.profile({"x": changed}, runs=1).runs == 1
    # The same bits as before: the choice depends on the input alone.
    np.testing.assert_array_equal(before, next(iter(compiled({"x": x}).values())))


@pytest.mark.parametrize("type", ["Atan", "Relu", "Constant"])
def test_a_nan_that_numpy_or_c_should_make_a_level_of(type: str) -> None:
    rng, b = np.random.default_rng(0), Builder("m")
    data = rng.normal(size=(3, 48)).astype(np.float32)
    data[1, 2] = np.nan
    x = b.parameter(F32, (3, 48), "x")
    low, high = np.float32(-3), np.float32(3 * 127 / 128)
    levels = b.emit(
        "FakeQuantize", b.constant(data) if type == "Constant" else b.emit(type, x), low, high, low, high, levels=256
    )
    integers = b.emit("Convert", b.constant(rng.integers(-127, 128, (48, 8)).astype(np.int8)), destination_type="f32")
    weights = b.emit("Multiply", integers, np.float32(0.01))
    b.result(b.emit("Add", b.emit("MatMul", levels, weights, transpose_a=False, transpose_b=False), np.float32(1)))
    compiled = irexec.compile_model(b.model())
    assert np.isnan(compiled(data)[0]).any(-1).tolist() == [False, True, False]
    if type != "Constant":
        assert "+Quantize" in str(compiled.plan) and np.isfinite(compiled(np.nan_to_num(data))[0]).all()


def test_a_nan_of_a_function_behind_a_product() -> None:
    """The root of a negative sum."""
    b, limits = Builder("m"), np.array([-3, 3, -3, 3], np.float32)
    x = b.parameter(F32, (3, 16), "x")
    integers = b.emit("Convert", b.constant(np.eye(16, dtype=np.int8)), destination_type="f32")
    weights = b.emit("Multiply", integers, np.float32(1))
    levels = b.emit("FakeQuantize", x, *limits, levels=255)
    root = b.emit("Sqrt", b.emit("MatMul", levels, weights))
    b.result(b.emit("MatMul", b.emit("FakeQuantize", root, *limits, levels=255), weights))
    compiled = irexec.compile_model(b.model())
    assert "MatMul+Sqrt+Quantize" in str(compiled.plan)
    data = np.abs(np.random.default_rng(0).normal(size=(3, 16))).astype(np.float32)
    np.testing.assert_allclose(compiled(data)[0], np.sqrt(data.clip(0, 3)), atol=0.12)
    data[1, 15] = -1
    assert np.isnan(compiled(data)[0]).any(-1).tolist() == [False, True, False]


def test_what_is_not_a_level_is_computed_in_floats() -> None:
    """A symmetric range of 256 levels has no level of 0, so that padding has no level."""
    b = Builder("m")
    x = b.parameter(F32, (1, 2, 5, 5), "x")
    x = b.emit("FakeQuantize", x, *np.array([-1, 1, -1, 1], np.float32), levels=256)
    integers = b.emit("Convert", b.constant(np.ones((3, 2, 1, 1), np.int8)), destination_type="f32")
    weights = b.emit("Multiply", integers, np.full((3, 1, 1, 1), 0.5, np.float32))
    ones, zeros = (1, 1), (0, 0)
    b.result(b.emit("Convolution", x, weights, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones))
    compiled = irexec.compile_model(b.model())
    assert "Integer" not in str(compiled.plan)
    reasons = {refusal.reason for refusal in compiled.program.plan((), None).refusals}
    assert "no level of its data is 0" in reasons


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4, 1), (1, 6, 4, 4)], ids=str)
def test_a_scale_that_is_none_of_channels_may_stand_before_levels(shape: tuple[int, ...]) -> None:
    """The kernels have scales of channels: the sums and what follows them are computed by NumPy."""
    b, rng = Builder("m"), np.random.default_rng(0)
    weights, scale = rng.integers(-127, 128, (6, 8, 1, 1)), rng.uniform(0.5, 2, shape).astype(np.float32)
    x, data = b.parameter("f32", (1, 8, 4, 4), "x"), rng.uniform(0, 4, (1, 8, 4, 4)).astype(np.float32)
    y = b.emit("FakeQuantize", x, np.float32(0), np.float32(4), np.float32(0), np.float32(4), levels=256)
    stored = b.emit("Convert", weights.astype(np.int8), destination_type="f32")
    ones = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = b.emit("Convolution", y, b.emit("Multiply", stored, np.float32(0.01)), **ones)
    y = b.emit("FakeQuantize", b.emit("Multiply", y, scale), *np.float32([0, 9, 0, 9]), levels=256)
    # A reader of levels, so that these are what the product ends in.
    b.result(
        b.emit(
            "Convolution",
            y,
            b.emit(
                "Multiply", b.emit("Convert", np.ones((1, 6, 1, 1), np.int8), destination_type="f32"), np.float32(1)
            ),
            **ones,
        ),
        "y",
    )
    found = irexec.compile_model(b.model(), threads=1)({"x": data})["y"]
    levels = np.rint(data.astype(float) * 255 / 4) * 4 / 255
    sums = np.einsum("nchw,oc->nohw", levels, weights[:, :, 0, 0] * 0.01) * scale
    index = np.clip(sums, 0, 9) * 255 / 9
    expected = (np.rint(index) * 9 / 255).sum(1, keepdims=True)
    near = (np.abs(np.abs(index - np.floor(index)) - 0.5) < NEAR).sum(1, keepdims=True)
    assert (np.abs(found - expected) <= near * 9 / 255 + 1e-4).all()


def test_constant_factors_around_a_function_are_factors_of_the_sums() -> None:
    """A Multiply before the bias, and one behind the function, as SmoothQuant leaves it; both with values of columns."""
    b, rng = Builder("m"), np.random.default_rng(1)
    weights, (scale, bias, smooth) = rng.integers(-127, 128, (8, 21)), rng.uniform(0.5, 2, (3, 21)).astype(np.float32)
    x, data = b.parameter("f32", (1, 37, 8), "x"), rng.uniform(0, 4, (1, 37, 8)).astype(np.float32)
    y = b.emit("FakeQuantize", x, *np.float32([0, 4, 0, 4]), levels=256)
    stored = b.emit("Convert", weights.astype(np.int8), destination_type="f32")
    y = b.emit("MatMul", y, b.emit("Multiply", stored, np.float32(0.01)))
    y = b.emit("Relu", b.emit("Add", b.emit("Multiply", y, scale), bias))
    y = b.emit("Multiply", b.emit("Swish", y), smooth)
    y = b.emit("FakeQuantize", y, *np.float32([0, 30, 0, 30]), levels=256)
    ones = b.emit("Convert", np.ones((21, 1), np.int8), destination_type="f32")
    b.result(b.emit("MatMul", y, b.emit("Multiply", ones, np.float32(1))), "y")
    compiled = irexec.compile_model(b.model(), threads=1)
    assert "3 steps for" in str(compiled.plan)
    levels = np.rint(data.astype(float) * 255 / 4) * 4 / 255
    sums = np.maximum((levels @ (weights * 0.01)) * scale + bias, 0)
    index = np.clip(sums / (1 + np.exp(-sums)) * smooth, 0, 30) * 255 / 30
    expected = (np.rint(index) * 30 / 255).sum(2, keepdims=True)
    near = (np.abs(np.abs(index - np.floor(index)) - 0.5) < NEAR).sum(2, keepdims=True)
    assert (np.abs(compiled({"x": data})["y"] - expected) <= near * 30 / 255 + 1e-4).all()


@pytest.mark.parametrize("shape", [(3, 37, 48), (2, 5, 17), (1, 9, 1024)], ids=str)
@pytest.mark.parametrize("axis", [2, 1])
def test_a_normalization_ends_in_levels(shape: tuple[int, ...], axis: int) -> None:
    """Along rows in the kernel itself, along columns after it; a NaN stays one."""
    rng, b = np.random.default_rng(axis), Builder("m")
    scale, shift = rng.random(shape[2]).astype(np.float32) + 0.5, rng.normal(size=shape[2]).astype(np.float32)
    weights, low, high = rng.integers(-127, 128, (shape[2], 8)), np.float32(-3), np.float32(3 * 127 / 128)
    x = b.parameter(F32, shape, "x")
    normal = b.emit("MVN", x, np.array([axis]), normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt")
    levels = b.emit(
        "FakeQuantize", b.emit("Add", b.emit("Multiply", normal, scale), shift), low, high, low, high, levels=256
    )
    integers = b.emit("Convert", b.constant(weights.astype(np.int8)), destination_type="f32")
    b.result(
        b.emit("MatMul", levels, b.emit("Multiply", integers, np.float32(0.01)), transpose_a=False, transpose_b=False)
    )
    compiled = irexec.compile_model(b.model(), threads=2)
    assert "MVN+Multiply+Add+Quantize" in str(compiled.plan) and "reference" not in str(compiled.plan)
    given = rng.normal(size=shape).astype(np.float32) * 4 + 1
    exact = given.astype(np.float64)
    exact = (exact - exact.mean(axis, keepdims=True)) / np.sqrt(exact.var(axis, keepdims=True) + 1e-6) * scale + shift
    step = (float(high) - float(low)) / 255
    inner = (np.clip(exact, low, high) - low) / step
    near = abs(inner - np.floor(inner) - 0.5) < 1e-4
    expected = (np.round(inner) * step + low) @ (weights * 0.01)
    may_differ = near @ abs(weights * 0.01) * step
    assert (abs(compiled(given)[0] - expected) <= may_differ + 1e-4).all()
    given[0, 1, 2] = np.nan
    assert np.isnan(compiled(given)[0]).any(-1).sum() == (1 if axis == 2 else shape[1])


@pytest.mark.parametrize("size", [1, 5, 7, 16, 19])
def test_channels_of_a_part_of_a_word_are_copied(size: int) -> None:
    """Three channels, channels first: rows of fewer pixels than a vector of bytes, and of more."""
    b, rng = Builder("m"), np.random.default_rng(size)
    x, data = b.parameter("f32", (2, 3, 4, size), "x"), rng.integers(0, 256, (2, 3, 4, size)).astype(np.float32)
    y = b.emit("FakeQuantize", x, *np.float32([0, 255, 0, 255]), levels=256)
    weights = rng.integers(-127, 128, (5, 3, 3, 3))
    stored = b.emit("Convert", weights.astype(np.int8), destination_type="f32")
    y = b.emit(
        "Convolution", y, b.emit("Multiply", stored, np.float32(1)), strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1),
        dilations=(1, 1),
    )  # fmt: skip
    b.result(y, "y")
    padded = np.pad(data, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    compiled = irexec.compile_model(b.model(), threads=1)
    assert "IntegerConvolution" in str(compiled.plan)
    np.testing.assert_array_equal(compiled({"x": data})["y"], np.einsum("nchwij,ocij->nohw", windows, weights))


def test_a_product_reads_levels_of_attention_to_levels() -> None:
    """Attention gives f32, and the levels of its results are made by a step of its own."""
    b, bounds = Builder("m"), np.array([-2, 2 * 127 / 128] * 2, np.float32)
    inputs = [b.parameter(F32, (1, 2, 6, 8), name) for name in "qkv"]
    quantised = [b.emit("FakeQuantize", x, *bounds, levels=256) for x in inputs[:2]]
    attended = b.emit("ScaledDotProductAttention", *quantised, inputs[2], causal=False)
    rng = np.random.default_rng(0)
    weights = b.emit("FakeQuantize", rng.normal(size=(8, 4)).astype(np.float32), *bounds, levels=256)
    b.result(b.emit("MatMul", b.emit("FakeQuantize", attended, *bounds, levels=256), weights))
    feeds = {name: rng.normal(size=(1, 2, 6, 8)).astype(np.float32) for name in "qkv"}
    compiled, reference = irexec.compile_model(b.model()), irexec.compile_model(b.model(), optimize=False)
    assert "IntegerAttention" in str(compiled.plan) and "IntegerMatMul" in str(compiled.plan)
    (result,), (expected,) = (one(feeds).values() for one in (compiled, reference))
    # One level of 1/64 times a weight, where a value lies between two.
    np.testing.assert_allclose(result, expected, atol=1e-6 + 2 / 64)
