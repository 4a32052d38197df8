"""A decoder transformer with compressed weights, written as NNCF and OpenVINO's converter write one.

Normalisation, rotary positions and the gated feed-forward are in primitives, attention is ScaledDotProductAttention, the number of
tokens is dynamic, and there is no cache. Weights are random, in the form that nncf.compress_weights gives them:

    i4 or u4 [outputs, groups, 64] -> Convert f16 -> [Subtract zero point] -> Multiply scale f16 -> Reshape -> Convert f32 -> MatMul

with the table of words and the output layer in 8 bits, one scale for each row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

GROUP = 64


@dataclass(frozen=True)
class Sizes:
    """A name and the widths of a decoder; heads have 64 features."""

    name: str
    words: int
    width: int
    inner: int
    layers: int

    @property
    def parameters(self) -> int:
        """Learned values; the table of words and the output layer are separate."""
        return (
            2 * self.words * self.width
            + self.layers * (4 * self.width**2 + 3 * self.width * self.inner + 2 * self.width)
            + self.width
        )


# 220 million parameters, 148 MB with 4-bit layers and 8-bit tables.
LARGE = Sizes("decoder_220m", words=32000, width=1024, inner=2816, layers=12)
# 17 million parameters, 34 MB as f16.
MIDDLE = Sizes("decoder_17m", words=7200, width=512, inner=1408, layers=3)
SMALL = Sizes("decoder_small", words=256, width=64, inner=128, layers=2)


class Drawn:
    """Random weights in the form of a mode of compression.

    Args:
        mode: "i4" (symmetric), "u4" (with zero points), "i8" or "f16".
    """

    def __init__(self, mode: str, seed: int = 0) -> None:
        self.mode, self.rng = mode, np.random.default_rng(seed)

    def layer(self, outputs: int, inputs: int) -> Any:
        """The weights of a layer, (outputs, inputs) as f32."""
        kinds = {"f16": self._half, "i8": self._eight_bits}
        return kinds.get(self.mode, self._four_bits)(outputs, inputs)

    def table(self, rows: int, width: int) -> Any:
        """The table of words or the output layer, (rows, width) as f32."""
        return self._half(rows, width) if self.mode == "f16" else self._eight_bits(rows, width)

    def _half(self, outputs: int, inputs: int) -> Any:
        values = self.rng.standard_normal((outputs, inputs), np.float32) * np.float32(inputs**-0.5)
        return op.convert(constant(values, np.float16), "f32")

    def _eight_bits(self, outputs: int, inputs: int) -> Any:
        stored = self.rng.integers(-127, 128, (outputs, inputs), np.int8)
        scale = constant(self.rng.uniform(0.8, 1.2, (outputs, 1)) / (74 * inputs**0.5), np.float16)
        return op.convert(op.multiply(op.convert(constant(stored, np.int8), "f16"), scale), "f32")

    def _four_bits(self, outputs: int, inputs: int) -> Any:
        shape = (outputs, inputs // GROUP, GROUP)
        kind = ov.Type.i4 if self.mode == "i4" else ov.Type.u4
        weights = op.convert(self._packed(shape, kind), "f16")
        if self.mode == "u4":
            weights = op.subtract(weights, op.convert(self._packed((*shape[:2], 1), kind), "f16"))
        # The standard deviation of 16 levels is 4.6, of the difference of two such values 6.5.
        levels = 4.6 if self.mode == "i4" else 6.5
        scale = constant(self.rng.uniform(0.8, 1.2, (*shape[:2], 1)) / (levels * inputs**0.5), np.float16)
        whole = op.reshape(op.multiply(weights, scale), constant([outputs, inputs], np.int64), False)
        return op.convert(whole, "f32")

    def _packed(self, shape: tuple[int, ...], kind: ov.Type) -> Any:
        """A constant of random 4-bit values, two to a byte."""
        tensor = ov.Tensor(kind, ov.Shape(shape))
        tensor.data.reshape(-1).view(np.uint8)[:] = self.rng.integers(0, 256, tensor.byte_size, np.uint8)
        return op.constant(tensor)


def constant(values: Any, dtype: type[np.generic]) -> Any:
    return op.constant(np.asarray(values, dtype, order="C"))


def index(*values: int) -> Any:
    return constant(values, np.int64)


def rms_norm(x: Any, drawn: Drawn, width: int) -> Any:
    """Root mean square normalisation in the primitives of Llama."""
    square = op.reduce_mean(op.power(x, constant([[[2]]], np.float32)), index(-1), True)
    root = op.sqrt(op.add(square, constant([[[1e-5]]], np.float32)))
    scale = constant(1 + 0.1 * drawn.rng.standard_normal((1, 1, width)), np.float32)
    return op.multiply(scale, op.multiply(x, op.divide(constant([[[1]]], np.float32), root)))


def rotated(x: Any, cosine: Any, sine: Any, size: int) -> Any:
    """Rotary positions of (batch, heads, tokens, size)."""
    half, end = index(size // 2), index(np.iinfo(np.int64).max)
    upper = op.multiply(op.slice(x, half, end, index(1), index(3)), constant([[[[-1]]]], np.float32))
    swapped = op.concat([upper, op.slice(x, index(0), half, index(1), index(3))], -1)
    return op.add(op.multiply(x, cosine), op.multiply(swapped, sine))


def linear(x: Any, weights: Any) -> Any:
    return op.matmul(x, weights, False, True)


def attention(x: Any, drawn: Drawn, width: int, mask: Any, cosine: Any, sine: Any) -> Any:
    heads = width // 64

    def split(y: Any) -> Any:
        return op.transpose(op.reshape(y, index(0, 0, heads, 64), True), index(0, 2, 1, 3))

    q, k, v = (split(linear(x, drawn.layer(width, width))) for _ in range(3))
    q, k = (rotated(y, cosine, sine, 64) for y in (q, k))
    seen = op.scaled_dot_product_attention(q, k, v, mask, constant(0.125, np.float32))
    merged = op.reshape(op.transpose(seen, index(0, 2, 1, 3)), index(0, 0, width), True)
    return linear(merged, drawn.layer(width, width))


def causal_mask(tokens: Any) -> Any:
    """0 up to a token's own position and the lowest f32 after, (1, 1, tokens, tokens), computed from the input's shape."""
    length = op.gather(op.shape_of(tokens, "i64"), constant(1, np.int64), constant(0, np.int64))
    positions = op.range(constant(0, np.int64), length, constant(1, np.int64), "i64")
    allowed = op.less_equal(op.unsqueeze(positions, index(0, 1, 2)), op.unsqueeze(positions, index(0, 1, 3)))
    return op.select(allowed, constant(0, np.float32), constant(np.finfo(np.float32).min, np.float32))


def decoder(sizes: Sizes, mode: str) -> ov.Model:
    """Inputs input_ids and position_ids, (1, tokens) of i64; output logits, (1, tokens, words)."""
    drawn = Drawn(mode)
    tokens, positions = (op.parameter([1, -1], ov.Type.i64, name) for name in ("input_ids", "position_ids"))
    frequencies = constant(10000.0 ** (-np.arange(32) / 32).reshape(1, 1, 32), np.float32)
    angles = op.multiply(op.convert(op.unsqueeze(positions, index(2)), "f32"), frequencies)
    angles = op.concat([angles, angles], -1)
    cosine, sine = (op.unsqueeze(f(angles), index(1)) for f in (op.cos, op.sin))
    mask = causal_mask(tokens)
    x = op.gather(drawn.table(sizes.words, sizes.width), op.convert(tokens, "i32"), constant(0, np.int32))
    for _ in range(sizes.layers):
        x = op.add(x, attention(rms_norm(x, drawn, sizes.width), drawn, sizes.width, mask, cosine, sine))
        y = rms_norm(x, drawn, sizes.width)
        gate = op.swish(linear(y, drawn.layer(sizes.inner, sizes.width)))
        y = op.multiply(gate, linear(y, drawn.layer(sizes.inner, sizes.width)))
        x = op.add(x, linear(y, drawn.layer(sizes.width, sizes.inner)))
    logits = linear(rms_norm(x, drawn, sizes.width), drawn.table(sizes.words, sizes.width))
    model = ov.Model([op.result(logits)], [tokens, positions], "decoder")
    for port, name in zip((*model.inputs, *model.outputs), ("input_ids", "position_ids", "logits"), strict=True):
        port.set_names({name})
    return model


def ensure_decoder(sizes: Sizes, mode: str, folder: Path) -> Path:
    """The .xml of a decoder, built unless it exists already."""
    path = folder / f"{sizes.name}_{mode}.xml"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        runs = [[{"name": name, "integer": True, "shape": (1, 32), "low": 0, "high": high, "values": values}
                 for name, high, values in (("input_ids", sizes.words, None), ("position_ids", 0, [list(range(32))]))]]  # fmt: skip
        path.with_suffix(".json").write_text(json.dumps({"runs": runs}))
        part = path.with_name(f"{path.stem}.part.xml")
        ov.save_model(decoder(sizes, mode), part, compress_to_fp16=False)
        part.with_suffix(".bin").replace(path.with_suffix(".bin"))
        part.replace(path)
    return path
