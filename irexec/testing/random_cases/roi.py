"""Pooling of regions of interest."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()
_KINDS = ("f32", "f32", "f16", "bf16")


def _features(gen: CaseGenerator, kind: str, channels: int) -> Typed:
    return gen.tensor([gen.size(1, 3), channels, *gen.sizes(2, 2, 9)], kind, -5, 5)


def _corners(gen: CaseGenerator, count: int, kind: str, scale: float, largest: float = 9) -> np.ndarray:
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
def roi_align(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, count = gen.pick(*_KINDS), gen.size(1, 4)
    data, attributes = _features(gen, kind, gen.size(1, 4)), _aligned(gen)
    if since == 9:
        attributes["aligned_mode"] = gen.pick(None, "asymmetric", "half_pixel_for_nn", "half_pixel")
    rois = typed(kind, _corners(gen, count, kind, attributes["spatial_scale"]))
    batch = gen.ints(gen.rng.integers(0, data.array.shape[0], count), ("i32", "i64", "u8"))
    return model(type, since, data, rois, batch, mode=gen.pick("avg", "max"), **attributes)


@RANDOM_CASES.row(("ROIAlignRotated", 15))
def roi_align_rotated(gen: CaseGenerator, type: str, since: int) -> Case:
    # In bf16 the plugin writes where it must not: results of 0, and the process goes down.
    kind, count = gen.pick("f32", "f32", "f16"), gen.size(1, 4)
    data, attributes = _features(gen, kind, gen.size(1, 4)), _aligned(gen)
    corners = _corners(gen, count, kind, attributes["spatial_scale"])
    turn = gen.rng.uniform(-4, 4, (count, 1))
    rois = typed(kind, np.concatenate([corners[:, :2], np.abs(corners[:, 2:] - corners[:, :2]), turn], 1))
    batch = gen.ints(gen.rng.integers(0, data.array.shape[0], count), ("i32", "i64"))
    return model(type, since, data, rois, batch, clockwise_mode=gen.pick(None, True, False), **attributes)


def _boxes(gen: CaseGenerator, images: int, kind: str, scale: float, largest: float = 9) -> Typed:
    """(count, 5): image and corners; at times image -1 ends them."""
    count = gen.size(1, 4)
    batch = gen.rng.integers(0, images, (count, 1)).astype(float)
    if gen.chance(0.2):
        batch[gen.size(0, count - 1)] = -1
    return typed(kind, np.concatenate([batch, _corners(gen, count, kind if largest > 1 else "f32", scale, largest)], 1))


@RANDOM_CASES.row(("ROIPooling", 2))
def roi_pooling(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, method, scale = gen.pick(*_KINDS), gen.pick(None, "max", "bilinear"), gen.pick(1.0, 0.5, 0.25)
    data = _features(gen, kind, gen.size(1, 4))
    rois = (
        _boxes(gen, data.array.shape[0], kind, scale, 9)
        if method != "bilinear"
        else _boxes(gen, data.array.shape[0], kind, 1, 0.6)
    )
    return model(
        type, since, data, rois, pooled_h=gen.size(1, 4), pooled_w=gen.size(1, 4), spatial_scale=scale, method=method
    )


@RANDOM_CASES.row(("PSROIPooling", 1))
def psroi_pooling(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, mode, scale = gen.pick(*_KINDS), gen.pick("average", "bilinear"), gen.pick(1.0, 0.5, 0.25)
    outputs, group, lines, columns = gen.size(1, 3), gen.size(1, 3), gen.size(1, 3), gen.size(1, 3)
    data = _features(gen, kind, outputs * (lines * columns if mode == "bilinear" else group * group))
    rois = _boxes(gen, data.array.shape[0], kind, scale, 0.6 if mode == "bilinear" else 9)
    attributes = {"output_dim": outputs, "group_size": group, "spatial_scale": scale, "mode": mode}
    return model(type, since, data, rois, spatial_bins_x=columns, spatial_bins_y=lines, **attributes)


@RANDOM_CASES.row(("DeformablePSROIPooling", 1))
def deformable_psroi_pooling(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, scale, group, part = gen.pick(*_KINDS), gen.pick(1.0, 0.5, 0.25), gen.size(1, 3), gen.size(1, 4)
    classes, each = gen.size(1, 2), gen.size(1, 2)
    data = _features(gen, kind, classes * each * group * group)
    rois = _boxes(gen, data.array.shape[0], kind, scale)
    offsets = gen.tensor([rois.array.shape[0], 2 * classes, part, part], kind, -1, 1) if gen.chance(0.7) else None
    attributes = {"output_dim": classes * each, "group_size": group, "spatial_scale": scale, "part_size": part}
    bins = {"spatial_bins_x": gen.size(1, 3), "spatial_bins_y": gen.size(1, 3)}
    return model(type, since, data, rois, offsets, trans_std=gen.pick(None, 0.1, 0.5), **attributes, **bins)
