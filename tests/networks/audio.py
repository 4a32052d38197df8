"""Networks of sound."""

from __future__ import annotations

import math

import torch
from torch import nn

from tests.networks.network import Network, RandomInput, convert, network, randomise


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
