"""The published convolutional networks of the benchmark, batch 1, with batch normalisation folded as exporters do in evaluation mode."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.onnx_graph import Graph, Input, Tensor
from tests.support.networks import MOBILENET_V3_LARGE


def image(g: Graph, size: int) -> Tensor:
    return g.input(Input("image", (1, 3, size, size)))


def relu(g: Graph, x: Tensor) -> Tensor:
    return g.unary("Relu", x)


def hard_swish(g: Graph, x: Tensor) -> Tensor:
    return g.unary("HardSwish", x)


def swish(g: Graph, x: Tensor) -> Tensor:
    return g.binary("Mul", x, g.unary("Sigmoid", x))


def clip(g: Graph, x: Tensor, low: float, high: float) -> Tensor:
    """ONNX's Clip with constant bounds."""
    bounds = [g.constant(bound, np.float32) for bound in (low, high)]
    return g.node("Clip", [x, *bounds], x.shape)[0]


def relu6(g: Graph, x: Tensor) -> Tensor:
    return clip(g, x, 0, 6)


def classify(g: Graph, x: Tensor, classes: int = 1000) -> None:
    """Global average, linear layer, output."""
    g.output(g.linear(g.mean(x, [2, 3], keep=False), classes))


def resnet50(g: Graph) -> None:
    """ResNet-50 (He et al. 2015) with the stride in the 3x3 convolutions, as torchvision has it."""
    x = g.pool(relu(g, g.convolution(image(g, 224), 64, 7, 2)), 3, 2, 1)
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if block == 0 and stage else 1
            y = relu(g, g.convolution(x, width, 1))
            y = relu(g, g.convolution(y, width, 3, stride))
            y = g.convolution(y, 4 * width, 1, gain=0.2)
            x = x if block else g.convolution(x, 4 * width, 1, stride, gain=1)
            x = relu(g, g.binary("Add", y, x))
    classify(g, x)


def mobilenet_v2(g: Graph) -> None:
    """MobileNetV2 (Sandler et al. 2018): inverted residuals, ReLU6."""
    x = relu6(g, g.convolution(image(g, 224), 32, 3, 2))
    for expand, channels, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for i in range(count):
            stride = 1 if i else first
            inner = expand * x.shape[1]
            y = relu6(g, g.convolution(x, inner, 1)) if expand > 1 else x
            y = relu6(g, g.convolution(y, inner, 3, stride, groups=inner))
            y = g.convolution(y, channels, 1, gain=1)
            x = g.binary("Add", x, y) if stride == 1 and x.shape == y.shape else y
    classify(g, relu6(g, g.convolution(x, 1280, 1)))


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple, at most a tenth smaller, as the MobileNets round."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * channels else rounded


def hard_squeeze(g: Graph, x: Tensor) -> Tensor:
    """Squeeze and excitation with a hard sigmoid, written as relu6(x + 3) / 6."""
    inner = g.convolution(g.mean(x, [2, 3], keep=True), divisible(x.shape[1] / 4), 1)
    y = g.convolution(relu(g, inner), x.shape[1], 1, gain=1)
    return g.binary("Mul", x, g.binary("Div", clip(g, g.binary("Add", y, 3.0), 0, 6), 6.0))


def mobilenet_v3(g: Graph) -> None:
    """MobileNetV3-Large (Howard et al. 2019)."""
    x = hard_swish(g, g.convolution(image(g, 224), 16, 3, 2))
    for kernel, inner, channels, squeeze, hard, stride in MOBILENET_V3_LARGE:
        act = hard_swish if hard else relu
        y = act(g, g.convolution(x, inner, 1)) if inner != x.shape[1] else x
        y = act(g, g.convolution(y, inner, kernel, stride, groups=inner))
        y = g.convolution(hard_squeeze(g, y) if squeeze else y, channels, 1, gain=1)
        x = g.binary("Add", x, y) if x.shape == y.shape else y
    x = hard_swish(g, g.convolution(x, 960, 1))
    x = hard_swish(g, g.linear(g.mean(x, [2, 3], keep=False), 1280))
    g.output(g.linear(x, 1000))


def efficientnet_b0(g: Graph) -> None:
    """EfficientNet-B0 (Tan and Le 2019): squeeze and excitation, swish."""
    x = swish(g, g.convolution(image(g, 224), 32, 3, 2))
    for expand, kernel, channels, count, first in (
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1),
    ):  # fmt: skip
        for i in range(count):
            stride = 1 if i else first
            inner = expand * x.shape[1]
            y = swish(g, g.convolution(x, inner, 1)) if expand > 1 else x
            y = swish(g, g.convolution(y, inner, kernel, stride, groups=inner))
            gate = swish(g, g.convolution(g.mean(y, [2, 3], keep=True), x.shape[1] // 4, 1))
            y = g.binary("Mul", y, g.unary("Sigmoid", g.convolution(gate, inner, 1, gain=1)))
            y = g.convolution(y, channels, 1, gain=4)
            x = g.binary("Add", x, y) if stride == 1 and x.shape == y.shape else y
    classify(g, swish(g, g.convolution(x, 1280, 1)))


def vgg16(g: Graph) -> None:
    """VGG-16, configuration D (Simonyan and Zisserman 2014)."""
    x = image(g, 224)
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            x = relu(g, g.convolution(x, channels, 3))
        x = g.pool(x, 2, 2)
    x = g.reshape(x, 1, 512 * 7 * 7)
    for size in (4096, 4096):
        x = relu(g, g.linear(x, size, gain=2))
    g.output(g.linear(x, 1000))


def unet(g: Graph) -> None:
    """U-Net (Ronneberger et al. 2015) at the widths of Buda et al. 2019: 32 to 512 channels, 256 x 256, one class.

    With PReLU on the way down and ELU on the way up in place of ReLU.
    """

    def prelu(x: Tensor) -> Tensor:
        return g.node("PRelu", [x, g.weight((x.shape[1], 1, 1), 0.05, 0.25)], x.shape)[0]

    def elu(x: Tensor) -> Tensor:
        return g.unary("Elu", x, alpha=1.0)

    x, kept = image(g, 256), []
    for channels in (32, 64, 128, 256):
        for _ in range(2):
            x = prelu(g.convolution(x, channels, 3))
        kept.append(x)
        x = g.pool(x, 2, 2)
    for _ in range(2):
        x = prelu(g.convolution(x, 512, 3))
    for skip in reversed(kept):
        channels = skip.shape[1]
        x = g.concat([g.transposed_convolution(x, channels, 2, 2, 0, gain=1), skip], 1)
        for _ in range(2):
            x = elu(g.convolution(x, channels, 3))
    g.output(g.unary("Sigmoid", g.convolution(x, 1, 1, gain=1)))


def dcgan(g: Graph) -> None:
    """The generator of DCGAN (Radford et al. 2015) with its 1024 channels, two levels deeper: images of 256 x 256 instead of 64 x 64."""
    noise = g.input(Input("noise", (1, 100, 1, 1)))
    x = relu(g, g.transposed_convolution(noise, 1024, 4, 1, 0, gain=8))
    for channels in (512, 256, 128, 64, 32):
        x = relu(g, g.transposed_convolution(x, channels, 4, 2, 1))
    g.output(g.unary("Tanh", g.transposed_convolution(x, 3, 4, 2, 1, gain=0.5)))


def cross_stage(g: Graph, x: Tensor, channels: int, depth: int, shortcut: bool) -> Tensor:
    """The C2f block of YOLOv8."""
    half = channels // 2
    parts = g.split(swish(g, g.convolution(x, channels, 1)), [half, half], 1)
    for _ in range(depth):
        y = swish(g, g.convolution(swish(g, g.convolution(parts[-1], half, 3)), half, 3))
        parts.append(g.binary("Add", parts[-1], y) if shortcut else y)
    return swish(g, g.convolution(g.concat(parts, 1), channels, 1))


def pyramid_pool(g: Graph, x: Tensor) -> Tensor:
    """SPPF: three poolings of 5 x 5 one after the other."""
    parts = [swish(g, g.convolution(x, x.shape[1] // 2, 1))]
    for _ in range(3):
        parts.append(g.pool(parts[-1], 5, 1, 2))
    return swish(g, g.convolution(g.concat(parts, 1), x.shape[1], 1))


def upsample(g: Graph, x: Tensor) -> Tensor:
    out = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
    scales = g.constant([1, 1, 2, 2], np.float32)
    return g.node(
        "Resize",
        [x, None, scales],
        out,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )[0]


def yolov8n(g: Graph) -> None:
    """YOLOv8n (Ultralytics, yolov8.yaml at depth 0.33 and width 0.25): boxes and scores of 8,400 anchors, without suppression."""

    def convolve(x: Tensor, channels: int, kernel: int = 3, stride: int = 1) -> Tensor:
        return swish(g, g.convolution(x, channels, kernel, stride))

    x = cross_stage(g, convolve(convolve(image(g, 640), 16, stride=2), 32, stride=2), 32, 1, True)
    p3 = cross_stage(g, convolve(x, 64, stride=2), 64, 2, True)
    p4 = cross_stage(g, convolve(p3, 128, stride=2), 128, 2, True)
    p5 = pyramid_pool(g, cross_stage(g, convolve(p4, 256, stride=2), 256, 1, True))
    n4 = cross_stage(g, g.concat([upsample(g, p5), p4], 1), 128, 1, False)
    n3 = cross_stage(g, g.concat([upsample(g, n4), p3], 1), 64, 1, False)
    n4 = cross_stage(g, g.concat([convolve(n3, 64, stride=2), n4], 1), 128, 1, False)
    n5 = cross_stage(g, g.concat([convolve(n4, 128, stride=2), p5], 1), 256, 1, False)
    levels = []
    for level in (n3, n4, n5):
        boxes = g.convolution(convolve(convolve(level, 64), 64), 64, 1, gain=1)
        scores = g.convolution(convolve(convolve(level, 80), 80), 80, 1, gain=1)
        levels.append(g.reshape(g.concat([boxes, scores], 1), 1, 144, level.shape[2] * level.shape[3]))
    boxes, scores = g.split(g.concat(levels, 2), [64, 80], 1)
    g.output(g.concat([decode(g, boxes, [level.shape[2] for level in (n3, n4, n5)]), g.unary("Sigmoid", scores)], 1))


def decode(g: Graph, boxes: Tensor, sides: list[int]) -> Tensor:
    """Centres and sizes of boxes from distributions over 16 distances to each side of (1, 64, anchors)."""
    anchors = boxes.shape[2]
    shares = g.softmax(g.transpose(g.reshape(boxes, 1, 4, 16, anchors), 0, 2, 1, 3), 1)
    # The weights are 0 to 15 in the published network; how they are set does not change the cost.
    near, far = g.split(g.reshape(g.convolution(shares, 1, 1, bias=False), 1, 4, anchors), [2, 2], 1)
    grids = [np.stack(np.meshgrid(np.arange(n) + 0.5, np.arange(n) + 0.5)).reshape(2, -1) for n in sides]
    centres = g.constant(np.concatenate(grids, 1)[None], np.float32)
    strides = g.constant(np.concatenate([np.full((1, n * n), 640 / n) for n in sides], 1), np.float32)
    low, high = g.binary("Sub", centres, near), g.binary("Add", centres, far)
    middle = g.binary("Div", g.binary("Add", low, high), 2.0)
    return g.binary("Mul", g.concat([middle, g.binary("Sub", high, low)], 1), strides)
