"""Convolutional networks that classify or segment."""

from __future__ import annotations

import openvino as ov
import torch
import transformers as hf
from torch import nn
from torch.nn import functional

from tests.networks.network import Calling, Network, RandomInput, convert, network, randomise
from tests.support.networks import MOBILENET_V3_LARGE


def images(module: nn.Module, wide: bool, small: int = 32, published: int = 224) -> Network:
    """A network of images of any batch and size, run on three of them."""
    size = published if wide else small
    model = convert(module, [torch.randn(1, 3, size, size)], [[-1, 3, -1, -1]])
    sizes = [(1, size, size)] if wide else [(1, size, size), (2, size, size + 16), (3, size - 8, size)]
    return Network(model, [[RandomInput((n, 3, h, w))] for n, h, w in sizes])


def classifier(module: nn.Module) -> nn.Module:
    return Calling(randomise(module), lambda inner, pixels: inner(pixel_values=pixels).logits)


@network("resnet50")
def resnet50(wide: bool) -> Network:
    """ResNet with bottlenecks (He et al. 2015)."""
    sizes = {} if wide else {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [2, 2], "num_labels": 10}
    return images(classifier(hf.ResNetForImageClassification(hf.ResNetConfig(**sizes))), wide)


@network("resnet18")
def resnet18(wide: bool) -> Network:
    """ResNet of basic blocks."""
    published = {"hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
    sizes = published if wide else {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 10}
    return images(classifier(hf.ResNetForImageClassification(hf.ResNetConfig(layer_type="basic", **sizes))), wide)


@network("mobilenet_v2")
def mobilenet_v2(wide: bool) -> Network:
    """Inverted residuals, ReLU6 (Sandler et al. 2018)."""
    config = (
        hf.MobileNetV2Config()
        if wide
        else hf.MobileNetV2Config(depth_multiplier=0.1, min_depth=4, finegrained_output=False, num_labels=10)
    )
    return images(classifier(hf.MobileNetV2ForImageClassification(config)), wide, small=64)


class Squeeze(nn.Module):
    """Squeeze and excitation with a hard sigmoid."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = functional.adaptive_avg_pool2d(x, 1)
        return x * functional.hardsigmoid(self.up(functional.relu(self.down(scale))))


class Inverted(nn.Module):
    """The inverted residual of MobileNetV3."""

    def __init__(self, c_in: int, kernel: int, inner: int, c_out: int, squeeze: bool, hard: bool, stride: int) -> None:
        super().__init__()
        act = nn.Hardswish if hard else nn.ReLU
        expand = [nn.Conv2d(c_in, inner, 1, bias=False), nn.BatchNorm2d(inner, 1e-3), act()] if inner != c_in else []
        depthwise = [
            nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner, bias=False),
            nn.BatchNorm2d(inner, 1e-3),
            act(),
        ]
        scale = [Squeeze(inner, max(8, inner // 4))] if squeeze else []
        self.body = nn.Sequential(
            *expand, *depthwise, *scale, nn.Conv2d(inner, c_out, 1, bias=False), nn.BatchNorm2d(c_out, 1e-3)
        )
        self.adds = stride == 1 and c_in == c_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


@network("mobilenet_v3")
def mobilenet_v3(wide: bool) -> Network:
    """MobileNetV3-Large; small: an eighth of its channels and the rows that differ."""
    rows = MOBILENET_V3_LARGE if wide else [MOBILENET_V3_LARGE[i] for i in (0, 1, 3, 4, 6, 12)]
    by = 1 if wide else 8
    channels = 16 // by
    layers: list[nn.Module] = [
        nn.Conv2d(3, channels, 3, 2, 1, bias=False),
        nn.BatchNorm2d(channels, 1e-3),
        nn.Hardswish(),
    ]
    for kernel, inner, c_out, squeeze, hard, stride in rows:
        layers.append(Inverted(channels, kernel, inner // by, c_out // by, squeeze, hard, stride))
        channels = c_out // by
    last, head = (960, 1280) if wide else (60, 40)
    layers += [
        nn.Conv2d(channels, last, 1, bias=False),
        nn.BatchNorm2d(last, 1e-3),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    layers += [nn.Linear(last, head), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(head, 1000 // by)]
    return images(randomise(nn.Sequential(*layers)), wide)


@network("efficientnet")
def efficientnet(wide: bool) -> Network:
    """EfficientNet-B0: squeeze and excitation, swish (Tan and Le 2019)."""
    small = {
        "width_coefficient": 0.1, "depth_coefficient": 0.4, "depth_divisor": 4, "hidden_dim": 128, "num_labels": 10,
    }  # fmt: skip
    published = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}
    config = hf.EfficientNetConfig(image_size=224, **(published if wide else small))
    module = hf.EfficientNetForImageClassification(config)
    module.efficientnet.pooler = nn.AdaptiveAvgPool2d(
        1
    )  # written as a window larger than the map, which OpenVINO refuses
    return images(classifier(module), wide, small=64)


@network("convnext")
def convnext(wide: bool) -> Network:
    """7x7 depthwise, channels-last normalisation, GELU, layer scale (Liu et al. 2022)."""
    sizes = {} if wide else {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 2, 1], "num_labels": 10}
    return images(classifier(hf.ConvNextForImageClassification(hf.ConvNextConfig(**sizes))), wide, small=64)


@network("segformer")
def segformer(wide: bool) -> Network:
    """Attention with reduced keys, bilinear up-sampling of every level (Xie et al. 2021)."""
    sizes = (
        {}
        if wide
        else {
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
            "num_labels": 5,
        }
    )
    return images(classifier(hf.SegformerForSemanticSegmentation(hf.SegformerConfig(**sizes))), wide, small=64)


def double(c_in: int, c_out: int) -> nn.Sequential:
    def half(c_in: int) -> list[nn.Module]:
        return [nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU()]

    return nn.Sequential(*half(c_in), *half(c_out))


class UNet(nn.Module):
    """U-Net with transposed convolutions on the way up (Ronneberger et al. 2015)."""

    def __init__(self, channels: int, levels: int, classes: int) -> None:
        super().__init__()
        sizes = [channels << i for i in range(levels + 1)]
        self.down = nn.ModuleList([double(a, b) for a, b in zip([3, *sizes], sizes, strict=False)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * c, c, 2, stride=2) for c in sizes[-2::-1]])
        self.merge = nn.ModuleList([double(2 * c, c) for c in sizes[-2::-1]])
        self.head = nn.Conv2d(channels, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for i, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, merge, skip in zip(self.up, self.merge, kept[-2::-1], strict=True):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


@network("unet")
def unet(wide: bool) -> Network:
    """U-Net for sizes that its levels divide."""
    return images(randomise(UNet(32, 4, 21) if wide else UNet(4, 2, 3)), wide, published=256)


@network("dcgan")
def dcgan(wide: bool) -> Network:
    """The generator of DCGAN: 4x4 transposed convolutions with stride 2 (Radford et al. 2015)."""
    c = 64 if wide else 2
    layers: list[nn.Module] = [nn.ConvTranspose2d(100, 8 * c, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * c), nn.ReLU()]
    for a in (8, 4, 2) if wide else (8, 4):
        layers += [nn.ConvTranspose2d(a * c, a // 2 * c, 4, 2, 1, bias=False), nn.BatchNorm2d(a // 2 * c), nn.ReLU()]
    layers += [nn.ConvTranspose2d(c if wide else 2 * c, 3, 3, 2, 1, output_padding=1), nn.Tanh()]
    model = convert(randomise(nn.Sequential(*layers)), [torch.randn(1, 100, 1, 1)], [[-1, 100, -1, -1]])
    return Network(model, [[RandomInput((1, 100, 1, 1))], [RandomInput((2, 100, 1, 2))]])


class Shuffle(nn.Module):
    """Sub-pixel up-sampling, PReLU, bicubic residual (ESPCN, Shi et al. 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, channels, 5, padding=2, padding_mode="reflect"), nn.PReLU(channels), nn.Conv2d(channels, channels, 3, padding=1),
            nn.InstanceNorm2d(channels, affine=True), nn.ELU(), nn.Conv2d(channels, 12, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + functional.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)


@network("super_resolution")
def super_resolution(wide: bool) -> Network:
    return images(randomise(Shuffle(64 if wide else 8)), wide, small=16)


def preprocessed(model: ov.Model) -> ov.Model:
    """u8 images of any size, channels last, scaled to [0, 1]: what applications put before a network."""
    steps = ov.preprocess.PrePostProcessor(model)
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_spatial_dynamic_shape()
    steps.input().model().set_layout(ov.Layout("NCHW"))
    steps.input().preprocess().convert_element_type(ov.Type.f32).resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR)
    steps.input().preprocess().mean([123.7, 116.3, 103.5]).scale([58.4, 57.1, 57.4])
    return steps.build()


@network("preprocessed_resnet")
def preprocessed_resnet(wide: bool) -> Network:
    """ResNet after OpenVINO's own preprocessing."""
    made = resnet18(wide)
    size = 224 if wide else 32
    made.model.reshape([-1, 3, size, size])
    runs = [[RandomInput((n, h, w, 3), 0, 256)] for n, h, w in ((1, 60, 37), (2, size, size))]
    return Network(preprocessed(made.model), runs)
