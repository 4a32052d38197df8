"""The published transformers of the benchmark, batch 1."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.onnx_graph import Graph, Input, Tensor

LOWEST = float(np.finfo(np.float32).min)


def gelu(g: Graph, x: Tensor, approximate: str = "none") -> Tensor:
    return g.unary("Gelu", x, approximate=approximate)


def self_attention(g: Graph, x: Tensor, heads: int, mask: Tensor | None = None) -> Tensor:
    """Query, key, value and output projections with biases around the attention."""
    q, k, v = (g.heads(g.linear(x, x.shape[-1]), heads) for _ in range(3))
    seen = g.attend(q, k, v, (x.shape[-1] // heads) ** -0.5, mask)
    return g.linear(g.merge_heads(seen), x.shape[-1])


def feed_forward(g: Graph, x: Tensor) -> Tensor:
    return g.linear(gelu(g, g.linear(x, 4 * x.shape[-1])), x.shape[-1])


def token_ids(g: Graph, name: str, tokens: int, below: int) -> Tensor:
    return g.input(Input(name, (1, tokens), True, 0, below))


def attention_mask(g: Graph, tokens: int) -> Tensor:
    """An input of ones and zeros, all ones in the benchmark."""
    return g.input(Input("attention_mask", (1, tokens), True, values=[[1] * tokens]))


def unsqueeze(g: Graph, x: Tensor, *axes: int) -> Tensor:
    shape = list(x.shape)
    for axis in axes:
        shape.insert(axis, 1)
    return g.node("Unsqueeze", [x, g.constant(axes)], shape)[0]


def vit_b16(g: Graph) -> None:
    """ViT-B/16 at 224 (Dosovitskiy et al. 2020)."""
    patches = g.convolution(g.input(Input("image", (1, 3, 224, 224))), 768, 16, 16, pad=0, gain=1)
    patches = g.transpose(g.reshape(patches, 1, 768, 196), 0, 2, 1)
    x = g.binary("Add", g.concat([g.weight((1, 1, 768), 1), patches], 1), g.weight((1, 197, 768), 0.02))
    for _ in range(12):
        x = g.binary("Add", self_attention(g, g.layer_norm(x, 1e-6), 12), x)
        x = g.binary("Add", feed_forward(g, g.layer_norm(x, 1e-6)), x)
    x = g.node("Gather", [g.layer_norm(x, 1e-6), g.constant(0)], (1, 768), axis=1)[0]
    g.output(g.linear(x, 1000))


def bert_base(g: Graph) -> None:
    """BERT-base uncased (Devlin et al. 2018) on 128 tokens, with its pooler."""
    tokens = 128
    words, mask, kinds = (
        token_ids(g, "input_ids", tokens, 30522),
        attention_mask(g, tokens),
        token_ids(g, "token_type_ids", tokens, 2),
    )
    x = g.binary("Add", g.embedding(words, 30522, 768)[0], g.embedding(kinds, 2, 768)[0])
    x = g.binary("Add", x, g.embedding(g.constant([list(range(tokens))]), 512, 768)[0])
    x = g.layer_norm(x, 1e-12)
    kept = g.unary("Cast", unsqueeze(g, mask, 1, 2), to=1)
    scores = g.binary("Mul", g.binary("Sub", g.constant(1, np.float32), kept), LOWEST)
    for _ in range(12):
        x = g.layer_norm(g.binary("Add", self_attention(g, x, 12, scores), x), 1e-12)
        x = g.layer_norm(g.binary("Add", feed_forward(g, x), x), 1e-12)
    g.output(x)
    first = g.node("Gather", [x, g.constant(0)], (1, 768), axis=1)[0]
    g.output(g.unary("Tanh", g.linear(first, 768)))


def gpt2_linear(g: Graph, x: Tensor, size: int) -> Tensor:
    """GPT-2's layer on rows: its converters leave a Reshape before and after the product."""
    _, tokens, features = x.shape
    return g.reshape(g.linear(g.reshape(x, tokens, features), size), 1, tokens, size)


def gpt2(g: Graph) -> None:
    """GPT-2 small (Radford et al. 2019) on 64 tokens without a cache; the output layer shares the table of the words."""
    tokens, words = 64, 50257
    ids, mask = token_ids(g, "input_ids", tokens, words), attention_mask(g, tokens)
    positions = g.input(Input("position_ids", (1, tokens), True, values=[list(range(tokens))]))
    x, table = g.embedding(ids, words, 768, 0.036)
    x = g.binary("Add", x, g.embedding(positions, 1024, 768, 0.036)[0])
    causal = g.constant(np.tri(tokens)[None, None], np.bool_)
    seen = g.binary("And", causal, g.unary("Cast", unsqueeze(g, mask, 1, 2), to=9))
    scores = g.node("Where", [seen, g.constant(0, np.float32), g.constant(LOWEST, np.float32)], seen.shape)[0]
    for _ in range(12):
        y = gpt2_linear(g, g.layer_norm(x, 1e-5), 3 * 768)
        q, k, v = (g.heads(part, 12) for part in g.split(y, [768] * 3, 2))
        y = gpt2_linear(g, g.merge_heads(g.attend(q, k, v, 0.125, scores)), 768)
        x = g.binary("Add", y, x)
        y = gelu(g, gpt2_linear(g, g.layer_norm(x, 1e-5), 4 * 768), "tanh")
        x = g.binary("Add", x, gpt2_linear(g, y, 768))
    g.output(g.tied(g.layer_norm(x, 1e-5), table))


def whisper_tiny_encoder(g: Graph) -> None:
    """The encoder of Whisper-tiny (Radford et al. 2022): 30 seconds as 80 mel bands of 3,000 frames."""
    heads, width = 6, 384
    mel = g.input(Input("input_features", (1, 80, 3000)))
    x = gelu(g, g.convolution(gelu(g, g.convolution(mel, width, 3)), width, 3, 2))
    x = g.binary("Add", g.transpose(x, 0, 2, 1), g.weight((1, 1500, width), 0.5))
    for _ in range(4):
        y = g.layer_norm(x, 1e-5)
        q = g.heads(g.binary("Mul", g.linear(y, width), (width // heads) ** -0.5), heads)
        k, v = g.heads(g.linear(y, width, bias=False), heads), g.heads(g.linear(y, width), heads)
        x = g.binary("Add", x, g.linear(g.merge_heads(g.attend(q, k, v, 1.0)), width))
        x = g.binary("Add", x, feed_forward(g, g.layer_norm(x, 1e-5)))
    g.output(g.layer_norm(x, 1e-5))
