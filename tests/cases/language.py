"""Rows of operations of language models that OpenVINO writes and does not read. The CPU plugin gives the answers, see
tests.oracle.inner; blocks of attention have 32 tokens because it wants that."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Row, case, facts_case, random, refuses, typed

NAN, INF = float("nan"), float("inf")
INNER = "ie_internal_opset"


def indices(*numbers: int) -> Any:
    return typed("i32", np.array(numbers, np.int32))


def number(value: int) -> Any:
    return typed("i32", np.array(value, np.int32))


def nothing(*shape: int, kind: str = "f32") -> Any:
    return typed(kind, np.zeros(shape or (0,)))


def rms(id: str, *inputs: Any, epsilon: float = 1e-5, **rest: Any) -> Row:
    return case("RMS", INNER, *inputs, epsilon=epsilon, id=id, **rest)


ROWS: list[Row] = [
    rms("scale", random("f32", 2, 3, 16), random("f32", 16, seed=1), output_type="f32", elementwise_affine=True),
    rms("no scale", random("f32", 2, 16), output_type="f32", elementwise_affine=False),
    rms("scale of two axes", random("f32", 2, 16), random("f32", 1, 16, seed=1), output_type="f32"),
    rms("large epsilon", random("f32", 3, 8), random("f32", 8, seed=1), epsilon=0.5, output_type="f32"),
    rms("NaN and infinities", [[NAN, 1.0], [INF, 1.0], [0.0, 0.0]], [1.0, 2.0], gives=[[NAN, NAN], [NAN, 0.0], [0.0, 0.0]]),
    rms("f16", typed("f16", [[3.0, 4.0]]), typed("f16", [1.0, 2.0]), epsilon=0, gives=typed("f16", [[0.8486, 2.2627]])),
    rms("bf16", typed("bf16", [[3.0, 4.0]]), typed("bf16", [1.0, 2.0]), epsilon=0, gives=typed("bf16", [[0.8484, 2.2656]])),
    rms("result in f16", [[3.0, 4.0]], [1.0, 2.0], epsilon=0, output_type="f16", gives=typed("f16", [[0.8486, 2.2627]])),
    rms("empty", nothing(0, 4), [1.0] * 4, gives=nothing(0, 4)),
    facts_case("RMS", INNER, "f32[?,2..5,8]", "f32[8]", epsilon=1e-5, gives="f32[?,2..5,8]", id="dynamic"),
    facts_case("RMS", INNER, "f16[?,8]", "f32[8]", epsilon=1e-5, output_type="f32", gives="f32[?,8]", id="output type"),
    refuses("RMS", INNER, "f32[2,8]", "f32[1,1,8]", epsilon=1e-5, says="scale has shape [1,1,8]", id="rank of the scale"),
    refuses("RMS", INNER, "i32[2,8]", "f32[8]", epsilon=1e-5, says="floating-point", id="integers"),
]  # fmt: skip

_ROTARY = {"slice_start": 0, "slice_stop": 0, "input_trans0213": False, "output_trans0213": False, "is_interleaved": False,
    "rotary_ndims": 8, "is_chatglm": False, "support_2d_rope": False, "support_3d_rope": False, "is_qwen": False,
    "use_rope_cache": False, "is_ltx_video": False, "head_cnt": 0, "head_size": 0, "gather_position_arg_id": 0,
}  # fmt: skip


def settings(**chosen: Any) -> dict[str, Any]:
    return {f"config.{name}": value for name, value in (_ROTARY | chosen).items()}


def rope(id: str, *inputs: Any, gives: Any = None, **chosen: Any) -> Row:
    return case("RoPE", INNER, *inputs, gives=gives, id=id, **settings(**chosen))


_X, _COS, _SIN = random("f32", 2, 3, 5, 12), random("f32", 1, 1, 5, 8, seed=1), random("f32", 1, 1, 5, 8, seed=2)
_LONG = random("f32", 1, 1, 9, 8, seed=3), random("f32", 1, 1, 9, 8, seed=4)
_BOTH = random("f32", 2, 5, 8, seed=5)
_PAIRS = random("f32", 5, 2, 4, 2, seed=6)
_OF_QWEN = random("f32", 1, 9, 1, 8, seed=7), random("f32", 1, 9, 1, 8, seed=8)
_COLUMNS = random("f32", 2, 5, 50)
_SLICE = {"head_cnt": 3, "head_size": 12, "slice_start": 10, "slice_stop": 46}
ROWS += [
    rope("halves", _X, _COS, _SIN),
    rope("all of a head", random("f32", 2, 3, 5, 8), _COS, _SIN),
    rope("tokens before heads", random("f32", 2, 5, 3, 12), _COS, _SIN, input_trans0213=True),
    rope("tables of two axes", _X, random("f32", 5, 8, seed=1), random("f32", 5, 8, seed=2)),
    rope("tables of every head", _X, random("f32", 2, 3, 5, 8, seed=1), random("f32", 2, 3, 5, 8, seed=2)),
    rope("slice", random("f32", 2, 3, 5, 30), _COS, _SIN, slice_start=10, slice_stop=22),
    rope("longer tables", _X, *_LONG),
    rope("positions", _X, *_LONG, typed("i32", [[0, 8, 1, 7, 2], [3, 3, 3, 4, 4]]), gather_position_arg_id=3),
    rope(
        "positions of four axes",
        _X,
        *_LONG,
        typed("i32", np.arange(10).reshape(2, 1, 5, 1) % 9),
        gather_position_arg_id=3,
    ),
    rope("neighbours", random("f32", 2, 5, 3, 12), _BOTH, _BOTH, is_interleaved=True),
    rope(
        "neighbours, heads first", random("f32", 2, 5, 3, 12), _BOTH, _BOTH, is_interleaved=True, output_trans0213=True
    ),
    rope("chatglm", random("f32", 5, 2, 50), _PAIRS, _PAIRS, is_chatglm=True, **_SLICE),
    rope("qwen", _COLUMNS, *_OF_QWEN, is_qwen=True, **_SLICE),
    rope(
        "qwen with positions",
        _COLUMNS,
        *_OF_QWEN,
        typed("i32", [[0, 8, 1, 7, 2], [3, 3, 3, 4, 4]]),
        is_qwen=True,
        gather_position_arg_id=3,
        **_SLICE,
    ),
    rope(
        "f16",
        typed("f16", [[[[1, 2]]]]),
        [[[[0.5, 0.25]]]],
        [[[[1.0, 2.0]]]],
        rotary_ndims=2,
        gives=typed("f16", [[[[-1.5, 2.5]]]]),
    ),
    rope(
        "bf16",
        typed("bf16", [[[[1, 2]]]]),
        [[[[0.5, 0.25]]]],
        [[[[1.0, 2.0]]]],
        rotary_ndims=2,
        gives=typed("bf16", [[[[-1.5, 2.5]]]]),
    ),
    rope(
        "NaN", [[[[NAN, 2.0, 7.0]]]], [[[[0.5, 0.25]]]], [[[[1.0, 2.0]]]], rotary_ndims=2, gives=[[[[NAN, NAN, 7.0]]]]
    ),
    rope("empty", nothing(0, 3, 5, 12), _COS, _SIN, gives=nothing(0, 3, 5, 12)),
    facts_case(
        "RoPE",
        INNER,
        "f32[?,?,3,12]",
        "f32[?,1,?,8]",
        "f32[?,1,?,8]",
        **settings(input_trans0213=True),
        gives="f32[?,3,?,12]",
        id="dynamic",
    ),
    facts_case(
        "RoPE",
        INNER,
        "f32[?,?,?]",
        "f32[?,?,4,2]",
        "f32[?,?,4,2]",
        **settings(is_chatglm=True, **_SLICE),
        gives="f32[?,?,3,12]",
        id="chatglm of open sizes",
    ),
    refuses(
        "RoPE",
        INNER,
        _COLUMNS,
        _PAIRS,
        _PAIRS,
        **settings(is_chatglm=True, support_2d_rope=True),
        says="config.support_2d_rope",
        id="2D",
    ),
    refuses(
        "RoPE",
        INNER,
        "f32[1,2,3,8]",
        _COS,
        _SIN,
        **settings(use_rope_cache=True),
        says="config.use_rope_cache",
        id="cache of angles",
    ),
    refuses(
        "RoPE", INNER, "f32[1,2,3,8]", _COS, _SIN, **settings(is_ltx_video=True), says="config.is_ltx_video", id="video"
    ),
    refuses(
        "RoPE",
        INNER,
        "f32[1,2,3,8]",
        _COS,
        _SIN,
        **settings(support_3d_rope=True),
        says="config.support_3d_rope",
        id="3D",
    ),
    refuses(
        "RoPE",
        INNER,
        _X,
        _COS,
        _SIN,
        **settings(gather_position_arg_id=3),
        says="gather_position_arg_id is 3",
        id="no positions",
    ),
    refuses(
        "RoPE",
        INNER,
        _X,
        _COS,
        _SIN,
        **settings(slice_stop=13),
        says="config.slice_stop is 13, data have 12 columns",
        id="slice beyond the columns",
    ),
]

H, K, S, V, P = 4, 2, 8, 6, 6


def paged(
    id: str, past: tuple[int, ...] = (0, 40), new: tuple[int, ...] = (5, 3), blocks: tuple[tuple[int, ...], ...] = ((4,), (2, 0)),
    kind: str = "f32", gives: Any = None, **other: Any,
) -> Row:  # fmt: skip
    """A row of attention: the second sequence has tokens of earlier runs."""
    inputs = cached(past, new, blocks, kind) | other
    attributes = {"write_kv_cache": True}
    return case("PagedAttentionExtension", "extension", *inputs.values(), gives=gives, id=id, **attributes)


def cached(
    past: tuple[int, ...], new: tuple[int, ...], blocks: tuple[tuple[int, ...], ...], kind: str
) -> dict[str, Any]:
    tokens = sum(new)
    return {
        "query": random(kind, tokens, H * S, low=-2, high=2), "key": random(kind, tokens, K * S, seed=1, low=-2, high=2),
        "value": random(kind, tokens, K * V, seed=2), "key_cache": random(kind, P, K, 32, S, seed=3, low=-2, high=2),
        "value_cache": random(kind, P, K, 32, V, seed=4), "past_lens": indices(*past),
        "subsequence_begins": indices(0, *np.cumsum(new)), "block_indices": indices(*sum(blocks, ())),
        "block_indices_begins": indices(0, *np.cumsum([len(of) for of in blocks])), "scale": typed(kind, 0.3),
        "sliding_window": number(0), "alibi_slopes": nothing(kind=kind), "max_context_len": number(1024),
        "score_aggregation_window": nothing(kind="i32"), "rotated_block_indices": nothing(kind="i32"),
        "rotation_deltas": nothing(0, 0, kind="i32"), "rotation_trig_lut": nothing(0, 0),
        "xattention_threshold": nothing(), "xattention_block_size": number(0), "xattention_stride": number(0),
        "sinks": nothing(0, 0, 0, 0, kind=kind), "adaptive_rkv_start_size": number(0),
        "adaptive_rkv_evictable_sizes": nothing(kind="i32"), "diversity_indices": nothing(kind="i32"),
        "diversity_begins": nothing(kind="i32"), "token_type_ids": nothing(kind="i32"), "qq_bias": nothing(kind="u8"),
        "qq_bias_begins": nothing(kind="i32"),
    }  # fmt: skip


def unfit(
    id: str,
    says: str,
    past: tuple[int, ...] = (0, 40),
    new: tuple[int, ...] = (5, 3),
    blocks: Any = ((4,), (2, 0)),
    **other: Any,
) -> Row:
    inputs = cached(past, new, blocks, "f32") | other
    return refuses("PagedAttentionExtension", "extension", *inputs.values(), says=says, id=id)


_TREE = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [1, 0, 1, 0, 1]]
_ANGLES = random("f32", 3, 4, seed=9).array
_TURNS = typed("f32", np.concatenate([np.cos(_ANGLES), np.sin(_ANGLES)], 1))
ROWS += [
    paged("two sequences"),
    paged("every token's weights", score_aggregation_window=indices(9, 9)),
    paged("weights of the last tokens", score_aggregation_window=indices(2, 1)),
    paged("no weights", score_aggregation_window=indices(0, 0)),
    paged("sliding window", sliding_window=number(4), score_aggregation_window=indices(9, 9)),
    paged("slopes", alibi_slopes=typed("f32", [0.1, 0.2, 0.3, 0.4])),
    paged("sinks", sinks=typed("f32", np.float32([0.1, 2, -3, 0.4]).reshape(1, 4, 1, 1))),
    paged(
        "tree of tokens",
        qq_bias=typed("u8", [*np.ravel(_TREE), 1, 0, 0, 1, 1, 0, 1, 0, 1]),
        qq_bias_begins=indices(0, 25, 34),
    ),
    paged("tree of one sequence", qq_bias=typed("u8", np.ravel(_TREE)), qq_bias_begins=indices(0, 25, 25)),
    paged("images", token_type_ids=indices(0, 1, 1, 1, 0, 0, 1, 1), sliding_window=number(2)),
    paged(
        "rotated blocks",
        rotated_block_indices=indices(2, 0),
        rotation_deltas=typed("i32", [[1], [2]]),
        rotation_trig_lut=_TURNS,
    ),
    paged(
        "rotated tokens",
        rotated_block_indices=indices(0, 2),
        rotation_trig_lut=_TURNS,
        rotation_deltas=typed("i32", np.arange(64).reshape(2, 32) % 3),
    ),
    paged("one token each", past=(40, 31, 0), new=(1, 1, 1), blocks=((1, 3), (5,), (0,))),
    paged(
        "limited context",
        max_context_len=number(2),
        past=(0,),
        new=(3,),
        blocks=((1,),),
        key=nothing(3, K * S),
        gives=(
            np.stack(
                [
                    np.repeat(
                        (v := random("f32", 3, K * V, seed=2).array.reshape(3, K, V))[max(i - 1, 0) : i + 1].mean(0),
                        2,
                        0,
                    ).ravel()
                    for i in range(3)
                ]
            ),
            np.float32([0, 2, 2]),
            np.zeros(0, np.float32),
        ),
    ),
]


def alone(id: str, value: Any, *gone: str, attends: Any = None, window: Any = None, **attributes: Any) -> Row:
    """A token that attends to itself alone: its own value, and a weight of 1 from each of the four heads."""
    inputs = cached((0,), (1,), ((1,),), "f32") | {"value": value}
    if window is not None:
        inputs["score_aggregation_window"] = window
    found = value.array if attends is None else attends
    gives = np.repeat(found.reshape(K, V), 2, 0).reshape(1, -1), np.float32([4]), np.zeros(0, np.float32)
    given = [array for name, array in inputs.items() if name not in gone]
    return case("PagedAttentionExtension", "extension", *given, **attributes, gives=gives, id=id)


_VALUE = random("f32", 1, K * V, seed=2)
_ODD = typed("f32", np.where(np.arange(K * V) == 3, NAN, _VALUE.array))
_FULL = cached((0, 40), (5, 3), ((4,), (2, 0)), "f32")
_OPEN = [f"{x.element}[{','.join('?' * x.array.ndim)}]" for x in _FULL.values()]
_WHOLE = {3: "f32[?,2,32,8]", 4: "f32[?,2,32,6]"}
ROWS += [
    alone("one token", _VALUE),
    alone("one token, by default", _VALUE, "token_type_ids", "qq_bias", "qq_bias_begins"),
    alone("token types alone", _VALUE, "qq_bias", "qq_bias_begins"),
    alone("no begins of the bias", _VALUE, "qq_bias_begins"),
    alone("what the cache holds", _VALUE, attends=_FULL["value_cache"].array[1, :, 0], write_kv_cache=False),
    alone("NaN", _ODD),
    # The CPU plugin writes beyond its memory below 0.
    alone("window of all tokens", _VALUE, window=indices(-1)),
    paged("f16", kind="f16"),
    paged("bf16", kind="bf16"),
    paged(
        "empty",
        (0,),
        (0,),
        ((),),
        gives=(np.zeros((0, H * V), np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32)),
    ),
    facts_case(
        "PagedAttentionExtension", "extension", "f32[?,32]", "f32[?,16]", "f32[7,12]",
        *[_WHOLE.get(i, text) for i, text in enumerate(_OPEN) if i > 2],
        gives=("f32[7,24]", "f32[?]", "f32[0]"), id="dynamic",
    ),
    facts_case(
        "PagedAttentionExtension", "extension", *_OPEN, gives=("f32[?,?]", "f32[?]", "f32[0]"), id="nothing known",
    ),
    unfit("slopes of other heads", "alibi_slopes has 3 elements, expected 4 or none", alibi_slopes=random("f32", 3)),
    unfit("sinks of other heads", "sinks has 2 elements, expected 4 or none", sinks=random("f32", 1, 2, 1, 1)),
    unfit("types of other tokens", "token_type_ids has 3 elements, expected 8", token_type_ids=indices(0, 1, 1)),
    unfit("windows of other sequences", "has 3 elements, expected 2 or none", score_aggregation_window=indices(1, 1, 1)),
    unfit(
        "angles of other blocks", "rotation_deltas has shape [1,3] for 2 rotated blocks of 32",
        rotated_block_indices=indices(2, 0), rotation_deltas=typed("i32", [[1, 1, 1]]), rotation_trig_lut=_TURNS,
    ),
    unfit("angles of other heads", "rotation_trig_lut has shape [3,6]", rotation_trig_lut=random("f32", 3, 6)),
    unfit("columns of keys", "key has 8 columns, expected 16", key=random("f32", 8, 8)),
    unfit("columns of queries", "query has 40 columns, expected a multiple of 16", query=random("f32", 8, 40)),
    unfit("heads of the caches", "value_cache has shape [6,3,32,6], expected [6,2,32,?]", value_cache=random("f32", 6, 3, 32, V)),
]  # fmt: skip
