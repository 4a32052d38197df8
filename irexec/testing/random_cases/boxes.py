"""Random models of detectors: priors, DetectionOutput, YOLO."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.case_generator import INTEGERS, MOVED, CaseGenerator, Table, model

RANDOM_CASES = Table()


def _floats(gen: CaseGenerator, count: int, low: float, high: float) -> list[float]:
    return [round(float(number), 3) for number in gen.rng.uniform(low, high, count)]


def _sizes(gen: CaseGenerator) -> tuple[Typed, Typed]:
    kind = (gen.pick(*INTEGERS),)
    return gen.ints(gen.sizes(2, 1, 4), kind), gen.ints(gen.sizes(2, 10, 60), kind)


@RANDOM_CASES.row(("PriorBox", 1), ("PriorBox", 8))
def prior_box(gen: CaseGenerator, type: str, since: int) -> Case:
    """Only attributes that make as many boxes as OpenVINO counts."""
    ratios = gen.some([1.0, 2.0, 0.5, 3.0, 1.25, 0.4, 2.5], 0, 3)
    attributes: dict[str, Any] = {
        "aspect_ratio": ratios or gen.pick(None, []),
        "flip": gen.pick(None, False, True),
        "clip": gen.pick(None, False, True),
        "step": gen.pick(None, 0.0, -1.0, *_floats(gen, 2, 0, 20)),
        "offset": gen.pick(0.0, 0.5, *_floats(gen, 2, 0, 2)),
        "variance": gen.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    }
    if since == 8:
        attributes["min_max_aspect_ratios_order"] = gen.pick(None, False, True)
    if gen.chance(0.4):
        count = gen.size(1, 2)
        attributes |= {
            "fixed_size": _floats(gen, count, 0, 30),
            "density": gen.sizes(count, 1, 3),
            "scale_all_sizes": gen.pick(None, True, False),
        }
        if gen.chance(0.4):
            attributes |= {"fixed_ratio": _floats(gen, 1, 0.2, 3), "aspect_ratio": None}
    elif gen.chance(0.7):
        count = gen.size(0, 3)
        attributes |= {
            "min_size": _floats(gen, count, 1, 30),
            "max_size": _floats(gen, gen.size(0, count), 1, 60),
            "scale_all_sizes": gen.pick(None, True),
        }
    else:
        attributes |= {"min_size": _floats(gen, gen.size(1, 3), 0, 1), "scale_all_sizes": False}
    return model(type, since, *_sizes(gen), **attributes)


@RANDOM_CASES.row(("PriorBoxClustered", 1))
def prior_box_clustered(gen: CaseGenerator, type: str, since: int) -> Case:
    count = gen.size(0, 3)
    return model(
        type,
        since,
        *_sizes(gen),
        width=_floats(gen, count, 0, 40),
        height=_floats(gen, count, 0, 40),
        clip=gen.pick(None, False, True),
        step=gen.pick(None, *_floats(gen, 1, 0, 20)),
        step_w=gen.pick(None, *_floats(gen, 1, 0, 20)),
        step_h=gen.pick(None, *_floats(gen, 1, 0, 20)),
        offset=gen.pick(0.0, 0.5, *_floats(gen, 1, 0, 2)),
        variance=gen.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    )


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


@RANDOM_CASES.row(("RegionYolo", 1))
def region_yolo(gen: CaseGenerator, type: str, since: int) -> Case:
    classes, regions, softmax = gen.size(1, 4), gen.size(1, 3), gen.chance()
    # Without coords the CPU plugin takes the softmax of bf16 after the logistic function, that of f32 before.
    coords = gen.size(1 if softmax else 0, 5)
    # OpenVINO mixes up the images of a batch where channels are left over.
    images, more = (1, gen.size(1, 3)) if gen.chance(0.2) else (gen.size(1, 3), 0)
    data = gen.special(
        [images, regions * (coords + 1 + classes) + more, gen.size(), gen.size()], ("f32", "f32", "f16", "bf16")
    )
    axis = gen.size(0, 3)
    return model(
        type,
        since,
        data,
        anchors=gen.pick(None, [1.5, 2.0]),
        axis=gen.signed(axis, 4),
        end_axis=gen.signed(gen.size(axis, 3), 4),
        coords=coords,
        classes=classes,
        num=regions if softmax else gen.size(0, 9),
        do_softmax=softmax,
        mask=None if softmax else gen.sizes(regions, 0, 9),
    )


@RANDOM_CASES.row(("ReorgYolo", 2))
def reorg_yolo(gen: CaseGenerator, type: str, since: int) -> Case:
    stride = gen.size(1, 3)
    channels = gen.pick(stride * stride, 2 * stride * stride, stride * stride + gen.size(0, 9))
    data = gen.tensor([gen.size(), channels, gen.size(1, 3) * stride, gen.size(1, 3) * stride], MOVED)
    return model(type, since, data, stride=stride)
