"""Rows of FakeConvert."""

import numpy as np

from irexec.testing import Row, random, typed
from tests.cases import Operation

_ENDS = [
    0.0, -0.0, 1.0, 1.0625, 1.1875, 2.0**-9, 2.0**-10, -(2.0**-8), 0.0129, 0.014, 447.0, 449.0, -470.0, 57344.0,
    61000.0, -65504.0, 1e6, np.inf, -np.inf, np.nan,
]  # fmt: skip
_WIDE = random("f32", 2, 3, 4, low=-500, high=500)
fake_convert = Operation("FakeConvert", 13)
ROWS: list[Row] = [
    *(fake_convert(_ENDS, 1.0, destination_type=to, id=f"ends {to}") for to in ("f8e4m3", "f8e5m2")),
    *(
        fake_convert(typed("f16", _ENDS), typed("f16", 1.0), destination_type=to, id=f"ends f16 {to}")
        for to in ("f8e4m3", "f8e5m2")
    ),
    *(
        fake_convert(random("f32", 400, low=-0.03, high=0.03), 1.0, destination_type=to, id=f"small {to}")
        for to in ("f8e4m3", "f8e5m2")
    ),
    *(
        fake_convert(random("f32", 400, low=-700, high=700), 1.0, destination_type=to, id=f"large {to}")
        for to in ("f8e4m3", "f8e5m2")
    ),
    fake_convert(_WIDE, 0.25, id="default type"),
    fake_convert(_WIDE, 0.25, 7.5, destination_type="f8e5m2", id="scale and shift"),
    fake_convert(_WIDE, random("f32", 1, 3, 1, low=0.1), random("f32", 1, 3, 1), destination_type="f8e4m3", id="scale of a channel"),
    fake_convert(_WIDE, random("f32", 4, low=0.1), random("f32", 4), destination_type="f8e4m3", id="scale of the last axis"),
    fake_convert(typed("f16", _WIDE.array), typed("f16", [0.3]), typed("f16", [0.7]), destination_type="f8e5m2", id="f16"),
    fake_convert(typed("bf16", _WIDE.array), typed("bf16", [0.3]), typed("bf16", [0.7]), destination_type="f8e4m3", id="bf16"),
    fake_convert(np.zeros((0, 3), np.float32), 1.0, gives=np.zeros((0, 3), np.float32), id="empty"),
    fake_convert.facts("f16[?,2..5]", "f16[1]", id="dynamic"),
    fake_convert.facts("f32[...]", "f32[]", id="rank unknown"),
    fake_convert.facts("f16[1..3,3..,4..]", "f16[1,1,4]", id="sizes from the scale"),
    fake_convert.refuses(_WIDE, random("f32", 3), says="cannot be broadcast", id="scale"),
    fake_convert.refuses(_WIDE, random("f32", 4), random("f32", 1), says="differ", id="shift"),
    fake_convert.refuses(random("f64", 3), random("f64", 1), says="data has element type f64, expected f16, bf16 or f32", id="f64"),
    fake_convert.refuses(_WIDE, 1.0, destination_type="f8e8m0", says="f8e8m0", id="type"),
]  # fmt: skip
ROWS += [fake_convert([1.0, -2.0, 0.0], scale, id=f"scale {scale:g}") for scale in (0.0, -1.0)]
ROWS += [fake_convert(1.3, 1.0, destination_type=to, id=f"scalar {to}") for to in ("f8e4m3", "f8e5m2")]
