"""Models of irexec.analysis.portability.windows."""

from __future__ import annotations

import numpy as np

from irexec.testing import random, typed
from tests.analysis.portability.row import FIRST, has, has_not, ints

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

_EMPTY = typed("f32", np.zeros((1, 3, 0, 2)))
_POOL = {"kernel": "2,2", "strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
has("IR973", "padding alone", "AvgPool", 1, _EMPTY, exclude_pad="false", **_POOL, asked=False)
has_not("IR973", "data", "AvgPool", 1, random("f32", 1, 3, 3, 2), exclude_pad="false", **_POOL)
has("IR973", "indices", "Gather", 8, typed("f32", np.zeros((3, 1, 4, 0))), [0], 2, parameters=FIRST)
has_not("IR973", "indices of data", "Gather", 8, random("f32", 3, 1, 4, 2), [0], 2, parameters=FIRST)

# What is in memory depends on chance, and FakeQuantize may end the process: OpenVINO is not asked.
has("IR947", "Tile", "Tile", 1, random("f32"), typed("i64", np.zeros(0)), asked=False)
has_not("IR947", "Tile", "Tile", 1, random("f32", 2), ints("i64", 1))
has("IR947", "Roll", "Roll", 7, random("f32", 4), typed("i64", np.zeros(0)), typed("i64", np.zeros(0)), asked=False)
has(
    "IR948",
    "a threshold",
    "FakeQuantize",
    1,
    random("f32", 1, 2, 4, 4),
    0.5,
    0.5,
    0.0,
    1.0,
    parameters=FIRST,
    levels="2",
    asked=False,
)
has_not(
    "IR948", "a range", "FakeQuantize", 1, random("f32", 1, 2, 4, 4), 0.0, 0.5, 0.0, 1.0, parameters=FIRST, levels="2"
)
