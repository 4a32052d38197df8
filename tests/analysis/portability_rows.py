"""For each difference of irexec.ir.portability: models that have it, and neighbours of them that have not.

OpenVINO is asked with ``--oracle``: on the first it must do what the difference says, on the others what irexec does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.cases import Case, case, random, typed


@dataclass(frozen=True)
class Row:
    """One operation as a model.

    Attributes:
        code: of the difference.
        fires: whether the model has it.
        case: the operation and its inputs.
        parameters: the inputs that are Parameters; the others are constants.
        shapes: of Parameters, where they are not static.
        asked: whether OpenVINO is asked; it is not where the answer is known to depend on chance.
    """

    code: str
    fires: bool
    case: Case
    parameters: tuple[int, ...] = ()
    shapes: Mapping[int, str] = field(default_factory=dict)
    asked: bool = True

    @property
    def id(self) -> str:
        return f"{self.code}-{'has it' if self.fires else 'has it not'}-{self.case.type}-{self.case.name}"


ROWS: list[Row] = []


def _row(
    code: str,
    fires: bool,
    id: str,
    type: str,
    since: int | str,
    *inputs: Any,
    parameters: Any = None,
    shapes: Any = None,
    asked: bool = True,
    **attributes: Any,
) -> None:
    made = case(type, since, *inputs, id=id, **attributes)
    chosen = tuple(range(len(made.inputs))) if parameters is None else tuple(parameters)
    ROWS.append(Row(code, fires, made, chosen, shapes or {}, asked))


def has(code: str, id: str, type: str, since: int | str, *inputs: Any, **rest: Any) -> None:
    _row(code, True, id, type, since, *inputs, **rest)


def has_not(code: str, id: str, type: str, since: int | str, *inputs: Any, **rest: Any) -> None:
    _row(code, False, id, type, since, *inputs, **rest)


def ints(name: str, *values: Any) -> Any:
    return typed(name, list(values))


FIRST = (0,)
NEGATIVE = (-7, 7, -8, 5)
for _type in ("i8", "i16", "i32", "i64"):
    has("IR911", _type, "Divide", 1, ints(_type, *NEGATIVE), ints(_type, 2, -2, 3, 2), m_pythondiv="true")
has("IR911", "by default", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 2, 2, 3, 2))
has_not("IR911", "cut as asked for", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 2, -2, 3, 2), m_pythondiv="false")
has_not("IR911", "unsigned", "Divide", 1, ints("u8", 7, 8, 9), ints("u8", 2, 3, 4), m_pythondiv="true")
has_not("IR911", "floats", "Divide", 1, random("f32", 4), random("f32", 4, low=1, high=2))
has_not("IR911", "by one", "Divide", 1, ints("i32", *NEGATIVE), ints("i32", 1, -1, 1, 1), parameters=FIRST)

_SQUARE = {"low": 0, "high": 9}
for _name in ("Less", "GreaterEqual"):
    has("IR912", "f32", _name, 1, random("f32", 3, 3, **_SQUARE), random("f32", 3, **_SQUARE, seed=3), auto_broadcast="pdpd")
has("IR912", "i32", "Equal", 1, random("i32", 3, 3, **_SQUARE), random("i32", 3, **_SQUARE, seed=3), auto_broadcast="pdpd")
has("IR912", "i32", "BitwiseAnd", 13, random("i32", 3, 3, low=0, high=99), random("i32", 3, low=0, high=99, seed=3), auto_broadcast="pdpd")
has_not("IR912", "f32", "Equal", 1, random("f32", 3, 3, **_SQUARE), random("f32", 3, **_SQUARE, seed=3), auto_broadcast="pdpd")
has_not("IR912", "same rank", "Less", 1, random("f32", 3, 3, **_SQUARE), random("f32", 3, 1, **_SQUARE, seed=3), auto_broadcast="pdpd")
has_not("IR912", "numpy", "Less", 1, random("f32", 3, 3, **_SQUARE), random("f32", 3, **_SQUARE, seed=3))
has_not("IR912", "one element", "Less", 1, random("f32", 3, 3, **_SQUARE), random("f32", 1, **_SQUARE, seed=3), auto_broadcast="pdpd")

for _name, _since in (("ReduceSum", 1), ("ReduceProd", 1), ("ReduceL1", 4), ("ReduceL2", 4)):
    for _type in ("i8", "u8"):
        has("IR913", _type, _name, _since, random(_type, 2, 9, low=60, high=120), [1], keep_dims="true", parameters=FIRST)
    has_not("IR913", "i32", _name, _since, random("i32", 2, 3, low=1, high=9), [1], keep_dims="true", parameters=FIRST)

has("IR914", "u8", "AdaptiveAvgPool", 8, random("u8", 1, 2, 3, 3, low=30, high=100), [1, 1], parameters=FIRST)
has_not("IR914", "2 x 2", "AdaptiveAvgPool", 8, random("u8", 1, 2, 4, 4, low=30, high=100), [2, 2], parameters=FIRST)
has_not("IR914", "f32", "AdaptiveAvgPool", 8, random("f32", 1, 2, 3, 3), [1, 1], parameters=FIRST)

_ONNX = {"mode": "linear_onnx", "shape_calculation_mode": "sizes"}
for _type in ("i8", "u8"):
    has(
        "IR915",
        _type,
        "Interpolate",
        4,
        random(_type, 1, 2, 5, 5, low=0, high=100),
        [13, 11],
        [2.6, 2.2],
        [2, 3],
        parameters=FIRST,
        **_ONNX,
    )
has_not(
    "IR915", "i32", "Interpolate", 4, random("i32", 1, 2, 5, 5, low=0, high=100), [13, 11], [2.6, 2.2], [2, 3], parameters=FIRST, **_ONNX
)
has_not(
    "IR915",
    "nearest",
    "Interpolate",
    4,
    random("u8", 1, 2, 5, 5, low=0, high=100),
    [10, 10],
    [2.0, 2.0],
    [2, 3],
    parameters=FIRST,
    **(_ONNX | {"mode": "nearest"}),
)

for _type in ("i8", "u8"):
    for _mode in ("bilinear", "bicubic"):
        has("IR916", f"{_type} {_mode}", "GridSample", 9, random(_type, 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode=_mode)
has_not("IR916", "i32", "GridSample", 9, random("i32", 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode="bilinear")
has_not("IR916", "nearest", "GridSample", 9, random("u8", 1, 1, 4, 4, low=0, high=100), random("f32", 1, 5, 5, 2), mode="nearest")

_POOL = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2"}
has("IR917", "u8", "MaxPool", 8, typed("u8", np.zeros((1, 2, 4, 4))), **_POOL)
has_not("IR917", "i8", "MaxPool", 8, typed("i8", np.zeros((1, 2, 4, 4))), **_POOL)
has_not("IR917", "f32", "MaxPool", 14, random("f32", 1, 2, 4, 4), **_POOL)

_BESIDE = {"strides": "3,3", "pads_begin": "0,0", "pads_end": "2,2", "kernel": "2,2", "rounding_type": "ceil"}
for _type in ("f16", "f64"):
    has("IR918", _type, "MaxPool", 1, random(_type, 1, 1, 4, 4, low=-9, high=9), **_BESIDE)
    has_not(
        "IR918",
        f"{_type}, in the data",
        "MaxPool",
        1,
        random(_type, 1, 1, 4, 4, low=-9, high=9),
        strides="2,2",
        pads_begin="0,0",
        pads_end="1,1",
        kernel="2,2",
    )
for _type in ("f32", "bf16"):
    has_not("IR918", _type, "MaxPool", 1, random(_type, 1, 1, 4, 4, low=-9, high=9), **_BESIDE)

_PILLOW = {"mode": "bicubic_pillow", "shape_calculation_mode": "sizes"}
has("IR919", "-0.75", "Interpolate", 11, random("f32", 1, 2, 5, 5), [13, 11], [2, 3], parameters=FIRST, cube_coeff="-0.75", **_PILLOW)
has_not("IR919", "-0.5", "Interpolate", 11, random("f32", 1, 2, 5, 5), [13, 11], [2, 3], parameters=FIRST, cube_coeff="-0.5", **_PILLOW)

_BOXES = np.array([[0, 0, 3, 3], [2, 2, 2, 2]], np.float32)
_ALIGN = {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1.0", "mode": "avg", "aligned_mode": "half_pixel"}
has("IR920", "adaptive", "ROIAlign", 9, random("f32", 1, 2, 6, 6), _BOXES, [0, 0], sampling_ratio="0", **_ALIGN)
has_not("IR920", "2 samples", "ROIAlign", 9, random("f32", 1, 2, 6, 6), _BOXES, [0, 0], sampling_ratio="2", **_ALIGN)

for _type in ("f16", "i64"):
    has("IR921", _type, "SegmentMax", 16, random(_type, 4, 2, low=0, high=9), [0, 0, 2, 2], fill_mode="lowest", parameters=FIRST)
for _type in ("f32", "i32"):
    has_not("IR921", _type, "SegmentMax", 16, random(_type, 4, 2, low=0, high=9), [0, 0, 2, 2], fill_mode="lowest", parameters=FIRST)
has_not("IR921", "zero", "SegmentMax", 16, random("i64", 4, 2, low=0, high=9), [0, 0, 2, 2], fill_mode="zero", parameters=FIRST)

_SCATTER = ([0, 0, 2], [-2, -1, -1], 0)
has(
    "IR922",
    "i32",
    "ScatterElementsUpdate",
    12,
    ints("i32", -5, -5, 4),
    [0, 0, 2],
    ints("i32", -2, -1, -1),
    0,
    reduction="mean",
    use_init_val="true",
    parameters=(0, 2),
)
has_not(
    "IR922",
    "f32",
    "ScatterElementsUpdate",
    12,
    random("f32", 3),
    [0, 0, 2],
    random("f32", 3, seed=1),
    0,
    reduction="mean",
    use_init_val="true",
    parameters=(0, 2),
)
has_not(
    "IR922",
    "sum",
    "ScatterElementsUpdate",
    12,
    ints("i32", -5, -5, 4),
    [0, 0, 2],
    ints("i32", -2, -1, -1),
    0,
    reduction="sum",
    use_init_val="true",
    parameters=(0, 2),
)

for _type in ("i8", "u8"):
    has("IR923", _type, "SquaredDifference", 1, ints(_type, 100, 3, 7), ints(_type, 95, 9, 7))
has_not("IR923", "i32", "SquaredDifference", 1, ints("i32", 100, 3, 7), ints("i32", 95, 9, 7))

_BINARY = {"mode": "xnor-popcount", "strides": "1,1", "dilations": "1,1"}
has(
    "IR924",
    "padded",
    "BinaryConvolution",
    1,
    random("f32", 1, 8, 4, 4),
    random("u1", 1, 8, 3, 3),
    pad_value="0",
    pads_begin="1,1",
    pads_end="1,1",
    parameters=FIRST,
    **_BINARY,
)
has_not(
    "IR924",
    "not padded",
    "BinaryConvolution",
    1,
    random("f32", 1, 8, 4, 4),
    random("u1", 1, 8, 3, 3),
    pad_value="0",
    pads_begin="0,0",
    pads_end="0,0",
    parameters=FIRST,
    asked=False,
    **_BINARY,
)

_CELL = (
    random("f32", 2, 3),
    random("f32", 2, 4, seed=1),
    random("f32", 2, 4, seed=2),
    random("f32", 16, 3, seed=3),
    random("f32", 16, 4, seed=4),
    random("f32", 16, seed=5),
)
_STATES = (0, 1, 2)
has("IR925", "peepholes", "LSTMCell", 1, *_CELL, random("f32", 12, seed=6), hidden_size="4", parameters=_STATES)
has("IR925", "input_forget", "LSTMCell", 1, *_CELL, hidden_size="4", input_forget="true", parameters=_STATES)
has_not("IR925", "neither", "LSTMCell", 1, *_CELL, hidden_size="4", parameters=_STATES)
has_not("IR925", "peepholes of zero", "LSTMCell", 1, *_CELL, typed("f32", np.zeros(12)), hidden_size="4", parameters=_STATES)
has_not("IR925", "version 4", "LSTMCell", 4, *_CELL, hidden_size="4", parameters=_STATES)


def _lstm(lengths: list[int]) -> tuple[Any, ...]:
    weights = random("f32", 1, 16, 3, seed=3), random("f32", 1, 16, 4, seed=4), random("f32", 1, 16, seed=5)
    return random("f32", 2, 3, 3), random("f32", 2, 1, 4, seed=1), random("f32", 2, 1, 4, seed=2), typed("i32", lengths), *weights


_FORWARD = {"hidden_size": "4", "direction": "forward"}
_LSTM = _FORWARD | {"activations": "sigmoid,tanh,tanh"}
_GRU = (
    random("f32", 2, 3, 3),
    random("f32", 2, 1, 4, seed=1),
    ints("i32", 2, 3),
    random("f32", 1, 12, 3, seed=3),
    random("f32", 1, 12, 4, seed=4),
    random("f32", 1, 12, seed=5),
)
_BATCH = {0: "?,3,3", 1: "?,1,4", 2: "?,1,4", 3: "?"}
has("IR926", "dynamic batch", "LSTMSequence", 5, *_lstm([2, 3]), parameters=range(4), shapes=_BATCH, **_LSTM)
has("IR926", "dynamic length", "LSTMSequence", 5, *_lstm([2, 3]), parameters=range(4), shapes={0: "2,?,3"}, **_LSTM)
has(
    "IR926",
    "dynamic batch",
    "GRUSequence",
    5,
    *_GRU,
    parameters=range(3),
    shapes={0: "?,?,3", 1: "?,1,4", 2: "?"},
    activations="sigmoid,tanh",
    **_FORWARD,
)
has_not("IR926", "static", "LSTMSequence", 5, *_lstm([2, 3]), parameters=range(4), **_LSTM)
has_not("IR926", "static", "GRUSequence", 5, *_GRU, parameters=range(3), activations="sigmoid,tanh", **_FORWARD)

_LRN = {"alpha": "0.5", "beta": "0.75", "bias": "1", "size": "3"}
for _axes in ([1, 2, 3], [0, 1, 2, 3]):
    has("IR927", f"{_axes}", "LRN", 1, random("f32", 2, 3, 4, 5), _axes, parameters=FIRST, **_LRN)
has_not("IR927", "three spatial axes", "LRN", 1, random("f32", 1, 2, 3, 4, 4), [2, 3, 4], parameters=FIRST, **_LRN)
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

_REGIONS = {"axis": "1", "coords": "4", "classes": "1", "end_axis": "3", "num": "3", "mask": "0,1,2", "anchors": "1,2,3,4,5,6"}
has("IR932", "absent", "RegionYolo", 1, random("f32", 1, 18, 2, 2), **_REGIONS)
has_not("IR932", "given", "RegionYolo", 1, random("f32", 1, 18, 2, 2), do_softmax="true", **_REGIONS)
has("IR933", "two images", "RegionYolo", 1, random("f32", 2, 20, 2, 2), do_softmax="false", **_REGIONS)
has_not("IR933", "no other channels", "RegionYolo", 1, random("f32", 2, 18, 2, 2), do_softmax="false", **_REGIONS)
has_not("IR933", "one image", "RegionYolo", 1, random("f32", 1, 20, 2, 2), do_softmax="false", **_REGIONS)

has("IR934", "absent", "PriorBoxClustered", 1, [2, 2], [8, 8], step="4", offset="0.5", parameters=())
has_not("IR934", "given", "PriorBoxClustered", 1, [2, 2], [8, 8], step="4", offset="0.5", width="3.0", height="2.0", parameters=())

_SEEDS = {"global_seed": "5", "op_seed": "7"}
for _type in ("f16", "f64"):
    has("IR935", _type, "RandomUniform", 8, [2, 3], ints(_type, 0.0), ints(_type, 1.0), output_type=_type, parameters=(), **_SEEDS)
has_not("IR935", "f32", "RandomUniform", 8, [2, 3], ints("f32", 0.0), ints("f32", 1.0), output_type="f32", parameters=(), **_SEEDS)
has("IR936", "seeds", "RandomUniform", 8, [2, 3], ints("f32", 0.0), ints("f32", 1.0), output_type="f32", parameters=(), **_SEEDS)
has_not(
    "IR936",
    "no seeds",
    "RandomUniform",
    8,
    [2, 3],
    ints("f32", 0.0),
    ints("f32", 1.0),
    output_type="f32",
    parameters=(),
    asked=False,
    global_seed="0",
    op_seed="0",
)
has(
    "IR937",
    "seeds",
    "Multinomial",
    13,
    random("f32", 1, 4, low=0.1, high=1),
    [30],
    convert_type="i64",
    with_replacement="true",
    log_probs="false",
    **_SEEDS,
)
has_not(
    "IR937",
    "no seeds",
    "Multinomial",
    13,
    random("f32", 1, 4, low=0.1, high=1),
    [3],
    convert_type="i64",
    with_replacement="true",
    log_probs="false",
    global_seed="0",
    op_seed="0",
    asked=False,
)

for _name, _values in (("Exp", (2, 3, 1, 4)), ("Log", (2, 3, 5, 9)), ("Sin", (2, 1, 2, 8)), ("Asin", (1, 1, 0, 1))):
    has("IR938", "i32", _name, 1, ints("i32", *_values), parameters=())
has_not("IR938", "f32", "Exp", 1, random("f32", 4), parameters=())

_DECONV = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
has(
    "IR951",
    "one group",
    "GroupConvolutionBackpropData",
    1,
    random("f32", 1, 3, 4, 4),
    random("f32", 1, 3, 2, 3, 3),
    parameters=FIRST,
    **_DECONV,
)
has_not(
    "IR951",
    "two groups",
    "GroupConvolutionBackpropData",
    1,
    random("f32", 1, 4, 4, 4),
    random("f32", 2, 2, 2, 3, 3),
    parameters=FIRST,
    **_DECONV,
)
has_not(
    "IR951",
    "one channel",
    "GroupConvolutionBackpropData",
    1,
    random("f32", 1, 1, 4, 4),
    random("f32", 1, 1, 1, 3, 3),
    parameters=FIRST,
    **_DECONV,
)

_NEAREST = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
has("IR953", "version 4", "Interpolate", 4, random("f32", 1, 2, 3, 3), [6, 6], [2.0, 2.0], [-2, -1], parameters=FIRST, **_NEAREST)
has("IR953", "version 11", "Interpolate", 11, random("f32", 1, 2, 3, 3), [6, 6], [-2, -1], parameters=FIRST, **_NEAREST)
has_not("IR953", "version 11", "Interpolate", 11, random("f32", 1, 2, 3, 3), [6, 6], [2, 3], parameters=FIRST, **_NEAREST)

for _name in ("Less", "Equal"):
    has("IR954", "f32", _name, 1, random("f32", 3, 4, **_SQUARE), random("f32", 3, **_SQUARE), auto_broadcast="pdpd")
for _name in ("Subtract", "Divide", "Mod"):
    has("IR954", "f32", _name, 1, random("f32", 2, 3, 4, low=1, high=9), random("f32", 2, 1, low=1, high=3), auto_broadcast="pdpd")
has_not("IR954", "Add", "Add", 1, random("f32", 2, 3, 4), random("f32", 2, 1), auto_broadcast="pdpd")
has_not("IR954", "numpy", "Subtract", 1, random("f32", 2, 3, 4), random("f32", 4))

_DEFORMABLE = (random("f32", 1, 2, 4, 4), random("f32", 1, 8, 3, 3), random("f32", 2, 2, 2, 2))
_STEPS = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
has("IR955", "absent", "DeformableConvolution", 8, *_DEFORMABLE, parameters=(0, 1), **_STEPS)
has_not("IR955", "given", "DeformableConvolution", 8, *_DEFORMABLE, parameters=(0, 1), group="1", deformable_group="1", **_STEPS)

has("IR956", "absent", "LSTMSequence", 5, *_lstm([3, 3]), parameters=_STATES, **_FORWARD)
has_not("IR956", "given", "LSTMSequence", 5, *_lstm([3, 3]), parameters=_STATES, **_LSTM)

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
    "min_size": "1",
    "nms_threshold": "0.7",
    "pre_nms_count": "100",
    "post_nms_count": "10",
    "normalized": "true",
    "roi_num_type": "i64",
}
has("IR958", "0.9", "GenerateProposals", 9, *_PROPOSALS, nms_eta="0.9", **_GENERATE)
has_not("IR958", "1", "GenerateProposals", 9, *_PROPOSALS, nms_eta="1", **_GENERATE)

has("IR959", "matrices", "GroupedMatMul", 17, random("f32", 2, 3, 4), random("f32", 2, 5, 4))
has("IR959", "image", "RGBtoNV12", 17, random("u8", 1, 4, 4, 3, low=0, high=255))
has("IR959", "image", "BGRtoNV12", 17, random("u8", 1, 4, 4, 3, low=0, high=255))
has_not("IR959", "MatMul", "MatMul", 1, random("f32", 2, 3, 4), random("f32", 2, 4, 5))

has("IR960", "any rank", "Relu", 1, random("f32", 2, 3), shapes={0: "..."})
has_not("IR960", "any sizes", "Relu", 1, random("f32", 2, 3), shapes={0: "?,?"})

has("IR961", "input", "ReduceLogicalAnd", 1, random("boolean", 2, 3), [1], keep_dims="true")
has_not("IR961", "constant", "ReduceLogicalAnd", 1, random("boolean", 2, 3), [1], keep_dims="true", parameters=FIRST)

has(
    "IR962",
    "no image",
    "AvgPool",
    1,
    typed("f32", np.zeros((0, 1, 4, 4))),
    strides="2,2",
    pads_begin="0,0",
    pads_end="0,0",
    kernel="2,2",
    exclude_pad="true",
)
has("IR962", "no image", "MaxPool", 1, typed("f32", np.zeros((0, 1, 4, 4))), strides="2,2", pads_begin="0,0", pads_end="0,0", kernel="2,2")
has_not(
    "IR962",
    "one image",
    "AvgPool",
    1,
    random("f32", 1, 1, 4, 4),
    strides="2,2",
    pads_begin="0,0",
    pads_end="0,0",
    kernel="2,2",
    exclude_pad="true",
)

has("IR963", "RDFT", "RDFT", 9, random("f32", 2, 6), [1], [-1], parameters=FIRST)
has("IR963", "IRDFT", "IRDFT", 9, random("f32", 2, 6, 2), [1], [-1], parameters=FIRST)
has_not("IR963", "absent", "RDFT", 9, random("f32", 2, 6), [1], parameters=FIRST)

has(
    "IR964",
    "unknown length",
    "ConvolutionBackpropData",
    1,
    random("f32", 1, 3, 4, 4),
    random("f32", 3, 2, 3, 3),
    [8, 8],
    parameters=(0, 2),
    shapes={2: "?"},
    **_DECONV,
)
has_not(
    "IR964",
    "known length",
    "ConvolutionBackpropData",
    1,
    random("f32", 1, 3, 4, 4),
    random("f32", 3, 2, 3, 3),
    [8, 8],
    parameters=(0, 2),
    **_DECONV,
)

has("IR965", "empty", "EmbeddingBagOffsetsSum", 3, random("f32", 5, 2), ints("i32", 0, 2, 3, 4), ints("i32", 0, 2, 4), parameters=FIRST)
has_not(
    "IR965", "not empty", "EmbeddingBagOffsetsSum", 3, random("f32", 5, 2), ints("i32", 0, 2, 3, 4), ints("i32", 0, 2, 3), parameters=FIRST
)

has(
    "IR966",
    "as large as the kernel",
    "AvgPool",
    1,
    random("f32", 1, 1, 4, 4),
    strides="3,3",
    pads_begin="0,0",
    pads_end="2,2",
    kernel="2,2",
    rounding_type="ceil",
    exclude_pad="true",
)
has_not(
    "IR966",
    "padding counts",
    "AvgPool",
    1,
    random("f32", 1, 1, 4, 4),
    strides="3,3",
    pads_begin="0,0",
    pads_end="2,2",
    kernel="2,2",
    rounding_type="ceil",
    exclude_pad="false",
)
has_not(
    "IR966",
    "less",
    "AvgPool",
    1,
    random("f32", 1, 1, 4, 4),
    strides="2,2",
    pads_begin="0,0",
    pads_end="1,1",
    kernel="2,2",
    exclude_pad="true",
)

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
    "IR967", "of OpenVINO", "ConvolutionBackpropData", 1, random("f32", 1, 3, 4, 4), random("f32", 3, 2, 3, 3), parameters=FIRST, **_DECONV
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
