"""Random models of detectors: priors, DetectionOutput, YOLO, the suppression of boxes, regions of interest.

Scores are all different and thresholds are met by no overlap: which of equal scores comes first is not specified
everywhere, and the CPU plugin takes an overlap equal to the threshold for a greater one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.random_cases import INTEGERS, MOVED, CaseGenerator, Table

RANDOM_CASES = Table()


def _floats(gen: CaseGenerator, count: int, low: float, high: float) -> list[float]:
    return [round(float(number), 3) for number in gen.rng.uniform(low, high, count)]


def _sizes(gen: CaseGenerator) -> tuple[Typed, Typed]:
    kind = (gen.pick(*INTEGERS),)
    return gen.ints(gen.sizes(2, 1, 4), kind), gen.ints(gen.sizes(2, 10, 60), kind)


@RANDOM_CASES.row(("PriorBox", 1), ("PriorBox", 8))
def prior_box(gen: CaseGenerator) -> Case:
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
    if gen.since == 8:
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
    return gen.model(*_sizes(gen), **attributes)


@RANDOM_CASES.row(("PriorBoxClustered", 1))
def prior_box_clustered(gen: CaseGenerator) -> Case:
    count = gen.size(0, 3)
    return gen.model(
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
def detection_output(gen: CaseGenerator) -> Case:
    images, boxes, classes = gen.size(1, 3), gen.size(1, 6), gen.size(1, 4)
    kind, share = gen.pick("f32", "f32", "f32", "f16", "bf16"), gen.chance()
    one_class, encoded = gen.chance(0.3), gen.chance()
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
        "num_classes": classes if gen.since == 1 else None,
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
    return gen.model(*inputs, **attributes)


@RANDOM_CASES.row(("RegionYolo", 1))
def region_yolo(gen: CaseGenerator) -> Case:
    classes, regions, softmax = gen.size(1, 4), gen.size(1, 3), gen.chance()
    # Without coords the CPU plugin takes the softmax of bf16 after the logistic function, that of f32 before.
    coords = gen.size(1 if softmax else 0, 5)
    # OpenVINO mixes up the images of a batch where channels are left over.
    images, more = (1, gen.size(1, 3)) if gen.chance(0.2) else (gen.size(1, 3), 0)
    data = gen.special(
        [images, regions * (coords + 1 + classes) + more, gen.size(), gen.size()], ("f32", "f32", "f16", "bf16")
    )
    axis = gen.size(0, 3)
    return gen.model(
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
def reorg_yolo(gen: CaseGenerator) -> Case:
    stride = gen.size(1, 3)
    channels = gen.pick(stride * stride, 2 * stride * stride, stride * stride + gen.size(0, 9))
    data = gen.tensor([gen.size(), channels, gen.size(1, 3) * stride, gen.size(1, 3) * stride], MOVED)
    return gen.model(data, stride=stride)


_KINDS = ("f32", "f32", "f32", "f16")


def _scores(gen: CaseGenerator, kind: str, *shape: int) -> Typed:
    """Different numbers in 0 to 1, exact in f16."""
    count = int(np.prod(shape))
    return typed(kind, ((gen.rng.permutation(1000)[:count] + 1) / 1024).reshape(shape))


def _corners(gen: CaseGenerator, *shape: int, size: float = 1.0) -> np.ndarray:
    """Low corners, then high corners, of boxes that overlap often."""
    low = gen.rng.uniform(0, size, (*shape, 2))
    return np.concatenate([low, low + gen.rng.uniform(0.2, 1, (*shape, 2)) * size], -1)


def _flag(gen: CaseGenerator) -> str:
    return gen.pick("true", "false")


def _number(gen: CaseGenerator, kind: str, value: float, vector: bool) -> Typed:
    return typed(kind, [value] if vector and gen.chance(0.3) else value)


@RANDOM_CASES.row(*(("NonMaxSuppression", since) for since in (1, 3, 4, 5, 9)))
def non_max_suppression(gen: CaseGenerator) -> Case:
    batches, classes, boxes, kind = gen.size(1, 3), gen.size(1, 4), gen.size(1, 20), gen.pick(*_KINDS)
    vector = gen.since >= 5
    coordinates = _corners(gen, batches, boxes)
    encoding = gen.pick("corner", "center")
    if encoding == "center":
        coordinates[..., 2:] -= coordinates[..., :2]
    elif gen.chance():
        coordinates = coordinates[..., gen.pick([2, 1, 0, 3], [0, 3, 2, 1], [2, 3, 0, 1])]
    inputs = [
        _number(gen, gen.pick("i64", "i32"), gen.pick(1, 2, 5, 100), vector),
        _number(gen, "f32", gen.pick(0.1, 0.31, 0.52, 0.9, 1.5), vector),
        _number(gen, "f32", gen.pick(0.0, 0.0, 0.3, 0.6), vector),
        *([_number(gen, "f32", gen.pick(0.0, 0.2, 0.5, 1.0), vector)] if vector else []),
    ]
    texts = {"output_type": gen.pick("i32", "i64")} if gen.since > 1 else {}
    return gen.model(
        typed(kind, coordinates),
        _scores(gen, kind, batches, classes, boxes),
        *inputs[: gen.size(2, len(inputs))],
        box_encoding=encoding,
        sort_result_descending=_flag(gen),
        **texts,
    )


@RANDOM_CASES.row(("NMSRotated", 13))
def nms_rotated(gen: CaseGenerator) -> Case:
    batches, classes, boxes, kind = gen.size(1, 2), gen.size(1, 3), gen.size(1, 16), gen.pick(*_KINDS)
    coordinates = _corners(gen, batches, boxes, size=3)
    coordinates[..., 2:] -= coordinates[..., :2]
    angles = gen.rng.uniform(-4, 4, (batches, boxes, 1)) if gen.chance(0.8) else np.full((batches, boxes, 1), np.pi / 4)
    return gen.model(
        typed(kind, np.concatenate([coordinates, angles], -1)),
        _scores(gen, kind, batches, classes, boxes),
        _number(gen, "i64", gen.pick(1, 2, 5, 100), True),
        _number(gen, "f32", gen.pick(0.1, 0.31, 0.52, 0.9, 1.5), True),
        _number(gen, "f32", gen.pick(0.0, 0.0, 0.3, 0.6), True),
        sort_result_descending=_flag(gen),
        output_type=gen.pick("i32", "i64"),
        clockwise=_flag(gen),
    )


def _texts(gen: CaseGenerator) -> dict[str, Any]:
    return {
        "sort_result_type": gen.pick("none", "score", "classid"),
        "sort_result_across_batch": _flag(gen),
        "output_type": gen.pick("i32", "i64"),
        "score_threshold": gen.pick("0", "0", "0.3", "0.6"),
        "nms_top_k": gen.pick("-1", "-1", "1", "3", "50"),
        "keep_top_k": gen.pick("-1", "-1", "1", "3", "50"),
        "background_class": gen.pick("-1", "-1", "0", "2", "7"),
        "normalized": _flag(gen),
    }


@RANDOM_CASES.row(("MatrixNms", 8))
def matrix_nms(gen: CaseGenerator) -> Case:
    batches, classes, boxes = gen.size(1, 3), gen.size(1, 4), gen.size(1, 14)
    return gen.model(
        typed("f32", _corners(gen, batches, boxes, size=gen.pick(1, 10))),
        _scores(gen, "f32", batches, classes, boxes),
        decay_function=gen.pick("linear", "gaussian"),
        gaussian_sigma=gen.pick("0.5", "2"),
        post_threshold=gen.pick("0", "0.05", "0.4"),
        **_texts(gen),
    )


@RANDOM_CASES.row(("MulticlassNms", 8), ("MulticlassNms", 9))
def multiclass_nms(gen: CaseGenerator) -> Case:
    batches, classes, boxes, kind = gen.size(1, 3), gen.size(1, 4), gen.size(1, 14), gen.pick(*_KINDS)
    texts = _texts(gen) | {
        "iou_threshold": gen.pick("0.1", "0.31", "0.52", "0.73", "0.91"),
        "nms_eta": gen.pick("1", "1", "0.9", "0.6", "0"),
    }
    size = gen.pick(1, 10)
    if gen.since == 8 or gen.chance():
        given = [typed(kind, _corners(gen, batches, boxes, size=size)), _scores(gen, kind, batches, classes, boxes)]
    else:
        # Without any box the plugin does not write its outputs.
        counts = [gen.size(1, 6), *gen.sizes(batches - 1, 0, 6)]
        counts = [counts[i] for i in gen.rng.permutation(batches)]
        given = [
            typed(kind, _corners(gen, classes, sum(counts), size=size)),
            _scores(gen, kind, classes, sum(counts)),
            gen.ints(counts, ("i64", "i32")),
        ]
    return gen.model(*given, **texts)


_ROI_KINDS = ("f32", "f32", "f16", "bf16")


def _features(gen: CaseGenerator, kind: str, channels: int) -> Typed:
    return gen.tensor([gen.size(1, 3), channels, *gen.sizes(2, 2, 9)], kind, -5, 5)


def _box_of(gen: CaseGenerator, count: int, kind: str, scale: float, largest: float = 9) -> np.ndarray:
    """(count, 4): mostly boxes, some inside out or beyond the border; of coarse types multiples of a quarter."""
    first = gen.rng.uniform(-1, largest, (count, 2))
    size = gen.rng.uniform(-1 if gen.chance(0.2) else 0, largest, (count, 2))
    boxes = np.concatenate([first, first + size], 1) / scale
    return boxes if kind == "f32" else np.rint(boxes * 4) / 4


def _aligned(gen: CaseGenerator) -> dict[str, Any]:
    return {
        "pooled_h": gen.size(1, 4),
        "pooled_w": gen.size(1, 4),
        "sampling_ratio": gen.size(0, 3),
        "spatial_scale": gen.pick(1.0, 0.5, 0.25),
    }


@RANDOM_CASES.row(("ROIAlign", 3), ("ROIAlign", 9))
def roi_align(gen: CaseGenerator) -> Case:
    kind, count = gen.pick(*_ROI_KINDS), gen.size(1, 4)
    data, attributes = _features(gen, kind, gen.size(1, 4)), _aligned(gen)
    if gen.since == 9:
        attributes["aligned_mode"] = gen.pick(None, "asymmetric", "half_pixel_for_nn", "half_pixel")
    rois = typed(kind, _box_of(gen, count, kind, attributes["spatial_scale"]))
    batch = gen.ints(gen.rng.integers(0, data.array.shape[0], count), ("i32", "i64", "u8"))
    return gen.model(data, rois, batch, mode=gen.pick("avg", "max"), **attributes)


@RANDOM_CASES.row(("ROIAlignRotated", 15))
def roi_align_rotated(gen: CaseGenerator) -> Case:
    # In bf16 the plugin writes where it must not: results of 0, and the process goes down.
    kind, count = gen.pick("f32", "f32", "f16"), gen.size(1, 4)
    data, attributes = _features(gen, kind, gen.size(1, 4)), _aligned(gen)
    corners = _box_of(gen, count, kind, attributes["spatial_scale"])
    turn = gen.rng.uniform(-4, 4, (count, 1))
    rois = typed(kind, np.concatenate([corners[:, :2], np.abs(corners[:, 2:] - corners[:, :2]), turn], 1))
    batch = gen.ints(gen.rng.integers(0, data.array.shape[0], count), ("i32", "i64"))
    return gen.model(data, rois, batch, clockwise_mode=gen.pick(None, True, False), **attributes)


def _boxes(gen: CaseGenerator, images: int, kind: str, scale: float, largest: float = 9) -> Typed:
    """(count, 5): image and corners; at times image -1 ends them."""
    count = gen.size(1, 4)
    batch = gen.rng.integers(0, images, (count, 1)).astype(float)
    if gen.chance(0.2):
        batch[gen.size(0, count - 1)] = -1
    return typed(kind, np.concatenate([batch, _box_of(gen, count, kind if largest > 1 else "f32", scale, largest)], 1))


@RANDOM_CASES.row(("ROIPooling", 2))
def roi_pooling(gen: CaseGenerator) -> Case:
    kind, method, scale = gen.pick(*_ROI_KINDS), gen.pick(None, "max", "bilinear"), gen.pick(1.0, 0.5, 0.25)
    data = _features(gen, kind, gen.size(1, 4))
    rois = _boxes(gen, data.array.shape[0], kind, *((1, 0.6) if method == "bilinear" else (scale, 9)))
    return gen.model(data, rois, pooled_h=gen.size(1, 4), pooled_w=gen.size(1, 4), spatial_scale=scale, method=method)


@RANDOM_CASES.row(("PSROIPooling", 1))
def psroi_pooling(gen: CaseGenerator) -> Case:
    kind, mode, scale = gen.pick(*_ROI_KINDS), gen.pick("average", "bilinear"), gen.pick(1.0, 0.5, 0.25)
    outputs, group, lines, columns = gen.size(1, 3), gen.size(1, 3), gen.size(1, 3), gen.size(1, 3)
    data = _features(gen, kind, outputs * (lines * columns if mode == "bilinear" else group * group))
    rois = _boxes(gen, data.array.shape[0], kind, scale, 0.6 if mode == "bilinear" else 9)
    attributes = {"output_dim": outputs, "group_size": group, "spatial_scale": scale, "mode": mode}
    return gen.model(data, rois, spatial_bins_x=columns, spatial_bins_y=lines, **attributes)


@RANDOM_CASES.row(("DeformablePSROIPooling", 1))
def deformable_psroi_pooling(gen: CaseGenerator) -> Case:
    kind, scale, group, part = gen.pick(*_ROI_KINDS), gen.pick(1.0, 0.5, 0.25), gen.size(1, 3), gen.size(1, 4)
    classes, each = gen.size(1, 2), gen.size(1, 2)
    data = _features(gen, kind, classes * each * group * group)
    rois = _boxes(gen, data.array.shape[0], kind, scale)
    offsets = gen.tensor([rois.array.shape[0], 2 * classes, part, part], kind, -1, 1) if gen.chance(0.7) else None
    attributes = {"output_dim": classes * each, "group_size": group, "spatial_scale": scale, "part_size": part}
    bins = {"spatial_bins_x": gen.size(1, 3), "spatial_bins_y": gen.size(1, 3)}
    return gen.model(data, rois, offsets, trans_std=gen.pick(None, 0.1, 0.5), **attributes, **bins)
