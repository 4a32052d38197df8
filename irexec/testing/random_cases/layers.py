"""Random models of layers: convolutions, pooling, normalization, quantization, interpolation, recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.schema.convolution import ConvolutionAttributes
from irexec.testing import Case, Typed, typed
from irexec.testing.random_cases import FLOATS, CaseGenerator, Shape, Table
from irexec.testing.random_cases.elementwise import AXIS

RANDOM_CASES = Table()
_AUTO = ("explicit", "explicit", "explicit", "same_upper", "same_lower", "valid")


def _window(gen: CaseGenerator, rank: int, **maximum: int) -> tuple[Shape, dict[str, Any]]:
    """The kernel, and the attributes of a convolution."""
    attributes: dict[str, Any] = gen.window(rank, **maximum)
    kernel = attributes.pop("kernel")
    return kernel, attributes | {"auto_pad": gen.pick(None, *_AUTO)}


def _sizes(gen: CaseGenerator, kernel: Shape, attributes: dict[str, Any], maximum: int) -> Shape:
    """Spatial sizes into which the kernel fits."""
    effective = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, attributes["dilations"], strict=True)]
    return [gen.size(minimum, minimum + maximum) for minimum in effective]


@RANDOM_CASES.row(("Convolution", 1), ("GroupConvolution", 1))
def convolution(gen: CaseGenerator) -> Case:
    rank, kind = gen.pick(1, 2, 2, 3), gen.pick(*FLOATS)
    kernel, attributes = _window(gen, rank)
    groups, inputs, outputs = gen.sizes(3, 1, 3)
    group = [groups] if gen.type == "GroupConvolution" else []
    data = gen.tensor(
        [gen.size(1, 2), inputs * (groups if group else 1), *_sizes(gen, kernel, attributes, 5)], kind, -1, 1
    )
    return gen.model(data, gen.tensor([*group, outputs, inputs, *kernel], kind, -1, 1), **attributes)


@RANDOM_CASES.row(("ConvolutionBackpropData", 1), ("GroupConvolutionBackpropData", 1))
def backprop(gen: CaseGenerator) -> Case:
    rank, kind = gen.pick(1, 2, 2, 3), gen.pick(*FLOATS)
    kernel, attributes = _window(gen, rank)
    groups, inputs, outputs = gen.sizes(3, 1, 3)
    group = [groups] if gen.type == "GroupConvolutionBackpropData" else []
    sizes = gen.sizes(rank, 2, 5)
    data = gen.tensor([gen.size(1, 2), inputs * (groups if group else 1), *sizes], kind, -1, 1)
    filter = gen.tensor([*group, inputs, outputs, *kernel], kind, -1, 1)
    padding = [gen.size(0, stride - 1) for stride in attributes["strides"]] if gen.chance(0.4) else None
    target = None
    if gen.chance(0.4):
        steps = zip(sizes, attributes["strides"], attributes["dilations"], kernel, strict=True)
        natural = [stride * (size - 1) + dilation * (taps - 1) + 1 for size, stride, dilation, taps in steps]
        target = gen.ints([max(1, size + gen.size(-2, 2)) for size in natural])
    return gen.model(data, filter, target, **attributes, output_padding=padding)


@RANDOM_CASES.row(("BinaryConvolution", 1))
def binary_convolution(gen: CaseGenerator) -> Case:
    kernel, attributes = _window(gen, 2)
    # One filter of one channel of eight bits: the reference reads no other packing of filters right.
    data = gen.tensor([gen.size(1, 2), 1, *_sizes(gen, kernel, attributes, 4)], "f32", 0, 1)
    data = gen.ints(np.rint(data.array), ("f32",))
    filter = gen.tensor([1, 1, *kernel], "u1", 0, 1)
    return gen.model(data, filter, mode="xnor-popcount", pad_value=gen.pick(0.0, 1.0, -1.0), **attributes)


@RANDOM_CASES.row(("DeformableConvolution", 1), ("DeformableConvolution", 8))
def deformable(gen: CaseGenerator) -> Case:
    kernel, attributes = _window(gen, 2)
    group, parts, kind = gen.pick(1, 2), gen.pick(1, 2, 4), gen.pick("f32", "f32", "f16")
    sizes = _sizes(gen, kernel, attributes, 4)
    windows = ConvolutionAttributes(**attributes | {"auto_pad": attributes["auto_pad"] or "explicit"})
    out = windows.output_sizes(sizes, kernel)
    batch, taps = gen.size(1, 2), int(np.prod(kernel))
    offsets = [batch, 2 * parts * taps, *map(int, out)]
    inputs = [gen.tensor([batch, 4, *sizes], kind), gen.pick(gen.tensor, gen.steps)(offsets, kind, -2, 2)]
    inputs.append(gen.tensor([gen.pick(2, 4), 4 // group, *kernel], kind))
    extra: dict[str, Any] = {"group": group, "deformable_group": parts}
    if gen.since == 8:
        extra["bilinear_interpolation_pad"] = gen.pick(None, True, False)
        if gen.chance():
            inputs.append(gen.tensor([batch, parts * taps, *offsets[2:]], kind, 0, 1))
    return gen.model(*inputs, **attributes, **extra)


_POOLED = {
    "MaxPool": ("f32", "f32", "f16", "bf16", "i32", "i64", "u8", "i8", "f64"),
    "AvgPool": ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"),
}


@RANDOM_CASES.row(("MaxPool", 1), ("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 1), ("AvgPool", 14), ("AvgPool", 16))
def pool(gen: CaseGenerator) -> Case:
    rank = gen.pick(1, 2, 2, 3)
    attributes: dict[str, Any] = gen.window(rank)
    spread = (gen.type, gen.since) in (("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 16))
    if not spread or gen.chance():
        attributes["dilations"] = [1] * rank
    # A pad is smaller than what the window reaches.
    effective = [
        dilation * (size - 1) for size, dilation in zip(attributes["kernel"], attributes["dilations"], strict=True)
    ]
    for name in ("pads_begin", "pads_end"):
        attributes[name] = [gen.size(0, maximum) if gen.chance(0.6) else 0 for maximum in effective]
    sizes = [gen.size(minimum + 1, minimum + 6) for minimum in effective]
    if not spread:
        del attributes["dilations"]
    attributes["rounding_type"] = gen.pick(None, "floor", "ceil", *(("ceil_torch",) if gen.since > 8 else ()))
    attributes["auto_pad"] = gen.pick(None, *_AUTO)
    if gen.type == "AvgPool":
        attributes["exclude_pad"] = gen.chance()
    elif gen.since > 1:
        attributes |= {"index_element_type": gen.pick(None, "i32", "i64"), "axis": gen.pick(None, gen.axis(rank + 2))}
    return gen.model(gen.tensor([*gen.sizes(2, 1, 2), *sizes], _POOLED[gen.type]), **attributes)


@RANDOM_CASES.row(("AdaptiveAvgPool", 8), ("AdaptiveMaxPool", 8))
def adaptive(gen: CaseGenerator) -> Case:
    rank = gen.pick(1, 2, 2, 3)
    data = gen.tensor([*gen.sizes(2, 1, 3), *gen.sizes(rank, 1, 8)], ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"))
    # The plugin has no i64 indices.
    kind = {"index_element_type": gen.pick(None, "i64", *["i32"] * 6)} if gen.type == "AdaptiveMaxPool" else {}
    return gen.model(data, gen.ints(gen.sizes(rank, 1, 8)), **kind)


def _image(gen: CaseGenerator, kind: str, *shape: int) -> Typed:
    return gen.tensor(shape, kind, 0, 255)


@RANDOM_CASES.row(("NV12toRGB", 8), ("NV12toBGR", 8), ("I420toRGB", 8), ("I420toBGR", 8))
def from_video(gen: CaseGenerator) -> Case:
    kind, batch, height, width = gen.pick("u8", "u8", "f32", "f16"), gen.size(1, 3), gen.size(1, 5), gen.size(1, 5)
    if gen.chance():
        return gen.model(_image(gen, kind, batch, 3 * height, 2 * width, 1))
    parts = [2] if gen.type.startswith("NV12") else [1, 1]
    chroma = [_image(gen, kind, batch, height, width, channels) for channels in parts]
    return gen.model(_image(gen, kind, batch, 2 * height, 2 * width, 1), *chroma)


@RANDOM_CASES.row(("RGBtoNV12", 17), ("BGRtoNV12", 17))
def to_video(gen: CaseGenerator) -> Case:
    shape = (gen.size(1, 3), 2 * gen.size(1, 5), 2 * gen.size(1, 5), 3)
    return gen.model(_image(gen, gen.pick("u8", "f32", "f16"), *shape), single_plane=gen.pick(None, True, False))


@RANDOM_CASES.row(("GridSample", 9))
def grid_sample(gen: CaseGenerator) -> Case:
    n, c, h, w, high, wide = gen.sizes(6, 1, 5)
    data = gen.tensor([n, c, h, w], ("f32", "f32", "f16", "bf16", "i32", "i64"), -50, 50)
    grid = gen.tensor([n, high, wide, 2], "f32", -2, 2)
    if gen.chance(0.2):
        grid = gen.steps([n, high, wide, 2], "f32", -2, 2)
    return gen.model(
        data,
        grid,
        align_corners=gen.pick(None, True, False),
        mode=gen.pick(None, "bilinear", "nearest", "bicubic"),
        padding_mode=gen.pick(None, "zeros", "border", "reflection"),
    )


_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@RANDOM_CASES.row(("MVN", 2), ("MVN", 6))
def mvn(gen: CaseGenerator) -> Case:
    normalize, eps = gen.chance(), gen.pick(1e-9, 1e-5, 0.01, 0.5)
    if gen.since == 2:
        across = gen.pick(None, True, False)
        return gen.model(
            gen.tensor(gen.shape(2, 5, 0), _FLOATS),
            across_channels=across,
            reduction_axes=gen.pick(None, [2, 3], [1, 2, 3], [1], [-1]),
            normalize_variance=normalize,
            eps=eps,
        )
    shape = gen.shape(1, 5, 0)
    mode = gen.pick("inside_sqrt", "outside_sqrt")
    return gen.model(
        gen.tensor(shape, _FLOATS), gen.ints(gen.axes(len(shape))), normalize_variance=normalize, eps=eps, eps_mode=mode
    )


@RANDOM_CASES.row(("BatchNormInference", 1), ("BatchNormInference", 5))
def batch_norm_inference(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(2, 5, 0), gen.pick(*_FLOATS)
    data, channels = gen.tensor(shape, kind), shape[1:2]
    gamma, beta, mean = (gen.tensor(channels, kind) for _ in range(3))
    variance = gen.tensor(channels, kind, 0.1, 3)
    inputs = (data, gamma, beta) if gen.since == 5 else (gamma, beta, data)
    return gen.model(*inputs, mean, variance, epsilon=gen.pick(1e-5, 1e-3, 0.1))


@RANDOM_CASES.row(("NormalizeL2", 1))
def normalize_l2(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    return gen.model(
        gen.tensor(shape, _FLOATS),
        gen.ints(gen.axes(len(shape), 0)),
        eps=gen.pick(1e-9, 1e-3, 0.5),
        eps_mode=gen.pick("add", "max"),
    )


@RANDOM_CASES.row(("LRN", 1))
def lrn(gen: CaseGenerator) -> Case:
    shape = gen.shape(2, 5, 0)
    axes = gen.pick([1], list(range(2, len(shape))) or [1])
    numbers = {
        "alpha": gen.pick(1e-4, 0.5, 1.0),
        "beta": gen.pick(0.75, 0.5, 2.0),
        "bias": gen.pick(1.0, 2.0),
        "size": gen.pick(1, 2, 3, 4, 5),
    }
    return gen.model(gen.tensor(shape, ("f32", "f32", "f16")), gen.ints(axes, ("i64",)), **numbers)


@RANDOM_CASES.row(("GRN", 1))
def grn(gen: CaseGenerator) -> Case:
    return gen.model(gen.tensor(gen.shape(2, 4, 0), _FLOATS), bias=gen.pick(1e-6, 0.1, 1.0))


@RANDOM_CASES.row(("GroupNormalization", 12))
def group_normalization(gen: CaseGenerator) -> Case:
    shape, groups, kind = gen.shape(2, 5, 0), gen.size(1, 3), gen.pick(*_FLOATS)
    shape[1] = groups * gen.size(1, 3)
    inputs = [gen.tensor(sizes, kind) for sizes in (shape, shape[1:2], shape[1:2])]
    return gen.model(*inputs, num_groups=groups, epsilon=gen.pick(1e-5, 0.01))


@RANDOM_CASES.row(("FakeQuantize", 1))
def fake_quantize(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(0, 4, 0), gen.pick("f32", "f32", "f16")
    mode, axis = gen.pick(None, "numpy", "none", "pdpd"), gen.pdpd_axis(shape)

    def bound(low: float, high: float) -> Typed:
        limits = gen.pick([], [1] * len(shape), gen.shrunk(shape))
        if mode in ("none", "pdpd"):
            limits = shape if mode == "none" else gen.aligned(shape, axis)
        return gen.tensor(limits, kind, low, high)

    lows, highs = bound(-3, -0.1), bound(0.1, 3)
    return gen.model(
        gen.tensor(shape, kind, -4, 4),
        lows,
        highs,
        bound(-3, 3),
        bound(-3, 3),
        levels=gen.pick(2, 3, 16, 255, 256),
        **{"auto_broadcast": mode, AXIS: axis if mode == "pdpd" else None},
    )


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@RANDOM_CASES.row(("Interpolate", 1))
def interpolate_1(gen: CaseGenerator) -> Case:
    rank = gen.pick(3, 4, 4, 5)
    axes = list(range(2, rank)) if gen.chance(0.7) else sorted(gen.some(range(rank), 1, 3))
    attributes: dict[str, Any] = {
        "axes": axes,
        "mode": gen.pick("nearest", "linear", "cubic"),
        "align_corners": gen.pick(None, True, False),
    }
    return gen.model(
        gen.tensor([*gen.sizes(2, 1, 2), *gen.sizes(rank - 2, 1, 6)], ("f32", "f32", "f16")),
        gen.ints(gen.sizes(len(axes), 1, 9)),
        **attributes,
    )


@RANDOM_CASES.row(("Interpolate", 4), ("Interpolate", 11))
def interpolate(gen: CaseGenerator) -> Case:
    mode = gen.pick(
        "nearest", "linear", "linear_onnx", "cubic", *(("bilinear_pillow", "bicubic_pillow") if gen.since == 11 else ())
    )
    pillow = mode.endswith("pillow")
    rank = 4 if pillow else gen.pick(2, 3, 4, 4, 4, 5)
    shape = gen.shape(rank, rank, 0)
    some = sorted(gen.some(range(rank), 1, 3))
    axes = [rank - 2, rank - 1] if pillow else list(range(min(2, rank - 1), rank)) if gen.chance(0.7) else some
    pads = [[gen.size(0, 2) for _ in shape] if gen.chance(0.15) and not pillow else [0] * rank for _ in range(2)]
    given = [shape[axis] + pads[0][axis] + pads[1][axis] for axis in axes]
    sizes = gen.sizes(len(axes), 1, 9)
    by = gen.pick("sizes", "scales")
    scales = [
        max(gen.pick(reference / size, 0.5, 1.0, 1.5, 2.0), 1.01 / size)
        for reference, size in zip(sizes, given, strict=True)
    ]
    attributes: dict[str, Any] = {
        "mode": mode,
        "shape_calculation_mode": by,
        "antialias": gen.pick(None, False, False, True),
        "cube_coeff": gen.pick(None, -0.5),
        "coordinate_transformation_mode": gen.pick(None, *_COORDINATES),
        "nearest_mode": gen.pick(None, *_NEAREST),
        "pads_begin": pads[0],
        "pads_end": pads[1],
    }
    data = gen.tensor(shape, ("f32", "f32", "f16", "u8", "i8") if gen.since == 11 else ("f32", "f32", "f16"))
    # OpenVINO takes no negative axes.
    where = gen.ints(axes)
    if gen.since == 4:
        return gen.model(data, gen.ints(sizes), typed("f32", scales), where, **attributes)
    return gen.model(data, gen.ints(sizes) if by == "sizes" else typed("f32", scales), where, **attributes)


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _activations(gen: CaseGenerator, family: str) -> dict[str, Any]:
    """Names of functions for the gates. They are always written: the plugin fails on sequences that leave them out."""
    default = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}[family]
    names = [gen.pick("sigmoid", "tanh", "relu") for _ in default] if gen.chance(0.4) else default
    return {"activations": names, "clip": gen.pick(None, None, 0.3, 1.0)}


def _weights(
    gen: CaseGenerator, family: str, size: int, inputs: int, reset: bool | None, lead: list[int], kind: str
) -> list[Typed]:
    """W, R and B, for one or two directions."""
    gates = _GATES[family]
    biases = gates + 1 if reset else gates
    shapes = [gates * size, inputs], [gates * size, size], [biases * size]
    return [gen.tensor([*lead, *shape], kind, -1, 1) for shape in shapes]


@RANDOM_CASES.row(("RNNCell", 1), ("GRUCell", 3), ("LSTMCell", 1), ("LSTMCell", 4))
def cell(gen: CaseGenerator) -> Case:
    family, kind = gen.type.removesuffix("Cell"), gen.pick("f32", "f32", "f16")
    batch, inputs, size = gen.sizes(3, 1, 4)
    reset = gen.pick(None, True, False) if family == "GRU" else None
    states = [gen.tensor([batch, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    weights = _weights(gen, family, size, inputs, reset, [], kind)
    attributes = {"hidden_size": size, "linear_before_reset": reset, **_activations(gen, family)}
    given = weights if gen.chance(0.95) or (gen.type, gen.since) == ("LSTMCell", 1) else weights[:2]
    return gen.model(gen.tensor([batch, inputs], kind, -1, 1), *states, *given, **attributes)


@RANDOM_CASES.row(("RNNSequence", 5), ("GRUSequence", 5), ("LSTMSequence", 5))
def sequence(gen: CaseGenerator) -> Case:
    family, kind = gen.type.removesuffix("Sequence"), gen.pick("f32", "f32", "f16")
    batch, inputs, size, steps = gen.sizes(4, 1, 4)
    direction = gen.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    reset = gen.pick(None, True, False) if family == "GRU" else None
    states = [gen.tensor([batch, ways, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    lengths = gen.ints(np.full(batch, steps) if gen.chance() else gen.sizes(batch, 1, steps))
    weights = _weights(gen, family, size, inputs, reset, [ways], kind)
    attributes = {"hidden_size": size, "direction": direction, "linear_before_reset": reset}
    attributes |= _activations(gen, family)
    return gen.model(gen.tensor([batch, steps, inputs], kind, -1, 1), *states, lengths, *weights, **attributes)
