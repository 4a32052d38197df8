"""DetectionOutput, NonMaxSuppression, Proposal, and the layers of Yolo and of region proposals."""

from __future__ import annotations

import math
from typing import Any, Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.convolution import Group, filters
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.registry import translates
from converters.legacy_ir.windows import windows
from irexec.dtypes.elements import F32, I64
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.schema.attributes import Floats, Ints, Positive


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
