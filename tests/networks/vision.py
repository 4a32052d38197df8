"""Transformers of images, and networks of sound."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers as hf
from torch import nn

from tests.networks.convolutional import classifier
from tests.networks.network import Calling, Network, RandomInput, convert, ids, network, randomise


def small(config: type[Any], wide: bool, attention: str, **sizes: Any) -> Any:
    return config(attn_implementation=attention, **({"num_hidden_layers": 3} if wide else sizes))


def squares(module: torch.nn.Module, size: int, wide: bool) -> Network:
    """Images of one size, any batch."""
    model = convert(module, [torch.randn(2, 3, size, size)], [[-1, 3, size, size]])
    return Network(model, [[RandomInput((n, 3, size, size))] for n in ((1,) if wide else (1, 3))])


_SIZES = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48, "image_size": 32,
    "patch_size": 8, "num_labels": 10,
}  # fmt: skip


def vit(wide: bool, attention: str) -> Network:
    config = small(hf.ViTConfig, wide, attention, **_SIZES)
    return squares(classifier(hf.ViTForImageClassification(config)), config.image_size, wide)


@network("vit_sdpa")
def vit_sdpa(wide: bool) -> Network:
    """ViT-B/16 (Dosovitskiy et al. 2020); wide: three of its layers."""
    return vit(wide, "sdpa")


@network("vit_eager")
def vit_eager(wide: bool) -> Network:
    return vit(wide, "eager")


@network("swin")
def swin(wide: bool) -> Network:
    """Swin-T: shifted windows, relative positions (Liu et al. 2021)."""
    sizes = {
        "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 2,
        "num_labels": 10,
    }  # fmt: skip
    config = hf.SwinConfig(**({} if wide else sizes))
    return squares(classifier(hf.SwinForImageClassification(config)), config.image_size, wide)


@network("clip")
def clip(wide: bool) -> Network:
    """CLIP: an image tower and a text tower, cosine similarity (Radford et al. 2021)."""
    tower = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    if wide:
        config = hf.CLIPConfig(text_config={"num_hidden_layers": 3}, vision_config={"num_hidden_layers": 3})
    else:
        text = {**tower, "vocab_size": 60, "max_position_embeddings": 16, "eos_token_id": 59}
        config = hf.CLIPConfig(
            text_config=text, vision_config={**tower, "image_size": 32, "patch_size": 8}, projection_dim=16
        )
    size, words = config.vision_config.image_size, config.text_config.vocab_size
    module = Calling(
        randomise(hf.CLIPModel(config)),
        lambda m, tokens, pixels: m(input_ids=tokens, pixel_values=pixels).logits_per_image,
    )
    example = [torch.ones(2, 7, dtype=torch.long), torch.randn(3, 3, size, size)]
    model = convert(module, example, [[-1, -1], [-1, 3, size, size]])
    return Network(
        model,
        [
            [ids(2, 7, below=words), RandomInput((1, 3, size, size))],
            [ids(3, 5, below=words), RandomInput((2, 3, size, size))],
        ],
    )


@network("detr")
def detr(wide: bool) -> Network:
    """DETR: a ResNet, an encoder and a decoder of object queries (Carion et al. 2020)."""
    backbone = (
        hf.ResNetConfig(out_features=["stage4"])
        if wide
        else hf.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_features=["stage4"]
        )
    )
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    sizes = {
        "d_model": 24, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "num_queries": 7, "num_labels": 5,
    }  # fmt: skip
    config = hf.DetrConfig(
        use_timm_backbone=False,
        backbone_config=backbone,
        backbone=None,
        use_pretrained_backbone=False,
        **layers,
        **({} if wide else sizes),
    )

    def call(inner: Any, pixels: torch.Tensor) -> Any:
        found = inner(pixel_values=pixels)
        return found.logits, found.pred_boxes

    size = 256 if wide else 64
    model = convert(
        Calling(randomise(hf.DetrForObjectDetection(config)), call), [torch.randn(1, 3, size, size)], [[-1, 3, -1, -1]]
    )
    return Network(model, [[RandomInput((1, 3, size, size))], [RandomInput((2, 3, size, size + 32))]])


# Networks of sound.


class Spectrogram(nn.Module):
    """Short-time Fourier transform, mel bands, logarithm, convolutions over time (as Whisper's front end)."""

    def __init__(self, size: int, hop: int, bands: int, channels: int) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("mel", torch.rand(bands, size // 2 + 1) / math.sqrt(size))
        self.convolve = nn.Sequential(
            nn.Conv1d(bands, channels, 3, padding=1), nn.GELU(), nn.Conv1d(channels, channels, 3, 2, 1), nn.GELU()
        )

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(sound, self.size, self.hop, window=self.window, return_complex=True)
        power = torch.view_as_real(spectrum).pow(2).sum(-1)
        bands = torch.clamp(self.mel @ power, min=1e-10).log10()
        floor = bands.amax(dim=(1, 2), keepdim=True) - 8
        return self.convolve((torch.maximum(bands, floor) + 4) / 4)


@network("spectrogram")
def spectrogram(wide: bool) -> Network:
    module = Spectrogram(400, 160, 80, 384) if wide else Spectrogram(32, 8, 10, 8)
    randomise(module.convolve)
    length = 16000 if wide else 200
    model = convert(module.eval(), [torch.randn(1, length)], [[-1, -1]])
    return Network(model, [[RandomInput((1, length))], [RandomInput((2, length // 2 + 3))]])


class Separator(nn.Module):
    """Learned filter bank, dilated temporal convolutions, transposed convolution back (Conv-TasNet, Luo and Mesgarani 2018)."""

    def __init__(self, filters: int, channels: int, layers: int) -> None:
        super().__init__()
        self.analyse = nn.Conv1d(1, filters, 16, 8, bias=False)
        self.inward = nn.Sequential(nn.GroupNorm(1, filters), nn.Conv1d(filters, channels, 1))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(channels, 2 * channels, 1), nn.PReLU(), nn.GroupNorm(1, 2 * channels),
                nn.Conv1d(2 * channels, 2 * channels, 3, padding=2**i, dilation=2**i, groups=2 * channels), nn.PReLU(),
                nn.GroupNorm(1, 2 * channels), nn.Conv1d(2 * channels, channels, 1),
            )
            for i in range(layers)
        )  # fmt: skip
        self.mask = nn.Conv1d(channels, 2 * filters, 1)
        self.restore = nn.ConvTranspose1d(filters, 1, 16, 8, bias=False)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        bank = torch.relu(self.analyse(sound[:, None]))
        x = self.inward(bank)
        for block in self.blocks:
            x = x + block(x)
        masks = torch.sigmoid(self.mask(x)).unflatten(1, (2, -1))
        return torch.stack([self.restore(bank * masks[:, i])[:, 0] for i in range(2)], 1)


@network("conv_tasnet")
def conv_tasnet(wide: bool) -> Network:
    module = randomise(Separator(256, 128, 8) if wide else Separator(16, 8, 3))
    length = 16000 if wide else 320
    model = convert(module, [torch.randn(1, length)], [[-1, -1]])
    return Network(model, [[RandomInput((1, length))], [RandomInput((2, length // 2))]])
