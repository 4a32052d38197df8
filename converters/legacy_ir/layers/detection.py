"""Boxes: priors, proposals, suppression, DetectionOutput, the layers of Yolo and Detectron.

Measured on Inference Engine 2020.1 and 2020.4: sizes of boxes count both borders, as in ``x1 - x0 + 1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from converters.legacy_ir.layer import Layer, windows
from converters.legacy_ir.layers.convolution import Group, filters
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.registry import NoEquivalentError, WrongAttributeError, translates
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import OpError, check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.schema.attributes import Floats, Ints, Positive
from irexec.schema.registry import resolve


@translates("DetectionOutput")
def detection_output(
    layer: Layer, locations: Value, confidences: Value, priors: Value, arm_confidences: Value | None = None,
    arm_locations: Value | None = None, *, num_classes: int, background_label_id: int = 0, top_k: int = -1,
    variance_encoded_in_target: bool = False, keep_top_k: int = -1,
    code_type: str = "caffe.PriorBoxParameter.CORNER", share_location: bool = True, nms_threshold: float,
    confidence_threshold: float = 0.0, clip_after_nms: bool = False, clip_before_nms: bool = False,
    decrease_label_id: bool = False, normalized: bool = True, input_height: int = 1, input_width: int = 1,
    objectness_score: float = 0.0,
) -> Value:  # fmt: skip
    """The operation, whose priors are ``normalized`` by default here."""
    batch = layer.shape(locations)[0]
    predictions = [
        None if value is None else _flat(layer, value, (batch, -1))
        for value in (locations, confidences, arm_confidences, arm_locations)
    ]
    boxes = _flat(layer, priors, (*layer.shape(priors)[:2], -1))
    if normalized:
        # The size of the input counts only for priors in pixels; old files have -1 for it.
        input_height = input_width = 1
    return layer.emit(
        "DetectionOutput", *predictions[:2], boxes, *predictions[2:], version=1, num_classes=num_classes,
        background_label_id=background_label_id, top_k=top_k, variance_encoded_in_target=variance_encoded_in_target,
        keep_top_k=(keep_top_k,), code_type=code_type, share_location=share_location, nms_threshold=nms_threshold,
        confidence_threshold=confidence_threshold, clip_after_nms=clip_after_nms, clip_before_nms=clip_before_nms,
        decrease_label_id=decrease_label_id, normalized=normalized, input_height=input_height, input_width=input_width,
        objectness_score=objectness_score,
    )  # fmt: skip


def _flat(layer: Layer, value: Value, pattern: Ints) -> Value:
    """The value as f32 with the number of axes that the pattern has."""
    value = layer.f32(value)
    if layer.rank(value) == len(pattern):
        return value
    return layer.emit("Reshape", value, layer.constant(list(pattern), I64), version=1, special_zero=False)


@translates("NonMaxSuppression")
def non_max_suppression(
    layer: Layer, boxes: Value, scores: Value, count: Value | None = None, iou_threshold: Value | None = None,
    score_threshold: Value | None = None, *, center_point_box: bool = False, sort_result_descending: bool = True,
) -> Value:  # fmt: skip
    """Rows (batch, class, box) by score, as many as are declared: rows without a box are -1.

    Without a threshold of overlaps it is 1, so that no box is dropped.
    """
    rows = layer.size()[0]
    most = layer.constant(0, I64) if count is None else layer.reshaped(layer.i64(count), ())
    thresholds = [
        layer.constant(default, F32) if value is None else layer.reshaped(layer.f32(value), ())
        for value, default in ((iou_threshold, 1.0), (score_threshold, 0.0))
    ]
    encoding = "center" if center_point_box else "corner"
    found = layer.emit(
        "NonMaxSuppression", layer.f32(boxes), layer.f32(scores), most, *thresholds, version=3, box_encoding=encoding,
        sort_result_descending=sort_result_descending, output_type=I64,
    )  # fmt: skip
    return padded_rows(layer, found, rows, -1)


def padded_rows(layer: Layer, found: Value, rows: int, fill: float) -> Value:
    """The first ``rows`` rows of a matrix, followed by rows of ``fill`` if it has fewer."""
    kind = layer.kind(found)
    columns = layer.builder.fact(found).require_shape("the rows")[1]
    rest = layer.filled(fill, (rows, int(columns)), kind)
    joined = layer.emit("Concat", found, rest, version=1, axis=0)
    limits = [layer.constant([each], I64) for each in (0, rows)]
    return layer.emit("StridedSlice", joined, *limits, version=1, begin_mask=(0,), end_mask=(0,))


@translates("Proposal")
def proposal(
    layer: Layer, scores: Value, deltas: Value, image: Value, *, base_size: int, pre_nms_topn: int, post_nms_topn: int,
    nms_thresh: float, feat_stride: int, min_size: int, ratio: Floats, scale: Floats, clip_before_nms: bool = True,
    clip_after_nms: bool = False, normalize: bool = False, box_size_scale: float = 1.0,
    box_coordinate_scale: float = 1.0, framework: str = "",
) -> tuple[Value, ...]:  # fmt: skip
    """The operation; the image information may have an axis of size 1 before its numbers, and more than 4 of them, of
    which 3 count."""
    count = math.prod(layer.shape(image))
    information = layer.reshaped(layer.f32(image), (count,))
    if count > 4:
        information = strided_slice(layer, information, [0], [3])
    return layer.outputs(
        "Proposal", layer.f32(scores), layer.f32(deltas), information, version=4, base_size=base_size,
        pre_nms_topn=pre_nms_topn, post_nms_topn=post_nms_topn, nms_thresh=nms_thresh, feat_stride=feat_stride,
        min_size=min_size, ratio=ratio, scale=scale, clip_before_nms=clip_before_nms, clip_after_nms=clip_after_nms,
        normalize=normalize, box_size_scale=box_size_scale, box_coordinate_scale=box_coordinate_scale,
        framework=framework,
    )  # fmt: skip


@translates("RegionYolo")
def region_yolo(
    layer: Layer, data: Value, *, classes: int, coords: int, num: int, do_softmax: bool = True, mask: Ints = ()
) -> Value:
    """Regions with a softmax over classes, flattened; or those of ``mask``, with sigmoids.

    Without ``mask`` and ``do_softmax`` the engines copy the input.
    """
    if not mask and not do_softmax:
        return layer.f32(data)
    return layer.emit(
        "RegionYolo", layer.f32(data), version=1, axis=1, end_axis=3, classes=classes, coords=coords, num=num,
        do_softmax=do_softmax, mask=mask,
    )  # fmt: skip


@translates("ReorgYolo")
def reorg_yolo(layer: Layer, data: Value, *, stride: Positive) -> Value:
    """Blocks of pixels become channels, in Darknet's order."""
    return layer.emit("ReorgYolo", layer.f32(data), version=2, stride=stride)


@translates("PSROIPooling")
def psroi_pooling(
    layer: Layer, data: Value, boxes: Value, offsets: Value | None = None, *, output_dim: int, group_size: int = 1,
    spatial_scale: float, spatial_bins_x: int = 1, spatial_bins_y: int = 1, part_size: int = 1,
    trans_std: float = 1.0, mode: Literal["average", "bilinear", "bilinear_deformable"] = "average",
) -> Value:  # fmt: skip
    """The operation of the same name, or that with offsets for the mode bilinear_deformable."""
    shared: dict[str, Any] = {
        "output_dim": output_dim, "group_size": group_size, "spatial_scale": spatial_scale,
        "spatial_bins_x": spatial_bins_x, "spatial_bins_y": spatial_bins_y, "mode": mode,
    }  # fmt: skip
    inputs = [layer.f32(value) for value in (data, boxes) if value is not None]
    if mode != "bilinear_deformable":
        return layer.emit("PSROIPooling", *inputs, version=1, **shared)
    moved = [] if offsets is None else [layer.f32(offsets)]
    return layer.emit(
        "DeformablePSROIPooling", *inputs, *moved, version=1, part_size=part_size, trans_std=trans_std, **shared
    )


@translates("ROIPooling")
def roi_pooling(
    layer: Layer, data: Value, boxes: Value, *, pooled_h: int, pooled_w: int, spatial_scale: float,
    method: Literal["max", "bilinear"] = "max",
) -> Value:  # fmt: skip
    """The operation of the same name."""
    return layer.emit(
        "ROIPooling", layer.f32(data), layer.f32(boxes), version=2, pooled_h=pooled_h, pooled_w=pooled_w,
        spatial_scale=spatial_scale, method=method,
    )  # fmt: skip


@translates("DeformableConvolution")
def deformable_convolution(
    layer: Layer, data: Value, offsets: Value, weights: Value | None = None, *, output: int, group: Group = 1,
    deformable_group: Group = 1,
) -> Value:  # fmt: skip
    """Convolution whose pixels are moved by offsets."""
    data = layer.f32(data)
    shape = layer.shape(data)
    given = windows(layer, len(shape) - 2)
    matrix = filters(layer, weights, (output, shape[1] // group, *given.kernel))
    return layer.emit(
        "DeformableConvolution", data, layer.f32(offsets), matrix, version=1, auto_pad=given.auto_pad, group=group,
        deformable_group=deformable_group, **given.explicit,
    )  # fmt: skip


@translates("CTCGreedyDecoder", "CTCGreadyDecoder")
def ctc_greedy_decoder(layer: Layer, data: Value, mask: Value, *, ctc_merge_repeated: bool = True) -> Value:
    """The best class of each step, without repetitions and blanks; the rest is -1."""
    if not ctc_merge_repeated:
        layer.note(
            legacy_codes.AGAINST_DESCRIPTION,
            "the engines leave out repetitions whatever ctc_merge_repeated says; here too",
        )
    return layer.emit("CTCGreedyDecoder", layer.f32(data), layer.f32(mask), version=1, ctc_merge_repeated=True)


_VERSION = 6
_GRID = "ExperimentalDetectronPriorGridGenerator"
_TYPES = (
    "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronGenerateProposalsSingleImage",
    _GRID, "ExperimentalDetectronROIFeatureExtractor",
    "ExperimentalDetectronTopKROIs",
)  # fmt: skip


def _grid_of_its_own(layer: Layer, inputs: tuple[Value, ...], given: dict[str, Any]) -> tuple[Value, ...]:
    """The inputs, with a feature map of h x w cells where the layer has these attributes.

    The engines write the boxes of h x w cells, and the output has the declared rows: today's operation has a row for
    each cell of the feature map. Whether the result is flat follows from the declared sizes too.
    """
    given["flatten"] = len(layer.size()) == 2
    priors, feature_map, image = inputs
    batch, _, *cells = layer.shape(feature_map)
    asked = [given.pop("h", 0), given.pop("w", 0)]
    sizes = [own or size for own, size in zip(asked, cells, strict=True)]
    return inputs if sizes == cells else (priors, layer.filled(0.0, (batch, 1, *sizes), F32), image)


def _operation(type: str) -> Callable[..., tuple[Value, ...]]:
    def translate(layer: Layer, *inputs: Value) -> tuple[Value, ...]:
        given: dict[str, Any] = {}
        for attribute in resolve(type, f"opset{_VERSION}").attributes:
            text = layer.attributes.get(attribute.name)
            if text is None and attribute.required:
                raise WrongAttributeError(f"the attribute {attribute.name} is missing")
            if text is not None:
                try:
                    given[attribute.parameter] = attribute.parse(text)
                except OpError as error:
                    raise WrongAttributeError(f"attribute {attribute.name}: {error}") from None
        if type == _GRID:
            inputs = _grid_of_its_own(layer, inputs, given)
        return layer.outputs(type, *(layer.f32(value) for value in inputs), version=_VERSION, **given)

    return translate


for _type in _TYPES:
    translates(_type)(_operation(_type))


@translates("PriorBox")
def prior_box(
    layer: Layer, data: Value, image: Value, *, min_size: Floats = (), max_size: Floats = (), aspect_ratio: Floats = (),
    flip: bool = False, clip: bool = False, step: float = 0.0, offset: float, variance: Floats = (),
    scale_all_sizes: bool = True, fixed_ratio: Floats = (), fixed_size: Floats = (), density: Floats = (),
) -> Value:  # fmt: skip
    """Boxes of several sizes and ratios around each cell.

    Without ``scale_all_sizes`` the ratios are for the first size alone, and come last. The engines then take sizes and
    step in pixels, the operation as fractions of the image's height; it ignores max_size.
    """
    if not scale_all_sizes:
        if max_size:
            raise NoEquivalentError("no operation has boxes of max_size without scale_all_sizes")
        pixels = layer.shape(image)[2]
        check(pixels > 0, "the image has no rows")
        min_size, step = tuple(size / pixels for size in min_size), step / pixels
    if fixed_ratio and density:
        layer.note(
            legacy_codes.ENGINES_DIFFER, "with fixed_ratio and density the engines leave part of the boxes unwritten"
        )
    boxes = layer.emit(
        "PriorBox", _spatial_sizes(layer, data), _spatial_sizes(layer, image), version=1, min_size=min_size,
        max_size=max_size, aspect_ratio=aspect_ratio, flip=flip, clip=clip, step=step, offset=offset,
        variance=variance, scale_all_sizes=scale_all_sizes, fixed_ratio=fixed_ratio, fixed_size=fixed_size,
        density=density,
    )  # fmt: skip
    return layer.emit("Unsqueeze", boxes, layer.constant([0], I64), version=1)


@translates("PriorBoxClustered")
def prior_box_clustered(
    layer: Layer, data: Value, image: Value, *, width: Floats, height: Floats, clip: bool = False, step: float = 0.0,
    step_w: float = 0.0, step_h: float = 0.0, offset: float, variance: Floats = (), img_w: int = 0, img_h: int = 0,
) -> Value:  # fmt: skip
    """A box of each width and height around each cell; ``step`` stands for steps that are 0."""
    size = _spatial_sizes(layer, image)
    if img_w or img_h:
        shape = layer.shape(image)
        size = layer.constant([img_h or shape[2], img_w or shape[3]], I64)
    boxes = layer.emit(
        "PriorBoxClustered", _spatial_sizes(layer, data), size, version=1, width=width, height=height, clip=clip,
        step_w=step_w or step, step_h=step_h or step, offset=offset, variance=variance,
    )  # fmt: skip
    return layer.emit("Unsqueeze", boxes, layer.constant([0], I64), version=1)


def _spatial_sizes(layer: Layer, value: Value) -> Value:
    """Height and width as a tensor."""
    check(layer.rank(value) == 4, f"an input has rank {layer.rank(value)}, expected 4")
    return strided_slice(layer, layer.emit("ShapeOf", value, version=3, output_type=I64), [2], [4])


_SIDE = 16
_RATIOS = (0.5, 1.0, 2.0)
# A constant has the boxes of all cells; the sizes of a file may be anything.
_LARGEST_MAP = 1 << 20
_LOWEST = float(np.finfo(np.float32).min)


@translates("SimplerNMS")
def simpler_nms(
    layer: Layer, scores: Value, deltas: Value, image: Value, *, feat_stride: Positive, min_bbox_size: int,
    pre_nms_topn: Positive, post_nms_topn: Positive, iou_threshold: float, scale: Floats = (),
) -> Value:  # fmt: skip
    """Rows 0, x0, y0, x1, y1 of the boxes with the best scores; the rest is 0."""
    _, channels, height, width = layer.shape(deltas)
    anchors = _anchors(scale)
    check(height * width < _LARGEST_MAP, f"the map has {height} x {width} cells, at most {_LARGEST_MAP} are translated")
    check(channels == 4 * len(anchors), f"the deltas have {channels} channels, the anchors need {4 * len(anchors)}")
    boxes = _boxes(
        layer, _by_box(layer, deltas, (len(anchors), 4)), _centres(anchors, height, width, feat_stride), image
    )
    kept = strided_slice(layer, layer.f32(scores), [0, len(anchors)], [1, 2 * len(anchors)])
    masked = _of_large_boxes(layer, _by_box(layer, kept, (len(anchors), 1)), boxes, image, min_bbox_size)
    count = min(pre_nms_topn, height * width * len(anchors))
    best, order = layer.outputs(
        "TopK", layer.reshaped(masked, (height * width * len(anchors),)), layer.constant(count, I64), version=3, axis=0,
        mode="max", sort="value", index_element_type=I32,
    )  # fmt: skip
    ordered = layer.emit("Gather", boxes, order, layer.constant(0), version=8, batch_dims=0)
    return _suppressed(layer, ordered, best, post_nms_topn, iou_threshold)


def _anchors(scales: Floats) -> np.ndarray:
    """Corners [ratios * scales, 4] of the boxes around the middle of the first cell."""
    found = []
    for ratio in _RATIOS:
        wide = np.round(np.sqrt(_SIDE * _SIDE / ratio))
        high = np.round(wide * ratio)
        for scale in scales:
            half = np.array([wide * scale - 1, high * scale - 1]) / 2
            middle = (_SIDE - 1) / 2
            found.append([*(middle - half), *(middle + half)])
    return np.array(found, np.float32).reshape(-1, 4)


def _centres(anchors: np.ndarray, height: int, width: int, stride: int) -> np.ndarray:
    """Centres and sizes [height * width * anchors, 4] of the boxes of all cells."""
    sizes = anchors[:, 2:] - anchors[:, :2] + 1
    y, x = np.meshgrid(np.arange(height) * stride, np.arange(width) * stride, indexing="ij")
    shifts = np.stack([x, y], -1).reshape(-1, 1, 2)
    centres = anchors[None, :, :2] + sizes / 2 + shifts
    return np.concatenate([centres, np.broadcast_to(sizes, centres.shape)], -1).reshape(-1, 4).astype(np.float32)


def _by_box(layer: Layer, value: Value, parts: tuple[int, int]) -> Value:
    """[1, anchors * n, H, W] as [H * W * anchors, n]."""
    _, _, height, width = layer.shape(value)
    split = layer.reshaped(layer.f32(value), (*parts, height, width))
    moved = layer.emit("Transpose", split, layer.constant([2, 3, 0, 1]), version=1)
    return layer.reshaped(moved, (height * width * parts[0], parts[1]))


def _column(layer: Layer, value: Value, first: int, last: int) -> Value:
    return strided_slice(layer, value, [0, first], [layer.shape(value)[0], last])


def _number(layer: Layer, image: Value, index: int) -> Value:
    """One number of the information about the image: height, width, scale."""
    flat = layer.reshaped(layer.f32(image), (math.prod(layer.shape(image)),))
    return strided_slice(layer, flat, [index], [index + 1])


def _boxes(layer: Layer, deltas: Value, centres: np.ndarray, image: Value) -> Value:
    """Corners [count, 4] of the moved boxes, inside the image."""
    sizes = layer.constant(centres[:, 2:].copy(), F32)
    moved = layer.emit("Multiply", _column(layer, deltas, 0, 2), sizes, version=1)
    middle = layer.emit("Add", moved, layer.constant(centres[:, :2].copy(), F32), version=1)
    grown = layer.emit("Multiply", layer.emit("Exp", _column(layer, deltas, 2, 4), version=1), sizes, version=1)
    half = layer.emit("Multiply", grown, layer.constant(0.5, F32), version=1)
    corners = [layer.emit(type, middle, half, version=1) for type in ("Subtract", "Add")]
    size = layer.emit("Concat", _number(layer, image, 1), _number(layer, image, 0), version=1, axis=0)
    limit = layer.emit("Subtract", size, layer.constant(1.0, F32), version=1)
    inside = [
        layer.emit("Maximum", layer.emit("Minimum", each, limit, version=1), layer.constant(0.0, F32), version=1)
        for each in corners
    ]
    return layer.emit("Concat", *inside, version=1, axis=1)


def _of_large_boxes(layer: Layer, scores: Value, boxes: Value, image: Value, smallest: int) -> Value:
    """The scores, the lowest number in place of those of boxes that are too small."""
    difference = layer.emit("Subtract", _column(layer, boxes, 2, 4), _column(layer, boxes, 0, 2), version=1)
    sizes = layer.emit("Add", difference, layer.constant(1.0, F32), version=1)
    limit = layer.emit("Multiply", _number(layer, image, 2), layer.constant(float(smallest), F32), version=1)
    fits = layer.emit("GreaterEqual", sizes, limit, version=1)
    both = layer.emit("ReduceLogicalAnd", fits, layer.constant([1]), version=1, keep_dims=True)
    return layer.emit("Select", both, scores, layer.constant(_LOWEST, F32), version=1)


def _suppressed(layer: Layer, boxes: Value, scores: Value, count: int, threshold: float) -> Value:
    """The rows of the boxes that overlap no better one by more than the threshold."""
    total = layer.shape(boxes)[0]
    # The area of a box with its last border is that of a box that ends 1 later.
    ends = layer.emit("Add", boxes, layer.constant([[0.0, 0.0, 1.0, 1.0]], F32), version=1)
    numbers = [layer.constant(count, I64), layer.constant(threshold, F32), layer.constant(_LOWEST / 2, F32)]
    found = layer.emit(
        "NonMaxSuppression", layer.reshaped(ends, (1, total, 4)), layer.reshaped(scores, (1, 1, total)), *numbers,
        version=3, box_encoding="corner", sort_result_descending=True, output_type=I64,
    )  # fmt: skip
    rows = layer.emit("Gather", found, layer.constant(2), layer.constant(1), version=8, batch_dims=0)
    chosen = layer.emit("Gather", boxes, rows, layer.constant(0), version=8, batch_dims=0)
    rest = layer.filled(0, (count, 4), F32)
    kept = strided_slice(layer, layer.emit("Concat", chosen, rest, version=1, axis=0), [0], [count])
    return layer.emit("Concat", layer.filled(0, (count, 1), F32), kept, version=1, axis=1)
