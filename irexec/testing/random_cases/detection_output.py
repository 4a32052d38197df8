"""DetectionOutput."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()


def _proposals(
    gen: CaseGenerator, images: int, boxes: int, kind: str, sizes: tuple[int, int] | None, variances: bool
) -> Typed:
    """Boxes that overlap often, a number before each if sizes are given, and their variances below."""
    batch = gen.pick(1, images)
    first = gen.rng.uniform(0, 0.5, (batch, boxes, 2))
    corners = np.concatenate([first, first + gen.rng.uniform(-0.02, 0.5, (batch, boxes, 2))], -1)
    if sizes is not None:
        marks = np.where(gen.rng.random((batch, boxes, 1)) < 0.1, -1, 0)
        corners = np.concatenate([marks, corners * np.array(sizes * 2)], -1)
    rows = [corners.reshape(batch, -1)]
    if variances:
        rows.append(gen.rng.uniform(0.05, 1, rows[0].shape))
    return typed(kind, np.stack(rows, 1))


@RANDOM_CASES.row(("DetectionOutput", 1), ("DetectionOutput", 8))
def detection_output(gen: CaseGenerator, type: str, since: int) -> Case:
    images, boxes, classes = gen.size(1, 3), gen.size(1, 6), gen.size(1, 4)
    kind, share, one_class, encoded = (
        gen.pick("f32", "f32", "f32", "f16", "bf16"),
        gen.chance(),
        gen.chance(0.3),
        gen.chance(),
    )
    sizes = (gen.size(2, 30), gen.size(2, 30)) if gen.chance() else None
    scores = gen.rng.permutation(images * boxes * classes).reshape(images, -1) / (images * boxes * classes)
    inputs = [
        gen.tensor([images, boxes * (1 if share else classes) * 4], kind, -0.5, 0.5),
        typed(kind, np.round(scores, 1) if gen.chance(0.1) else scores),
        _proposals(gen, images, boxes, gen.pick(kind, "f32"), sizes, not encoded),
    ]
    if gen.chance(0.4):
        inputs += [gen.tensor([images, boxes * 2], kind, 0, 1), gen.tensor(inputs[0].array.shape, kind, -0.5, 0.5)]
    attributes: dict[str, Any] = {
        "num_classes": classes if since == 1 else None,
        "background_label_id": 0 if one_class else gen.pick(None, -1, gen.size(0, 5)),
        "top_k": gen.pick(None, -1, gen.size(1, 8)),
        "variance_encoded_in_target": encoded,
        "keep_top_k": gen.pick([-1], [gen.size(1, 8)], [gen.size(1, 8), 3]),
        "code_type": gen.pick(
            None,
            "caffe.PriorBoxParameter.CORNER",
            "caffe.PriorBoxParameter.CENTER_SIZE",
            "caffe.PriorBoxParameter.CENTER_SIZE",
        ),
        "share_location": share,
        "nms_threshold": gen.pick(0.3, 0.45, 0.7),
        "confidence_threshold": gen.pick(None, 0.0, 0.3, 0.5),
        "clip_after_nms": gen.pick(None, False, True),
        "clip_before_nms": gen.pick(None, False, True),
        "decrease_label_id": one_class or gen.pick(None, False),
        "normalized": sizes is None,
        "objectness_score": gen.pick(None, 0.2, 0.5),
    }
    if sizes is not None:
        attributes |= {"input_width": sizes[0], "input_height": sizes[1]}
    return model(type, since, *inputs, **attributes)
