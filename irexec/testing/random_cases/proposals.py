"""Random models of Proposal and GenerateProposals.

Scores are all different, and no box of Proposal is too small: which of equal scores comes first is not specified.
There are eight boxes at least: with fewer the CPU plugin crashes.
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


RANDOM_CASES = {
    ("Proposal", 1): proposal_1,
    ("Proposal", 4): proposal_4,
    ("GenerateProposals", 9): generate_proposals_9,
}
