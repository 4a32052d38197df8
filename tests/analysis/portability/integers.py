"""Differences in values: integers, bytes, comparisons and windows."""

from __future__ import annotations

import numpy as np

from irexec.testing import random, typed
from tests.analysis.portability.row import FIRST, SQUARE, Rows, has, has_not, ints

NEGATIVE = (-7, 7, -8, 5)
for _type in ("i8", "i16", "i32", "i64"):
    has("IR911", _type, "Divide", 1, ints(_type, *NEGATIVE), ints(_type, 2, -2, 3, 2), m_pythondiv="true")
has("IR911", "by default", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 2, 2, 3, 2))
has_not("IR911", "cut as asked for", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 2, -2, 3, 2), m_pythondiv="false")
has_not("IR911", "unsigned", "Divide", 1, ints("u8", 7, 8, 9), ints("u8", 2, 3, 4), m_pythondiv="true")
has_not("IR911", "floats", "Divide", 1, random("f32", 4), random("f32", 4, low=1, high=2))
has_not("IR911", "by one", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 1, -1, 1, 1), parameters=FIRST)

for _name in ("Add", "Multiply", "Maximum"):
    has("IR987", _name, _name, 1, ints("i64", 7, 3), ints("i64", 2**40, 1), parameters=FIRST)
has("IR987", "Divide", "Divide", 1, ints("i32", 123456789, 3), ints("i32", 3, 3), parameters=(1,))
has("IR987", "FloorMod", "FloorMod", 1, ints("i32", 123456789, 3), ints("i32", 2**24 + 3, 7), parameters=FIRST)
has_not("IR987", "24 bits", "FloorMod", 1, ints("i32", 7, 3), ints("i32", 2**24, 3), parameters=FIRST)
has_not("IR987", "small", "Add", 1, ints("i64", 7, 3), ints("i64", 2**30, 1), parameters=FIRST)
has_not("IR987", "i32", "Add", 1, ints("i32", 2**30, 3), ints("i32", 2, 1))

for _name in ("Less", "GreaterEqual"):
    has(
        "IR912",
        "f32",
        _name,
        1,
        random("f32", 3, 3, **SQUARE),
        random("f32", 3, **SQUARE, seed=3),
        auto_broadcast="pdpd",
    )
ir912_equal = Rows("IR912", "Equal", 1, auto_broadcast="pdpd")
ir912_equal.has("i32", random("i32", 3, 3, **SQUARE), random("i32", 3, **SQUARE, seed=3))
has(
    "IR912",
    "i32",
    "BitwiseAnd",
    13,
    random("i32", 3, 3, low=0, high=99),
    random("i32", 3, low=0, high=99, seed=3),
    auto_broadcast="pdpd",
)
ir912_equal.has_not("f32", random("f32", 3, 3, **SQUARE), random("f32", 3, **SQUARE, seed=3))
ir912_less = Rows("IR912", "Less", 1)
ir912_less.has_not(
    "same rank", random("f32", 3, 3, **SQUARE), random("f32", 3, 1, **SQUARE, seed=3), auto_broadcast="pdpd"
)
ir912_less.has_not("numpy", random("f32", 3, 3, **SQUARE), random("f32", 3, **SQUARE, seed=3))
ir912_less.has_not(
    "one element", random("f32", 3, 3, **SQUARE), random("f32", 1, **SQUARE, seed=3), auto_broadcast="pdpd"
)

for _name, _since in (("ReduceSum", 1), ("ReduceMean", 1), ("ReduceProd", 1), ("ReduceL1", 4), ("ReduceL2", 4)):
    for _type in ("i8", "u8"):
        has(
            "IR913",
            _type,
            _name,
            _since,
            random(_type, 2, 9, low=60, high=120),
            [1],
            keep_dims="true",
            parameters=FIRST,
        )
    has_not("IR913", "i32", _name, _since, random("i32", 2, 3, low=1, high=9), [1], keep_dims="true", parameters=FIRST)

for _name, _of_i8, _of_u8 in (("Add", 100, 200), ("Subtract", -100, 10), ("Multiply", 10, 10)):
    for _type, _first in (("i8", _of_i8), ("u8", _of_u8)):
        has("IR913", _type, _name, 1, ints(_type, _first, 3), ints(_type, 101, 2), parameters=FIRST)
    has_not("IR913", "i32", _name, 1, ints("i32", 100, 3), ints("i32", 101, 2), parameters=FIRST)
has("IR913", "u8", "Power", 1, random("u8", 2, 9, low=17, high=50), ints("u8", 2), parameters=FIRST)
has(
    "IR913",
    "i8",
    "MatMul",
    1,
    random("i8", 2, 9, low=17, high=50),
    random("i8", 9, 2, low=17, high=50),
    parameters=FIRST,
)

has("IR914", "u8", "AdaptiveAvgPool", 8, random("u8", 1, 2, 3, 3, low=30, high=100), [1, 1], parameters=FIRST)
has_not("IR914", "2 x 2", "AdaptiveAvgPool", 8, random("u8", 1, 2, 4, 4, low=30, high=100), [2, 2], parameters=FIRST)
has_not("IR914", "f32", "AdaptiveAvgPool", 8, random("f32", 1, 2, 3, 3), [1, 1], parameters=FIRST)

_ONNX = {"mode": "linear_onnx", "shape_calculation_mode": "sizes"}
ir915 = Rows("IR915", "Interpolate", 4, parameters=FIRST)
for _type in ("i8", "u8"):
    ir915.has(_type, random(_type, 1, 2, 5, 5, low=0, high=100), [13, 11], [2.6, 2.2], [2, 3], **_ONNX)
ir915.has_not("i32", random("i32", 1, 2, 5, 5, low=0, high=100), [13, 11], [2.6, 2.2], [2, 3], **_ONNX)
ir915.has_not(
    "nearest", random("u8", 1, 2, 5, 5, low=0, high=100), [10, 10], [2.0, 2.0], [2, 3], **(_ONNX | {"mode": "nearest"})
)

ir916 = Rows("IR916", "GridSample", 9)
for _type in ("i8", "u8"):
    for _mode in ("bilinear", "bicubic"):
        ir916.has(f"{_type} {_mode}", random(_type, 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode=_mode)
ir916.has_not("i32", random("i32", 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode="bilinear")
ir916.has_not("nearest", random("u8", 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode="nearest")

_POOL = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2"}
has("IR917", "u8", "MaxPool", 8, typed("u8", np.zeros((1, 2, 4, 4))), **_POOL)
has_not("IR917", "i8", "MaxPool", 8, typed("i8", np.zeros((1, 2, 4, 4))), **_POOL)
has_not("IR917", "f32", "MaxPool", 14, random("f32", 1, 2, 4, 4), **_POOL)

_BESIDE = {"strides": "3,3", "pads_begin": "0,0", "pads_end": "2,2", "kernel": "2,2", "rounding_type": "ceil"}
ir918 = Rows("IR918", "MaxPool", 1)
for _type in ("f16", "f64"):
    ir918.has(_type, random(_type, 1, 1, 4, 4, low=-9, high=9), **_BESIDE)
    ir918.has_not(
        f"{_type}, in the data",
        random(_type, 1, 1, 4, 4, low=-9, high=9),
        strides="2,2",
        pads_begin="0,0",
        pads_end="1,1",
        kernel="2,2",
    )
for _type in ("f32", "bf16"):
    ir918.has_not(_type, random(_type, 1, 1, 4, 4, low=-9, high=9), **_BESIDE)

_PILLOW = {"mode": "bicubic_pillow", "shape_calculation_mode": "sizes"}
ir919 = Rows("IR919", "Interpolate", 11, parameters=FIRST, **_PILLOW)
ir919.has("-0.75", random("f32", 1, 2, 5, 5), [13, 11], [2, 3], cube_coeff="-0.75")
ir919.has_not("-0.5", random("f32", 1, 2, 5, 5), [13, 11], [2, 3], cube_coeff="-0.5")


# Models of irexec.analysis.portability.windows.


for _name, _shape, _kernel, _strides, _ends, _exclude, _rounding in (
    ("beyond the end", (1, 3, 16, 10), "1,1", "1,2", "0,0", "false", "ceil"),
    ("beyond the end, excluded", (1, 3, 16, 10), "1,1", "1,2", "0,0", "true", "ceil"),
    ("padding", (2, 2, 2, 1), "1,3", "2,2", "0,2", "true", "ceil"),
    ("padding that counts", (2, 2, 2, 1), "1,3", "2,2", "0,2", "false", "floor"),
    ("all of them", (2, 2, 4, 4), "2,2", "2,2", "0,0", "true", "ceil"),
):
    (has if "beyond" in _name or _name == "padding" else has_not)(
        "IR970", _name, "AvgPool", 1, random("f32", *_shape), kernel=_kernel, strides=_strides,
        pads_begin=_ends, pads_end=_ends, exclude_pad=_exclude, rounding_type=_rounding,
    )  # fmt: skip

for _name, _data, _weights, _strides, _begins, _ends in (
    ("3x3", (1, 1, 7, 4), (16, 1, 3, 3), "1,2", "1,0", "2,0"),
    ("1x2", (10, 1, 2, 1), (16, 1, 1, 2), "1,2", "0,0", "0,1"),
    ("two channels", (1, 2, 7, 4), (16, 2, 3, 3), "1,2", "1,0", "2,0"),
    ("two windows", (1, 1, 7, 5), (16, 1, 3, 3), "1,2", "1,0", "2,0"),
    ("equal strides", (1, 1, 7, 4), (16, 1, 3, 3), "2,2", "1,0", "2,0"),
):
    (has if _name.startswith(("3", "1")) else has_not)(
        "IR972", _name, "Convolution", 1, random("f32", *_data), random("f32", *_weights, seed=1), strides=_strides,
        pads_begin=_begins, pads_end=_ends, dilations="1,1", parameters=FIRST,
    )  # fmt: skip

_VOLUME = {"pads_begin": "0,0,0", "pads_end": "0,0,0", "dilations": "1,1,1", "parameters": FIRST}
for _name, _data, _weights, _strides in (
    ("2x2x2", (3, 1, 3, 3, 3), (2, 1, 2, 2, 2), "2,1,2"),
    ("1x1x2", (2, 1, 3, 5, 3), (2, 1, 1, 1, 2), "1,1,2"),
    ("equal strides", (3, 1, 3, 4, 3), (2, 1, 2, 2, 2), "1,2,2"),
):
    (has if _name.endswith("x2") else has_not)(
        "IR972", _name, "Convolution", 1, random("f32", *_data), random("f32", *_weights, seed=1), strides=_strides,
        **_VOLUME,
    )  # fmt: skip
# With one thread.
has(
    "IR972", "one volume", "Convolution", 1, random("f32", 1, 1, 3, 3, 3), random("f32", 2, 1, 2, 2, 2, seed=1),
    strides="1,1,2", **_VOLUME, asked=False,
)  # fmt: skip
has(
    "IR972", "padded", "GroupConvolution", 1, random("f32", 5, 1, 2, 3, 1), random("f32", 1, 2, 1, 2, 2, 2, seed=1),
    strides="1,1,2", **_VOLUME | {"pads_begin": "0,0,1", "pads_end": "0,0,1"},
)  # fmt: skip

# On tiles, in bf16 or int8: processors without AMX are right.
for _name, _data, _weights, _strides, _pads, _fires in (
    ("padded", (1, 64, 56, 2), (64, 64, 3, 3), "2,2", "1,1", True),
    ("larger stride", (3, 6, 16, 2), (1, 6, 1, 2), "2,3", "0,0", True),
    ("stride of the kernel", (3, 6, 16, 2), (8, 6, 1, 2), "2,2", "0,0", False),
    ("one channel", (3, 1, 16, 2), (1, 1, 1, 2), "2,3", "0,0", False),
    ("one row", (1, 6, 2, 2), (8, 6, 2, 2), "3,3", "0,0", False),
    ("two windows", (1, 6, 32, 5), (8, 6, 1, 2), "2,3", "0,0", False),
):
    (has if _fires else has_not)(
        "IR1000", _name, "Convolution", 1, random("f32", *_data), random("f32", *_weights, seed=1), strides=_strides,
        pads_begin=_pads, pads_end=_pads, dilations="1,1", parameters=FIRST, asked=False,
    )  # fmt: skip

_EMPTY = typed("f32", np.zeros((1, 3, 0, 2)))
_WINDOWS_POOL = {"kernel": "2,2", "strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
has("IR973", "padding alone", "AvgPool", 1, _EMPTY, exclude_pad="false", **_WINDOWS_POOL, asked=False)
has(
    "IR973", "padding of images", "Convolution", 1, typed("f32", np.zeros((1, 2, 0, 4))), random("f32", 3, 2, 3, 3),
    strides="1,1", pads_begin="2,1", pads_end="2,1", dilations="1,1", parameters=FIRST, asked=False,
)  # fmt: skip
has_not("IR973", "data", "AvgPool", 1, random("f32", 1, 3, 3, 2), exclude_pad="false", **_WINDOWS_POOL)
has("IR973", "indices", "Gather", 8, typed("f32", np.zeros((3, 1, 4, 0))), [0], 2, parameters=FIRST)
has_not("IR973", "indices of data", "Gather", 8, random("f32", 3, 1, 4, 2), [0], 2, parameters=FIRST)

# What is in memory depends on chance, and FakeQuantize may end the process: OpenVINO is not asked.
has("IR947", "Tile", "Tile", 1, random("f32"), typed("i64", np.zeros(0)), asked=False)
has_not("IR947", "Tile", "Tile", 1, random("f32", 2), ints("i64", 1))
has("IR947", "Roll", "Roll", 7, random("f32", 4), typed("i64", np.zeros(0)), typed("i64", np.zeros(0)), asked=False)
ir948 = Rows("IR948", "FakeQuantize", 1, parameters=FIRST, levels="2")
ir948.has("a threshold", random("f32", 1, 2, 4, 4), 0.5, 0.5, 0.0, 1.0, asked=False)
ir948.has_not("a range", random("f32", 1, 2, 4, 4), 0.0, 0.5, 0.0, 1.0)

ir949 = Rows("IR949", "FakeQuantize", 1, levels="16", auto_broadcast="pdpd")
_BOUNDS = np.float32([-1]), np.float32([1]), np.float32([-0.9, -0.5, -0.2]), np.float32([0.8])
for _axis, _shape in ((0, (3, 2, 3)), (1, (2, 3, 4)), (2, (2, 2, 3, 1))):
    ir949.has(f"axis {_axis}", random("f32", *_shape), *_BOUNDS, **{"auto_broadcast.auto_broadcast_axis": _axis})
for _axis in (2, -1):
    ir949.has_not(f"axis {_axis}", random("f32", 2, 2, 3), *_BOUNDS, **{"auto_broadcast.auto_broadcast_axis": _axis})

_CHANNELS = np.float32([-1, -0.75, -0.5]).reshape(1, 3, 1, 1)
for _name, _levels, _low, _high in (
    ("low", 256, _CHANNELS, 1), ("high", 255, -1, -_CHANNELS), ("of 16 levels", 16, _CHANNELS, [[[[1]]]]),
    ("both", 256, _CHANNELS, -_CHANNELS), ("none", 256, -1, 1), ("100 levels", 100, _CHANNELS, 1),
):  # fmt: skip
    _ends = [np.array(-1, np.float32), np.array(1, np.float32), np.array(_low, np.float32), np.array(_high, np.float32)]
    (has if _name in ("low", "high", "of 16 levels") else has_not)(
        "IR999", _name, "FakeQuantize", 1, random("f32", 1, 3, 4, 4), *_ends, levels=str(_levels), parameters=FIRST
    )
