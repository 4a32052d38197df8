"""Diffusion: the denoiser of latent diffusion models."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from tests.networks.network import Network, RandomInput, convert, network, randomise


class Residual(nn.Module):
    """Group normalisation, SiLU, convolution, twice, with the time added between."""

    def __init__(self, c_in: int, c_out: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, c_in), nn.SiLU(), nn.Conv2d(c_in, c_out, 3, padding=1))
        self.time = nn.Linear(time, c_out)
        self.second = nn.Sequential(nn.GroupNorm(4, c_out), nn.SiLU(), nn.Conv2d(c_out, c_out, 3, padding=1))
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return self.skip(x) + self.second(self.first(x) + self.time(functional.silu(time))[:, :, None, None])


class Attention(nn.Module):
    """Attention from pixels to pixels, or to the tokens of a text."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels, bias=False)
        self.key = nn.Linear(context, channels, bias=False)
        self.value = nn.Linear(context, channels, bias=False)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        def split(y: torch.Tensor) -> torch.Tensor:
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        seen = functional.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(context)), split(self.value(context))
        )
        return self.out(seen.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Self-attention, cross-attention and a gated feed-forward over the pixels."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels, eps=1e-6)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.own, self.cross = Attention(channels, channels, heads), Attention(channels, context, heads)
        self.gate, self.out = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        y = self.norm(x).permute(0, 2, 3, 1).reshape(batch, height * width, channels)
        inside = self.norms[0](y)
        y = y + self.own(inside, inside)
        y = y + self.cross(self.norms[1](y), context)
        value, gate = self.gate(self.norms[2](y)).chunk(2, -1)
        y = y + self.out(value * functional.gelu(gate))
        return x + y.reshape(batch, height, width, channels).permute(0, 3, 1, 2)


class Denoiser(nn.Module):
    """The U-Net of Stable Diffusion (Rombach et al. 2021), with fewer levels."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        c, time = channels, 4 * channels
        self.channels = channels
        self.time = nn.Sequential(nn.Linear(c, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, c, 3, padding=1)
        self.down = nn.ModuleList([Residual(c, c, time), Residual(c, 2 * c, time)])
        self.looks = nn.ModuleList([Transformer(c, context, heads), Transformer(2 * c, context, heads)])
        self.shrink = nn.Conv2d(c, c, 3, 2, 1)
        self.middle = nn.ModuleList(
            [Residual(2 * c, 2 * c, time), Transformer(2 * c, context, heads), Residual(2 * c, 2 * c, time)]
        )
        self.up = nn.ModuleList([Residual(4 * c, 2 * c, time), Residual(3 * c, c, time)])
        self.grow = nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.last = Transformer(c, context, heads)
        self.leave = nn.Sequential(nn.GroupNorm(4, c), nn.SiLU(), nn.Conv2d(c, 4, 3, padding=1))

    def embed(self, step: torch.Tensor) -> torch.Tensor:
        half = self.channels // 2
        angles = step[:, None].float() * torch.exp(-math.log(10000) * torch.arange(half) / half)
        return self.time(torch.cat([torch.cos(angles), torch.sin(angles)], -1))

    def forward(self, latent: torch.Tensor, step: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        time = self.embed(step)
        x = self.enter(latent)
        first = self.looks[0](self.down[0](x, time), context)
        second = self.looks[1](self.down[1](self.shrink(first), time), context)
        x = self.middle[2](self.middle[1](self.middle[0](second, time), context), time)
        x = self.up[0](torch.cat([x, second], 1), time)
        x = self.grow(functional.interpolate(x, size=first.shape[-2:], mode="nearest"))
        x = self.last(self.up[1](torch.cat([x, first], 1), time), context)
        return self.leave(x)


@network("diffusion_unet")
def diffusion_unet(wide: bool) -> Network:
    c, context, heads, size = (160, 768, 8, 32) if wide else (8, 12, 2, 8)
    module = randomise(Denoiser(c, context, heads))
    example = [torch.randn(2, 4, size, size), torch.tensor([3, 5]), torch.randn(2, 7, context)]
    model = convert(module, example, [[-1, 4, -1, -1], [-1], [-1, -1, context]])

    def run(n: int, h: int, w: int, tokens: int) -> list[RandomInput]:
        return [RandomInput((n, 4, h, w)), RandomInput((n,), 0, 1000), RandomInput((n, tokens, context))]

    return Network(model, [run(1, size, size, 77)] if wide else [run(1, 8, 8, 5), run(2, 7, 10, 9)])


class Decoder(nn.Module):
    """The decoder of a variational autoencoder: residual blocks, nearest up-sampling, one attention over all pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        c = channels
        self.enter = nn.Conv2d(4, 2 * c, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(2 * c, 2 * c, 1), Residual(2 * c, c, 1)])
        self.look = Transformer(2 * c, 2 * c, 1)
        self.leave = nn.Sequential(nn.GroupNorm(4, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        time = latent.new_zeros(latent.shape[0], 1)
        x = self.blocks[0](self.enter(latent), time)
        x = self.look(x, x.flatten(2).transpose(1, 2))
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.leave(self.blocks[1](x, time)).clamp(-1, 1)


@network("vae_decoder")
def vae_decoder(wide: bool) -> Network:
    c, size = (128, 32) if wide else (8, 6)
    model = convert(randomise(Decoder(c)), [torch.randn(1, 4, size, size)], [[-1, 4, -1, -1]])
    return Network(model, [[RandomInput((1, 4, size, size))], [RandomInput((2, 4, size - 1, size + 1))]])
