"""Random cases of gates, norms, residual streams and positions; NumPy where ONNX Runtime has no kernel on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of
from tests.onnx.rows import Fixed

_HALF: tuple[Any, ...] = (np.float32, np.float32, np.float16)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _shape(rng: np.random.Generator, low: int = 1) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(low, 3))))


def gated_rms_norm(rng: np.random.Generator) -> ContribCase:
    """One norm for all channels, or one per head."""
    kind, size, lead = one_of(rng, *_HALF), int(one_of(rng, 4, 8)), _shape(rng)
    x, gate = (floats(rng, *lead, size * int(one_of(rng, 1, 1)), dtype=kind) for _ in range(2))
    if chance(rng):
        x, gate = (np.concatenate([each, each[::-1]], -1) for each in (x, gate))
    row = node(
        "GatedRMSNorm",
        [x, floats(rng, size, dtype=kind), gate],
        activation=one_of(rng, "silu", "swish", "sigmoid", None),
    )
    return ContribCase(row)


def _streams(rng: np.random.Generator) -> tuple[np.ndarray, int, int, tuple[int, ...], bool]:
    branches, size, lead, flat = int(rng.integers(1, 5)), int(one_of(rng, 5, 8)), _shape(rng), chance(rng)
    return floats(rng, *lead, *((branches * size,) if flat else (branches, size))), branches, size, lead, flat


def branchwise_rms_norm(rng: np.random.Generator) -> ContribCase:
    """Grouped and flattened, with each shape of a scale."""
    x, branches, size, _, flat = _streams(rng)
    scale = one_of(rng, None, floats(rng, branches * size), floats(rng, branches, size), floats(rng, size))
    return ContribCase(node("BranchwiseRMSNorm", [x, scale], num_branches=branches if flat else None))


def pre_mix(rng: np.random.Generator) -> ContribCase:
    """Each shape of the gates."""
    x, branches, size, lead, flat = _streams(rng)
    shapes = [(branches,), (branches, 1), (branches, size), *([(branches * size,)] if flat else [])]
    gates = floats(rng, *lead, *one_of(rng, *shapes))
    return ContribCase(
        node(
            "HyperConnectionPreMix",
            [x, gates],
            num_branches=branches if flat else None,
            reduction_scale=one_of(rng, None, 0.5),
        )
    )


def post_mix(rng: np.random.Generator) -> ContribCase:
    """With and without a matrix."""
    x, branches, size, lead, flat = _streams(rng)
    gates = floats(rng, *lead, *one_of(rng, (branches,), (branches, 1), (branches, size)))
    matrix = floats(rng, *lead, branches, branches) if chance(rng) else None
    inputs: list[Input] = [x, floats(rng, *lead, size), gates, matrix]
    return ContribCase(node("HyperConnectionPostMix", inputs, num_branches=branches if flat else None))


def engram_gate(rng: np.random.Generator) -> ContribCase:
    """With and without the normalized result."""
    batch, time, branches, size = (int(n) for n in rng.integers(1, 5, 4))
    both = chance(rng)
    inputs: list[Input] = [floats(rng, batch, time, branches, size) for _ in range(2)]
    inputs += [floats(rng, batch, time, size), *(floats(rng, branches, size) for _ in range(2 + both))]
    return ContribCase(node("EngramGate", inputs, 1 + both, epsilon=one_of(rng, None, 1e-2)))


def gated_add(rng: np.random.Generator) -> ContribCase:
    """One gate per row."""
    kind, lead, size = one_of(rng, *_HALF), _shape(rng), int(rng.integers(1, 6))
    inputs: list[Input] = [
        floats(rng, *lead, size, dtype=kind),
        floats(rng, *lead, size, dtype=kind),
        floats(rng, *lead, 1, dtype=kind),
    ]
    return ContribCase(node("GatedAdd", inputs))


def scaled_silu(rng: np.random.Generator) -> ContribCase:
    """A scale as an attribute and as an input."""
    kind = one_of(rng, *_HALF)
    scale = np.array(1.7, one_of(rng, *_HALF)) if chance(rng) else None
    return ContribCase(
        node("ScaledSiLU", [floats(rng, *_shape(rng), scale=3, dtype=kind), scale], alpha=one_of(rng, None, 0.6))
    )


def swi_glu(rng: np.random.Generator) -> ContribCase:
    """Halves apart and together, clamped or not."""
    gate, up = (floats(rng, 2, 3, 6, scale=2) for _ in range(2))
    alpha, beta, limit = one_of(rng, 1.0, 1.702), one_of(rng, 0.0, 1.0), one_of(rng, 0.0, 1.5)
    inputs = [gate, up] if chance(rng) else [np.concatenate([gate, up], -1)]
    row = node("SwiGLU", inputs, activation_alpha=alpha, activation_beta=beta, limit=limit)

    def reference() -> Arrays:
        g, u = (np.minimum(gate, limit), np.clip(up, -limit, limit)) if limit else (gate, up)
        return [(g * _sigmoid(alpha * g) * (u + beta)).astype(np.float32)]

    return ContribCase(row, reference)


def router_projection(rng: np.random.Generator) -> ContribCase:
    """The logits and the gated activation, of f16."""
    experts, inner = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    x, w = floats(rng, 3, 8, dtype=np.float16), floats(rng, 8, experts + 2 * inner, dtype=np.float16)

    def reference() -> Arrays:
        y = (x.astype(np.float32) @ w.astype(np.float32)).astype(np.float16)
        gate, up = (half.astype(np.float32) for half in np.split(y[:, experts:], 2, -1))
        return [y[:, :experts], (gate * _sigmoid(1.702 * gate) * (up + 1)).astype(np.float16)]

    row = node("RouterGateUpProj", [x, w], 2, router_size=experts, activation_alpha=1.702, activation_beta=1.0)
    return ContribCase(row, reference)


def quantized_embedding(rng: np.random.Generator) -> ContribCase:
    """Tables of u8 and i8, with and without segments and a mask."""
    kind, size, segments = one_of(rng, np.uint8, np.int8), 8, chance(rng)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max

    def ids(count: int) -> np.ndarray:
        return rng.integers(0, count, (2, 3)).astype(np.int32)

    tables = [
        rng.integers(low, high, shape).astype(kind) for shape in ((5, size), (6, size), (2, size), (size,), (size,))
    ]
    scales = [np.array(rng.random() * 0.05 + 0.01, np.float32) for _ in tables]
    zeros = [np.array(rng.integers(low, high), kind) for _ in tables]
    for group in (tables, scales, zeros):
        group[2] = group[2] if segments else None
    mask = np.array([[1, 1, 0], [1, 0, 0]], np.int32) if chance(rng) else None
    inputs: list[Input] = [
        ids(5), ids(2) if segments else None, *map(_fixed, tables), mask, *map(_fixed, scales), *map(_fixed, zeros),
    ]  # fmt: skip
    return ContribCase(node("QEmbedLayerNormalization", inputs, 2, epsilon=1e-5), tolerance=1e-3)


def _fixed(x: np.ndarray | None) -> Input:
    return None if x is None else Fixed(x)


def embedding(rng: np.random.Generator) -> ContribCase:
    """Rows of a table."""
    table, index = floats(rng, 5, 3), rng.integers(0, 5, (2, 4))
    return ContribCase(node("TorchEmbedding", [table, index, np.array(1)]), lambda: [table[index]])


def skip_group_norm(rng: np.random.Generator) -> ContribCase:
    """Both layouts, skips per pixel and per channel."""
    last, groups, each = int(chance(rng)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    channels, batch, pixels = groups * each, int(rng.integers(1, 3)), (2, 3)
    x = floats(rng, batch, channels, *pixels)
    skip = floats(rng, *one_of(rng, (batch, channels), (batch, channels, 1, 1), (batch, channels, *pixels)))
    bias = floats(rng, channels) if chance(rng) else None
    gamma, beta, activation = floats(rng, channels), floats(rng, channels), int(chance(rng))

    def laid(a: np.ndarray) -> np.ndarray:
        return np.moveaxis(a, 1, -1).copy() if last and a.ndim == 4 else a

    row = node(
        "SkipGroupNorm", [laid(x), gamma, beta, laid(skip), bias], 2, groups=groups, activation=activation, channels_last=last
    )  # fmt: skip

    def reference() -> Arrays:
        total = x + (skip[..., None, None] if skip.ndim == 2 else skip) + (0 if bias is None else bias[:, None, None])
        parts = total.reshape(batch, groups, -1).astype(float)
        normal = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
        y = normal.reshape(total.shape) * gamma[:, None, None] + beta[:, None, None]
        y = y * _sigmoid(y) if activation else y
        return [laid(y).astype(np.float32), laid(total)]

    return ContribCase(row, reference)


def group_router(rng: np.random.Generator) -> ContribCase:
    """Groups of experts, and full scores."""
    groups, each = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    kept = int(rng.integers(1, groups + 1))
    full = groups == 1 and chance(rng)
    row = node(
        "MoEGroupRouter", [floats(rng, 3, groups * each), floats(rng, groups * each, scale=0.3)], (False, True, True) if full else 1,
        n_group=groups, topk_group=kept, top_k=int(rng.integers(1, kept * each + 1)), group_topk=int(one_of(rng, 1, 2)),
    )  # fmt: skip
    return ContribCase(row)


def m_rotary(rng: np.random.Generator) -> ContribCase:
    """Both layouts of sections, whole and partial heads, with and without an axis of heads."""
    heads, size, batch, time = int(rng.integers(1, 4)), 16, int(rng.integers(1, 3)), int(rng.integers(1, 5))
    part = chance(rng, 0.3)
    half = 4 if part else size // 2
    layout, height, width = int(chance(rng)), int(rng.integers(0, half // 3 + 1)), int(rng.integers(0, half // 3 + 1))
    x = floats(rng, batch, heads, time, size) if chance(rng) else floats(rng, batch, time, heads * size)
    row = node(
        "MRotaryEmbedding", [x, rng.integers(0, 9, (3, batch, time)), floats(rng, 9, half), floats(rng, 9, half)],
        mrope_section=[half - height - width, height, width], mrope_layout=layout, interleaved=int(chance(rng, 0.3)),
        num_heads=heads, rotary_embedding_dim=2 * half if part else None,
    )  # fmt: skip
    return ContribCase(row)


def gemma_rotary(rng: np.random.Generator) -> ContribCase:
    """Queries and keys in f16, angles in f32."""
    batch, heads, time, size = (int(n) for n in rng.integers(1, 4, 4))
    emb = floats(rng, batch, time, 2 * size, scale=2)
    q, q_rot, k, k_rot = (floats(rng, batch, heads, time, 2 * size, dtype=np.float16) for _ in range(4))

    def reference() -> Arrays:
        cos, sin = (each(emb).astype(np.float16)[:, None] for each in (np.cos, np.sin))
        return [q * cos + q_rot * sin, k * cos + k_rot * sin]

    return ContribCase(node("GemmaRotaryEmbedding", [emb, q, q_rot, k, k_rot], 2), reference)


def relative_position_bias(rng: np.random.Generator) -> ContribCase:
    """The buckets of T5 by transformers' formula."""
    buckets, heads, both = int(one_of(rng, 8, 16, 32)), int(rng.integers(1, 4)), int(chance(rng))
    longest, length = int(one_of(rng, 20, 64, 128)), int(rng.integers(1, 40))
    table = floats(rng, buckets, heads)
    count = np.array([length], np.int64)

    def reference() -> Arrays:
        relative = np.arange(length)[None] - np.arange(length)[:, None]
        half = buckets // 2 if both else buckets
        base = (relative > 0) * half if both else 0 * relative
        distance = abs(relative) if both else np.maximum(-relative, 0)
        exact = half // 2
        ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(
            np.log(longest / exact)
        )
        far = np.minimum(exact + (ratio * np.float32(half - exact)).astype(np.int64), half - 1)
        return [table.reshape(heads, buckets)[:, base + np.where(distance < exact, distance, far)][None]]

    return ContribCase(
        node("RelativePositionBias", [table, count, count], max_distance=longest, is_bidirectional=both), reference
    )


def gated_position_bias(rng: np.random.Generator) -> ContribCase:
    """The gate of the document's PyTorch."""
    batch, time, heads, size, wide = (int(n) for n in rng.integers(1, 5, 5))
    x, bias, weight, added = (
        floats(rng, batch, time, heads * size),
        floats(rng, heads * size),
        floats(rng, size, 2 * wide),
        floats(rng, 2 * wide),
    )
    positions, eco = floats(rng, 1, heads, time, time), floats(rng, 1, heads, 1, 1)

    def reference() -> Arrays:
        layer = (x + bias).reshape(batch, time, heads, size).transpose(0, 2, 1, 3)
        gates = _sigmoid((layer @ weight + added).reshape(batch, heads, time, 2, wide).sum(-1))
        return [((gates[..., :1] * (gates[..., 1:] * eco - 1) + 2) * positions).astype(np.float32)]

    return ContribCase(
        node("GatedRelativePositionBias", [x, bias, positions, weight, added, eco], num_heads=heads), reference
    )


DRAWS: dict[str, Draw] = {
    "GatedRMSNorm": gated_rms_norm, "BranchwiseRMSNorm": branchwise_rms_norm, "HyperConnectionPreMix": pre_mix,
    "HyperConnectionPostMix": post_mix, "EngramGate": engram_gate, "GatedAdd": gated_add, "ScaledSiLU": scaled_silu,
    "SwiGLU": swi_glu, "SkipGroupNorm": skip_group_norm, "MoEGroupRouter": group_router, "MRotaryEmbedding": m_rotary,
    "GemmaRotaryEmbedding": gemma_rotary, "RelativePositionBias": relative_position_bias,
    "GatedRelativePositionBias": gated_position_bias, "RouterGateUpProj": router_projection,
    "QEmbedLayerNormalization": quantized_embedding, "TorchEmbedding": embedding,
}  # fmt: skip
