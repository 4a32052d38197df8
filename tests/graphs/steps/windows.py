"""Convolutions of every kind with what stands around them in networks, pooling, interpolation."""

from __future__ import annotations

from typing import Any

from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.elementwise import binary_of, slope, unary_of
from tests.graphs.steps.movement import images

_AUTO = ("explicit", "explicit", "explicit", "same_upper", "same_lower", "valid")


def data_of(g: Growth) -> Tensor:
    """Images of the element type of most floats; sometimes channels last in memory."""
    x = images(g, g.floats(minimum=1) if g.gen.chance(0.6) else g.floats((3, 5), 1))
    if g.gen.chance(0.25):
        to_last = [0, *range(2, x.rank), 1]
        moved = g.one("Transpose", x, g.ints(to_last))
        if g.gen.chance(0.6):
            moved = unary_of(g, moved)
        x = g.one("Transpose", moved, g.ints([0, x.rank - 1, *range(1, x.rank - 1)]))
        if g.gen.chance(0.3):
            g.add(moved)
    return x


def weights_of(g: Growth, shape: list[int]) -> Tensor:
    """The filter: a constant, rarely a tensor that is computed."""
    if g.gen.chance(0.06):
        return g.as_shape(g.floats(minimum=1), shape)
    if g.kind == "f32" and g.gen.chance(0.1):
        return g.one("Convert", g.constant(g.gen.rng.uniform(-1, 1, shape), "f16"), destination_type="f32")
    return g.constant(g.gen.rng.uniform(-1, 1, shape), g.kind)


def window(g: Growth, x: Tensor) -> dict[str, Any]:
    """Attributes of windows that fit the data, and the kernel."""
    rank = x.rank - 2
    kernel = (
        [g.gen.pick(1, 1, 2, 3, 3, 5) for _ in range(rank)]
        if g.gen.chance(0.4)
        else [g.gen.pick(1, 1, 3, 3, 2, 5)] * rank
    )
    dilations = [g.gen.pick(1, 1, 2, 3) for _ in range(rank)] if g.gen.chance(0.3) else [1] * rank
    style = g.gen.pick("none", "none", "half", "half", "any")
    begin, end = [], []
    for size, taps, dilation in zip(x.shape[2:], kernel, dilations, strict=True):
        missing = max(0, dilation * (taps - 1) + 1 - size)
        pads = [{"none": 0, "half": taps // 2}.get(style, g.gen.pick(0, 1, 1, 2)) for _ in range(2)]
        begin.append(max(pads[0], missing // 2))
        end.append(max(pads[1], missing - missing // 2))
    if style != "any":
        end = begin = [max(a, b) for a, b in zip(begin, end, strict=True)]
    strides = [g.gen.pick(1, 1, 2, 3) for _ in range(rank)] if g.gen.chance(0.4) else [g.gen.pick(1, 1, 1, 2)] * rank
    return {
        "kernel": kernel, "strides": strides, "dilations": dilations, "pads_begin": begin, "pads_end": end,
        "auto_pad": g.gen.pick(*_AUTO),
    }  # fmt: skip


def convolution_of(g: Growth, x: Tensor) -> Tensor:
    """A convolution of any kind."""
    given = window(g, x)
    kernel = given.pop("kernel")
    channels, out = x.shape[1], g.gen.pick(1, 2, 3, 4, 8, 16)
    kind = g.gen.pick(
        "Convolution", "Convolution", "Convolution", "GroupConvolution", "GroupConvolution", "Back", "GroupBack"
    )
    if kind == "Convolution":
        return g.one(kind, x, weights_of(g, [out, channels, *kernel]), **given)
    groups = g.gen.pick(*[n for n in range(1, channels + 1) if channels % n == 0], channels, channels)
    inner, outer = channels // groups, g.gen.pick(1, 1, 2, 3)
    if kind == "GroupConvolution":
        return g.one(kind, x, weights_of(g, [groups, outer, inner, *kernel]), **given)
    if all(size == 1 for size in given["strides"]) is False and g.gen.chance(0.3):
        given["output_padding"] = [g.gen.size(0, stride - 1) for stride in given["strides"]]
    if g.gen.chance(0.7):
        given["pads_begin"] = given["pads_end"] = [g.gen.pick(0, 0, min(1, taps - 1)) for taps in kernel]
    target = None
    if g.gen.chance(0.2):
        target = g.ints([size * stride for size, stride in zip(x.shape[2:], given["strides"], strict=True)])
    if kind == "Back":
        return g.one("ConvolutionBackpropData", x, weights_of(g, [channels, out, *kernel]), target, **given)
    return g.one("GroupConvolutionBackpropData", x, weights_of(g, [groups, inner, outer, *kernel]), target, **given)


def followed(g: Growth, x: Tensor) -> Tensor:
    """What follows a convolution in networks: scale, bias, a residual, an activation; in any number and order."""
    check(x.rank >= 2, "it has no channels")
    per_channel = [1, x.shape[1], *[1] * (x.rank - 2)]
    for _ in range(g.gen.pick(0, 1, 1, 2, 3)):
        if x.rank < 2:
            # An operation with another tensor may have left it fewer axes.
            break
        choice = g.gen.size(0, 6)
        if choice == 0:
            x = g.one("Add", *g.gen.some([x, g.random(per_channel, x.kind)], 2))
        elif choice == 1:
            x = g.one("Multiply", *g.gen.some([x, g.random(per_channel, x.kind)], 2))
        elif choice == 2:
            gamma, beta, mean = (g.constant(g.gen.rng.uniform(-1, 1, x.shape[1]), x.kind) for _ in range(3))
            variance = g.constant(g.gen.rng.uniform(0.3, 2, x.shape[1]), x.kind)
            x = g.one("BatchNormInference", x, gamma, beta, mean, variance, epsilon=1e-3, since=5)
        elif choice == 3:
            x = g.one(g.gen.pick("Relu", "Sigmoid", "HSwish", "Swish", "Tanh"), x)
        elif choice == 4:
            x = g.one("Clamp", x, min=0.0, max=6.0)
        elif choice == 5:
            x = g.one("PRelu", x, slope(g, x))
        else:
            x = binary_of(g, x)
        if g.gen.chance(0.1):
            g.add(x)
    return x


@step(10)
def convolution(g: Growth) -> None:
    x = data_of(g)
    if g.gen.chance(0.2):
        x = g.one(
            "Pad", x, g.ints([0, 0, *[1] * (x.rank - 2)]), g.ints([0, 0, *[1] * (x.rank - 2)]), pad_mode="constant"
        )
    g.add(followed(g, convolution_of(g, x)))


@step(4)
def block(g: Growth) -> None:
    """Two or three convolutions, each of what the one before gave, and the input added where it fits."""
    x = first = data_of(g)
    for _ in range(g.gen.size(2, 3)):
        x = convolution_of(g, x)
        if not x.is_sound:
            x = g.one("Tanh", g.between(x, -9, 9))
        if g.gen.chance(0.7):
            x = g.one(g.gen.pick("Relu", "Swish", "Sigmoid"), x)
    if x.shape == first.shape:
        x = g.one("Add", *g.gen.some([x, first], 2))
    if g.gen.chance(0.3):
        pooled = g.one("ReduceMean", x, g.ints(list(range(2, x.rank))), keep_dims=True)
        x = g.one("Multiply", x, g.one("Sigmoid", pooled))
    g.add(x)


@step(4)
def pool(g: Growth) -> None:
    x = data_of(g)
    given = window(g, x)
    # A pad is smaller than the kernel.
    for name in ("pads_begin", "pads_end"):
        given[name] = [min(pad, taps - 1) for pad, taps in zip(given[name], given["kernel"], strict=True)]
    given["rounding_type"] = g.gen.pick("floor", "ceil")
    if g.gen.chance():
        since = g.gen.pick(1, 8, 14)
        if since == 1:
            del given["dilations"]
        made = g.emit("MaxPool", x, since=since, **given)
        g.add(made[0], *(made[1:] if g.gen.chance(0.3) else ()))
    else:
        del given["dilations"]
        g.add(g.one("AvgPool", x, exclude_pad=g.gen.chance(), since=g.gen.pick(1, 14), **given))


@step(2)
def resized(g: Growth) -> None:
    x = images(g, g.some(["f32", "f16"], minimum=1), (4, 5))
    axes = list(range(2, x.rank))
    scales = [g.gen.pick(0.5, 1.0, 2.0, 2.0, 3.0, 1.5) for _ in axes]
    sizes = [max(1, int(size * scale)) for size, scale in zip(x.shape[2:], scales, strict=True)]
    mode = g.gen.pick("nearest", "nearest", "linear_onnx", "linear", "cubic")
    coordinates = g.gen.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    rounding = g.gen.pick("round_prefer_floor", "floor", "simple")
    target = g.ints(sizes)
    g.add(
        g.one(
            "Interpolate", x, target, g.ints(axes), mode=mode, shape_calculation_mode="sizes", since=11,
            coordinate_transformation_mode=coordinates, nearest_mode=rounding,
        )
    )  # fmt: skip


@step(1)
def statistics(g: Growth) -> None:
    """A pooling whose output sizes are given."""
    x = images(g, g.some(["f32", "f16"], minimum=1))
    sizes = g.ints([g.gen.size(1, 3) for _ in x.shape[2:]])
    g.add(g.one(g.gen.pick("AdaptiveAvgPool", "AdaptiveMaxPool"), x, sizes))


@step(1)
def upsampled_skip(g: Growth) -> None:
    """Two sizes of one image side by side, as in networks for segmentation."""
    x = images(g, g.floats(minimum=1), (4, 4))
    half = g.one(
        "MaxPool", x, strides=[2, 2], kernel=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], rounding_type="ceil", since=1
    )
    back = g.one(
        "Interpolate", half, g.ints(list(x.shape[2:])), g.ints([2, 3]), mode="nearest", shape_calculation_mode="sizes", since=11,
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
    g.add(convolution_of(g, g.one("Concat", *g.gen.some([x, back], 2), axis=1)), half)
