"""Rows of layers that change shapes, select and reduce."""

from __future__ import annotations

import numpy as np

from tests.converters.legacy_ir.rows import Row, random, row

X = random(2, 6, 4, 4)
V = random(2, 5)
DEEP = random(1, 8, 2, 3)
WIDE = random(1, 2, 4, 6)
TOP = np.float32([[[[3, 1]], [[2, 5]]], [[[0, 7]], [[7, -1]]]])


def _gathered(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Zeros for indices out of range."""
    inside = (indices >= 0) & (indices < x.shape[axis])
    found = np.take(x, np.where(inside, indices, 0).astype(int), axis)
    mask = inside.reshape([1] * axis + list(indices.shape) + [1] * (x.ndim - axis - 1))
    return np.where(mask, found, 0).astype(np.float32)


ROWS: list[Row] = [
    row("with 0 and -1", "Reshape", [X], X.reshape(2, 24, 4), {"dim": "0,-1,4"}),
    row("declared sizes decide", "Reshape", [V], V.reshape(5, 2), {"dim": "2,5"}),
    row("axis and num_axes", "Reshape", [X], X.reshape(2, -1), {"axis": 0, "num_axes": -1, "dim": "0,-1"}),
    row("second input", "Reshape", [X, np.int32([2, -1])], X.reshape(2, -1), constants=(1,)),
    row("defaults", "Flatten", [X], X.reshape(-1)),
    row("from axis 1", "Flatten", [X], X.reshape(2, -1), {"axis": 1}),
    row("to an axis", "Flatten", [X], X.reshape(2, 24, 4), {"axis": 1, "end_axis": 2}),
    row("order", "Permute", [X], X.transpose(0, 2, 3, 1), {"order": "0,2,3,1"}),
    row("axes as floats", "Squeeze", [X[:1, :, :, :1].copy(), np.float32([0, 3])], X[0, :, :, 0], constants=(1,)),
    row("axes as integers", "Unsqueeze", [V, np.int32([0, 2])], V[None, :, None], constants=(1,)),
    row("axis 1", "Concat", [X, X, X[:, :1].copy()], np.concatenate([X, X, X[:, :1]], 1)),
    row("axis 0", "Concat", [V, V], np.concatenate([V, V]), {"axis": 0}, version=2, tag="concat_data"),
    row("equal parts", "Split", [X], np.split(X, 3, 1), {"axis": 1}),
    row("other parts", "Slice", [X], [X[:, :1], X[:, 1:]]),
    row("last axis", "Split", [X], [X[..., :1], X[..., 1:]], {"axis": -1}),
    row("offset and dim", "Crop", [X], X[:, :, 1:4, 2:4], {"axis": "2,3", "offset": "1,2", "dim": "3,2"}),
    row("begin and end", "Crop", [X], X[:, 1:4, :, 1:3], {"axis": "1,3", "crop_begin": "1,1", "crop_end": "2,1"}),
    row("reference", "Crop", [X, random(2, 6, 3, 2)], X[:, :, 1:4, 2:4], {"axis": "2,3", "offset": "1,2"}),
    row("version 2", "Crop", [X], X[:, :, 1:4, 2:4], {}, version=2,
        inside='<crop-data><crop axis="2" offset="1" dim="3"/><crop axis="3" offset="2" dim="2"/></crop-data>'),
    row("tiles", "Tile", [V], np.tile(V, (1, 3)), {"axis": 1, "tiles": 3}),
    row("constant", "Pad", [V], np.pad(V, ((1, 0), (2, 1)), constant_values=1.5),
        {"pads_begin": "1,2", "pads_end": "0,1", "pad_mode": "constant", "pad_value": "1.5"}),
    *(row(mode, "Pad", [V], np.pad(V, ((1, 0), (2, 1)), mode=mode),
          {"pads_begin": "1,2", "pads_end": "0,1", "pad_mode": mode}) for mode in ("edge", "reflect", "symmetric")),
    row("masks: 1 counts", "StridedSlice", [X, np.int32([1, 2, 0, 1]), np.int32([2, 5, 1, 4]), np.int32([1, 2, 1, 1])], X[:, 2:5:2, :, 1:],
        {"begin_mask": "0,1,0,1", "end_mask": "0,1,0,0"}, constants=(1, 2, 3)),
    row("shrink", "StridedSlice", [V, np.int32([1, 0]), np.int32([2, 3])], V[1, :3],
        {"begin_mask": "1,1", "end_mask": "1,1", "shrink_axis_mask": "1,0"}, constants=(1, 2)),
    row("indices out of range", "Gather", [X, np.float32([[1, 6], [-1, 0]])], _gathered(X, np.array([[1, 6], [-1, 0]]), 1), {"axis": 1}),
    row("constant indices", "Gather", [V, np.int32([4, 0])], V[:, [4, 0]], {"axis": -1}, constants=(1,)),
    row("by trailing axes", "Broadcast", [V, np.int32([3, 2, 5])], np.broadcast_to(V, (3, 2, 5)).copy(), constants=(1,)),
    row("value", "Fill", [np.int32([2, 3]), np.float32([1.5])], np.full((2, 3), 1.5, np.float32), constants=(0,)),
    row("condition of floats", "Select", [np.round(V), V, -V], np.where(np.round(V) != 0, V, -V)),
    row("groups", "ShuffleChannels", [X], X.reshape(2, 2, 3, 4, 4).swapaxes(1, 2).reshape(X.shape), {"axis": -3, "group": 2}),
    row("blocks_first", "DepthToSpace", [DEEP],
        DEEP.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
        {"block_size": 2, "mode": "blocks_first"}),
    row("depth_first", "DepthToSpace", [DEEP],
        DEEP.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6),
        {"block_size": 2, "mode": "depth_first"}),
    row("back", "SpaceToDepth", [WIDE],
        WIDE.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3),
        {"block_size": 2, "mode": "blocks_first"}),
    row("lengths", "ReverseSequence", [V, np.float32([3, 1])], np.stack([np.concatenate([V[0, 2::-1], V[0, 3:]]), V[1]])),
    row("values on and off", "OneHot", [np.float32([[1, 3, 0]])],
        np.float32([[[-1, 5, -1], [-1, -1, -1], [5, -1, -1]]]), {"depth": 3, "on_value": 5, "off_value": -1}),
    row("axis 0 of OneHot", "OneHot", [np.float32([1, 0])], np.float32([[0, 1], [1, 0], [0, 0]]), {"depth": 3, "axis": 0}),
    row("indices along an axis", "ArgMax", [X], np.argsort(-X, 1, "stable")[:, :2].astype(np.float32), {"top_k": 2, "out_max_val": 0, "axis": 1}),
    row("values along an axis", "ArgMax", [X], -np.sort(-X, 3)[..., :1], {"top_k": 1, "out_max_val": 1, "axis": -1}),
    row("indices over all", "ArgMax", [TOP], np.float32([[3, 0, 2], [1, 2, 0]]).reshape(2, 1, 3, 1), {"top_k": 3, "out_max_val": 0}),
    row("indices and values", "ArgMax", [TOP], np.float32([[[3, 0], [5, 3]], [[1, 2], [7, 7]]])[..., None], {"top_k": 2, "out_max_val": 1}),
    row("largest", "TopK", [X, np.int32([2])], [-np.sort(-X, 1)[:, :2], np.argsort(-X, 1, "stable")[:, :2].astype(np.int32)],
        {"axis": 1, "mode": "max", "sort": "value"}, constants=(1,), version=7, precisions=["FP32", "I32"]),
    row("by index, one output", "TopK", [np.float32([[3, 9, 5]]), np.int32([2])], np.float32([[9, 5]]),
        {"axis": -1, "mode": "max", "sort": "index"}, constants=(1,)),
    row("right bound", "Bucketize", [np.float32([[0, 1, 1.5, 9]]), np.float32([1, 2])], np.int32([[0, 0, 1, 2]]),
        {"with_right_bound": "True"}, version=7, precisions=["I32"]),
    row("left bound", "Bucketize", [np.float32([[0, 1, 1.5, 9]]), np.float32([1, 2])], np.int32([[0, 1, 1, 2]]),
        {"with_right_bound": "False"}, version=7, precisions=["I32"]),
    row("numbers", "Range", [np.float32([1]), np.float32([7]), np.float32([2])], np.float32([1, 3, 5]), constants=(0, 1, 2)),
    *(row(type, type, [np.abs(X) if type != "ReduceMin" else X, np.int32([1, 3])], gives, {"keep_dims": keep}, constants=(1,))
      for type, keep, gives in (
        ("ReduceSum", "True", np.abs(X).sum((1, 3), keepdims=True)), ("ReduceMean", 0, np.abs(X).mean((1, 3))),
        ("ReduceMax", "False", np.abs(X).max((1, 3))), ("ReduceMin", "1", X.min((1, 3), keepdims=True)),
        ("ReduceProd", 0, np.abs(X).prod((1, 3))), ("ReduceL1", 0, np.abs(X).sum((1, 3))),
        ("ReduceL2", 0, np.sqrt((X * X).sum((1, 3)))), ("ReduceSumSquare", 0, (X * X).sum((1, 3))),
        ("ReduceLogSum", 0, np.log(np.abs(X).sum((1, 3)))), ("ReduceLogSumExp", 0, np.log(np.exp(np.abs(X)).sum((1, 3)))))),
    row("any", "ReduceOr", [np.round(X / 2), np.int32([3])], (np.round(X / 2) != 0).any(3).astype(np.float32), {"keep_dims": 0}, constants=(1,)),
    row("truncated", "Convert", [V * 3], (V * 3).astype(np.int32), {"precision": "I32"}, version=7, precisions=["I32"]),
]  # fmt: skip
