"""Random models of the proposals of boxes: Proposal, GenerateProposals, the ExperimentalDetectron operations.

Scores are all different and results are filled: neither the order of equal scores nor the elements after the results
are specified. No box of Proposal is too small. There are eight boxes at least: with fewer the CPU plugin crashes.
"""

from __future__ import annotations

import numpy as np

from irexec.testing import Case, case, typed


def scores(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return ((rng.permutation(count) + 1) / 1024).reshape(shape)


def proposal(rng: np.random.Generator, since: int) -> Case:
    ratios = rng.choice([0.5, 1, 2, 2.67], rng.integers(1, 4), replace=False)
    scales = rng.choice([1, 2, 4, 6.5], rng.integers(1, 3), replace=False)
    n, k, h, w = int(rng.integers(1, 3)), len(ratios) * len(scales), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))
    threshold = rng.choice([0.3, 0.5, 0.7, 1])
    # The plugin leaves the scores after the last box of an image as the memory was.
    maximum = 1 if since == 4 and threshold < 1 else int(rng.integers(1, 8))
    image = [int(rng.integers(40, 120)), int(rng.integers(40, 120)), 1.0, 1.5][: int(rng.integers(3, 5))]
    return case(
        "Proposal",
        since,
        typed(kind, scores(rng, n, 2 * k, h, w)),
        typed(kind, rng.uniform(-0.5, 0.5, (n, 4 * k, h, w))),
        typed(kind, image),
        base_size=str(rng.choice([8, 16])),
        pre_nms_topn=str(rng.choice([8, 20, 1000])),
        post_nms_topn=str(maximum),
        nms_thresh=str(threshold),
        feat_stride=str(rng.choice([8, 16])),
        min_size="0",
        ratio=", ".join(map(str, ratios)),
        scale=", ".join(map(str, scales)),
        clip_before_nms=str(rng.choice(["true", "false"])),
        clip_after_nms=str(rng.choice(["true", "false"])),
        normalize=str(rng.choice(["true", "false"])),
        box_size_scale=str(rng.choice([1, 5])),
        box_coordinate_scale=str(rng.choice([1, 10])),
        framework=str(rng.choice(["", "tensorflow"])),
        id="random",
    )


def proposal_1(rng: np.random.Generator) -> Case:
    return proposal(rng, 1)


def proposal_4(rng: np.random.Generator) -> Case:
    return proposal(rng, 4)


def boxes(rng: np.random.Generator, count: int, far: float = 100) -> np.ndarray:
    """Boxes (count, 4) of 4 to 40 pixels."""
    starts = rng.uniform(0, far, (count, 2))
    return np.concatenate([starts, starts + rng.uniform(4, 40, (count, 2))], 1)


def generate_proposals_9(rng: np.random.Generator) -> Case:
    n, a, h, w = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))
    image = np.tile([float(rng.integers(60, 150)), float(rng.integers(60, 150)), 1, 2], (n, 1))[
        :, : int(rng.integers(3, 5))
    ]
    return case(
        "GenerateProposals",
        9,
        typed(kind, image),
        typed(kind, boxes(rng, h * w * a).reshape(h, w, a, 4)),
        typed(kind, rng.uniform(-0.5, 0.5, (n, 4 * a, h, w))),
        typed(kind, scores(rng, n, a, h, w)),
        min_size=str(rng.choice([0, 4, 10.5])),
        nms_threshold=str(rng.choice([0.2, 0.5, 0.7])),
        pre_nms_count=str(rng.choice([8, 30, 1000])),
        post_nms_count=str(rng.integers(1, 10)),
        normalized=str(rng.choice(["true", "false"])),
        roi_num_type=str(rng.choice(["i32", "i64"])),
        id="random",
    )


def _kind(rng: np.random.Generator) -> str:
    return str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))


def prior_grid_6(rng: np.random.Generator) -> Case:
    kind, h, w = _kind(rng), int(rng.integers(1, 6)), int(rng.integers(1, 6))
    return case(
        "ExperimentalDetectronPriorGridGenerator",
        6,
        typed(kind, rng.uniform(-20, 20, (rng.integers(1, 4), 4))),
        typed(kind, np.zeros((1, 2, h, w))),
        typed(kind, np.zeros((1, 3, rng.integers(10, 90), rng.integers(10, 90)))),
        flatten=str(rng.choice(["true", "false"])),
        h=str(rng.choice([0, h])),
        w=str(rng.choice([0, w])),
        stride_x=str(rng.choice([0, 4, 2.5])),
        stride_y=str(rng.choice([0, 8, 1.25])),
        id="random",
    )


def single_image_6(rng: np.random.Generator) -> Case:
    a, h, w = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = _kind(rng)
    return case(
        "ExperimentalDetectronGenerateProposalsSingleImage",
        6,
        typed(kind, [rng.integers(60, 150), rng.integers(60, 150), 1]),
        typed(kind, boxes(rng, h * w * a, 60)),
        typed(kind, rng.uniform(-0.5, 0.5, (4 * a, h, w))),
        typed(kind, scores(rng, a, h, w)),
        min_size=str(rng.choice([0, 0.5])),
        nms_threshold=str(rng.choice([0.2, 0.5, 0.7])),
        pre_nms_count=str(rng.choice([8, 30, 1000])),
        post_nms_count=str(rng.integers(1, 12)),
        id="random",
    )


def detection_output_6(rng: np.random.Generator) -> Case:
    n, classes, kind = int(rng.integers(1, 12)), int(rng.integers(1, 5)), _kind(rng)
    rois = boxes(rng, n)
    rois[rng.random(n) < 0.1, 2] = 0
    return case(
        "ExperimentalDetectronDetectionOutput",
        6,
        typed(kind, rois),
        typed(kind, rng.uniform(-2, 2, (n, 4 * classes))),
        typed(kind, scores(rng, n, classes)),
        typed(kind, [[rng.integers(60, 150), rng.integers(60, 150), 1]]),
        score_threshold=str(rng.choice([0, 0.01, 0.02])),
        nms_threshold=str(rng.choice([0.2, 0.5, 0.7])),
        num_classes=str(classes),
        post_nms_count=str(rng.choice([-1, 2, 100])),
        max_detections_per_image=str(rng.integers(1, 20)),
        class_agnostic_box_regression=str(rng.choice(["true", "false"])),
        max_delta_log_wh=str(rng.choice([0.1, 4.135])),
        deltas_weights=str(rng.choice(["10, 10, 5, 5", "1, 2, 3, 4"])),
        id="random",
    )


def roi_feature_extractor_6(rng: np.random.Generator) -> Case:
    n, levels, kind = int(rng.integers(1, 8)), int(rng.integers(1, 4)), _kind(rng)
    corners = rng.uniform(-30, 500, (n, 2, 2)) * rng.choice([0.2, 0.5, 1], (n, 1, 1))
    rois = np.concatenate([corners.min(1), corners.max(1)], 1)
    rois[rng.random(n) < 0.1, 2] = -50
    maps = [
        typed(kind, rng.uniform(-1, 1, (1, 3, rng.integers(1, 40 >> i), rng.integers(1, 40 >> i))))
        for i in range(levels)
    ]
    return case(
        "ExperimentalDetectronROIFeatureExtractor",
        6,
        typed(kind, np.round(rois)),
        *maps,
        output_size=str(rng.integers(1, 5)),
        sampling_ratio=str(rng.integers(0, 4)),
        pyramid_scales="16, 32, 64",
        aligned=str(rng.choice(["true", "false"])),
        id="random",
    )


def top_k_rois_6(rng: np.random.Generator) -> Case:
    n, kind = int(rng.integers(1, 12)), _kind(rng)
    return case(
        "ExperimentalDetectronTopKROIs",
        6,
        typed(kind, boxes(rng, n)),
        typed(kind, scores(rng, n)),
        max_rois=str(rng.integers(1, n + 1)),
        id="random",
    )


RANDOM_CASES = {
    ("Proposal", 1): proposal_1,
    ("Proposal", 4): proposal_4,
    ("GenerateProposals", 9): generate_proposals_9,
    ("ExperimentalDetectronPriorGridGenerator", 6): prior_grid_6,
    ("ExperimentalDetectronGenerateProposalsSingleImage", 6): single_image_6,
    ("ExperimentalDetectronDetectionOutput", 6): detection_output_6,
    ("ExperimentalDetectronROIFeatureExtractor", 6): roi_feature_extractor_6,
    ("ExperimentalDetectronTopKROIs", 6): top_k_rois_6,
}
