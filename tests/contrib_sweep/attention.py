"""Random cases of attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, chance, floats, node, one_of, runtime_answer


def group_query_attention(rng: np.random.Generator) -> ContribCase:
    """Prompts, steps with a growing cache or one of fixed size, all options."""
    groups = int(rng.integers(1, 4))
    shared = int(rng.integers(1, 4))
    heads, size = groups * shared, int(one_of(rng, 16, 16, 32))
    kind = np.float16 if chance(rng, 0.15) else np.float32
    prompt = chance(rng, 0.4)
    causal = not chance(rng, 0.1)
    windowed = chance(rng, 0.15) and causal
    quantized = one_of(rng, "PER_TENSOR", "PER_CHANNEL") if chance(rng, 0.2) else "NONE"
    bits = int(one_of(rng, 4, 8)) if quantized != "NONE" else 0
    if prompt:
        batch, length = int(rng.integers(1, 3)), int(rng.integers(1, 6))
        totals = np.full(batch, length)
        past = 0
    else:
        length = int(one_of(rng, 1, 1, 2, 3))
        batch = 1 if length > 1 else int(rng.integers(1, 4))
        past = int(rng.integers(1, 8))
        totals = np.full(batch, past + length)
        if batch > 1 and chance(rng):
            totals = length + rng.integers(1, past + 1, batch)
            totals[0] = past + length
    total = int(totals.max())
    window = int(rng.integers(1, 5)) if windowed else int(rng.integers(1, 6)) if chance(rng, 0.25) and causal else -1
    capacity = past
    if windowed:
        capacity = window + int(rng.integers(0, 3))
    elif chance(rng, 0.3):
        capacity = total + int(rng.integers(0, 4))
    has_cache = windowed or capacity > 0 or quantized != "NONE"
    q, k, v = (floats(rng, batch, length, n * size, dtype=kind) for n in (heads, groups, groups))
    norms = [floats(rng, size, dtype=kind) for _ in range(2)] if chance(rng, 0.1) else []
    packed = chance(rng, 0.25)

    def inputs(*parts: np.ndarray) -> list[np.ndarray | None]:
        return [np.concatenate(parts, -1), None, None] if packed else list(parts)

    scales: list[np.ndarray | None] = [None, None]
    caches: list[np.ndarray | None] = [None, None]
    if has_cache:
        caches = [floats(rng, batch, groups, capacity, size, dtype=kind) for _ in range(2)]
    if quantized != "NONE":
        shape = (1,) if quantized == "PER_TENSOR" else (1, groups, 1, size)
        width = size // 2 if bits == 4 else size
        wide = np.uint8 if bits == 4 else np.int8
        low, high = (0, 256) if bits == 4 else (-127, 128)
        caches = [rng.integers(low, high, (batch, groups, capacity, width)).astype(wide) for _ in range(2)]
        scales = [(rng.random(shape) * 0.2 + (0.2 if bits == 4 else 0.02)).astype(np.float32) for _ in range(2)]
    rotary = chance(rng, 0.4)
    cos = sin = positions = None
    if rotary:
        angles = rng.random((total + 8, size // 2 if size == 16 or chance(rng) else 8))
        cos, sin = np.cos(angles).astype(kind), np.sin(angles).astype(kind)
        if chance(rng, 0.3):
            positions = rng.integers(0, total + 1, (batch, length))
    bias = None
    if chance(rng, 0.2):
        bias = floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), length, total, dtype=kind)
    sink = floats(rng, heads, dtype=kind) if chance(rng, 0.2) else None
    valid = None
    if has_cache and causal and chance(rng, 0.15) and (windowed or capacity >= total + length):
        valid = rng.integers(0, length + 1, batch).clip(1 if prompt else 0).astype(np.int32)
        totals = totals - length + valid
    scores = int(one_of(rng, 1, 2)) if chance(rng, 0.2) else None
    row = node(
        "GroupQueryAttention",
        [*inputs(q, k, v), *caches, (totals - 1).astype(np.int32), np.array(total, np.int32), cos, sin, positions, bias, sink,
         *scales, *(norms or (None, None)), valid],
        4 if scores else 3, num_heads=heads, kv_num_heads=groups, do_rotary=1 if rotary else None,
        rotary_interleaved=1 if rotary and chance(rng, 0.3) else None, local_window_size=window if window > 0 else None,
        scale=0.3 if chance(rng, 0.2) else None, softcap=1.5 if chance(rng, 0.2) else None,
        smooth_softmax=int(one_of(rng, 0, 1)) if sink is None and chance(rng, 0.2) else None, qk_output=scores,
        causal=0 if not causal else None, sliding_window_cache=1 if windowed else None,
        k_quant_type=quantized if bits else None, v_quant_type=quantized if bits else None,
        kv_cache_bit_width=bits or None,
    )  # fmt: skip
    counts = np.full(batch, length) if valid is None else valid

    def defined(results: Arrays) -> Arrays:
        kept = [np.concatenate([x[:n].ravel() for x, n in zip(results[0], counts, strict=True)])]
        for cache in results[1:3]:
            lengths = [_resident(t, capacity, window) if windowed else t for t in totals]
            kept.append(np.concatenate([x[:, :n].ravel() for x, n in zip(cache, lengths, strict=True)]))
        for score in results[3:]:
            kept.append(np.concatenate([x[:, :n, :t].ravel() for x, n, t in zip(score, counts, totals, strict=True)]))
        return kept

    def reference() -> Arrays:
        """The runtime's results for queries and keys that are normalized, as its CPU kernel has no norms."""
        normal = [_normalized(x, weight) for x, weight in zip((q, k), norms, strict=True)]
        others = [None if 14 <= i < 16 else x for i, x in enumerate(row.inputs)]
        return runtime_answer(replace(row, inputs=(*inputs(*normal, v), *others[3:])))

    return ContribCase(row, reference if norms else None, defined, 1e-3 if bits else 1e-4)


def _normalized(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    heads = x.astype(np.float32).reshape(*x.shape[:2], -1, len(weight))
    normal = heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-6) * weight
    return normal.reshape(x.shape).astype(x.dtype)


def _resident(total: int, capacity: int, window: int) -> int:
    """The number of entries of a windowed cache. Source: the description of GroupQueryAttention."""
    drop = capacity - window + 1
    return int(total if total <= capacity else total - drop * -(-(total - capacity) // drop))


DRAWS: dict[str, Draw] = {"GroupQueryAttention": group_query_attention}


def multi_head_attention(rng: np.random.Generator) -> ContribCase:
    """Separate and packed inputs, crosses, masks of each kind, caches that grow or have a fixed size."""
    heads, size = int(rng.integers(1, 4)), int(one_of(rng, 4, 8))
    batch, length = int(rng.integers(1, 3)), int(rng.integers(1, 5))
    width, wide = heads * size, heads * int(one_of(rng, size, size, 6))
    layout = one_of(rng, "separate", "separate", "cross", "packed", "packed keys", "heads")
    keys = length if layout in ("separate", "packed") else int(rng.integers(1, 6))
    query = floats(rng, batch, length, width)
    key: np.ndarray | None = floats(rng, batch, keys, width)
    value: np.ndarray | None = floats(rng, batch, keys, wide)
    if layout == "packed":
        query, key, value, wide = floats(rng, batch, length, heads, 3, size), None, None, width
    elif layout == "packed keys":
        key, value, wide = floats(rng, batch, keys, heads, 2, size), None, width
    elif layout == "heads":
        key, value, wide = floats(rng, batch, heads, keys, size), floats(rng, batch, heads, keys, size), width
    past = int(rng.integers(0, 5)) if layout == "separate" and chance(rng) else None
    caches: list[np.ndarray | None] = [None, None]
    before = None
    if past is not None:
        shared = chance(rng, 0.3) and length == 1
        room = past + length + int(rng.integers(0, 3)) if shared else past
        before = np.array([past], np.int32) if shared else None
        caches = [floats(rng, batch, heads, room, each) for each in (size, wide // heads)]
    total = keys + (past or 0)
    mask = bias = None
    if chance(rng, 0.4):
        mask = one_of(
            rng, rng.integers(1, keys + 1, batch), rng.integers(0, 2, (batch, keys)), rng.integers(0, 2, (batch, total)),
            rng.integers(0, 2, (batch, length, total)),
        ).astype(np.int32)  # fmt: skip
    if chance(rng, 0.3):
        bias = floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), length, total)
    row = node(
        "MultiHeadAttention",
        [query, key, value, floats(rng, 2 * width + wide) if chance(rng, 0.4) else None, mask, bias, *caches, before],
        one_of(rng, (True,), (True, True, True), (True, False, False, True)) if past is None else
        one_of(rng, (True, True, True), (True, True, True, True)), num_heads=heads,
        unidirectional=1 if chance(rng, 0.3) else None, scale=0.4 if chance(rng, 0.3) else None,
        mask_filter_value=-50.0 if chance(rng, 0.3) else None,
    )  # fmt: skip

    def separate() -> Arrays:
        """The runtime's results for separate inputs, as its CPU kernel refuses packed ones."""
        packed = (query if layout == "packed" else key).transpose(3, 0, 1, 2, 4)
        parts = [x.reshape(batch, -1, width) for x in packed]
        parts = [query, *parts] if layout == "packed keys" else parts
        return runtime_answer(replace(row, inputs=(*parts, *row.inputs[3:])))

    tolerance = 2e-3 if mask is not None else 1e-4
    return ContribCase(row, separate if layout.startswith("packed") else None, tolerance=tolerance)


def decoder_masked(rng: np.random.Generator) -> ContribCase:
    """One token: self attention with a cache, packed or not, and cross attention."""
    heads, size, batch, past = int(rng.integers(1, 4)), 8, int(rng.integers(1, 3)), int(rng.integers(0, 6))
    width = heads * size
    cross = chance(rng, 0.3)
    q, k, v = (floats(rng, batch, 1, width) for _ in range(3))
    inputs: list[np.ndarray | None] = [q, k, v]
    room, total = past + 1 + int(rng.integers(0, 3)), past + 1
    if cross:
        inputs = [q, *(floats(rng, batch, heads, past + 1, size) for _ in range(2))]
    elif chance(rng, 0.3):
        inputs = [np.concatenate([q, k, v], -1), None, None]
    caches = [None, None] if cross else [floats(rng, batch, heads, room, size) for _ in range(2)]
    mask = rng.integers(0, 2, (batch, total)).astype(np.int32) if chance(rng, 0.3) else None
    added = None
    if not cross and chance(rng, 0.3):
        added = floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), 1, total)
    row = node(
        "DecoderMaskedMultiHeadAttention",
        [*inputs, mask, added, *caches, None if cross else np.array([past], np.int32), None, None,
         floats(rng, 3 * width) if not cross and chance(rng, 0.3) else None],
        1 if cross else 3, num_heads=heads, past_present_share_buffer=None if cross else 1,
        scale=0.3 if chance(rng, 0.3) else None, mask_filter_value=-50.0 if chance(rng, 0.3) else None,
    )  # fmt: skip
    # Scores of -10000 and less are rounded to 1e-3.
    return ContribCase(row, tolerance=2e-3 if mask is not None else 1e-4)


def self_attention(rng: np.random.Generator) -> ContribCase:
    """One product for all three; masks, caches that grow or have a fixed size."""
    heads, size, batch, length, width = int(rng.integers(1, 3)), 4, int(rng.integers(1, 3)), int(rng.integers(1, 4)), 5
    past = int(rng.integers(0, 4)) if chance(rng) else None
    shared = past is not None and chance(rng)
    total = length + (past or 0)
    room = total + int(rng.integers(0, 3)) if shared else past
    mask = rng.integers(0, 2, (batch, total)).astype(np.int32) if chance(rng, 0.3) else None
    bias = (
        floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), length, total)
        if past is None and chance(rng, 0.3)
        else None
    )
    cache = None if room is None else floats(rng, 2, batch, heads, room, size)
    inputs = [
        floats(rng, batch, length, width),
        floats(rng, width, 3 * heads * size),
        floats(rng, 3 * heads * size),
        mask,
        cache,
        bias,
    ]
    row = node(
        "Attention", [*inputs, np.array([past], np.int32) if shared else None], 1 if past is None else 2, num_heads=heads,
        unidirectional=int(chance(rng)), past_present_share_buffer=1 if shared else None, scale=0.4 if chance(rng) else None,
    )  # fmt: skip

    def defined(results: Arrays) -> Arrays:
        return [results[0], *(x[..., :total, :] for x in results[1:])]

    def growing() -> Arrays:
        """The runtime's results for a cache that grows: its CPU kernel does not read past_sequence_length."""
        attributes = {name: value for name, value in row.attributes.items() if name != "past_present_share_buffer"}
        given = [x[..., :past, :] if i == 4 and x is not None else x for i, x in enumerate(row.inputs[:6])]
        return runtime_answer(replace(row, inputs=tuple(given), attributes=attributes))

    return ContribCase(row, growing if shared else None, defined, 2e-3 if mask is not None else 1e-4)


def masked_self_attention(rng: np.random.Generator) -> ContribCase:
    """One token: the runtime's Attention of the same inputs, as it has no such kernel on the CPU."""
    heads, size, batch, past = int(rng.integers(1, 3)), 4, int(rng.integers(1, 3)), int(rng.integers(0, 5))
    mask = rng.integers(0, 2, (batch, past + 1)).astype(np.int32) if chance(rng, 0.3) else None
    inputs = [
        floats(rng, batch, 1, 5), floats(rng, 5, 3 * heads * size), floats(rng, 3 * heads * size), mask,
        floats(rng, 2, batch, heads, past, size), None,
    ]  # fmt: skip
    given = {"num_heads": heads, "scale": 0.4 if chance(rng) else None}
    row = node("DecoderMaskedSelfAttention", [*inputs, np.array([past], np.int32)], 2, **given)
    tolerance = 2e-3 if mask is not None else 1e-4
    return ContribCase(row, lambda: runtime_answer(node("Attention", inputs, 2, **given)), tolerance=tolerance)


DRAWS["Attention"] = self_attention
DRAWS["DecoderMaskedSelfAttention"] = masked_self_attention
DRAWS["MultiHeadAttention"] = multi_head_attention
DRAWS["DecoderMaskedMultiHeadAttention"] = decoder_masked
