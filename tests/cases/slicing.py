"""Rows of Slice, SliceScatter and StridedSlice."""

import numpy as np

from irexec.testing import random, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 4, 5, 6)


def zeros(begin):
    """A mask without bits: OpenVINO wants all masks of one length."""
    return ", ".join("0" for _ in (begin if isinstance(begin, list) else [0, 0]))


strided_slice = Operation("StridedSlice", 1)


def strided(id, begin, end, strides=None, data=X, **masks):
    texts = dict.fromkeys(("begin_mask", "end_mask"), zeros(begin)) | masks
    return strided_slice(data, begin, end, *([] if strides is None else [strides]), **texts, id=id)


def strided_facts(id, data, begin, end, strides=None, **masks):
    texts = dict.fromkeys(("begin_mask", "end_mask"), zeros(begin)) | masks
    return strided_slice.facts(data, begin, end, *([] if strides is None else [strides]), **texts, id=id)


slice_ = Operation("Slice", 8)
ROWS = [
    slice_(X, [1], [3], [1], id="first axis"),
    slice_(X, [1, 0], [4, 6], [2, 3], [0, 2], id="two axes with steps"),
    slice_(X, [-2], [100], [1], [-1], id="from the end, beyond it"),
    slice_(X, [3], [0], [-1], [1], id="backwards"),
    slice_(X, [-1], [-100], [-1], [1], id="backwards to the start"),
    slice_(X, [-1], [-100], [-2], [2], id="backwards by two"),
    slice_(X, [4], [2], [1], [1], id="nothing"),
    slice_(typed("i32", [1, 2, 3]), typed("i32", [0]), typed("i32", [2]), typed("i32", [1]), id="i32"),
    slice_.facts("f32[?,2..9]", [1], [3], [1], [0], id="dynamic axis"),
    slice_.facts("f32[?,2..9]", [1], [100], [1], [1], id="bounded axis"),
    slice_.facts("f32[?,2..9]", [-3], [100], [1], [1], id="the last three"),
    slice_.facts("f32[4,5]", "i64[1]", [3], [1], [0], id="start unknown"),
    slice_.facts("f32[4,5]", [1], [3], [1], "i64[1]", id="axes unknown"),
    slice_.facts("f32[...]", [1], [3], [1], [0], id="rank unknown"),
    slice_.refuses("f32[4]", [0], [2], [0], says="step is 0", id="step 0"),
    slice_.refuses("f32[4]", [0, 1], [2], [1], says="different lengths", id="lengths"),
    slice_.refuses("f32[4]", [0], [2], [1], [3], says="axis 3 is out of range", id="axis out of range"),
    strided("plain", [1, 0], [3, 4], [1, 2]),
    strided("without strides", [1, 0], [3, 4]),
    strided("begin_mask", [1, 2], [3, 4], [1, 1], begin_mask="0, 1"),
    strided("end_mask", [1, 2], [3, 4], [1, 1], end_mask="1, 0"),
    strided("negative", [-3, -4, -2], [-1, 100, 100], [1, 1, 1]),
    strided("backwards", [3, 4], [0, 0], [-1, -2]),
    strided("backwards to the start", [3, 4], [0, 0], [-1, -2], end_mask="1, 1"),
    strided("backwards from the end", [0, 0], [1, 1], [-1, -1], begin_mask="1, 1"),
    strided("new axis", [0, 1, 0], [0, 3, 5], [1, 1, 1], new_axis_mask="1, 0, 0"),
    strided("new axis at the end", [0, 1, 0], [4, 3, 0], [1, 1, 1], new_axis_mask="0, 0, 1"),
    strided("shrink", [2, 1], [3, 4], [1, 1], shrink_axis_mask="1, 0"),
    strided("shrink from the end", [-1, 1], [0, 4], [1, 1], shrink_axis_mask="1, 0"),
    strided("shrink all", [1, 2, 3], [2, 3, 4], [1, 1, 1], shrink_axis_mask="1, 1, 1"),
    strided("ellipsis", [0, 1], [0, 4], [1, 2], ellipsis_mask="1, 0"),
    strided("ellipsis in the middle", [1, 0, 2], [3, 0, 5], [1, 1, 1], ellipsis_mask="0, 1, 0"),
    strided("ellipsis and shrink", [0, 1], [0, 2], [1, 1], ellipsis_mask="1, 0", shrink_axis_mask="0, 1"),
    strided("ellipsis and new axis", [0, 0], [0, 0], [1, 1], ellipsis_mask="1, 0", new_axis_mask="0, 1"),
    strided("i64 data", [1], [3], [1], data=typed("i64", [5, 6, 7, 8])),
    strided("nothing", [3], [1], [1]),
    strided_facts("dynamic", "f32[?,2..9,4]", [0, 1], [3, 100], [1, 1]),
    strided_facts("dynamic, open", "f32[?,2..9,4]", [0, 1], [0, 0], [1, 2], end_mask="1, 1"),
    strided_facts("dynamic, shrink", "f32[?,2..9,4]", [0, 1], [1, 0], [1, 1], shrink_axis_mask="1, 0", end_mask="0, 1"),
    strided_facts("begin unknown", "f32[4,5]", "i64[2]", [3, 4], [1, 1]),
    strided_facts("rank unknown", "f32[...]", [0, 1], [3, 4], [1, 1]),
    strided_slice.refuses("f32[4]", [0], [2], [0], begin_mask="", end_mask="", says="a stride is 0", id="stride 0"),
    strided_slice.refuses("f32[4]", [0, 1], [2, 2], begin_mask="", end_mask="", says="2 axes are sliced, data [4] has fewer", id="too many axes"),
    strided_slice.refuses("f32[4]", [5], [6], [1], begin_mask="0", end_mask="0", shrink_axis_mask="1", says="index 5 is out of range", id="index out of range"),
]  # fmt: skip
slice_scatter = Operation("SliceScatter", 15)
ROWS += [
    slice_scatter(X, random("f32", 2, 5, 6, seed=1), [1], [3], [1], [0], id="one axis"),
    slice_scatter(X, random("f32", 2, 2, 6, seed=1), [0, -2], [4, 100], [2, 1], id="two axes, without axes"),
    slice_scatter(X, random("f32", 4, 5, 3, seed=1), [-1], [-100], [-2], [-1], id="backwards"),
    slice_scatter(
        [1, 2, 3],
        [9],
        typed("i32", [1]),
        typed("i32", [2]),
        typed("i32", [1]),
        typed("i32", [0]),
        id="i64, bounds of i32",
    ),
    # Specification of SliceScatter-15: example 3.
    slice_scatter(
        np.arange(15, dtype=np.int64).reshape(3, 5),
        [[50, 60], [70, 80]],
        [0, 1],
        [3, 5],
        [2, 2],
        gives=[[0, 50, 2, 60, 4], [5, 6, 7, 8, 9], [10, 70, 12, 80, 14]],
        id="example 3",
    ),
    slice_scatter.facts("f32[?,3]", "f32[2,3]", [0], [2], [1], [0], id="dynamic"),
    slice_scatter.facts("f32[...]", "f32[2,3]", [0], [2], [1], [0], id="rank unknown"),
    slice_scatter.refuses(
        "f32[4,3]", "f32[1,3]", [0], [2], [1], [0], says="do not have the shape [2,3]", id="updates that do not fit"
    ),
    slice_scatter.refuses("f32[4,3]", "f32[2,3]", [0], [2], [0], [0], says="step is 0", id="step 0"),
]
ROWS += [
    slice_([1.0, 2.0, 3.0], [-5], [-100], [-1], id="backwards from before the start"),
    slice_([1.0, 2.0, 3.0], [-6], [-4], [-2], id="backwards, both before the start"),
    slice_([1.0, 2.0, 3.0], [9], [-2147483648], [-2], id="backwards from beyond the end"),
    # By hand: both bounds are beyond the last element, and a slice backwards does not contain its stop.
    slice_(
        [1.0, 2.0, 3.0], [9], [2147483647], [-1], gives=np.zeros(0, np.float32), id="backwards from the end to the end"
    ),
    slice_(np.zeros((0, 2), np.float32), [-1], [-9], [-1], [0], gives=np.zeros((0, 2), np.float32), id="of nothing"),
    strided("backwards from before the start", [-6, 0], [-9, 3], [-1, 1]),
    strided("backwards from before the start, open", [-6, 0], [0, 3], [-1, 1], end_mask="1, 0"),
    strided("backwards behind an ellipsis", [0, -9], [0, -9], [1, -1], ellipsis_mask="1, 0"),
    strided("shrink leaves begin_mask alone", [2, 1], [3, 3], [1, 1], begin_mask="1, 0", shrink_axis_mask="1, 0"),
    # The specification: an empty ellipsis between bounds for every axis.
    strided("ellipsis of nothing", [1, 0, 2, 0], [3, 0, 4, 5], [1, 1, 1, 2], ellipsis_mask="0, 1, 0, 0"),
    slice_.facts("f32[?,5..9]", [0], "i64[1]", [1], [1], id="stop unknown"),
    slice_.facts("f32[?,5..9]", [-6], [2], [-2], [1], id="backwards, bounded"),
    slice_.refuses("f32[4]", [0], [2.0], [1], says="stop has element type f32", id="float stop"),
    slice_.refuses("f32[4,3]", [0, 0], [2, 2], [1, 1], [0, -2], says="axes [0, 0] has an axis twice", id="axis twice"),
]
ROWS += [
    slice_scatter(X, np.zeros((0, 5, 6), np.float32), [2], [2], [1], [0], gives=X, id="of nothing"),
    strided("scalar data of one number", [0], [1], [1], data=typed("u8", [7]), shrink_axis_mask="1"),
]
ROWS += [*halves(ROWS), *odd(ROWS), *emptied(ROWS, "StridedSlice")]
# OpenVINO gives what was in memory.
ROWS.append(
    strided_slice(
        np.float32(1.5),
        [0],
        [1],
        [1],
        begin_mask="0",
        end_mask="0",
        new_axis_mask="1",
        gives=[1.5],
        id="new axis of a scalar",
    )
)
# OpenVINO's shape inference and constant folding; on sizes that are not static the CPU plugin has another shape.
ROWS.append(
    strided(
        "bits beyond the entries",
        [1],
        [3],
        begin_mask="0, 0",
        end_mask="0, 0",
        new_axis_mask="0, 1",
        gives=X.array[1:3],
    )
)
for _name, _text, _says in (
    ("new_axis_mask", "-1, 0", "new_axis_mask is [-1, 0], expected zeros and ones"),
    ("end_mask", "0, 2", "end_mask is [0, 2], expected zeros and ones"),
    ("shrink_axis_mask", "1", "shrink_axis_mask has the length 1, begin_mask has 2"),
    ("begin_mask", "", "end_mask has the length 2, begin_mask has 0"),
    ("ellipsis_mask", "1, 1", "ellipsis_mask has more than one bit"),
):
    _masks = {"begin_mask": "0, 0", "end_mask": "0, 0", _name: _text}
    ROWS.append(strided_slice.refuses("f32[...]", [0, 1], [2, 2], says=_says, id=f"{_name} {_text}", **_masks))
