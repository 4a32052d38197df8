"""Rows of detection layers: small hand-made cases; the operations have tests of their own."""

from __future__ import annotations

import numpy as np

from tests.converters.legacy_ir.rows import Row, random, row

MAP, IMAGE = np.zeros((1, 2, 2, 1), np.float32), np.zeros((1, 3, 8, 4), np.float32)
BOXES = np.float32([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]])
SCORES = np.float32([[[0.9, 0.8, 0.3]]])
YOLO = random(1, 2 * 7, 2, 3)
REORG = random(1, 4, 2, 4)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _priors(sizes: list[tuple[float, float]], steps: tuple[float, float], variance: list[float]) -> np.ndarray:
    """Boxes of width and height in pixels around the cells of MAP, as fractions of IMAGE."""
    found = []
    for y in range(2):
        centre_y, centre_x = (y + 0.5) * steps[0], 0.5 * steps[1]
        for width, height in sizes:
            found += [(centre_x - width / 2) / 4, (centre_y - height / 2) / 8]
            found += [(centre_x + width / 2) / 4, (centre_y + height / 2) / 8]
    return np.stack([np.float32(found), np.float32(variance * (len(found) // 4))])[None]


def _region(x: np.ndarray) -> np.ndarray:
    """x, y and objectness as sigmoid, width and height as they are, softmax over 2 classes."""
    parts = x.reshape(1, 2, 7, 2, 3)
    found = parts.copy()
    found[:, :, [0, 1, 4]] = _sigmoid(parts[:, :, [0, 1, 4]])
    powers = np.exp(parts[:, :, 5:])
    found[:, :, 5:] = powers / powers.sum(2, keepdims=True)
    return found.reshape(1, -1)


def _masked(x: np.ndarray) -> np.ndarray:
    parts = x.reshape(1, 2, 7, 2, 3).copy()
    parts[:, :, [0, 1, 4, 5, 6]] = _sigmoid(parts[:, :, [0, 1, 4, 5, 6]])
    return parts.reshape(x.shape)


# One class beside the background, two priors: their deltas are 0, so that the boxes are the priors.
PRIORS = np.float32([[[0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.9, 0.9], [0.1] * 8]])
FOUND = np.float32([[[[0, 1, 0.9, 0.5, 0.5, 0.9, 0.9], [0, 1, 0.6, 0.1, 0.1, 0.3, 0.3], [-1, 0, 0, 0, 0, 0, 0]]]])
MASK = np.float32([[1], [1], [1], [0]])
STEPS = np.float32([[[0, 1, 0]], [[0, 1, 0]], [[0, 0, 1]], [[1, 0, 0]]])

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2) + 1
SPARSE = np.float32([[0, 1], [0, 3], [2, 0]])
EMBEDDED = np.stack([TABLE[0] + 2 * TABLE[1], TABLE[3], 0.5 * TABLE[2], TABLE[3]])

ROWS: list[Row] = [
    row("step 0, sizes in pixels", "PriorBox", [MAP, IMAGE],
        _priors([(2, 2), (8**0.5, 8**0.5)], (4, 4), [0.1] * 4),
        {"min_size": "2.0", "max_size": "4.0", "aspect_ratio": "", "flip": 1, "clip": 0, "step": 0, "offset": 0.5,
         "variance": ""}),
    row("ratios and variances", "PriorBox", [MAP, IMAGE],
        _priors([(2, 2), (2 * 2**0.5, 2 / 2**0.5), (2 / 2**0.5, 2 * 2**0.5)], (3, 3), [0.1, 0.1, 0.2, 0.2]),
        {"min_size": "2", "aspect_ratio": "2", "flip": "1", "step": "3.0", "offset": "0.5", "variance": "0.1,0.1,0.2,0.2"}),
    row("without scale_all_sizes", "PriorBox", [MAP, IMAGE], _priors([(2, 2)], (3, 3), [0.1] * 4),
        {"min_size": "2", "scale_all_sizes": "0", "step": "3", "offset": "0.5"}),
    row("widths and heights", "PriorBoxClustered", [MAP, IMAGE], _priors([(2, 3), (1, 4)], (3, 3), [0.1] * 4),
        {"width": "2,1", "height": "3,4", "clip": 0, "flip": 0, "step": 3, "offset": 0.5, "variance": ""}),
    row("size of the image", "PriorBoxClustered", [MAP, random(1, 3, 16, 16)], _priors([(2, 3)], (4, 4), [0.1] * 4),
        {"width": 2, "height": 3, "flip": 0, "offset": 0.5, "img_w": 4, "img_h": 8, "variance": ""}),
    row("normalized by default", "DetectionOutput",
        [np.zeros((1, 8), np.float32), np.float32([[0.4, 0.6, 0.1, 0.9]]), PRIORS], FOUND,
        {"num_classes": 2, "background_label_id": 0, "top_k": -1, "keep_top_k": 3, "nms_threshold": 0.5,
         "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": 1, "variance_encoded_in_target": 0,
         "confidence_threshold": 0.1, "num_orient_classes": 0, "input_height": -1, "input_width": -1}),
    row("no threshold of overlaps", "NonMaxSuppression", [BOXES, SCORES, np.int32([2])],
        np.int32([[0, 0, 0], [0, 0, 1], [-1, -1, -1]]), {"center_point_box": 0}, constants=(2,), version=7,
        precisions=["I32"]),
    row("thresholds", "NonMaxSuppression", [BOXES, SCORES, np.int32([3]), np.float32([0.5]), np.float32([0.2])],
        np.int32([[0, 0, 0], [0, 0, 2], [-1, -1, -1], [-1, -1, -1]]), {}, constants=(2, 3, 4), version=7, precisions=["I32"]),
    row("softmax", "RegionYolo", [YOLO], _region(YOLO), {"classes": 2, "coords": 4, "num": 2, "axis": 1, "end_axis": 3}),
    row("mask", "RegionYolo", [YOLO], _masked(YOLO), {"classes": 2, "coords": 4, "num": 9, "do_softmax": 0, "mask": "0,1", "anchors": "1,2"}),
    row("a copy", "RegionYolo", [YOLO], YOLO, {"classes": 2, "coords": 4, "num": 2, "do_softmax": "0"}),
    row("merged", "CTCGreedyDecoder", [STEPS, MASK], np.float32([1, -1, -1, -1]).reshape(1, 4, 1, 1), {"ctc_merge_repeated": 1}),
    row("merged all the same", "CTCGreedyDecoder", [STEPS, MASK], np.float32([1, -1, -1, -1]).reshape(1, 4, 1, 1), {"ctc_merge_repeated": 0}),
    row("nearest pixel", "ROIPooling", [REORG[:, :1].copy(), np.float32([[0, 0, 0, 3, 1]])],
        REORG[:, :1].reshape(1, 1, 2, 2, 2).max(-1), {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1.0, "method": "max"}),
    row("segments", "SparseSegmentSum", [TABLE, np.float32([0, 3, 1, 2]), np.float32([0, 0, 2, 2])], np.float32([[8, 10], [0, 0], [8, 10], [0, 0]])),
    row("means of segments", "SparseSegmentMean", [TABLE, np.int32([0, 3, 1, 2]), np.int32([0, 0, 2, 2])], np.float32([[4, 5], [0, 0], [4, 5], [0, 0]])),
    row("roots of counts", "SparseSegmentSqrtN", [TABLE, np.int32([0, 3, 1, 2]), np.int32([0, 0, 2, 2])],
        np.float32([[8, 10], [0, 0], [8, 10], [0, 0]]) / np.float32(2**0.5)),
    row("end and rest", "SparseFillEmptyRows", [SPARSE, np.float32([5, 6, 7]), np.float32([4, 5]), np.float32([9])],
        [np.float32([[0, 1], [0, 3], [1, 0], [2, 0], [3, 0], [-1, -1], [0, 0]]), np.float32([5, 6, 9, 7, 9, 0, 0]),
         np.float32([0, 1, 0, 1])], version=7),
    row("default", "SparseToDense", [SPARSE, np.int32([4, 5]), np.float32([1, 2, 3]), np.float32([9])],
        np.float32([[9, 1, 9, 2, 9], [9] * 5, [3, 9, 9, 9, 9], [9] * 5])),
    row("weights and a default", "ExperimentalSparseWeightedSum",
        [SPARSE, np.float32([0, 1, 2]), np.float32([4, 5]), TABLE, np.float32([3]), np.float32([1, 2, 0.5])], EMBEDDED),
    row("sorted", "Unique", [np.float32([3, 1, 3, 2])],
        [np.float32([1, 2, 3, 3]), np.float32([2, 0, 2, 1]), np.float32([1, 1, 2, 0])],
        {"sorted": 1, "return_inverse": 1, "return_counts": 1}),
    row("by first occurrence", "Unique", [np.float32([3, 1, 3, 2])], np.float32([3, 1, 2, 2]), {"sorted": 0}),
]  # fmt: skip
