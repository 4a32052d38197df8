"""Random models of the proposals of boxes: Proposal, GenerateProposals, the ExperimentalDetectron operations.

Scores are all different and results are filled: neither the order of equal scores nor the elements after the results
are specified. No box of Proposal is too small. There are eight boxes at least: with fewer the CPU plugin crashes.
"""

from __future__ import annotations

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.random_cases import CaseGenerator, Table

RANDOM_CASES = Table()


def scores(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return ((rng.permutation(count) + 1) / 1024).reshape(shape)


@RANDOM_CASES.row(("Proposal", 1), ("Proposal", 4))
def proposal(gen: CaseGenerator) -> Case:
    rng = gen.rng
    ratios = rng.choice([0.5, 1, 2, 2.67], rng.integers(1, 4), replace=False)
    scales = rng.choice([1, 2, 4, 6.5], rng.integers(1, 3), replace=False)
    n, k, h, w = int(rng.integers(1, 3)), len(ratios) * len(scales), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))
    threshold = rng.choice([0.3, 0.5, 0.7, 1])
    # The plugin leaves the scores after the last box of an image as the memory was.
    maximum = 1 if gen.since == 4 and threshold < 1 else int(rng.integers(1, 8))
    image = [int(rng.integers(40, 120)), int(rng.integers(40, 120)), 1.0, 1.5][: int(rng.integers(3, 5))]
    return gen.model(
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
    )


def boxes(rng: np.random.Generator, count: int, far: float = 100) -> np.ndarray:
    """Boxes (count, 4) of 4 to 40 pixels."""
    starts = rng.uniform(0, far, (count, 2))
    return np.concatenate([starts, starts + rng.uniform(4, 40, (count, 2))], 1)


@RANDOM_CASES.row(("GenerateProposals", 9))
def generate_proposals(gen: CaseGenerator) -> Case:
    rng = gen.rng
    n, a, h, w = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))
    image = np.tile([float(rng.integers(60, 150)), float(rng.integers(60, 150)), 1, 2], (n, 1))[
        :, : int(rng.integers(3, 5))
    ]
    return gen.model(
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
    )


def _kind(rng: np.random.Generator) -> str:
    return str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))


@RANDOM_CASES.row(("ExperimentalDetectronPriorGridGenerator", 6))
def prior_grid(gen: CaseGenerator) -> Case:
    rng = gen.rng
    kind, h, w = _kind(rng), int(rng.integers(1, 6)), int(rng.integers(1, 6))
    return gen.model(
        typed(kind, rng.uniform(-20, 20, (rng.integers(1, 4), 4))),
        typed(kind, np.zeros((1, 2, h, w))),
        typed(kind, np.zeros((1, 3, rng.integers(10, 90), rng.integers(10, 90)))),
        flatten=str(rng.choice(["true", "false"])),
        h=str(rng.choice([0, h])),
        w=str(rng.choice([0, w])),
        stride_x=str(rng.choice([0, 4, 2.5])),
        stride_y=str(rng.choice([0, 8, 1.25])),
    )


@RANDOM_CASES.row(("ExperimentalDetectronGenerateProposalsSingleImage", 6))
def single_image(gen: CaseGenerator) -> Case:
    rng = gen.rng
    a, h, w = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(4, 6))
    kind = _kind(rng)
    return gen.model(
        typed(kind, [rng.integers(60, 150), rng.integers(60, 150), 1]),
        typed(kind, boxes(rng, h * w * a, 60)),
        typed(kind, rng.uniform(-0.5, 0.5, (4 * a, h, w))),
        typed(kind, scores(rng, a, h, w)),
        min_size=str(rng.choice([0, 0.5])),
        nms_threshold=str(rng.choice([0.2, 0.5, 0.7])),
        pre_nms_count=str(rng.choice([8, 30, 1000])),
        post_nms_count=str(rng.integers(1, 12)),
    )


@RANDOM_CASES.row(("ExperimentalDetectronDetectionOutput", 6))
def detection_output(gen: CaseGenerator) -> Case:
    rng = gen.rng
    n, classes, kind = int(rng.integers(1, 12)), int(rng.integers(1, 5)), _kind(rng)
    rois = boxes(rng, n)
    rois[rng.random(n) < 0.1, 2] = 0
    return gen.model(
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
    )


@RANDOM_CASES.row(("ExperimentalDetectronROIFeatureExtractor", 6))
def roi_feature_extractor(gen: CaseGenerator) -> Case:
    rng = gen.rng
    n, levels, kind = int(rng.integers(1, 8)), int(rng.integers(1, 4)), _kind(rng)
    corners = rng.uniform(-30, 500, (n, 2, 2)) * rng.choice([0.2, 0.5, 1], (n, 1, 1))
    rois = np.concatenate([corners.min(1), corners.max(1)], 1)
    rois[rng.random(n) < 0.1, 2] = -50
    maps = [
        typed(kind, rng.uniform(-1, 1, (1, 3, rng.integers(1, 40 >> i), rng.integers(1, 40 >> i))))
        for i in range(levels)
    ]
    return gen.model(
        typed(kind, np.round(rois)),
        *maps,
        output_size=str(rng.integers(1, 5)),
        sampling_ratio=str(rng.integers(0, 4)),
        pyramid_scales="16, 32, 64",
        aligned=str(rng.choice(["true", "false"])),
    )


@RANDOM_CASES.row(("ExperimentalDetectronTopKROIs", 6))
def top_k_rois(gen: CaseGenerator) -> Case:
    rng = gen.rng
    n, kind = int(rng.integers(1, 12)), _kind(rng)
    return gen.model(
        typed(kind, boxes(rng, n)),
        typed(kind, scores(rng, n)),
        max_rois=str(rng.integers(1, n + 1)),
    )
