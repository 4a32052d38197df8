"""Networks by way of torch.export, whose graphs are other operations than those of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import openvino as ov
import torch
import transformers as hf
from torch import nn

from tests.networks import convolutional, recurrent
from tests.networks.network import Network, RandomInput, ids, network, randomise


class Pixels(nn.Module):
    """A model of transformers as one of images alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.inner(pixel_values=pixels).logits


class Tokens(nn.Module):
    """A model of transformers as one of tokens and their mask."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=tokens, attention_mask=mask)[0]


def exported(
    name: str,
    module: Callable[[], nn.Module],
    example: Sequence[torch.Tensor],
    open_axes: Sequence[int],
    runs: list[Sequence[Any]],
) -> None:
    """Register a network whose inputs have the axes given left open."""

    def builder(wide: bool) -> Network:
        axes = tuple(dict.fromkeys(open_axes, torch.export.Dim.AUTO) for _ in example)
        with torch.no_grad():
            program = torch.export.export(randomise(module()), tuple(example), dynamic_shapes=axes, strict=False)
            return Network(ov.convert_model(program), runs)

    network(name)(builder)


def squares(size: int, *batches: int) -> list[Sequence[RandomInput]]:
    return [[RandomInput((n, 3, size, size))] for n in batches]


_SWIN = {
    "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 2,
    "num_labels": 10,
}  # fmt: skip
_CONVNEXT = {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 2, 1], "num_labels": 10}
_BERT = {
    "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
    "max_position_embeddings": 32,
}  # fmt: skip
_WORDS = torch.ones(2, 7, dtype=torch.long)
_TEXTS = [[ids(2, 7, below=60), ids(2, 7, below=2)], [ids(3, 4, below=60), RandomInput((3, 4), 1, 2)]]

exported("unet_exported", lambda: convolutional.UNet(4, 2, 3), [torch.randn(2, 3, 32, 32)], [0], squares(32, 1, 3))
exported(
    "swin_exported",
    lambda: Pixels(hf.SwinForImageClassification(hf.SwinConfig(**_SWIN))),
    [torch.randn(2, 3, 32, 32)],
    [0],
    squares(32, 1, 3),
)
exported(
    "convnext_exported",
    lambda: Pixels(hf.ConvNextForImageClassification(hf.ConvNextConfig(**_CONVNEXT))),
    [torch.randn(2, 3, 64, 64)],
    [0, 2, 3],
    squares(64, 1, 3),
)
exported("bert_exported", lambda: Tokens(hf.BertModel(hf.BertConfig(**_BERT))), [_WORDS, _WORDS], [0, 1], _TEXTS)
exported(
    "bilstm_exported",
    lambda: recurrent.Tagger(nn.LSTM, 12, 50, bidirectional=True),
    [_WORDS],
    [0, 1],
    [[ids(2, 7, below=50)]],
)
exported("gru_exported", lambda: recurrent.Tagger(nn.GRU, 12, 50), [_WORDS], [0, 1], [[ids(2, 7, below=50)]])
