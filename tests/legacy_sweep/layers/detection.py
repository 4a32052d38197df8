"""Layers of object detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)
OLD = (3, 4, 5, 6, 7)


def boxes(net: Network, shape: tuple[int, ...]) -> np.ndarray:
    """Random boxes x0, y0, x1, y1 from 0 to 1, that are not empty."""
    corner = net.rng.uniform(0, 0.7, (*shape, 2))
    extent = net.rng.uniform(0.05, 0.3, (*shape, 2))
    return np.concatenate([corner, corner + extent], -1).astype(np.float16).astype(np.float32)


@generates("PriorBox", versions=OLD)
def prior_box(net: Network) -> None:
    layer, image = shape_of(net, 2, 1, 4), (size(net, 20, 60), size(net, 20, 60))
    sizes = [float(size(net, 4, 20)) for _ in range(size(net, 1, 2))]
    ratios = [r for r in (2.0, 3.0) if chance(net)]
    flip, clip = size(net, 0, 1), size(net, 0, 1)
    maxima = [s + 5 for s in sizes] if chance(net) else []
    data: dict[str, Any] = {
        "min_size": sizes, "max_size": maxima, "aspect_ratio": ratios, "flip": flip, "clip": clip,
        "variance": pick(net, [0.1, 0.1, 0.2, 0.2], [0.1], ""), "step": pick(net, 0, 8.0), "offset": 0.5,
    }  # fmt: skip
    count = len(sizes) * (1 + len(ratios) * (1 + flip)) + len(maxima)
    scale_all = chance(net, 0.8)
    if net.version >= 6 and not scale_all:
        # The ratios are for the first size alone; no operation of today has boxes of max_size then.
        data["max_size"], count = [], len(sizes) + len(ratios) * (1 + flip)
    if net.version >= 6 and (not scale_all or chance(net, 0.3)):
        data["scale_all_sizes"] = int(scale_all)
    if net.version < 6:
        data |= {"step_h": 0, "step_w": 0, "img_size": 0, "img_h": 0, "img_w": 0} if chance(net) else {}
    x = net.input(values(net, (1, 2, *layer)))
    picture = net.input(values(net, (1, 3, *image)))
    net.layer("PriorBox", [x, picture], [(1, 2, layer[0] * layer[1] * count * 4)], data)


@generates("PriorBoxClustered", versions=OLD)
def prior_box_clustered(net: Network) -> None:
    layer, image = shape_of(net, 2, 1, 4), (size(net, 20, 60), size(net, 20, 60))
    count = size(net, 1, 4)
    # With other than four variances the engines leave part of the output unwritten.
    data: dict[str, Any] = {
        "width": values(net, (count,), 4, 30), "height": values(net, (count,), 4, 30), "flip": size(net, 0, 1),
        "clip": size(net, 0, 1), "variance": [0.1, 0.1, 0.2, 0.3], "offset": pick(net, 0.5, 0.0),
    }  # fmt: skip
    data |= pick(net, {"step": 0.0}, {"step": 8.0}, {"step_h": 4.0, "step_w": 8.0}, {})
    data |= pick(net, {}, {}, {"img_h": 50, "img_w": 40})
    x = net.input(values(net, (1, 2, *layer)))
    picture = net.input(values(net, (1, 3, *image)))
    net.layer("PriorBoxClustered", [x, picture], [(1, 2, layer[0] * layer[1] * count * 4)], data)


@generates("DetectionOutput", versions=OLD)
def detection_output(net: Network) -> None:
    batch, count, classes = size(net, 1, 2), size(net, 3, 10), size(net, 2, 4)
    shared, in_target = chance(net, 0.7), chance(net, 0.3)
    keep = size(net, 2, 8)
    data: dict[str, Any] = {
        "num_classes": classes, "background_label_id": 0, "top_k": pick(net, 400, 5), "keep_top_k": keep,
        "share_location": int(shared), "variance_encoded_in_target": int(in_target), "nms_threshold": 0.45,
        "confidence_threshold": pick(net, 0.01, 0.3), "code_type": pick(net, "caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"),
    }  # fmt: skip
    if chance(net, 0.4):
        data |= {
            "eta": 1.0,
            "height": 0,
            "height_scale": 0,
            "input_height": 1,
            "input_width": 1,
            "interp_mode": "",
            "name_size_file": "",
        }
    normalized = chance(net, 0.7)
    if not normalized or chance(net):
        data["normalized"] = int(normalized)
    if not normalized:
        data |= {"input_height": 20, "input_width": 30}
    elif chance(net, 0.3):
        data |= {"input_height": -1, "input_width": -1}
    clip = chance(net, 0.3)
    if clip and net.version >= 6:
        data["clip_after_nms"] = 1
    location = values(net, (batch, count * 4 * (1 if shared else classes)), -0.5, 0.5)
    scores = net.rng.permutation(batch * count * classes).reshape(batch, count * classes) / (batch * count * classes)
    prior = boxes(net, (count,))
    if not normalized:
        prior = np.concatenate([np.zeros((count, 1), np.float32), prior * [30, 20, 30, 20]], 1).astype(np.float32)
    prior = prior.reshape(1, 1, -1)
    variances = np.tile(np.array([0.1, 0.1, 0.2, 0.2], np.float32), count).reshape(1, 1, -1)
    if not normalized and not in_target:
        variances = np.resize(variances, (1, 1, count * 4))
        variances = np.concatenate([variances, np.zeros((1, 1, count), np.float32)], 2)
    arrays = prior if in_target else np.concatenate([prior, variances], 1)
    inputs = [net.input(a.astype(np.float32)) for a in (location, scores, arrays)]
    net.layer("DetectionOutput", inputs, [(1, 1, batch * keep, 7)], data)


@generates("Proposal", versions=OLD)
def proposal(net: Network) -> None:
    ratios, scales = [0.5, 1.0, 2.0][: size(net, 1, 3)], [4.0, 8.0][: size(net, 1, 2)]
    anchors = len(ratios) * len(scales)
    height, width = shape_of(net, 2, 2, 4)
    post = size(net, 3, 8)
    data: dict[str, Any] = {
        "base_size": 16, "feat_stride": 16, "min_size": pick(net, 4, 16), "nms_thresh": 0.7, "pre_nms_topn": pick(net, 6000, 10),
        "post_nms_topn": post, "ratio": ratios, "scale": scales,
    }  # fmt: skip
    if net.version >= 5 and chance(net, 0.5):
        data |= {
            "box_coordinate_scale": 1.0,
            "box_size_scale": 1.0,
            "normalize": 0,
            "clip_before_nms": 1,
            "clip_after_nms": 0,
        }
        data |= pick(net, {}, {"framework": "tensorflow"}, {"normalize": 1}, {"clip_after_nms": 1})
    count = height * width * anchors
    scores = (net.rng.permutation(2 * count) / (2 * count)).reshape(1, 2 * anchors, height, width)
    deltas = values(net, (1, 4 * anchors, height, width), -0.4, 0.4)
    info = [float(16 * height), float(16 * width), 1.0]
    if chance(net, 0.3):
        # The engines read 3 numbers, or 4 of 4 and more.
        info += [1.0, 7.0, 9.0][: pick(net, 1, 3)]
    inputs = [net.input(a.astype(np.float32)) for a in (scores, deltas, np.array([info]))]
    net.layer("Proposal", inputs, [(post, 5)], data)


@generates("NonMaxSuppression", versions=(7,))
def non_max_suppression(net: Network) -> None:
    batch, classes, count = size(net, 1, 2), size(net, 1, 3), size(net, 2, 8)
    corners = boxes(net, (batch, count))
    centre = chance(net)
    if centre:
        low, high = corners[..., :2], corners[..., 2:]
        corners = np.concatenate([(low + high) / 2, high - low], -1)
    scores = (net.rng.permutation(batch * classes * count) / (batch * classes * count)).reshape(batch, classes, count)
    most = size(net, 1, 5)
    rows = batch * classes * count if chance(net) else size(net, 1, batch * classes * count)
    inputs = [net.input(corners.astype(np.float32)), net.input(scores.astype(np.float32))]
    inputs.append(net.const(np.array([most], np.int32), "I32"))
    if chance(net, 0.7):
        inputs.append(net.const(np.array([0.4], np.float32)))
        if chance(net):
            inputs.append(net.const(np.array([0.2], np.float32)))
    data: dict[str, Any] = {"center_point_box": int(centre)}
    if chance(net):
        data["sort_result_descending"] = size(net, 0, 1)
    net.layer("NonMaxSuppression", inputs, [(rows, 3)], data, precision="I32", precisions=["I32"])


@generates("SimplerNMS", versions=(3, 4, 5, 6, 7))
def simpler_nms(net: Network) -> None:
    height, width = shape_of(net, 2, 3, 5)
    anchors, post = 9, size(net, 2, 5)
    data = {
        "min_bbox_size": 16, "feat_stride": 16, "pre_nms_topn": 100, "post_nms_topn": post, "iou_threshold": 0.9, "scale": [8, 16, 32],
        "cls_threshold": 0.5,
    }  # fmt: skip
    count = height * width * anchors
    scores = (net.rng.permutation(2 * count) / (2 * count)).reshape(1, 2 * anchors, height, width)
    deltas = values(net, (1, 4 * anchors, height, width), -0.2, 0.2)
    info = np.array([[400.0, 400.0, 1.0]])
    inputs = [net.input(a.astype(np.float32)) for a in (scores, deltas, info)]
    net.layer("SimplerNMS", inputs, [(post, 5)], data)


@generates("ExperimentalDetectronPriorGridGenerator", versions=(6, 7))
def prior_grid(net: Network) -> None:
    height, width, anchors = shape_of(net, 3, 1, 4)
    inputs = [net.input(values(net, s)) for s in ((anchors, 4), (1, 2, height, width), (1, 3, 32, 48))]
    data = pick(net, {"flatten": 1, "grid_h": 0, "grid_w": 0, "stride_x": 8.0, "stride_y": 4.0}, {"flatten": 1}, {})
    if pick(net, True, False):
        height, width = shape_of(net, 2, 1, 6)
        data = {**data, "h": height, "w": width}
    net.layer("ExperimentalDetectronPriorGridGenerator", inputs, [(height * width * anchors, 4)], data)


@generates("ExperimentalDetectronTopKROIs", versions=(6, 7))
def top_k_rois(net: Network) -> None:
    count, most = size(net, 3, 8), size(net, 1, 3)
    inputs = [net.input(boxes(net, (count,))), net.input(net.rng.permutation(count).astype(np.float32))]
    net.layer("ExperimentalDetectronTopKROIs", inputs, [(most, 4)], {"max_rois": most})


@generates("ExperimentalDetectronROIFeatureExtractor", versions=(6, 7))
def roi_feature_extractor(net: Network) -> None:
    count, channels, out = size(net, 1, 4), size(net, 1, 3), size(net, 1, 3)
    rois = boxes(net, (count,)) * 60
    maps = [net.input(values(net, (1, channels, n, n))) for n in (16, 8)]
    data = {
        "distribute_rois_between_levels": 1,
        "image_id": 0,
        "output_size": out,
        "preserve_rois_order": 1,
        "pyramid_scales": [4, 8],
        "sampling_ratio": 2,
    }
    net.layer("ExperimentalDetectronROIFeatureExtractor", [net.input(rois), *maps], [(count, channels, out, out)], data)


@generates("ExperimentalDetectronGenerateProposalsSingleImage", versions=(6, 7))
def generate_proposals(net: Network) -> None:
    height, width, anchors = 3, 4, size(net, 1, 3)
    post = size(net, 2, 5)
    count = height * width * anchors
    scores = (net.rng.permutation(count) / count).reshape(anchors, height, width).astype(np.float32)
    arrays = [
        np.array([100.0, 120.0, 1.0], np.float32),
        boxes(net, (count,)) * 100,
        values(net, (4 * anchors, height, width), -0.3, 0.3),
        scores,
    ]
    data = {"min_size": 0.0, "nms_threshold": 0.7, "post_nms_count": post, "pre_nms_count": 100}
    inputs = [net.input(a.astype(np.float32)) for a in arrays]
    net.layer("ExperimentalDetectronGenerateProposalsSingleImage", inputs, [(post, 4), (post,)], data)


@generates("ExperimentalDetectronDetectionOutput", versions=(6, 7))
def detectron_output(net: Network) -> None:
    count, classes, most = size(net, 3, 6), size(net, 2, 4), 5
    rois = boxes(net, (count,)) * 90
    deltas = values(net, (count, classes * 4), -0.5, 0.5)
    scores = (net.rng.permutation(count * classes) / (count * classes)).reshape(count, classes).astype(np.float32)
    info = np.array([[100.0, 100.0, 1.0]], np.float32)
    data = {
        "class_agnostic_box_regression": 0, "deltas_weights": [10.0, 10.0, 5.0, 5.0], "max_delta_log_wh": 4.135166645050049,
        "max_detections_per_image": most, "nms_threshold": 0.5, "num_classes": classes, "post_nms_count": 20, "score_threshold": 0.05,
    }  # fmt: skip
    inputs = [net.input(a) for a in (rois, deltas, scores, info)]
    outputs = [(most, 4), (most,), (most,)]
    net.layer("ExperimentalDetectronDetectionOutput", inputs, outputs, data, precisions=["FP32", "I32", "FP32"])
