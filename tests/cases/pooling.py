"""Rows of pooling."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 1, 2, 6, 7)


def texts(strides="2, 2", begin="0, 0", end="0, 0", kernel="3, 3", **more):
    return {"strides": strides, "pads_begin": begin, "pads_end": end, "kernel": kernel} | more


ROWS = []
POOLS = [("MaxPool", 1, {}), ("MaxPool", 8, {}), ("MaxPool", 14, {})]
POOLS += [("AvgPool", since, {"exclude-pad": flag}) for since in (1, 14, 16) for flag in ("true", "false")]
for op, since, extra in POOLS:
    row = Operation(op, since)
    with_dilations = (op, since) in (("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 16))
    what = f", exclude-pad {extra['exclude-pad']}" if extra else ""
    two = {"dilations": "1, 1"} if with_dilations else {}
    one = {"dilations": "1"} if with_dilations else {}
    three = {"dilations": "1, 1, 1"} if with_dilations else {}
    ROWS += [
        row(X, **texts(**extra, **two), id=f"plain{what}"),
        row.refuses(
            "f32[...]",
            **texts(strides="", **extra, **two),
            says="strides has length 0, expected 2",
            id=f"no strides{what}",
        ),
        row(X, **texts(strides="1, 1", begin="1, 1", end="1, 1", **extra, **two), id=f"padded{what}"),
        row(X, **texts(begin="1, 0", end="0, 2", **extra, **two), id=f"uneven{what}"),
        row(X, **texts(rounding_type="ceil", **extra, **two), id=f"ceil{what}"),
        row(X, **texts(begin="1, 1", end="1, 1", rounding_type="ceil", **extra, **two), id=f"ceil, padded{what}"),
        row(X, **texts(auto_pad="same_upper", **extra, **two), id=f"same_upper{what}"),
        row(X, **texts(auto_pad="same_lower", **extra, **two), id=f"same_lower{what}"),
        row(X, **texts(auto_pad="valid", **extra, **two), id=f"valid{what}"),
        row(random("f32", 2, 3, 9), **texts("2", "1", "1", "3", **extra, **one), id=f"1-D{what}"),
        row(
            random("f32", 1, 2, 4, 5, 4),
            **texts("1, 2, 1", "0, 1, 0", "0, 1, 1", "2, 3, 2", **extra, **three),
            id=f"3-D{what}",
        ),
        row(random("f16", 1, 2, 6, 6), **texts(**extra, **two), id=f"f16{what}"),
        row.facts("f32[?,2,?,7..9]", **texts(**extra, **two), id=f"dynamic{what}"),
        row.facts("f32[1,2,6..10,?]", **texts(auto_pad="same_upper", **extra, **two), id=f"dynamic same{what}"),
    ]
    if since >= 14:
        for begin, end in (("0, 0", "0, 0"), ("1, 1", "1, 1"), ("1, 0", "0, 1")):
            ROWS.append(
                case(
                    op,
                    since,
                    X,
                    **texts("3, 3", begin, end, "2, 2", rounding_type="ceil_torch", **extra, **two),
                    id=f"ceil_torch {begin}{end}{what}",
                )
            )
    if with_dilations:
        ROWS.append(row(X, **texts("1, 1", "1, 1", "1, 1", "2, 2", dilations="2, 3", **extra), id=f"dilated{what}"))
max_pool_1 = Operation("MaxPool", 1)
max_pool_8 = Operation("MaxPool", 8)
adaptive_avg_pool = Operation("AdaptiveAvgPool", 8)
adaptive_max_pool = Operation("AdaptiveMaxPool", 8)
avg_pool_14 = Operation("AvgPool", 14)
ROWS += [
    max_pool_1.refuses(
        "f32[1,2,6]", **texts(), says="does not have a batch, channels and 2 spatial axes", id="other rank"
    ),
    max_pool_1.refuses("f32[1,2,2,2]", **texts(), says="does not fit", id="kernel too large"),
    refuses("AvgPool", 1, "f32[1,2,2,2]", **texts(), exclude_pad="true", says="does not fit", id="kernel too large"),
    max_pool_1(
        random("f32", 1, 2, 4), **texts("2", "0", "1", "2", rounding_type="ceil"), id="a window beside the data"
    ),
    max_pool_8(
        random("f32", 1, 2, 4),
        **texts("2", "0", "1", "2", dilations="1", rounding_type="ceil", index_element_type="i32"),
        id="a window beside the data",
    ),
    case(
        "AvgPool",
        1,
        typed("i8", [[[[5, -4, 5, -3, 4, 6]]]]),
        **texts("1, 1", "0, 1", "0, 0", "1, 2"),
        exclude_pad="true",
        id="i8 is rounded, halves to even",
    ),
    avg_pool_14(
        typed("i32", [[[[5, -4, 5, -3, 4, 6]]]]),
        **texts("1, 1", "0, 1", "0, 0", "1, 3"),
        exclude_pad="false",
        id="i32 is rounded",
    ),
    case(
        "AvgPool",
        16,
        typed("u8", [[[[0, 5, 3], [1, 5, 1], [2, 5, 4]]]]),
        **texts("3, 1", "1, 1", "0, 0", "3, 2", dilations="1, 1"),
        exclude_pad="true",
        id="u8 is rounded",
    ),
    max_pool_1.facts(
        "f32[1,2,3,?]",
        **texts("3, 3", kernel="1, 2", rounding_type="ceil", auto_pad="same_upper"),
        id="same_upper, ceil, strides beyond windows",
    ),
    avg_pool_14.facts(
        "f32[1,2,6,5]",
        **texts("4, 3", kernel="1, 2", rounding_type="ceil_torch", auto_pad="same_lower"),
        exclude_pad="true",
        id="same_lower, ceil_torch, strides beyond windows",
    ),
    facts_case(
        "MaxPool",
        14,
        "f32[1,2,5..,3..7]",
        **texts("3, 3", "0, 0", "1, 1", "2, 2", dilations="1, 1", rounding_type="ceil_torch"),
        id="ceil_torch, bounded",
    ),
    # By hand: windows at pixels 0 and 3 end before the data does, so that there are no pads.
    max_pool_1(
        typed("f32", np.arange(1, 7).reshape(1, 1, 6, 1)),
        **texts("3, 1", kernel="2, 1", auto_pad="same_upper"),
        gives=np.array([[[[2], [5]]]], np.float32),
        id="same_upper, strides beyond the kernel",
    ),
    max_pool_1(typed("i32", [[[[1, 5, 2], [7, 3, 4], [0, -9, 8]]]]), **texts("1, 1", kernel="2, 2"), id="i32"),
    max_pool_8(X, **texts(dilations="1, 1", index_element_type="i32"), id="i32 indices"),
    max_pool_8(
        random("f32", 2, 2, 4, 4), **texts("2, 2", kernel="2, 2", dilations="1, 1", axis="2"), id="indices from axis 2"
    ),
    max_pool_8(
        random("f32", 2, 2, 4, 4), **texts("2, 2", kernel="2, 2", dilations="1, 1", axis="1"), id="indices from axis 1"
    ),
    adaptive_avg_pool(X, [3, 2], id="2-D"),
    adaptive_avg_pool(X, [4, 5], id="2-D uneven"),
    adaptive_avg_pool(random("f32", 2, 3, 7), [3], id="1-D"),
    adaptive_avg_pool(random("f32", 1, 2, 4, 5, 6), [2, 3, 4], id="3-D"),
    adaptive_avg_pool(X, [1, 1], id="global"),
    # By hand: 25 / 6 and 15 / 6, which is half way between two integers; the even one is taken.
    adaptive_avg_pool(
        typed("u8", [[[[7, 0, 7, 0], [7, 8, 1, 0], [2, 1, 6, 1]]]]),
        [1, 2],
        gives=np.array([[[[4, 2]]]], np.uint8),
        id="half of u8",
    ),
    adaptive_avg_pool.facts("f32[?,2,?,7]", [3, 2], id="dynamic"),
    adaptive_avg_pool.facts("f32[1,2,6,7]", "i64[2]", id="sizes unknown"),
    adaptive_avg_pool.refuses(
        "f32[1,2,6,7]",
        [3],
        says="output_shape has length 1, expected 2: one value for each spatial axis",
        id="too few sizes",
    ),
    adaptive_max_pool(X, [3, 2], index_element_type="i32", id="2-D"),
    adaptive_max_pool(X, [4, 5], index_element_type="i32", id="2-D uneven"),
    adaptive_max_pool(random("f32", 2, 3, 7), [3], index_element_type="i32", id="1-D"),
    adaptive_max_pool(random("f32", 1, 2, 4, 5, 6), [2, 3, 4], index_element_type="i32", id="3-D"),
    # By hand: the maximum of three windows, with indices of 64 bits.
    adaptive_max_pool(
        [[[1.0, 5.0, 2.0, 7.0, 3.0, 0.0]]],
        [3],
        index_element_type="i64",
        gives=(np.array([[[5, 7, 3]]], np.float32), typed("i64", [[[1, 3, 4]]])),
        id="i64 indices",
    ),
    adaptive_max_pool.facts("f32[?,2,?,7]", [3, 2], index_element_type="i32", id="dynamic"),
]
LOWEST = {
    "f16": -65504.0,
    "bf16": float(np.uint32(0xFF7F0000).view(np.float32)),
    "f64": -np.finfo(np.float64).max,
    "f8e4m3": -448.0,
    "f8e5m2": -57344.0,
    "f4e2m1": -6.0,
    "i4": -8,
    "u4": 0,
}
BORDERS = np.float32([[[np.nan, np.nan, 1, -np.inf, -np.inf]]])
LINE = np.float32([[[np.nan, 1, 2, np.inf, -np.inf, 0, np.nan, np.nan]]])
for since in (1, 8, 14):
    # NaN is passed over, and stays where there is nothing else, of which OpenVINO makes its lowest number.
    row = Operation("MaxPool", since)
    values = np.float32([[[1, np.inf, 0, np.nan]]])
    gives = values if since == 1 else (values, np.array([[[1, 3, 5, 6]]]))
    more = {} if since == 1 else {"dilations": "1"}
    # Padding counts as the lowest number, as in OpenVINO.
    lowest = -np.finfo(np.float32).max
    beside = np.float32([[[lowest, np.nan, 1, 1, -np.inf, lowest]]])
    ROWS += [
        row(
            BORDERS,
            **texts("1", "1", "1", "2", **more),
            gives=beside if since == 1 else (beside, np.array([[[0, 0, 2, 2, 3, 4]]])),
            id="NaN and infinities beside padding",
        ),
        row(LINE, **texts("2", "0", "0", "2", **more), gives=gives, id="NaN and infinities"),
        *(
            # numeric_limits<T>::lowest() of OpenVINO's types, by their bits; see max_pool_1 for what its implementations do.
            row(
                typed(name, [[[1.0, 3.0, 2.0]]]),
                **texts("3", "0", "2", "2", rounding_type="ceil", **more),
                gives=tuple(
                    array
                    for array in (typed(name, [[[3.0, lowest]]]).array, np.array([[[1, 0]]]))[: 1 if since == 1 else 2]
                ),
                id=f"a window beside the data, {name}",
            )
            for name, lowest in LOWEST.items()
        ),
        row.refuses(
            "boolean[1,2,6,6]",
            **texts(**({} if since == 1 else {"dilations": "1, 1"})),
            says="data has element type boolean, expected a numeric type",
            id="booleans",
        ),
    ]
    if since > 1:
        ROWS += [
            row(
                random("f32", 2, 2, 4, 4),
                **texts("2, 2", kernel="2, 2", dilations="1, 1", axis="-2", index_element_type="i32"),
                id="indices from the last but one, i32",
            ),
            row.refuses("f32[1,2,6]", **texts(dilations="1, 1"), says="spatial axes", id="other rank"),
        ]
for since in (14, 16):
    ROWS.append(
        refuses("AvgPool", since, "f32[1,2,6]", **texts(exclude_pad="true"), says="spatial axes", id="other rank")
    )
# The plugin refuses an empty batch; there is nothing to compute.
for op, since, extra in POOLS:
    more = {} if (op, since) in (("MaxPool", 1), ("AvgPool", 1), ("AvgPool", 14)) else {"dilations": "1, 1"}
    empty = np.zeros((0, 2, 2, 3), np.float32)
    gives = (empty, empty.astype(np.int64)) if op == "MaxPool" and since > 1 else empty
    ROWS.append(
        case(
            op,
            since,
            random("f32", 0, 2, 6, 7),
            **texts(**extra, **more),
            gives=gives,
            id=f"empty{''.join(extra.values())}",
        )
    )
ROWS += [
    adaptive_avg_pool(random("f32", 1, 2, 3, 3), [0, 2], gives=np.zeros((1, 2, 0, 2), np.float32), id="no windows"),
    adaptive_avg_pool(random("f32", 1, 1, 2), [5], id="more windows than numbers"),
    adaptive_max_pool(random("f32", 1, 1, 2), [5], index_element_type="i32", id="more windows than numbers"),
    adaptive_max_pool.refuses(
        "f32[1,2,6,7]",
        [3],
        says="output_shape has length 1, expected 2: one value for each spatial axis",
        id="too few sizes",
    ),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "AdaptiveAvgPool", "AdaptiveMaxPool")]
ROWS += [
    # OpenVINO gives what was in memory.
    adaptive_avg_pool.refuses(
        "f32[1,2,0,7]", [3, 2], says="an axis of size 0 cannot be divided into 3 windows", id="nothing to divide"
    ),
    adaptive_max_pool.refuses(
        "f32[1,2,3,0]", [3, 2], says="an axis of size 0 cannot be divided into 2 windows", id="nothing to divide"
    ),
    adaptive_avg_pool(
        random("f32", 1, 2, 0, 3), [0, 2], gives=np.zeros((1, 2, 0, 2), np.float32), id="nothing into nothing"
    ),
    adaptive_max_pool(
        random("f32", 1, 2, 0, 3),
        [0, 2],
        gives=(np.zeros((1, 2, 0, 2), np.float32), np.zeros((1, 2, 0, 2), np.int64)),
        id="nothing into nothing",
    ),
]
