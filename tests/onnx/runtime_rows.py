"""Rows of operators that runtimes have and ONNX does not, or no longer: those of OpenVINO's domain, recorded from
OpenVINO, the operators on trial before opset 10, and masks and windows of ONNX Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.onnx.rows import Fixed, Row, f32, i8, i32, i64, ints, row, u8

OPENVINO = "org.openvinotoolkit"
_W, _B = Fixed(f32(8, 24)), Fixed(f32(24))
_X, _Q, _K = f32(2, 4, 8), f32(2, 3, 8, seed=1), f32(2, 5, 8, seed=2)
_ONE = (f32(1, 1, 32), f32(1, 1, 32, seed=1), f32(1, 1, 32, seed=2))
_ROOM = (f32(1, 2, 8, 16), f32(1, 2, 8, 16, seed=1))


def _openvino(operator: str, *inputs: np.ndarray | Fixed | None, **attributes: Any) -> Row:
    return row(operator, *inputs, domain=OPENVINO, **attributes)


def _old(operator: str, *inputs: np.ndarray | Fixed | None, **attributes: Any) -> Row:
    return row(operator, *inputs, domain="", **({"model_opset": 8} | attributes))


def _boxes(count: int, low: float, high: float, size: float, seed: int = 0) -> np.ndarray:
    corners = f32(count, 2, low=low, high=high, seed=seed)
    return np.concatenate([corners, corners + f32(count, 2, low=size / 4, high=size, seed=seed + 1)], 1)


def _proposals(count: int, *, normalized: bool, variances: bool) -> np.ndarray:
    boxes = _boxes(count, 0, 0.6, 0.4)
    values = boxes if normalized else np.concatenate([np.zeros((count, 1), np.float32), boxes], 1)
    rows = [values.ravel()]
    if variances:
        rows.append(np.pad(np.tile(np.array([0.1, 0.1, 0.2, 0.2], np.float32), count), (0, values.size - 4 * count)))
    return np.stack(rows)[None].astype(np.float32)


# fmt: off
_MASKS = [
    row("Attention", _X, _W, _B, i32(4, 2), id="lengths, known width", num_heads=2),
    row("Attention", _X, _W, _B, i32(4, 3, 0, 1), id="ends and starts, known width", num_heads=2),
    row("Attention", _X, _W, _B, i32(4, 2, 0, 4, 8, 0, 4, 6), id="positions of packed sequences", num_heads=2),
    row("Attention", _X, _W, _B, i32(0, 1).reshape(2, 1), id="a mask of one column", num_heads=2, mask_filter_value=-50.0),
    row("Attention", _X, _W, _B, ints("int32", 2, 4, low=0, high=2), id="raw mask, known width", num_heads=2, unidirectional=1),
    row("MultiHeadAttention", _Q, _K, f32(2, 5, 8, seed=3), None, i32(5, 2, 0, 3, 6, 0, 5, 7), id="positions of packed sequences", num_heads=2),
    row("GroupQueryAttention", *_ONE, *_ROOM, i32(3), Fixed(i32(4)), None, None, None, f32(1, 2, 1, 4), id="bias and room in the cache", compared=1,
        outputs=(True, True, True), num_heads=2, kv_num_heads=2),
    row("GroupQueryAttention", *_ONE, *_ROOM, i32(3), i32(4), None, None, None, f32(1, 1, 1, 4), id="bias of all heads and a window", compared=1,
        outputs=(True, True, True), num_heads=2, kv_num_heads=2, local_window_size=2, softcap=2.0),
    row("GatherBlockQuantized", Fixed(u8(6, 16)), i64(3, 0), Fixed(f32(6, 4)), Fixed(u8(6, 1)), id="two bits", bits=2, block_size=16, quantize_axis=1),
    row("EmbedLayerNormalization", i32(1, 2, 0, 3).reshape(2, 2), None, Fixed(f32(4, 8)), Fixed(f32(3, 8)), None, Fixed(f32(8)), Fixed(f32(8, seed=1)),
        i32(1, 2, 0, 1).reshape(2, 2), id="a mask with other values", outputs=(True, True)),
]
_TRIAL = [
    _old("Affine", f32(2, 3), alpha=2.0, beta=0.5),
    _old("Affine", f32(2, 3), id="defaults"),
    _old("Scale", f32(2, 3), scale=3.0),
    _old("ScaledTanh", f32(2, 3), alpha=2.0, beta=0.5),
    _old("ParametricSoftplus", f32(2, 3, low=-9, high=9), alpha=2.0, beta=0.5),
    _old("ImageScaler", f32(1, 3, 4, 5), scale=2.0, bias=[0.1, 0.2, 0.3]),
    _old("Crop", f32(1, 2, 5, 6), border=[1, 2, 1, 0]),
    _old("Crop", f32(1, 2, 5, 6), id="size", border=[1, 2, 0, 0], scale=[2, 3]),
    _old("DynamicSlice", f32(3, 4, 5), i64(1, -3), i64(9, -1), i64(0, 2)),
    _old("DynamicSlice", f32(3, 4, 5), i32(1, 0), i32(3, 2), id="first axes", model_opset=1),
    _old("ThresholdedRelu", f32(2, 3), alpha=0.3),
    _old("MeanVarianceNormalization", f32(2, 3, 4, 5)),
    _old("MeanVarianceNormalization", f32(2, 3, 4, 5), id="across channels", across_channels=1),
    _old("MeanVarianceNormalization", f32(2, 3, 4, 5), id="the mean alone", normalize_variance=0),
]
_POOLED = (f32(2, 2, 4, 5), (f32(1, 1, 4, 5, seed=1) > -0.5).astype(np.int32))
_CORNERS = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.2, 0.4, 1.1, 0.5]], np.float32)
_WINDOWS = [
    row("ConvTransposeWithDynamicPads", f32(2, 4, 5, 4), Fixed(f32(4, 1, 3, 2)), i64(1, 0, 0, 1), f32(2), group=2, strides=[2, 1], output_padding=[1, 0]),
    row("ConvTransposeWithDynamicPads", f32(2, 2, 5), Fixed(f32(2, 1, 3)), i64(1, 1), id="pads and VALID", auto_pad="VALID"),
    row("ConvTransposeWithDynamicPads", f32(2, 2, 4), Fixed(f32(2, 2, 1)), i64(0, 1), id="pads and SAME_UPPER", auto_pad="SAME_UPPER", strides=[2]),
    row("ConvTransposeWithDynamicPads", f32(2, 2, 5), Fixed(f32(2, 1, 3)), Fixed(i64(1, 0)), id="known pads", dilations=[2]),
    row("MaxpoolWithMask", *_POOLED, kernel_shape=[2, 3], strides=[1, 2], pads=[0, 1, 1, 1]),
    row("MaxpoolWithMask", f32(2, 1, 6), i32(0, 1, 1, 0, 0, 1).reshape(1, 1, 6), id="one axis", kernel_shape=[2]),
    row("MaxpoolWithMask", f32(1, 2, 3, 3, 4), np.zeros((1, 1, 3, 3, 4), np.int32), id="three axes, all masked", kernel_shape=[2, 1, 2]),
    row("CropAndResize", f32(2, 3, 5, 6), Fixed(_CORNERS), i32(0, 1, 1), Fixed(i32(3, 4)), extrapolation_value=-7.0),
    row("CropAndResize", f32(2, 3, 5, 6), Fixed(_CORNERS), i32(1, 0, 1), Fixed(i32(1, 5)), id="nearest", mode="nearest"),
    row("NGramRepeatBlock", i64(1, 2, 3, 1, 2, 0, 0, 0, 0, 0).reshape(2, 5), f32(2, 4), ngram_size=3),
    row("NGramRepeatBlock", i64(1, 2, 1).reshape(1, 3), f32(1, 4), id="single tokens", ngram_size=1),
    row("NGramRepeatBlock", i64(1, 2).reshape(1, 2), f32(1, 4), id="a short text", ngram_size=4),
]
_LEVELS = (Fixed(u8(2, 3, 16)), Fixed(u8(2, 4, 16, seed=1)))


def _scales(*shape: int, seed: int = 0) -> Fixed:
    return Fixed(f32(*shape, low=0.002, high=0.02, seed=seed))


def _zeros(*shape: int, value: int = 128) -> Fixed:
    return Fixed(np.full(shape, value, np.uint8))


_WEIGHTS = [
    row("MatMulBnb4", f32(2, 3, 32), Fixed(u8(112)), Fixed(f32(14, low=0.1)), id="NF4", K=32, N=7, block_size=16, quant_type=1),
    row("MatMulBnb4", f32(3, 20), Fixed(u8(30)), Fixed(f32(4, low=0.1)), id="FP4 and a last block", K=20, N=3, block_size=16, quant_type=0),
    row("MatMulBnb4", f32(32), u8(64), f32(4, low=0.1), id="computed weights", K=32, N=4, block_size=32, quant_type=1),
    row("DynamicQuantizeLSTM", f32(5, 2, 3), *_LEVELS, Fixed(f32(2, 32)), None, f32(2, 2, 4), f32(2, 2, 4, seed=1), Fixed(f32(2, 12)),
        _scales(2), _zeros(2), _scales(2, seed=1), _zeros(2, value=120), outputs=(True, True, True), direction="bidirectional", hidden_size=4),
    row("DynamicQuantizeLSTM", f32(5, 3, 3), Fixed(i8(1, 3, 16)), Fixed(i8(1, 4, 16, seed=1)), None, i32(5, 2, 3), None, None, None, _scales(1, 16),
        Fixed(np.zeros((1, 16), np.int8)), _scales(1, 16, seed=1), Fixed(np.zeros((1, 16), np.int8)), id="lengths, scales of columns",
        outputs=(True, True, True), direction="reverse", hidden_size=4, clip=0.8, input_forget=1),
]
_LOGITS, _SCORES = f32(2, 24, low=-0.3, high=0.3), f32(2, 18, low=0.0, seed=5)
_GRID = (f32(1, 2, 3, 4), f32(1, 3, 30, 50))
_RANGES = [Fixed(np.array(value, np.float32)) for value in (-0.5, 0.75, -1.0, 0.8)]
_OPENVINO = [
    _openvino("Swish", f32(2, 3)),
    _openvino("Swish", f32(2, 3), Fixed(np.array([0.7], np.float32)), id="beta"),
    _openvino("FakeQuantize", f32(2, 3, 4), *_RANGES, levels=16),
    _openvino("GroupNorm", f32(2, 6, 3, 4), f32(6), f32(6, seed=1), num_groups=3),
    _openvino("ExperimentalDetectronGroupNorm", f32(2, 6, 3, 4), f32(1, 6, 1, 1), f32(1, 6, 1, 1, seed=1), num_groups=2, eps=1e-3),
    _openvino("Normalize", f32(2, 3, 4, 5), Fixed(f32(3)), eps=1e-3),
    _openvino("Normalize", f32(2, 3, 4, 5), Fixed(f32(1)), id="one weight, across space", channel_shared=1, across_spatial=1, eps=1e-3),
    _openvino("PriorBox", *_GRID, min_size=[6.0], max_size=[12.0], aspect_ratio=[2.0], flip=1, clip=1, step=8.0, offset=0.5, variance=[0.1, 0.1, 0.2, 0.2]),
    _openvino("PriorBox", *_GRID, id="defaults", min_size=[6.0, 9.0]),
    _openvino("PriorBoxClustered", *_GRID, width=[4.0, 9.0], height=[5.0, 3.0], offset=0.5, step_w=8.0, step_h=4.0),
    _openvino("DetectionOutput", _LOGITS, _SCORES, _proposals(6, normalized=True, variances=True), nms_threshold=0.45, keep_top_k=4,
              code_type="CENTER_SIZE", confidence_threshold=0.2),
    _openvino("DetectionOutput", _LOGITS, _SCORES, _proposals(6, normalized=False, variances=False), id="five values, no variances", nms_threshold=0.45,
              normalized=0, variance_encoded_in_target=1, keep_top_k=3, clip_after_nms=1, num_classes=3),
    _openvino("ExperimentalDetectronDetectionOutput", _boxes(6, 0, 20, 20), f32(6, 12), f32(6, 3, low=0.0), f32(1, 3, low=40.0, high=41.0),
              outputs=(True, True, True), num_classes=3, max_detections_per_image=5),
    _openvino("ExperimentalDetectronGenerateProposalsSingleImage", np.array([40, 40, 1], np.float32), _boxes(12, 0, 20, 20), f32(12, 2, 2),
              f32(3, 2, 2, low=0.0), outputs=(True, True), post_nms_count=5),
    _openvino("ExperimentalDetectronPriorGridGenerator", f32(3, 4), *_GRID, stride_x=4.0),
    _openvino("ExperimentalDetectronPriorGridGenerator", f32(3, 4), *_GRID, id="not flat", flatten=0),
    _openvino("ExperimentalDetectronROIFeatureExtractor", _boxes(3, 0, 60, 90), f32(1, 2, 16, 16), f32(1, 2, 8, 8), outputs=(True, True), output_size=3,
              pyramid_scales=[4, 8]),
    _openvino("ExperimentalDetectronTopKROIs", f32(6, 4), f32(6), max_rois=4),
    _openvino("GenerateProposals", f32(2, 3, 2, 2, low=0.0), f32(2, 12, 2, 2), np.tile(np.array([[40, 40, 1]], np.float32), (2, 1)), _boxes(3, 0, 10, 20),
              outputs=(True, True, True), post_nms_topN=4),
    _openvino("DeformableConv2D", f32(1, 4, 6, 6), f32(1, 18, 4, 4), Fixed(f32(2, 2, 3, 3)), f32(1, 9, 4, 4, low=0.0), group=2),
]
# fmt: on
RUNTIME_ROWS: list[Row] = [*_MASKS, *_TRIAL, *_WINDOWS, *_WEIGHTS, *_OPENVINO]
