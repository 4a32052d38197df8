"""Models that one implementation does not load or run."""

from __future__ import annotations

import numpy as np

from irexec.testing import random, typed
from tests.analysis.portability.row import FIRST, FORWARD, LSTM, SQUARE, STATES, Rows, has, has_not, ints, lstm_inputs

_DECONV = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
ir951 = Rows("IR951", "GroupConvolutionBackpropData", 1, parameters=FIRST, **_DECONV)
ir951.has("one group", random("f32", 1, 3, 4, 4), random("f32", 1, 3, 2, 3, 3))
ir951.has_not("two groups", random("f32", 1, 4, 4, 4), random("f32", 2, 2, 2, 3, 3))
ir951.has_not("one channel", random("f32", 1, 1, 4, 4), random("f32", 1, 1, 1, 3, 3))

_NEAREST = {
    "mode": "nearest",
    "shape_calculation_mode": "sizes",
    "nearest_mode": "floor",
    "coordinate_transformation_mode": "asymmetric",
}
has(
    "IR953",
    "version 4",
    "Interpolate",
    4,
    random("f32", 1, 2, 3, 3),
    [6, 6],
    [2.0, 2.0],
    [-2, -1],
    parameters=FIRST,
    **_NEAREST,
)
has("IR953", "version 11", "Interpolate", 11, random("f32", 1, 2, 3, 3), [6, 6], [-2, -1], parameters=FIRST, **_NEAREST)
has_not(
    "IR953", "version 11", "Interpolate", 11, random("f32", 1, 2, 3, 3), [6, 6], [2, 3], parameters=FIRST, **_NEAREST
)

for _name in ("Less", "Equal"):
    has("IR954", "f32", _name, 1, random("f32", 3, 4, **SQUARE), random("f32", 3, **SQUARE), auto_broadcast="pdpd")
for _name in ("Subtract", "Divide", "Mod"):
    has(
        "IR954",
        "f32",
        _name,
        1,
        random("f32", 2, 3, 4, low=1, high=9),
        random("f32", 2, 1, low=1, high=3),
        auto_broadcast="pdpd",
    )
has_not("IR954", "Add", "Add", 1, random("f32", 2, 3, 4), random("f32", 2, 1), auto_broadcast="pdpd")
has_not("IR954", "numpy", "Subtract", 1, random("f32", 2, 3, 4), random("f32", 4))

_DEFORMABLE = (random("f32", 1, 2, 4, 4), random("f32", 1, 8, 3, 3), random("f32", 2, 2, 2, 2))
_STEPS = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
ir955 = Rows("IR955", "DeformableConvolution", 8, parameters=(0, 1), **_STEPS)
ir955.has("absent", *_DEFORMABLE)
ir955.has_not("given", *_DEFORMABLE, group="1", deformable_group="1")

has("IR956", "absent", "LSTMSequence", 5, *lstm_inputs([3, 3]), parameters=STATES, **FORWARD)
has("IR956", "empty", "LSTMSequence", 5, *lstm_inputs([3, 3]), parameters=STATES, activations="", **FORWARD)
_CELL = tuple(random("f32", *sizes) for sizes in ((2, 3), (2, 4), (4, 3), (4, 4), (4,)))
has("IR956", "empty of a cell", "RNNCell", 1, *_CELL, parameters=(0, 1), hidden_size="4", activations="")
has_not("IR956", "absent of a cell", "RNNCell", 1, *_CELL, parameters=(0, 1), hidden_size="4")
has_not("IR956", "given", "LSTMSequence", 5, *lstm_inputs([3, 3]), parameters=STATES, **LSTM)

_DETECTION = {
    "top_k": "10", "variance_encoded_in_target": "false", "keep_top_k": "5", "code_type": "caffe.PriorBoxParameter.CORNER", "share_location": "true",
    "nms_threshold": "0.5", "confidence_threshold": "0.1", "decrease_label_id": "true", "normalized": "true", "input_height": "1", "input_width": "1",
}  # fmt: skip
_PRIORS = (random("f32", 1, 16), random("f32", 1, 12, low=0, high=1), random("f32", 1, 2, 16, low=0, high=1))
has("IR957", "background 1", "DetectionOutput", 8, *_PRIORS, background_label_id="1", **_DETECTION)
has_not("IR957", "background 0", "DetectionOutput", 8, *_PRIORS, background_label_id="0", **_DETECTION)

_PROPOSALS = (
    np.array([[10, 10, 1]], np.float32),
    random("f32", 4, 4, 3, 4, low=0, high=9),
    random("f32", 1, 12, 4, 4),
    random("f32", 1, 3, 4, 4, low=0, high=1),
)
_GENERATE = {
    "min_size": "1", "nms_threshold": "0.7", "pre_nms_count": "100", "post_nms_count": "10", "normalized": "true",
    "roi_num_type": "i64",
}  # fmt: skip
has("IR958", "0.9", "GenerateProposals", 9, *_PROPOSALS, nms_eta="0.9", **_GENERATE)
has_not("IR958", "1", "GenerateProposals", 9, *_PROPOSALS, nms_eta="1", **_GENERATE)

has("IR959", "matrices", "GroupedMatMul", 17, random("f32", 2, 3, 4), random("f32", 2, 5, 4))
has("IR959", "image", "RGBtoNV12", 17, random("u8", 1, 4, 4, 3, low=0, high=255))
has("IR959", "image", "BGRtoNV12", 17, random("u8", 1, 4, 4, 3, low=0, high=255))
has_not("IR959", "MatMul", "MatMul", 1, random("f32", 2, 3, 4), random("f32", 2, 4, 5))

has("IR960", "any rank", "Relu", 1, random("f32", 2, 3), shapes={0: "..."})
has(
    "IR960",
    "of any rank",
    "Reshape",
    1,
    random("f32", 2, 3),
    ints("i64", 3, 2),
    special_zero="false",
    parameters=(0, 1),
    shapes={1: "?"},
)
has_not(
    "IR960",
    "of two axes",
    "Reshape",
    1,
    random("f32", 2, 3),
    ints("i64", 3, 2),
    special_zero="false",
    parameters=(0, 1),
)
has_not("IR960", "any sizes", "Relu", 1, random("f32", 2, 3), shapes={0: "?,?"})

has("IR961", "input", "ReduceLogicalAnd", 1, random("boolean", 2, 3), [1], keep_dims="true")
has_not("IR961", "constant", "ReduceLogicalAnd", 1, random("boolean", 2, 3), [1], keep_dims="true", parameters=FIRST)

ir962_avg_pool = Rows(
    "IR962", "AvgPool", 1, strides="2,2", pads_begin="0,0", pads_end="0,0", kernel="2,2", exclude_pad="true"
)
ir962_avg_pool.has("no image", typed("f32", np.zeros((0, 1, 4, 4))))
has(
    "IR962",
    "no image",
    "MaxPool",
    1,
    typed("f32", np.zeros((0, 1, 4, 4))),
    strides="2,2",
    pads_begin="0,0",
    pads_end="0,0",
    kernel="2,2",
)
ir962_avg_pool.has_not("one image", random("f32", 1, 1, 4, 4))

has("IR963", "RDFT", "RDFT", 9, random("f32", 2, 6), [1], [-1], parameters=FIRST)
has("IR963", "IRDFT", "IRDFT", 9, random("f32", 2, 6, 2), [1], [-1], parameters=FIRST)
has_not("IR963", "absent", "RDFT", 9, random("f32", 2, 6), [1], parameters=FIRST)

ir964 = Rows("IR964", "ConvolutionBackpropData", 1, parameters=(0, 2), **_DECONV)
ir964.has("unknown length", random("f32", 1, 3, 4, 4), random("f32", 3, 2, 3, 3), [8, 8], shapes={2: "?"})
ir964.has_not("known length", random("f32", 1, 3, 4, 4), random("f32", 3, 2, 3, 3), [8, 8])

ir965 = Rows("IR965", "EmbeddingBagOffsetsSum", 3, parameters=FIRST)
ir965.has("empty", random("f32", 5, 2), ints("i32", 0, 2, 3, 4), ints("i32", 0, 2, 4))
ir965.has_not("not empty", random("f32", 5, 2), ints("i32", 0, 2, 3, 4), ints("i32", 0, 2, 3))

ir966 = Rows("IR966", "AvgPool", 1, strides="3,3", pads_begin="0,0", pads_end="2,2", kernel="2,2", exclude_pad="true")
ir966.has("as large as the kernel", random("f32", 1, 1, 4, 4), rounding_type="ceil")
ir966.has_not("padding counts", random("f32", 1, 1, 4, 4), rounding_type="ceil", exclude_pad="false")
ir966.has_not("less", random("f32", 1, 1, 4, 4), strides="2,2", pads_end="1,1")

has(
    "IR967",
    "onednn",
    "ConvTranspose",
    "onednn",
    random("f32", 1, 4, 4, 3),
    random("f32", 3, 3, 3, 2),
    strides="2,2",
    pads_begin="0,0",
    pads_end="0,0",
    dilations="1,1",
    parameters=FIRST,
)
has_not(
    "IR967",
    "of OpenVINO",
    "ConvolutionBackpropData",
    1,
    random("f32", 1, 3, 4, 4),
    random("f32", 3, 2, 3, 3),
    parameters=FIRST,
    **_DECONV,
)

_NMS = (
    np.array([[[0, 0, 1, 1], [0, 0, 2, 2], [5, 5, 6, 6]]], np.float32),
    np.array([[[0.1, 0.2, 0.3]]], np.float32),
    10,
    typed("f32", 0.3),
    typed("f32", 0.15),
)
for _since in (1, 3, 4):
    has("IR968", f"version {_since}", "NonMaxSuppression", _since, *_NMS, box_encoding="corner", parameters=(0, 1))
has_not("IR968", "version 9", "NonMaxSuppression", 9, *_NMS, box_encoding="corner", parameters=(0, 1))

for _type, _start, _stop, _step in (("i64", 0, -2, 1), ("i32", 5, 2, 1), ("i32", 0, 4, -2), ("f32", 0, -2, 0.5)):
    _range = [typed(_type, value) for value in (_start, _stop, _step)]
    for _parameters in ((0,), (1,), (2,), (0, 1, 2)):
        _id = f"{_type} from {_start} to {_stop} by {_step}, parameters {_parameters}"
        has("IR969", _id, "Range", 4, *_range, output_type=_type, parameters=_parameters)
    has_not("IR969", f"{_type}, constants", "Range", 4, *_range, output_type=_type, parameters=())
has("IR969", "version 1", "Range", 1, 0, -2, 1)
# What may come about is reported, whatever comes.
has("IR969", "values that have none of it", "Range", 4, 0, 3, 1, output_type="i64", asked=False)

for _values in ((1, 5, 1.5), (7, 1, 0.5), (1.5, 1.75, 1)):
    _range = [typed("f32", value) for value in _values]
    has("IR985", f"{_values}", "Range", 4, *_range, output_type="i64")
    has_not("IR985", f"{_values}, constants", "Range", 4, *_range, output_type="i64", parameters=())
    has_not("IR985", f"{_values}, of floats", "Range", 4, *_range, output_type="f32", asked=_values != (7, 1, 0.5))
has_not("IR985", "whole numbers", "Range", 4, *(typed("f32", x) for x in (1, 5, 2)), output_type="i64", parameters=())
has_not("IR985", "integers", "Range", 4, 1, 5, 2, output_type="i64")

_WORDS = typed("string", [["a", "b"], ["a", "é"]])
has("IR975", "comparison", "Equal", 1, _WORDS, typed("string", ["a", "b"]), parameters=FIRST)
has("IR975", "selection", "Select", 1, [[True, False], [False, True]], _WORDS, _WORDS, parameters=(1, 2))
has("IR975", "repetition", "Tile", 1, _WORDS, [2, 1], parameters=FIRST)
has_not("IR975", "comparison of numbers", "Equal", 1, [1, 2], [1, 3], parameters=FIRST)
has_not("IR975", "movement", "Concat", 1, _WORDS, _WORDS, axis=0)
has("IR967", "lookup of strings", "StringLookup", "irexec", _WORDS, typed("string", ["a", "b"]), parameters=FIRST)

_MATRIX = random("f32", 2, 3)
has("IR976", "parameter", "Unique", 10, _MATRIX, ints("i64", 1))
has_not("IR976", "constant", "Unique", 10, _MATRIX, ints("i64", 1), parameters=FIRST)
has_not("IR976", "no axis", "Unique", 10, _MATRIX)

for _type, _element in (("Divide", "i32"), ("Divide", "u16"), ("Mod", "i64"), ("Mod", "u8"), ("FloorMod", "u32")):
    _by_zero = ints(_element, 4, 5), ints(_element, 1, 0)
    has("IR977", _element, _type, 1, *_by_zero, parameters=())
    has_not("IR977", f"{_element}, not constant", _type, 1, *_by_zero, parameters=FIRST, asked=False)
    has_not("IR977", f"{_element}, not by 0", _type, 1, ints(_element, 4), ints(_element, 2), parameters=())
has_not("IR977", "f32", "Divide", 1, [4.0, 5.0], [1.0, 0.0], parameters=())
has_not("IR977", "i8", "Divide", 1, ints("i8", 4, 5), ints("i8", 1, 0), parameters=(), asked=False)
has_not("IR977", "i32", "FloorMod", 1, ints("i32", 4, 5), ints("i32", 1, 0), parameters=(), asked=False)

_COLUMNS = random("f32", 2, 12, 9), ints("i64", 4, 4), ints("i64", 2, 2)
_COL2IM = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
for _index in (1, 2):
    _shapes = {_index: "?"}
    has("IR978", f"input {_index}", "Col2Im", 15, *_COLUMNS, parameters=(0, _index), shapes=_shapes, **_COL2IM)
    has_not("IR978", f"input {_index} of shape 2", "Col2Im", 15, *_COLUMNS, parameters=(0, _index), **_COL2IM)

_STATES = {"LSTMCell": 2, "GRUCell": 1, "RNNCell": 1}
_ACTIVATIONS = {"LSTMCell": "sigmoid,tanh,tanh", "GRUCell": "sigmoid,tanh", "RNNCell": "tanh"}
for _type, _since, _gates in (("LSTMCell", 1, 4), ("LSTMCell", 4, 4), ("GRUCell", 3, 3), ("RNNCell", 1, 1)):
    _sizes = [(2, 3), *[(2, 4)] * _STATES[_type], (_gates * 4, 3), (_gates * 4, 4), (_gates * 4,)]
    _inputs = [random("f32", *sizes) for sizes in _sizes]
    _given = {"hidden_size": "4", "activations": _ACTIVATIONS[_type], "parameters": FIRST}
    _without = has_not if (_type, _since) == ("LSTMCell", 1) else has
    _without("IR979", f"version {_since} without", _type, _since, *_inputs[:-1], **_given)
    has_not("IR979", f"version {_since} with", _type, _since, *_inputs, **_given)

_OLD_RESIZE = {"axes": "2,3", "mode": "nearest", "align_corners": "false", "parameters": FIRST}
_IMAGE = random("f32", 1, 2, 3, 3)
for _element in ("i4", "i8", "u8", "i16"):
    has("IR980", _element, "Interpolate", 1, _IMAGE, ints(_element, 6, 6), **_OLD_RESIZE)
for _element in ("i32", "i64", "u32", "u64"):
    has_not("IR980", _element, "Interpolate", 1, _IMAGE, ints(_element, 6, 6), **_OLD_RESIZE)
has_not("IR980", "version 11", "Interpolate", 11, _IMAGE, [6, 6], [2, 3], parameters=FIRST, **_NEAREST)

_MEANS = {"kernel": "2", "strides": "1", "pads_begin": "0", "pads_end": "0", "exclude_pad": "true"}
has("IR990", "none given", "AvgPool", 16, random("f32", 1, 1, 3), **_MEANS)
has_not("IR990", "of 1", "AvgPool", 16, random("f32", 1, 1, 3), **_MEANS, dilations="1")
has_not("IR990", "version 14", "AvgPool", 14, random("f32", 1, 1, 3), **_MEANS)

has("IR982", "Unsqueeze", "Unsqueeze", 1, random("f32", 2, 3), typed("i64", np.zeros(0)), parameters=FIRST)
has_not("IR982", "Unsqueeze", "Unsqueeze", 1, random("f32", 2, 3), ints("i64", 0), parameters=FIRST)
ir982_reduce_max = Rows("IR982", "ReduceMax", 1, parameters=FIRST)
ir982_reduce_max.has("reduction", random("f32", 2, 3), typed("i64", np.zeros(0)), keep_dims="false")
ir982_reduce_max.has_not("reduction", random("f32", 2, 3), typed("i64", np.zeros(0)), keep_dims="true")

# A move of these ends the process: OpenVINO is not asked.
for _element in ("u1", "u2", "u3", "u6", "nf4", "f4e2m1"):
    _codes = typed(_element, np.array([[0, 1, 1, 0]] * 3))
    has("IR984", _element, "Gather", 8, _codes, [0, 2], 0, asked=False)
_codes = typed("u2", np.array([[0, 1, 2, 3]] * 4))
for _type, _since, _rest, _data in (
    ("GatherElements", 6, [[[0, 1, 2, 3]]], {"axis": "0"}),
    ("GatherND", 8, [[[0], [3]]], {}),
    ("Slice", 8, [[1], [3], [1], [0]], {}),
    ("Split", 1, [1], {"num_splits": "2"}),
    ("Tile", 1, [[1, 2]], {}),
    ("Broadcast", 3, [[2, 4, 4]], {"mode": "numpy"}),
    ("Roll", 7, [[1], [0]], {}),
):
    has("IR984", _type, _type, _since, _codes, *_rest, asked=False, **_data)
has("IR984", "joined", "Concat", 1, _codes, _codes, axis="0", asked=False)
has_not("IR984", "transposed", "Transpose", 1, _codes, [1, 0], parameters=())
for _element in ("u4", "i4", "i8", "f8e4m3"):
    has_not("IR984", _element, "Gather", 8, typed(_element, np.array([[0, 1, 1, 0]] * 3)), [0, 2], 0)

_SCATTERED = random("f32", 6), random("f32", 2, seed=1), [1], [5], [2], [0]
for _varying in (2, 3, 4):
    # A wrong step ends the process.
    has("IR991", f"input {_varying}", "SliceScatter", 15, *_SCATTERED, parameters=(0, 1, _varying), asked=_varying != 4)
has_not("IR991", "constant", "SliceScatter", 15, *_SCATTERED, parameters=(0, 1))
has_not("IR991", "open", "SliceScatter", 15, *_SCATTERED, parameters=(0, 1, 2), shapes={0: "?"})

has("IR993", "one row", "Gather", 8, random("f32", 1, 4), [[0, 2]], 1, parameters=(0, 1), batch_dims="1")
has("IR993", "axes of one", "Gather", 8, random("f32", 1, 1, 4), [[0, 2]], 2, parameters=(0, 1), batch_dims="1")
has_not("IR993", "an axis of two", "Gather", 8, random("f32", 1, 2, 4), [[0, 2]], 2, parameters=(0, 1), batch_dims="1")
has_not("IR993", "two rows", "Gather", 8, random("f32", 2, 4), [[0, 2], [1, 1]], 1, parameters=(0, 1), batch_dims="1")
has_not("IR993", "no batch", "Gather", 8, random("f32", 1, 4), [[0, 2]], 1, parameters=(0, 1), batch_dims="0")

_ENLARGED = random("f32", 1, 2, 4, 2), random("f32", 2, 8, 1, 1, seed=1)
_EXPLICIT = {"strides": "1, 1", "dilations": "1, 1", "pads_end": "1, 1", "auto_pad": "explicit"}
for _fires, _pads, _sizes in (
    (has, "2, 1", [4, 2]),
    (has, "0, 1", [4, 2]),
    (has_not, "0, 0", [4, 2]),
    (has_not, "1, 1", [3, 2]),
):
    _name = f"{_pads} to {_sizes}"
    _fires(
        "IR994",
        _name,
        "ConvolutionBackpropData",
        1,
        *_ENLARGED,
        _sizes,
        parameters=FIRST,
        pads_begin=_pads,
        **_EXPLICIT,
    )

_ENTRIES = {"begin_mask": "0,0", "end_mask": "0,0"}
ir950 = Rows("IR950", "StridedSlice", 1, parameters=FIRST, **_ENTRIES)
ir950.has("removed first", random("f32", 4, 5), [1, 0], [2, 0], [1, 1], new_axis_mask="0,1", shrink_axis_mask="1,0")
ir950.has("new first", random("f32", 4, 5), [0, 1], [0, 2], [1, 1], new_axis_mask="1,0", shrink_axis_mask="0,1")
ir950.has_not("each axis", random("f32", 4), [1, 0], [2, 0], [1, 1], new_axis_mask="0,1", shrink_axis_mask="1,0")
ir950.has_not("sliced", random("f32", 4, 5), [1, 0], [3, 0], [1, 1], new_axis_mask="0,1", shrink_axis_mask="0,0")

ir910 = Rows("IR910", "StridedSlice", 1, parameters=(0, 2))
ir910.has("new axis alone", random("f32", 4, 5), [0], [0], [1], begin_mask="0", end_mask="0", new_axis_mask="1")
ir910.has_not("beside a slice", random("f32", 4, 5), [0, 1], [0, 3], [1, 1], **_ENTRIES, new_axis_mask="1,0")
