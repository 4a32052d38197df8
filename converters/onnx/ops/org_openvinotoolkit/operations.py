"""org.openvinotoolkit: detections, deformable convolution, quantization, normalization and Swish.

Source: OpenVINO's ONNX frontend, ``src/op/org.openvinotoolkit``, whose defaults differ from those of IR.

Source: OpenVINO's ONNX frontend, ``src/op/org.openvinotoolkit``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any

from converters.onnx.algorithms.windows import WindowAttributes, conv_windows
from converters.onnx.context import TranslationContext
from converters.onnx.registry import openvino_operator
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.schema.opdef import ONE_ELEMENT, Rank

Maps = Annotated[Value, Rank(4)]

_BOOLEANS = {
    "flip", "clip", "scale_all_sizes", "min_max_aspect_ratios_order", "variance_encoded_in_target", "share_location",
    "clip_after_nms", "clip_before_nms", "decrease_label_id", "normalized", "flatten", "aligned",
    "class_agnostic_box_regression",
}  # fmt: skip


def _in_ir(attributes: Any) -> dict[str, Any]:
    """The attributes of IR; absent lists are left out."""
    found = {field.name: getattr(attributes, field.name) for field in fields(attributes)}
    return {k: bool(v) if k in _BOOLEANS else v for k, v in found.items() if v is not None}


@dataclass(frozen=True, kw_only=True)
class PriorBoxAttributes:
    """The attributes of PriorBox."""

    min_size: list[float] | None = None
    max_size: list[float] | None = None
    aspect_ratio: list[float] | None = None
    flip: int = 0
    clip: int = 0
    step: float = 0.0
    offset: float = 0.0
    variance: list[float] | None = None
    scale_all_sizes: int = 1
    fixed_ratio: list[float] | None = None
    fixed_size: list[float] | None = None
    density: list[float] | None = None
    min_max_aspect_ratios_order: int = 1


@openvino_operator("PriorBox")
def prior_box(ctx: TranslationContext, feature_map: Maps, image: Maps, *, given: PriorBoxAttributes) -> Value:
    """The boxes as [1, 2, values]."""
    sizes = [_spatial_sizes(ctx, x) for x in (feature_map, image)]
    return ctx.unsqueeze(ctx.emit("PriorBox", *sizes, **_in_ir(given)), [0])


@openvino_operator("PriorBoxClustered")
def prior_box_clustered(
    ctx: TranslationContext, feature_map: Maps, image: Maps, *, width: list[float], height: list[float], clip: int = 0,
    variance: list[float] | None = None, step_h: float = 0.0, step_w: float = 0.0, offset: float = 0.0,
) -> Value:  # fmt: skip
    """The boxes as [1, 2, values]; the variance is 0.1 unless given."""
    boxes = ctx.emit(
        "PriorBoxClustered", *(_spatial_sizes(ctx, x) for x in (feature_map, image)), width=width, height=height,
        clip=bool(clip), variance=variance or [0.1], step_h=step_h, step_w=step_w, offset=offset,
    )  # fmt: skip
    return ctx.unsqueeze(boxes, [0])


def _spatial_sizes(ctx: TranslationContext, x: Value) -> Value:
    sizes: Value = ctx.emit("Slice", ctx.shape_of(x), [2], [4], [1], [0])
    return sizes


@dataclass(frozen=True, kw_only=True)
class DetectionOutputAttributes:
    """The attributes of DetectionOutput; ``num_classes`` has no effect, as the inputs have it."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: int = 0
    keep_top_k: int | list[int] = 1
    code_type: str = "caffe.PriorBoxParameter.CORNER"
    share_location: int = 1
    nms_threshold: float
    confidence_threshold: float = 0.0
    clip_after_nms: int = 0
    clip_before_nms: int = 0
    decrease_label_id: int = 0
    normalized: int = 1
    input_width: int = 1
    input_height: int = 1
    objectness_score: float = 0.0
    num_classes: int = 0


@openvino_operator("DetectionOutput")
def detection_output(
    ctx: TranslationContext, box_logits: Value, class_preds: Value, proposals: Value,
    aux_class_preds: Value | None = None, aux_box_preds: Value | None = None, *, given: DetectionOutputAttributes,
) -> Value:  # fmt: skip
    """DetectionOutput-8, with other defaults: boxes are normalized, and one detection of an image is kept."""
    attributes = _in_ir(given)
    del attributes["num_classes"]
    kept, prefix = given.keep_top_k, "caffe.PriorBoxParameter."
    attributes["keep_top_k"] = [kept] if isinstance(kept, int) else list(kept)
    attributes["code_type"] = prefix + given.code_type.removeprefix(prefix)
    return ctx.emit(
        "DetectionOutput", box_logits, class_preds, proposals, aux_class_preds, aux_box_preds, version=8, **attributes
    )


@dataclass(frozen=True, kw_only=True)
class DetectronOutputAttributes:
    """The attributes of ExperimentalDetectronDetectionOutput."""

    score_threshold: float = 0.05
    nms_threshold: float = 0.5
    max_delta_log_wh: float = math.log(1000 / 16)
    num_classes: int = 81
    post_nms_count: int = 2000
    max_detections_per_image: int = 100
    class_agnostic_box_regression: int = 0
    deltas_weights: list[float] | None = None


@openvino_operator("ExperimentalDetectronDetectionOutput")
def detectron_detection_output(
    ctx: TranslationContext, rois: Value, deltas: Value, scores: Value, im_info: Value, *,
    given: DetectronOutputAttributes,
) -> tuple[Value, ...]:  # fmt: skip
    """Boxes, classes and scores."""
    attributes = {"deltas_weights": [10.0, 10.0, 5.0, 5.0]} | _in_ir(given)
    return tuple(ctx.emit("ExperimentalDetectronDetectionOutput", rois, deltas, scores, im_info, **attributes))


@openvino_operator("ExperimentalDetectronGenerateProposalsSingleImage")
def generate_proposals_single_image(
    ctx: TranslationContext, im_info: Value, anchors: Value, deltas: Value, scores: Value, *, min_size: float = 0.0,
    nms_threshold: float = 0.7, post_nms_count: int = 1000, pre_nms_count: int = 1000,
) -> tuple[Value, ...]:  # fmt: skip
    """Boxes and their scores."""
    return tuple(
        ctx.emit(
            "ExperimentalDetectronGenerateProposalsSingleImage", im_info, anchors, deltas, scores, min_size=min_size,
            nms_threshold=nms_threshold, post_nms_count=post_nms_count, pre_nms_count=pre_nms_count,
        )
    )  # fmt: skip


@openvino_operator("ExperimentalDetectronPriorGridGenerator")
def prior_grid_generator(
    ctx: TranslationContext, priors: Value, feature_map: Maps, im_data: Maps, *, flatten: int = 1, h: int = 0,
    w: int = 0, stride_x: float = 0.0, stride_y: float = 0.0,
) -> Value:  # fmt: skip
    return ctx.emit(
        "ExperimentalDetectronPriorGridGenerator", priors, feature_map, im_data, flatten=bool(flatten), h=h, w=w,
        stride_x=stride_x, stride_y=stride_y,
    )  # fmt: skip


@openvino_operator("ExperimentalDetectronROIFeatureExtractor")
def roi_feature_extractor(
    ctx: TranslationContext, rois: Value, *features: Value, output_size: int = 7, sampling_ratio: int = 2,
    aligned: int = 0, pyramid_scales: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The features of the regions, and the regions themselves."""
    return tuple(
        ctx.emit(
            "ExperimentalDetectronROIFeatureExtractor", rois, *features, output_size=output_size,
            sampling_ratio=sampling_ratio, aligned=bool(aligned), pyramid_scales=pyramid_scales or [4, 8, 16, 32, 64],
        )
    )  # fmt: skip


@openvino_operator("ExperimentalDetectronTopKROIs")
def top_k_rois(ctx: TranslationContext, rois: Value, probabilities: Value, *, max_rois: int = 1000) -> Value:
    return ctx.emit("ExperimentalDetectronTopKROIs", rois, probabilities, max_rois=max_rois)


@openvino_operator("GenerateProposals")
def generate_proposals(
    ctx: TranslationContext, scores: Maps, deltas: Maps, im_info: Annotated[Value, Rank(2)],
    anchors: Annotated[Value, Rank(2)], *, min_size: float = 1.0, nms_thresh: float = 0.7, pre_nms_topN: int = 6000,
    post_nms_topN: int = 300, legacy_plus_one: int = 1,
) -> tuple[Value, ...]:  # fmt: skip
    """GenerateProposals-9 with the same anchors in every cell."""
    cells = ctx.emit("Concat", _spatial_sizes(ctx, scores), ctx.shape_of(anchors), axis=0)
    return tuple(
        ctx.emit(
            "GenerateProposals", im_info, ctx.full(anchors, cells), deltas, scores, min_size=min_size,
            nms_threshold=nms_thresh, pre_nms_count=pre_nms_topN, post_nms_count=post_nms_topN,
            normalized=not legacy_plus_one, roi_num_type="i64",
        )
    )  # fmt: skip


@openvino_operator("DeformableConv2D")
def deformable_conv_2d(
    ctx: TranslationContext, x: Value, offset: Value, w: Value, mask: Value | None = None, *, given: WindowAttributes,
    group: int = 1, deformable_groups: int = 1,
) -> Value:  # fmt: skip
    """DeformableConvolution-8; a point near the border of the data is not interpolated with zeros."""
    return ctx.emit(
        "DeformableConvolution", x, offset, w, mask, version=8, group=group, deformable_group=deformable_groups,
        bilinear_interpolation_pad=False, **conv_windows(ctx, w, given).attributes(),
    )  # fmt: skip


@openvino_operator("FakeQuantize")
def fake_quantize(
    ctx: TranslationContext, x: Value, input_low: Value, input_high: Value, output_low: Value, output_high: Value, *,
    levels: int,
) -> Value:  # fmt: skip
    return ctx.emit("FakeQuantize", x, input_low, input_high, output_low, output_high, levels=levels)


@openvino_operator("Swish")
def swish(ctx: TranslationContext, x: Value, beta: Annotated[Value, ONE_ELEMENT] | None = None) -> Value:
    return ctx.emit("Swish", x, ctx.constant(1, x) if beta is None else ctx.scalar(beta))


@openvino_operator("GroupNorm", "ExperimentalDetectronGroupNorm")
def group_norm(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, *, num_groups: int, eps: float = 1e-6
) -> Value:
    """Scale and bias have one value per channel, in any shape."""
    vectors = [part if ctx.rank(part) == 1 else ctx.reshape(part, [-1]) for part in (scale, bias)]
    return ctx.emit("GroupNormalization", x, *vectors, num_groups=num_groups, epsilon=eps)


@openvino_operator("Normalize")
def normalize(
    ctx: TranslationContext, x: Value, weights: Value, *, eps: float = 0.0, across_spatial: int = 0,
    channel_shared: int = 0,
) -> Value:  # fmt: skip
    """x / sqrt(sum of squares + eps), over the channels or all axes but the first, times the weights.

    The weights are one per channel, unless they are shared: then they broadcast from the last axis.
    """
    rank = ctx.rank(x, "the data")
    if rank < 2:
        raise OpError(f"the data {ctx.fact(x)} has no channels")
    if channel_shared:
        if ctx.rank(weights, "the weights") != 1 or ctx.known(weights) is None:
            raise ConversionError("weights that channels share must be a constant vector", unsupported=True)
    else:
        weights = ctx.along_channels(weights if ctx.rank(weights) == 1 else ctx.reshape(weights, [-1]), rank)
    axes = list(range(1, rank)) if across_spatial else [1]
    return ctx.emit("Multiply", ctx.emit("NormalizeL2", x, axes, eps=eps, eps_mode="add"), weights)
