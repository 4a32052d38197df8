"""Differences in values: boxes, recurrent layers, random values and other layers of networks."""

from __future__ import annotations

import numpy as np

from irexec.testing import random, typed
from tests.analysis.portability.row import FIRST, FORWARD, LSTM, STATES, Rows, has, has_not, ints, lstm_inputs

_BOXES = np.array([[0, 0, 3, 3], [2, 2, 2, 2]], np.float32)
_ALIGN = {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1.0", "mode": "avg", "aligned_mode": "half_pixel"}
has("IR920", "adaptive", "ROIAlign", 9, random("f32", 1, 2, 6, 6), _BOXES, [0, 0], sampling_ratio="0", **_ALIGN)
has_not("IR920", "2 samples", "ROIAlign", 9, random("f32", 1, 2, 6, 6), _BOXES, [0, 0], sampling_ratio="2", **_ALIGN)

_SSD = {"min_size": "0.4", "max_size": "0.9", "offset": "0.5"}
for _version in (1, 8):
    has("IR988", "relative", "PriorBox", _version, [2, 2], [20, 30], **_SSD, scale_all_sizes="false")
has_not("IR988", "in pixels", "PriorBox", 8, [2, 2], [20, 30], **_SSD)
has_not("IR988", "no max_size", "PriorBox", 8, [2, 2], [20, 30], min_size="0.4", offset="0.5", scale_all_sizes="false")

ir921 = Rows("IR921", "SegmentMax", 16, fill_mode="lowest", parameters=FIRST)
for _type in ("f16", "i64"):
    ir921.has(_type, random(_type, 4, 2, low=0, high=9), [0, 0, 2, 2])
for _type in ("f32", "i32"):
    ir921.has_not(_type, random(_type, 4, 2, low=0, high=9), [0, 0, 2, 2])
ir921.has_not("zero", random("i64", 4, 2, low=0, high=9), [0, 0, 2, 2], fill_mode="zero")

_SCATTER = ([0, 0, 2], [-2, -1, -1], 0)
ir922 = Rows("IR922", "ScatterElementsUpdate", 12, reduction="mean", use_init_val="true", parameters=(0, 2))
ir922.has("i32", ints("i32", -5, -5, 4), [0, 0, 2], ints("i32", -2, -1, -1), 0)
ir922.has_not("f32", random("f32", 3), [0, 0, 2], random("f32", 3, seed=1), 0)
ir922.has_not("sum", ints("i32", -5, -5, 4), [0, 0, 2], ints("i32", -2, -1, -1), 0, reduction="sum")

for _type in ("i8", "u8"):
    has("IR923", _type, "SquaredDifference", 1, ints(_type, 100, 3, 7), ints(_type, 95, 9, 7))
has_not("IR923", "i32", "SquaredDifference", 1, ints("i32", 100, 3, 7), ints("i32", 95, 9, 7))

_BINARY = {"mode": "xnor-popcount", "strides": "1,1", "dilations": "1,1"}
ir924 = Rows("IR924", "BinaryConvolution", 1, pad_value="0", parameters=FIRST, **_BINARY)
ir924.has("padded", random("f32", 1, 8, 4, 4), random("u1", 1, 8, 3, 3), pads_begin="1,1", pads_end="1,1")
ir924.has_not(
    "not padded", random("f32", 1, 8, 4, 4), random("u1", 1, 8, 3, 3), pads_begin="0,0", pads_end="0,0", asked=False
)

_CELL = (
    random("f32", 2, 3), random("f32", 2, 4, seed=1), random("f32", 2, 4, seed=2), random("f32", 16, 3, seed=3),
    random("f32", 16, 4, seed=4), random("f32", 16, seed=5),
)  # fmt: skip
has("IR925", "peepholes", "LSTMCell", 1, *_CELL, random("f32", 12, seed=6), hidden_size="4", parameters=STATES)
has("IR925", "input_forget", "LSTMCell", 1, *_CELL, hidden_size="4", input_forget="true", parameters=STATES)
has_not("IR925", "neither", "LSTMCell", 1, *_CELL, hidden_size="4", parameters=STATES)
has_not(
    "IR925", "peepholes of zero", "LSTMCell", 1, *_CELL, typed("f32", np.zeros(12)), hidden_size="4", parameters=STATES
)
has_not("IR925", "version 4", "LSTMCell", 4, *_CELL, hidden_size="4", parameters=STATES)

_GRU = (
    random("f32", 2, 3, 3), random("f32", 2, 1, 4, seed=1), ints("i32", 2, 3), random("f32", 1, 12, 3, seed=3),
    random("f32", 1, 12, 4, seed=4), random("f32", 1, 12, seed=5),
)  # fmt: skip
_BATCH = {0: "?,3,3", 1: "?,1,4", 2: "?,1,4", 3: "?"}
has("IR926", "dynamic batch", "LSTMSequence", 5, *lstm_inputs([2, 3]), parameters=range(4), shapes=_BATCH, **LSTM)
has(
    "IR926", "dynamic length", "LSTMSequence", 5, *lstm_inputs([2, 3]), parameters=range(4), shapes={0: "2,?,3"}, **LSTM
)
ir926_gru_sequence = Rows("IR926", "GRUSequence", 5, activations="sigmoid,tanh", **FORWARD)
ir926_gru_sequence.has("dynamic batch", *_GRU, parameters=range(3), shapes={0: "?,?,3", 1: "?,1,4", 2: "?"})
has_not("IR926", "static", "LSTMSequence", 5, *lstm_inputs([2, 3]), parameters=range(4), **LSTM)
ir926_gru_sequence.has_not("static", *_GRU, parameters=range(3))

_LRN = {"alpha": "0.5", "beta": "0.75", "bias": "1", "size": "3"}
for _axes in ([1, 2, 3], [0, 1, 2, 3]):
    has("IR927", f"{_axes}", "LRN", 1, random("f32", 2, 3, 4, 5), _axes, parameters=FIRST, **_LRN)
has_not("IR927", "three spatial axes", "LRN", 1, random("f32", 1, 2, 3, 4, 4), [2, 3, 4], parameters=FIRST, **_LRN)

for _bias in ("0.5", "1.5"):
    has("IR946", _bias, "LRN", 1, random("f32", 1, 2, 3, 4), [1], parameters=FIRST, **_LRN | {"bias": _bias})
has_not("IR946", "2", "LRN", 1, random("f32", 1, 2, 3, 4), [1], parameters=FIRST, **_LRN | {"bias": "2"})

for _axes in ([0], [3], [1, 2], [-1]):
    has("IR952", f"{_axes}", "LRN", 1, random("f32", 2, 3, 4, 5), _axes, parameters=FIRST, **_LRN)

for _axes in ([1], [2, 3]):
    has_not("IR927", f"{_axes}", "LRN", 1, random("f32", 2, 3, 4, 5), _axes, parameters=FIRST, **_LRN)
    has_not("IR952", f"{_axes}", "LRN", 1, random("f32", 2, 3, 4, 5), _axes, parameters=FIRST, **_LRN)

has("IR928", "RDFT", "RDFT", 9, random("f32", 2, 6), [1], [16], parameters=FIRST)
has("IR928", "IRDFT", "IRDFT", 9, random("f32", 2, 6, 2), [1], [16], parameters=FIRST)
has_not("IR928", "shorter", "RDFT", 9, random("f32", 2, 6), [1], [4], parameters=FIRST)
has_not("IR928", "exact", "IRDFT", 9, random("f32", 2, 6, 2), [1], [10], parameters=FIRST)

has("IR929", "large values", "Multiply", 1, ints("f64", 1e200), ints("f64", 1e50))
has_not("IR929", "f32", "Multiply", 1, ints("f32", 2.0), ints("f32", 3.0))

for _name in ("ReduceMax", "ReduceMin"):
    has("IR930", "no elements", _name, 1, typed("f32", np.zeros((2, 0, 3))), [1], keep_dims="true", parameters=FIRST)
    has_not("IR930", "elements", _name, 1, random("f32", 2, 2, 3), [1], keep_dims="true", parameters=FIRST)

has("IR931", "from u1", "Convert", 1, ints("u1", 1, 0, 1, 1, 0, 0, 0, 1), destination_type="f32")
has_not("IR931", "from boolean", "Convert", 1, random("boolean", 8), destination_type="f32")

_REGIONS = {
    "axis": "1", "coords": "4", "classes": "1", "end_axis": "3", "num": "3", "mask": "0,1,2",
    "anchors": "1,2,3,4,5,6",
}  # fmt: skip
has("IR932", "absent", "RegionYolo", 1, random("f32", 1, 18, 2, 2), **_REGIONS)
has_not("IR932", "given", "RegionYolo", 1, random("f32", 1, 18, 2, 2), do_softmax="true", **_REGIONS)

has("IR933", "two images", "RegionYolo", 1, random("f32", 2, 20, 2, 2), do_softmax="false", **_REGIONS)
has_not("IR933", "no other channels", "RegionYolo", 1, random("f32", 2, 18, 2, 2), do_softmax="false", **_REGIONS)
has_not("IR933", "one image", "RegionYolo", 1, random("f32", 1, 20, 2, 2), do_softmax="false", **_REGIONS)

ir934 = Rows("IR934", "PriorBoxClustered", 1, step="4", offset="0.5", parameters=())
ir934.has("absent", [2, 2], [8, 8])
ir934.has_not("given", [2, 2], [8, 8], width="3.0", height="2.0")

_SEEDS = {"global_seed": "5", "op_seed": "7"}
ir935 = Rows("IR935", "RandomUniform", 8, parameters=(), **_SEEDS)
for _type in ("f16", "f64"):
    ir935.has(_type, [2, 3], ints(_type, 0.0), ints(_type, 1.0), output_type=_type)
ir935.has_not("f32", [2, 3], ints("f32", 0.0), ints("f32", 1.0), output_type="f32")

ir936 = Rows("IR936", "RandomUniform", 8, output_type="f32", parameters=())
ir936.has("seeds", [2, 3], ints("f32", 0.0), ints("f32", 1.0), **_SEEDS)
ir936.has_not("no seeds", [2, 3], ints("f32", 0.0), ints("f32", 1.0), asked=False, global_seed="0", op_seed="0")

ir937 = Rows("IR937", "Multinomial", 13, convert_type="i64", with_replacement="true", log_probs="false")
ir937.has("seeds", random("f32", 1, 4, low=0.1, high=1), [30], **_SEEDS)
ir937.has_not("no seeds", random("f32", 1, 4, low=0.1, high=1), [3], global_seed="0", op_seed="0", asked=False)

for _name, _values in (("Exp", (2, 3, 1, 4)), ("Log", (2, 3, 5, 9)), ("Sin", (2, 1, 2, 8)), ("Asin", (1, 1, 0, 1))):
    has("IR938", "i32", _name, 1, ints("i32", *_values), parameters=())
has_not("IR938", "f32", "Exp", 1, random("f32", 4), parameters=())

# So large that what is left of zero is not within the tolerance.
_LARGE = 2.0**20
ir939 = Rows("IR939", "FakeQuantize", 1, parameters=FIRST, levels="256")
for _name, _low, _high, _levels in (("asymmetric", -20.0, 31.0, 256), ("symmetric", -3.3, 3.3, 255)):
    _range = [_low * _LARGE, _high * _LARGE]
    ir939.has(_name, [0.0, 1.0], *_range, *_range, levels=str(_levels))
ir939.has_not("from zero", [0.0, 1.0], 0.0, 3.3 * _LARGE, 0.0, 3.3 * _LARGE)
ir939.has_not("a step of 0.5", [0.0, 1.0], -50.0, 77.5, -50.0, 77.5)

_OPERANDS = random("f32", 16, 4, 8), random("f32", 16, 4, 8, seed=1)
has("IR940", "four matrices", "Einsum", 7, *_OPERANDS, parameters=FIRST, gathered=(1,), equation="inh,tnh->int")
has_not("IR940", "constant", "Einsum", 7, *_OPERANDS, parameters=FIRST, equation="inh,tnh->int")
has_not("IR940", "one matrix", "Einsum", 7, *_OPERANDS, parameters=FIRST, gathered=(1,), equation="inh,tnh->it")
