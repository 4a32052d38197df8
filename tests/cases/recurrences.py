"""Rows of linear attention, state spaces and attentional GRUs, which OpenVINO writes and does not read. The CPU plugin gives
the answers, see tests.oracle.inner."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Row, case, facts_case, random, refuses, typed
from tests.cases.language import INNER, indices, nothing
from tests.support.cases import halves

N, L, G, H, K, V, P, T = 2, 5, 2, 4, 8, 16, 9, 8
NO_NORM = {"fuse_qk_l2norm": False, "q_l2_norm_eps": 1e-6, "k_l2_norm_eps": 1e-6}
NORM = {"fuse_qk_l2norm": True, "q_l2_norm_eps": 0.3, "k_l2_norm_eps": 0.2}


def few(*shape: int, seed: int = 0, low: float = -1, high: float = 1) -> Any:
    return random("f32", *shape, seed=seed, low=low, high=high)


def delta(tokens: tuple[int, ...], state: Any) -> list[Any]:
    """Inputs of a gated delta rule: queries, keys, values, state, gates and factors."""
    return [
        few(*tokens, G, K), few(*tokens, G, K, seed=1), few(*tokens, H, V, seed=2), state,
        few(*tokens, H, seed=4, low=-2, high=0), few(*tokens, H, seed=5, low=0),
    ]  # fmt: skip


def scan(tokens: tuple[int, ...], state: Any) -> list[Any]:
    """Inputs of a selective scan: a, dt, b, x, c and the state."""
    return [
        few(H, low=-2, high=0), few(*tokens, H, seed=1, low=0), few(*tokens, G, K, seed=2), few(*tokens, H, 6, seed=3),
        few(*tokens, G, K, seed=4), state,
    ]  # fmt: skip


_BLOCKS = [
    indices(0, 5, 7, 8), indices(3, 8, 1, 4, 0, 2, 6, 5, 7), indices(0, 4, 7, 9), indices(0, 3, 4), indices(2, 4, 3),
]  # fmt: skip
"""Three sequences: new, with tokens before an interval ends, and with one that ends none."""
_NO_INTERVAL = [indices(0, 8), indices(5, 2, 6), indices(0, 3), indices(3), indices(0)]
_DELTA, _SCAN = delta((N, L), few(N, H, K, V, seed=3)), scan((N, L), few(N, H, 6, K, seed=5))
_PAGED_DELTA, _PAGED_SCAN = delta((T,), few(P, H, V, K, seed=3)), scan((T,), few(P, H, 6, K, seed=5))
_CONV = [few(T, 16), few(P, 16, 4, seed=1), few(16, 1, 4, seed=2), few(16, seed=3)]
_USE = {"use_qk_l2norm": True, "q_l2_norm_eps": 0.3, "k_l2_norm_eps": 0.2}
EXT = "extension"
ROWS: list[Row] = [
    case("GatedDeltaNet", EXT, *_DELTA, **NO_NORM, id="plain"),
    case("GatedDeltaNet", EXT, *_DELTA, **NORM, id="normalized"),
    facts_case(
        "GatedDeltaNet", EXT, "f32[?,?,2,8]", "f32[?,?,2,8]", "f32[?,?,4,16]", "f32[3,4,8,16]", "f32[?,?,4]",
        "f32[?,7,4]", **NO_NORM, gives=("f32[3,7,4,16]", "f32[3,4,8,16]"), id="dynamic",
    ),
    refuses(
        "GatedDeltaNet", EXT, *_DELTA[:3], few(N, H, V, K), *_DELTA[4:], **NO_NORM, id="state",
        says="recurrent_state has shape [2,4,16,8], expected [2,4,8,16]",
    ),
    refuses("GatedDeltaNet", EXT, few(N, L, 3, K), few(N, L, 3, K), *_DELTA[2:], **NO_NORM, id="groups", says="4 heads are not a multiple of 3 groups"),
    case("SelectiveSSM", EXT, *_SCAN, id="plain"),
    case("SelectiveSSM", EXT, *_SCAN[:2], few(N, L, 1, K), _SCAN[3], few(N, L, 1, K, seed=9), _SCAN[5], id="one group"),
    facts_case(
        "SelectiveSSM", EXT, "f32[4]", "f32[?,?,4]", "f32[?,?,2,8]", "f32[?,?,4,6]", "f32[?,?,2,8]", "f32[2,4,6,8]",
        gives=("f32[2,?,4,6]", "f32[2,4,6,8]"), id="dynamic",
    ),
    refuses("SelectiveSSM", EXT, *_SCAN[:5], few(N, H, K, 6), says="expected [2,4,6,8]", id="state"),
    case("PagedGatedDeltaNet", EXT, *_PAGED_DELTA, *_BLOCKS, use_qk_l2norm=False, id="plain"),
    case("PagedGatedDeltaNet", EXT, *_PAGED_DELTA, *_BLOCKS, **_USE, id="normalized"),
    case("PagedGatedDeltaNet", EXT, *_PAGED_DELTA, *_NO_INTERVAL, **_USE, id="no interval"),
    case("PagedSelectiveSSM", EXT, *_PAGED_SCAN, *_BLOCKS, id="plain"),
    case("PagedSelectiveSSM", EXT, *_PAGED_SCAN, *_NO_INTERVAL, id="no interval"),
    case("PagedCausalConv1D", EXT, *_CONV, *_BLOCKS, id="plain"),
    case("PagedCausalConv1D", EXT, *_CONV[:3], nothing(), *_NO_INTERVAL, id="no bias, no interval"),
    case(
        "PagedCausalConv1D", EXT, [[1.0, 2.0]], [[[10.0, 20.0], [30.0, 40.0]]], [[[1.0, 1.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]],
        [0.5, 0.0], indices(0, 1), indices(0, 0), indices(0, 2), indices(1), indices(4), gives=[[103.5, 22.0]], id="groups of two",
    ),
]  # fmt: skip
_FACTS = {"PagedGatedDeltaNet": _PAGED_DELTA, "PagedSelectiveSSM": _PAGED_SCAN, "PagedCausalConv1D": _CONV}
_OPEN = {
    "PagedGatedDeltaNet": (["f32[?,2,8]", "f32[?,2,8]", "f32[?,4,16]", "f32[?,4,16,8]", "f32[?,4]", "f32[?,4]"], "f32[?,4,16]"),
    "PagedSelectiveSSM": (["f32[4]", "f32[?,4]", "f32[?,2,8]", "f32[?,4,6]", "f32[?,2,8]", "f32[?,4,6,8]"], "f32[?,4,6]"),
    "PagedCausalConv1D": (["f32[?,16]", "f32[?,16,4]", "f32[16,1,4]", "f32[?]"], "f32[?,16]"),
}  # fmt: skip
for _type, _given in _FACTS.items():
    _wrong = list(_given)
    _wrong[1] = few(T, 3, 9) if _type != "PagedSelectiveSSM" else few(T, 9)
    _open, _gives = _OPEN[_type]
    ROWS += [
        facts_case(_type, EXT, *_open, *["i32[?]"] * 5, gives=_gives, id="dynamic"),
        refuses(_type, EXT, *_wrong, *_BLOCKS, says="expected [", id="shapes"),
    ]

_SIZES = {"hidden_size": 5, "activations": "sigmoid, tanh", "clip": 0, "linear_before_reset": False}
_CELL = [
    few(2, 3), few(2, 5, seed=1), few(15, 3, seed=2), few(15, 5, seed=3), few(15, seed=4), few(2, 1, seed=5, low=0),
]  # fmt: skip
_SEQUENCE = [
    few(2, 4, 3), few(2, 1, 5, seed=1), indices(4, 4), few(1, 15, 3, seed=2), few(1, 15, 5, seed=3), few(1, 15, seed=4),
    few(2, 4, 1, seed=5, low=0),
]  # fmt: skip
ROWS += [
    case("AUGRUCell", INNER, *_CELL, **_SIZES, id="plain"),
    case("AUGRUSequence", INNER, *_SEQUENCE, **_SIZES, direction="forward", id="plain"),
    facts_case(
        "AUGRUCell", INNER, "f32[?,3]", "f32[2,5]", "f32[15,3]", "f32[15,5]", "f32[15]", "f32[?,1]", **_SIZES,
        gives="f32[2,5]", id="dynamic",
    ),
    facts_case(
        "AUGRUSequence", INNER, "f32[?,?,3]", "f32[2,1,5]", "i32[?]", "f32[1,15,3]", "f32[1,15,5]", "f32[1,15]",
        "f32[?,4,1]", **_SIZES, gives=("f32[2,1,?,5]", "f32[2,1,5]"), id="dynamic",
    ),
    refuses("AUGRUCell", INNER, *_CELL[:5], few(2, 2), **_SIZES, says="attention has shape [2,2], expected [2,1]", id="attention"),
    refuses("AUGRUCell", INNER, *_CELL, **_SIZES | {"clip": 1}, says="clip is 1.0, expected 0", id="clip"),
    refuses("AUGRUSequence", INNER, *_SEQUENCE, **_SIZES | {"activations": "tanh, tanh"}, says="expected sigmoid, tanh", id="activations"),
    refuses("AUGRUSequence", INNER, *_SEQUENCE, **_SIZES | {"linear_before_reset": True}, says="linear_before_reset is true", id="linear"),
]  # fmt: skip
ROWS += halves(ROWS)

_ZERO = typed("f32", np.zeros((1, 1, 1, 1)))
_ONE = [typed("f32", np.full((1, 1, 1, 1), x)) for x in (2.0, 3.0, 5.0)]
_GATES = [typed("f32", [[[0.0]]]), typed("f32", [[[0.5]]])]
_NAN = typed("f32", [[[[np.nan]]]])
# key * (value - 0) * beta = 3 * 5 * 0.5, and times the query 2.
ROWS += [
    case("GatedDeltaNet", EXT, *_ONE, _ZERO, *_GATES, **NO_NORM, gives=([[[[15.0]]]], [[[[7.5]]]]), id="by hand"),
    case("GatedDeltaNet", EXT, *_ONE[:2], _NAN, _ZERO, *_GATES, **NO_NORM, gives=(_NAN, _NAN), id="NaN"),
    case("GatedDeltaNet", EXT, *[nothing(1, 0, 1, 1)] * 3, _ONE[0], *[nothing(1, 0, 1)] * 2, **NO_NORM, gives=(nothing(1, 0, 1, 1), _ONE[0]), id="empty"),
    case("SelectiveSSM", EXT, [0.0], _GATES[1], *_ONE, _ZERO, gives=([[[[15.0]]]], [[[[3.0]]]]), id="by hand"),
    case("SelectiveSSM", EXT, [0.0], _GATES[1], _NAN, *_ONE[1:], _ZERO, gives=(_NAN, _NAN), id="NaN"),
    case("SelectiveSSM", EXT, [0.0], nothing(1, 0, 1), *[nothing(1, 0, 1, 1)] * 3, _ONE[0], gives=(nothing(1, 0, 1, 1), _ONE[0]), id="empty"),
]  # fmt: skip
_PLACE = [indices(0, 1), indices(0, 1), indices(0, 2), indices(0), indices(1)]
_NOWHERE = [indices(0, 0), nothing(kind="i32"), indices(0, 0), indices(0), indices(1)]
_TOKEN, _NONE, _NAN3 = [typed("f32", [[[x]]]) for x in (2.0, 3.0, 5.0)], nothing(0, 1, 1), typed("f32", [[[np.nan]]])
_TABLE = typed("f32", np.zeros((2, 1, 1, 1)))
_FLAT = [typed("f32", [[0.0]]), typed("f32", [[0.5]])]
_NO_TOKENS = nothing(0, 1)
ROWS += [
    case("PagedGatedDeltaNet", EXT, *_TOKEN[:2], _NAN3, _TABLE, *_FLAT, *_PLACE, gives=_NAN3, id="NaN"),
    case("PagedGatedDeltaNet", EXT, *[_NONE] * 3, _TABLE, *[_NO_TOKENS] * 2, *_NOWHERE, gives=_NONE, id="empty"),
    case("PagedSelectiveSSM", EXT, [0.0], _FLAT[1], _NAN3, *_TOKEN[:2], _TABLE, *_PLACE, gives=_NAN3, id="NaN"),
    case("PagedSelectiveSSM", EXT, [0.0], _NO_TOKENS, *[_NONE] * 3, _TABLE, *_NOWHERE, gives=_NONE, id="empty"),
    case("PagedCausalConv1D", EXT, [[np.nan]], [[[1.0]], [[2.0]]], [[[1.0]]], [0.0], *_PLACE, gives=[[np.nan]], id="NaN"),
    case("AUGRUCell", INNER, [[np.nan]], [[1.0]], [[1.0]] * 3, [[1.0]] * 3, [0.0] * 3, [[0.5]], **_SIZES | {"hidden_size": 1}, gives=[[np.nan]], id="NaN"),
    case("AUGRUCell", INNER, nothing(0, 1), nothing(0, 1), [[1.0]] * 3, [[1.0]] * 3, [0.0] * 3, nothing(0, 1), **_SIZES | {"hidden_size": 1}, gives=nothing(0, 1), id="empty"),
    case("AUGRUSequence", INNER, [[[np.nan]]], [[[1.0]]], indices(1), [[[1.0]] * 3], [[[1.0]] * 3], [[0.0] * 3], [[[0.5]]], **_SIZES | {"hidden_size": 1}, gives=([[[[np.nan]]]], [[[np.nan]]]), id="NaN"),
    case("AUGRUSequence", INNER, nothing(1, 0, 1), [[[1.0]]], indices(0), [[[1.0]] * 3], [[[1.0]] * 3], [[0.0] * 3], nothing(1, 0, 1), **_SIZES | {"hidden_size": 1}, gives=(nothing(1, 1, 0, 1), [[[1.0]]]), id="empty"),
    case("AUGRUSequence", INNER, [[[1.0], [7.0]]], [[[0.5]]], indices(0), [[[0.0]] * 3], [[[0.0]] * 3], [[0.0] * 3], [[[0.5], [0.5]]], **_SIZES | {"hidden_size": 1}, gives=([[[[0.0], [0.0]]]], [[[0.5]]]), id="length 0"),
]  # fmt: skip
