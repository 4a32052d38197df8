"""Random cases of linear attention and of causal convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of, runtime_answer
from tests.onnx.rows import Row


def _of_prefixes(row: Row, window: int, axes: dict[int, int]) -> Arrays:
    """The runtime's results without a window, and the states after each of the last steps, from prefixes of the data.

    ``axes`` has the axis of time of each input.
    """
    time = row.inputs[0].shape[axes[0]]
    given = [x[-1] if i == 3 and x is not None else x for i, x in enumerate(row.inputs)]
    attributes = {name: value for name, value in row.attributes.items() if name != "state_window"}

    def run(count: int) -> Arrays:
        inputs = [
            np.take(x, range(count), axes[i]) if i in axes and x is not None else x for i, x in enumerate(given)
        ]  # fmt: skip
        return runtime_answer(replace(row, inputs=tuple(inputs), attributes=attributes))

    y, last = run(time)
    steps = [time - window + 1 + slot for slot in range(window)]
    return [y, np.stack([run(count)[1] if count > 0 else np.zeros_like(last) for count in steps])]


_RULES = ("linear", "gated", "delta", "gated_delta")


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def linear_attention(rng: np.random.Generator) -> ContribCase:
    """All rules, groups in both directions, scalar decays and those per key, windows of states."""
    small, ratio = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    queries, keys = (small * ratio, small) if chance(rng, 0.7) else (small, small * ratio)
    batch, time, size, wide = int(rng.integers(1, 3)), int(rng.integers(1, 6)), 4, int(one_of(rng, 4, 6))
    rule, window = one_of(rng, *_RULES), int(rng.integers(1, 5)) if chance(rng, 0.3) else 0
    key = _unit(floats(rng, batch, time, keys, size)).reshape(batch, time, -1)
    lead = (window,) if window else ()
    decay = -abs(floats(rng, batch, time, keys * int(one_of(rng, 1, size)))) if "gated" in rule else None
    beta = rng.random((batch, time, int(one_of(rng, 1, keys)))).astype(np.float32) if "delta" in rule else None
    past = floats(rng, *lead, batch, keys, size, wide) if chance(rng) else None
    row = node(
        "LinearAttention", [floats(rng, batch, time, queries * size), key, floats(rng, batch, time, keys * wide), past, decay, beta],
        2, q_num_heads=queries, kv_num_heads=keys, update_rule=rule, state_window=window or None, scale=0.3 if chance(rng, 0.3) else None,
    )  # fmt: skip
    axes = dict.fromkeys((0, 1, 2, 4, 5), 1)
    return ContribCase(row, (lambda: _of_prefixes(row, window, axes)) if window else None)


def linear_attention_gate(rng: np.random.Generator) -> ContribCase:
    """Both outputs, f32 and f16."""
    kind, heads = one_of(rng, np.float32, np.float32, np.float16), int(rng.integers(1, 6))
    a, b = (floats(rng, 2, int(one_of(rng, 3)), heads, scale=3, dtype=kind) for _ in range(2))
    both = chance(rng)
    inputs = [a, floats(rng, heads), -abs(floats(rng, heads)), b if both else None]
    return ContribCase(node("LinearAttentionGate", inputs, 2 if both else 1))


def causal_convolution(rng: np.random.Generator) -> ContribCase:
    """Dilations, channels first and last, windows of states."""
    batch, channels, time, taps = (
        int(rng.integers(1, 3)),
        int(one_of(rng, 4, 6)),
        int(rng.integers(1, 8)),
        int(rng.integers(1, 5)),
    )
    dilation, window = int(one_of(rng, 1, 1, 2)), int(rng.integers(1, 5)) if chance(rng, 0.3) else 0
    last, held = chance(rng, 0.4), (taps - 1) * dilation
    split = (2, channels // 2) if last and chance(rng) else (channels,)
    shape, kept = (
        ((batch, time, *split), (batch, held, *split)) if last else ((batch, channels, time), (batch, channels, held))
    )
    past = floats(rng, *((window,) if window else ()), *kept) if chance(rng) else None
    row = node(
        "CausalConvWithState", [floats(rng, *shape), floats(rng, channels, 1, taps), floats(rng, channels) if chance(rng) else None, past],
        2, activation=one_of(rng, "none", "silu", "swish"), dilation=dilation if dilation > 1 or chance(rng) else None,
        channels_last=1 if last else None, state_window=window or None,
    )  # fmt: skip
    return ContribCase(row, (lambda: _of_prefixes(row, window, {0: 1 if last else 2})) if window else None)


def _bounds(rng: np.random.Generator, batch: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(rng.integers(1, 6, batch))]).astype(np.int32)


def packed_convolution(rng: np.random.Generator) -> ContribCase:
    """Sequences of all lengths, with and without captured tokens."""
    batch, channels, taps, dilation = (
        int(rng.integers(1, 4)),
        int(rng.integers(1, 6)),
        int(rng.integers(1, 5)),
        int(one_of(rng, 1, 1, 2)),
    )
    bounds, capacity = _bounds(rng, batch), int(rng.integers(1, 4)) if chance(rng, 0.4) else 0
    inputs: list[Input] = [
        floats(rng, int(bounds[-1]), channels), floats(rng, channels, 1, taps), bounds, floats(rng, channels) if chance(rng) else None,
        floats(rng, batch, channels, (taps - 1) * dilation),
        rng.integers(0, 5, batch).astype(np.int32) if capacity else None,
    ]  # fmt: skip
    row = node(
        "VarlenCausalConvWithState", inputs, 3 if capacity else 2, activation=one_of(rng, "none", "silu"),
        dilation=dilation, state_update_capacity=capacity or None,
    )  # fmt: skip
    return ContribCase(row)


def gated_delta_net(rng: np.random.Generator) -> ContribCase:
    """Tokens packed evenly, by bounds and as batches; queries, keys and values packed; all gates."""
    heads, ratio, batch = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    values, size, wide = heads * ratio, 4, int(one_of(rng, 4, 6))
    rule, spelling = one_of(rng, *_RULES), one_of(rng, "even", "bounds", "batch")
    bounds = _bounds(rng, batch) if spelling == "bounds" else None
    time = int(rng.integers(1, 6))
    lead = (int(bounds[-1]),) if bounds is not None else (batch, time) if spelling == "batch" else (batch * time,)
    gate = one_of(rng, "none", "none", "softplus", "qwen", "sigmoid", "kda")
    kind = np.float16 if chance(rng, 0.2) else np.float32
    norm = int(chance(rng))
    q, k = (floats(rng, *lead, heads, size, dtype=kind) for _ in range(2))
    k = k if norm else _unit(k)
    v = floats(rng, *lead, values, wide, dtype=kind)
    width = (size,) if chance(rng, 0.4) else ()
    decay = beta = a_log = bias = None
    if "gated" in rule:
        decay = floats(rng, *lead, values, *width)
        decay = -abs(decay) if gate == "none" else decay
        if gate != "none":
            a_log, bias = floats(rng, values, scale=0.5), floats(rng, values, *width)
    if "delta" in rule:
        beta = rng.random((*lead, values)).astype(np.float32)
    packed = chance(rng, 0.3)
    state = floats(rng, batch, values, wide, size) if packed or spelling == "even" or chance(rng) else None
    parts: list[Input] = [q, k, v]
    if packed:
        parts = [np.concatenate([x.reshape(*lead, -1) for x in (q, k, v)], -1), None, None]
    capacity = int(rng.integers(1, 4)) if chance(rng, 0.3) else 0
    counts = rng.integers(0, 5, batch).astype(np.int32) if capacity else None
    active = np.array([int(chance(rng))], np.int32) if capacity and chance(rng) else None
    row = node(
        "GatedDeltaNet", [*parts, bounds, decay, beta, state, a_log, bias, counts, active], 3 if capacity else 2,
        update_rule=rule, qk_l2_norm=norm, state_update_capacity=capacity or None,
        gate_activation=gate if "gated" in rule else None, gate_lower_bound=-3.0 if chance(rng) else None,
        beta_activation="sigmoid" if "delta" in rule and chance(rng) else None, scale=0.3 if chance(rng, 0.3) else None,
    )  # fmt: skip
    lengths = np.diff(bounds) if bounds is not None else np.full(batch, time)

    def defined(results: Arrays) -> Arrays:
        """The update of the steps that were captured."""
        if counts is None:
            return results
        widths = [values * (size if "gated" in rule and width else 1), heads * size, values * wide]
        pieces = np.split(results[2], np.cumsum([capacity * each for each in widths])[:-1], 1)
        if active is not None and not active[0]:
            return [*results[:2], *pieces]
        kept = np.minimum(np.minimum(counts, capacity), lengths)
        rows = [x.reshape(batch, capacity, -1)[b, :n].ravel() for x in pieces for b, n in enumerate(kept)]
        return [*results[:2], np.concatenate(rows)]

    return ContribCase(row, defined=defined)


DRAWS: dict[str, Draw] = {
    "LinearAttention": linear_attention, "LinearAttentionGate": linear_attention_gate,
    "CausalConvWithState": causal_convolution, "VarlenCausalConvWithState": packed_convolution, "GatedDeltaNet": gated_delta_net,
}  # fmt: skip
