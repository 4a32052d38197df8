"""Random cases of mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of, runtime_answer
from tests.onnx.rows import Fixed, Row


def _options(rng: np.random.Generator, experts: int) -> dict[str, Any]:
    return {
        "k": int(rng.integers(1, experts + 1)), "normalize_routing_weights": int(chance(rng)),
        "activation_alpha": 1.702 if chance(rng) else None, "activation_beta": 1.0 if chance(rng) else None,
        "swiglu_limit": float(one_of(rng, 0.5, 7.0)) if chance(rng) else None,
    }  # fmt: skip


def _interleaved(gate: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows of two arrays (experts, size, ...) in turn."""
    return np.stack([gate, values], 2).reshape(gate.shape[0], -1, *gate.shape[2:])


def moe(rng: np.random.Generator) -> ContribCase:
    """Every activation; gates and values interleaved, one after the other and in FC3."""
    experts, hidden, inner, tokens = int(rng.integers(1, 5)), 8, int(one_of(rng, 4, 6)), int(rng.integers(1, 6))
    kind = one_of(rng, "swiglu", "swiglu", "silu", "relu", "gelu", "identity")
    fusion = int(one_of(rng, 0, 1, 1, 2)) if kind == "swiglu" else 0
    gates = kind == "swiglu" or (kind == "silu" and chance(rng))
    x = floats(rng, 1, tokens, hidden) if chance(rng) else floats(rng, tokens, hidden)
    logits = floats(rng, tokens, experts)
    one, three = (floats(rng, experts, inner, hidden) for _ in range(2))
    one_bias, three_bias = (floats(rng, experts, inner) for _ in range(2))
    two, two_bias = floats(rng, experts, hidden, inner), floats(rng, experts, hidden)
    biased = chance(rng)
    options = _options(rng, experts)

    def inputs(first: np.ndarray, bias: np.ndarray, *third: np.ndarray) -> list[Input]:
        weights: list[Input] = [x, logits, Fixed(first), Fixed(bias), Fixed(two), Fixed(two_bias), *map(Fixed, third)]
        return weights if biased else [one if i not in (3, 5, 7) else None for i, one in enumerate(weights)]

    packed = inputs(_interleaved(one, three), _interleaved(one_bias, three_bias))
    if fusion == 1:
        given = packed
    elif fusion == 2:
        given = inputs(np.concatenate([one, three], 1), np.concatenate([one_bias, three_bias], 1))
    else:
        given = inputs(one, one_bias, *((three, three_bias) if gates else ()))
    row = node("MoE", given, activation_type=kind, swiglu_fusion=fusion, **options)

    def reference() -> Arrays:
        """The runtime's results of the interleaved weights, the only gates of its CPU kernel; SiLU is swiglu there."""
        changed = options | (
            {} if kind == "swiglu" else dict.fromkeys(("activation_alpha", "activation_beta", "swiglu_limit"))
        )
        return runtime_answer(node("MoE", packed, activation_type="swiglu", swiglu_fusion=1, **changed))

    return ContribCase(row, reference if gates and fusion != 1 else None)


def qmoe(rng: np.random.Generator) -> ContribCase:
    """Weights of 4 and 8 bits, per row and per block, with and without zero points and weights of the router."""
    experts, tokens = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    hidden, inner, bits = int(one_of(rng, 32, 64)), int(one_of(rng, 32, 64)), int(one_of(rng, 2, 4, 4, 8))
    block = int(one_of(rng, 0, 16, 32))
    kind = one_of(rng, "swiglu", "silu", "relu", "gelu", "identity")
    first = 2 * inner if kind == "swiglu" else inner
    x, logits = floats(rng, tokens, hidden), floats(rng, tokens, experts)
    zeros = chance(rng)

    def weights(rows: int, columns: int) -> tuple[Fixed, Fixed, Fixed | None]:
        blocks = columns // block if block else 1
        count = rows if not block else blocks
        points = (experts, -(-count * bits // 8)) if not block else (experts, rows, -(-count * bits // 8))
        scales = rng.random((experts, rows, blocks) if block else (experts, rows)) * 0.1 / (1 << (bits - 2))
        return (
            Fixed(rng.integers(0, 256, (experts, rows, columns * bits // 8)).astype(np.uint8)), Fixed(scales.astype(np.float32)),
            Fixed(rng.integers(0, 256, points).astype(np.uint8)) if zeros else None,
        )  # fmt: skip

    one, one_scale, one_zero = weights(first, hidden)
    two, two_scale, two_zero = weights(hidden, inner)
    biases = [Fixed(floats(rng, experts, n)) if chance(rng) else None for n in (first, hidden)]
    options = _options(rng, experts)
    mixing = np.abs(floats(rng, tokens, experts)) + 0.1 if chance(rng, 0.3) else None
    row = node(
        "QMoE",
        [x, logits, one, one_scale, biases[0], two, two_scale, biases[1], None, None, None, one_zero, two_zero, None, mixing],
        activation_type=kind, swiglu_fusion=1 if kind == "swiglu" else None, expert_weight_bits=bits, block_size=block or None, **options,
    )  # fmt: skip
    # Weights of 2 and 8 bits are multiplied with data rounded to 8 bits.
    is_wrong = mixing is None and not options["normalize_routing_weights"]
    return ContribCase(row, _with_softmax(row, logits) if is_wrong else None, tolerance=1e-4 if bits == 4 else 2e-2)


def float_qmoe(rng: np.random.Generator) -> ContribCase:
    """Weights of f8e4m3 with square blocks or one scale per expert: the runtime's MoE of the same floats."""
    experts, hidden, inner, block = int(rng.integers(1, 4)), 12, 10, int(one_of(rng, 0, 4))
    x, logits = floats(rng, 3, hidden), floats(rng, 3, experts)
    pairs, plain = [], []
    for rows, columns in ((inner, hidden), (hidden, inner)):
        weights = floats(rng, experts, rows, columns, scale=4).astype(ml_dtypes.float8_e4m3fn)
        shape = (experts, -(-rows // block), -(-columns // block)) if block else (experts,)
        scales = rng.random(shape).astype(np.float32) * 0.1
        spread = (
            scales[:, np.arange(rows) // block][:, :, np.arange(columns) // block] if block else scales[:, None, None]
        )
        pairs.append((Fixed(weights), Fixed(scales)))
        plain.append(Fixed(weights.astype(np.float32) * spread))
    blocks, whole = ([s for _, s in pairs], [None, None]) if block else ([None, None], [s for _, s in pairs])
    inputs: list[Input] = [x, logits, pairs[0][0], blocks[0], None, pairs[1][0], blocks[1], *[None] * 8, *whole]
    shared = {
        "k": int(rng.integers(1, experts + 1)),
        "activation_type": "silu",
        "normalize_routing_weights": int(chance(rng)),
    }
    row = node("QMoE", inputs, quant_type="fp8", block_size=block or None, **shared)
    return ContribCase(row, lambda: runtime_answer(node("MoE", [x, logits, plain[0], None, plain[1]], **shared)))


def _with_softmax(row: Row, logits: np.ndarray) -> Callable[[], Arrays]:
    """The runtime's results for the softmax as weights of the router: without them it normalizes always."""
    exponents = np.exp(logits - logits.max(1, keepdims=True))
    mixing = (exponents / exponents.sum(1, keepdims=True)).astype(np.float32)
    inputs = [*row.inputs, *[None] * (14 - len(row.inputs)), mixing]
    return lambda: runtime_answer(replace(row, inputs=tuple(inputs)))


DRAWS: dict[str, Draw] = {"MoE": moe, "QMoE": qmoe, "FloatQMoE": float_qmoe}
