"""Rows of ScaledDotProductAttention."""

from __future__ import annotations

import numpy as np

from irexec.testing import Row, random, typed
from tests.cases import Operation

_Q, _K, _V = (
    random("f32", 1, 2, 3, 4, low=-2, high=2),
    random("f32", 1, 2, 5, 4, low=-2, high=2),
    random("f32", 1, 2, 5, 6),
)
_MASK = random("f32", 3, 5, low=-3, high=3)
_KEPT = typed("boolean", [[1, 0, 0, 1, 1], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]])


scaled_dot_product_attention = Operation("ScaledDotProductAttention", 13, causal=False)


def _row(id: str, *inputs: object, causal: bool = False, **rest: object) -> Row:
    return scaled_dot_product_attention(*inputs, causal=causal, id=id, **rest)


def _scalar(value: float, kind: str = "f32") -> object:
    return typed(kind, value)


ROWS: list[Row] = [
    _row("no mask", _Q, _K, _V),
    _row("causal", _Q, _K, _V, causal=True),
    _row("causal ignores the mask", _Q, _K, _V, _MASK, causal=True),
    _row("causal with a mask of another type", [[[1.0]]], [[[1.0]]], [[[3.0]]], typed("f16", [[2.0]]), causal=True, gives=np.float32([[[3]]])),
    _row("causal with more rows than columns", _K, _Q, random("f32", 1, 2, 3, 6), causal=True),
    _row("mask of two axes", _Q, _K, _V, _MASK),
    _row("mask of four axes", _Q, _K, _V, random("f32", 1, 2, 3, 5)),
    _row("mask of one row", _Q, _K, _V, random("f32", 1, 1, 1, 5)),
    _row("mask that stretches the batch", random("f32", 1, 2, 3, 4), random("f32", 1, 2, 5, 4), random("f32", 1, 2, 5, 6), random("f32", 2, 1, 3, 5)),
    _row("boolean mask", _Q, _K, _V, _KEPT),
    _row("a row that keeps nothing", _Q, _K, _V, typed("boolean", [[0] * 5, [1] * 5, [0] * 5])),
    _row("infinite mask", _Q, _K, _V, typed("f32", np.where(_KEPT.array, 0, -np.inf))),
    _row("scalar mask", _Q, _K, _V, _scalar(0.0)),
    _row("scale", _Q, _K, _V, _MASK, _scalar(0.125)),
    _row("scale in a vector", _Q, _K, _V, _scalar(0.0), typed("f32", [2.0])),
    _row("causal with scale", _Q, _K, _V, _scalar(0.0), _scalar(0.125), causal=True),
    _row("sink", _Q, _K, _V, _MASK, _scalar(0.5), random("f32", 1, 2, 1, 1)),
    _row("sink for each row", _Q, _K, _V, _MASK, _scalar(0.5), random("f32", 1, 2, 3, 1)),
    _row("three axes", random("f32", 2, 3, 4), random("f32", 2, 5, 4), random("f32", 2, 5, 4)),
    _row("five axes", random("f32", 1, 2, 2, 3, 4), random("f32", 1, 2, 2, 5, 4), random("f32", 1, 2, 2, 5, 4)),
    _row("one head of keys", _Q, random("f32", 1, 1, 5, 4), random("f32", 1, 1, 5, 6)),
    _row("large scores", typed("f32", _Q.array * 100), _K, _V),
    _row("f16", *(typed("f16", x.array) for x in (_Q, _K, _V, _MASK))),
    _row("bf16", *(typed("bf16", x.array) for x in (_Q, _K, _V))),
    # torch.nn.functional.scaled_dot_product_attention of nothing to attend to gives zeros.
    _row("no keys", _Q, np.zeros((1, 2, 0, 4), np.float32), np.zeros((1, 2, 0, 6), np.float32), gives=np.zeros((1, 2, 3, 6), np.float32)),
    scaled_dot_product_attention.facts("f32[?,8,?,64]", "f32[?,8,?,64]", "f32[?,8,?,32]", id="dynamic"),
    scaled_dot_product_attention.facts("f32[1..4,8,5,64]", "f32[2,1,?,64]", "f32[?,8,7,32]", "f32[2,1,1,?]", id="bounded"),
    scaled_dot_product_attention.facts("f32[...]", "f32[2,1,?,64]", "f32[?,8,7,32]", id="rank unknown"),
    scaled_dot_product_attention.refuses(_Q, _V, _V, says="last axis of query and key differs", id="embedding"),
    scaled_dot_product_attention.refuses(_Q, _K, _Q, says="length of key and value differs", id="sequence"),
    scaled_dot_product_attention.refuses(random("f32", 3, 4), _K, _V, says="query has rank 2", id="rank"),
    *(
        scaled_dot_product_attention.refuses(
            _Q,
            _K,
            _V,
            _MASK,
            _scalar(0.5),
            random("f32", *shape),
            says="cannot be broadcast to [1,2,3,1]",
            id=f"sink {shape}",
        )
        for shape in ((1, 4, 1, 1), (2, 2, 1, 1), (1, 2, 7, 1))
    ),
    scaled_dot_product_attention.refuses(_Q, _K, _V, random("f32", 5), says="attention_mask has rank 1", id="mask of one axis"),
    scaled_dot_product_attention.refuses(_Q, _K, _V, random("i32", 3, 5), says="expected f32 or boolean", id="mask of integers"),
    scaled_dot_product_attention.refuses(_Q, _K, _V, random("f32", 4, 5), says="cannot be broadcast", id="mask of other rows"),
    scaled_dot_product_attention.refuses(
        _Q,
        random("f32", 1, 2, 1, 4),
        random("f32", 1, 2, 1, 6),
        random("f32", 3, 5),
        says="the last axis of attention_mask is 5, expected 1 or the length of key, 1",
        id="mask longer than the only key",
    ),
]  # fmt: skip
ROWS += [
    _row("nothing but minus infinity", _Q, _K, _V, typed("f32", np.full((3, 5), -np.inf))),
    _row("scale 0", _Q, _K, _V, typed("f32", np.zeros((3, 5))), _scalar(0.0)),
    _row("one head of queries", random("f32", 2, 1, 3, 4), random("f32", 2, 2, 5, 4), random("f32", 2, 2, 5, 6)),
    _row("NaN in the mask", _Q, _K, _V, typed("f32", np.where(_KEPT.array, 0, np.nan))),
]
