"""Pooling of regions of interest."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, Typed, typed

DRAWS = Table()
_KINDS = ("f32", "f32", "f16", "bf16")


def _features(d: Draw, kind: str, channels: int) -> Typed:
    return d.tensor([d.size(1, 3), channels, *d.sizes(2, 2, 9)], kind, -5, 5)


def _corners(d: Draw, count: int, kind: str, scale: float, largest: float = 9) -> np.ndarray:
    """(count, 4): mostly boxes, some of them inside out or beyond the border; of coarse types multiples of a quarter."""
    first = d.rng.uniform(-1, largest, (count, 2))
    size = d.rng.uniform(-1 if d.chance(0.2) else 0, largest, (count, 2))
    boxes = np.concatenate([first, first + size], 1) / scale
    return boxes if kind == "f32" else np.rint(boxes * 4) / 4


def _aligned(d: Draw) -> dict[str, Any]:
    return {"pooled_h": d.size(1, 4), "pooled_w": d.size(1, 4), "sampling_ratio": d.size(0, 3), "spatial_scale": d.pick(1.0, 0.5, 0.25)}


@DRAWS.row(("ROIAlign", 3), ("ROIAlign", 9))
def roi_align(d: Draw, type: str, since: int) -> Case:
    kind, count = d.pick(*_KINDS), d.size(1, 4)
    data, attributes = _features(d, kind, d.size(1, 4)), _aligned(d)
    if since == 9:
        attributes["aligned_mode"] = d.pick(None, "asymmetric", "half_pixel_for_nn", "half_pixel")
    rois = typed(kind, _corners(d, count, kind, attributes["spatial_scale"]))
    batch = d.ints(d.rng.integers(0, data.array.shape[0], count), ("i32", "i64", "u8"))
    return model(type, since, data, rois, batch, mode=d.pick("avg", "max"), **attributes)


@DRAWS.row(("ROIAlignRotated", 15))
def roi_align_rotated(d: Draw, type: str, since: int) -> Case:
    # In bf16 the plugin writes where it must not: results of 0, and the process goes down.
    kind, count = d.pick("f32", "f32", "f16"), d.size(1, 4)
    data, attributes = _features(d, kind, d.size(1, 4)), _aligned(d)
    corners = _corners(d, count, kind, attributes["spatial_scale"])
    turn = d.rng.uniform(-4, 4, (count, 1))
    rois = typed(kind, np.concatenate([corners[:, :2], np.abs(corners[:, 2:] - corners[:, :2]), turn], 1))
    batch = d.ints(d.rng.integers(0, data.array.shape[0], count), ("i32", "i64"))
    return model(type, since, data, rois, batch, clockwise_mode=d.pick(None, True, False), **attributes)


def _boxes(d: Draw, images: int, kind: str, scale: float, largest: float = 9) -> Typed:
    """(count, 5): image and corners; at times image -1 ends them."""
    count = d.size(1, 4)
    batch = d.rng.integers(0, images, (count, 1)).astype(float)
    if d.chance(0.2):
        batch[d.size(0, count - 1)] = -1
    return typed(kind, np.concatenate([batch, _corners(d, count, kind if largest > 1 else "f32", scale, largest)], 1))


@DRAWS.row(("ROIPooling", 2))
def roi_pooling(d: Draw, type: str, since: int) -> Case:
    kind, method, scale = d.pick(*_KINDS), d.pick(None, "max", "bilinear"), d.pick(1.0, 0.5, 0.25)
    data = _features(d, kind, d.size(1, 4))
    rois = _boxes(d, data.array.shape[0], kind, scale, 9) if method != "bilinear" else _boxes(d, data.array.shape[0], kind, 1, 0.6)
    return model(type, since, data, rois, pooled_h=d.size(1, 4), pooled_w=d.size(1, 4), spatial_scale=scale, method=method)


@DRAWS.row(("PSROIPooling", 1))
def psroi_pooling(d: Draw, type: str, since: int) -> Case:
    kind, mode, scale = d.pick(*_KINDS), d.pick("average", "bilinear"), d.pick(1.0, 0.5, 0.25)
    outputs, group, lines, columns = d.size(1, 3), d.size(1, 3), d.size(1, 3), d.size(1, 3)
    data = _features(d, kind, outputs * (lines * columns if mode == "bilinear" else group * group))
    rois = _boxes(d, data.array.shape[0], kind, scale, 0.6 if mode == "bilinear" else 9)
    attributes = {"output_dim": outputs, "group_size": group, "spatial_scale": scale, "mode": mode}
    return model(type, since, data, rois, spatial_bins_x=columns, spatial_bins_y=lines, **attributes)


@DRAWS.row(("DeformablePSROIPooling", 1))
def deformable_psroi_pooling(d: Draw, type: str, since: int) -> Case:
    kind, scale, group, part = d.pick(*_KINDS), d.pick(1.0, 0.5, 0.25), d.size(1, 3), d.size(1, 4)
    classes, each = d.size(1, 2), d.size(1, 2)
    data = _features(d, kind, classes * each * group * group)
    rois = _boxes(d, data.array.shape[0], kind, scale)
    offsets = d.tensor([rois.array.shape[0], 2 * classes, part, part], kind, -1, 1) if d.chance(0.7) else None
    attributes = {"output_dim": classes * each, "group_size": group, "spatial_scale": scale, "part_size": part}
    bins = {"spatial_bins_x": d.size(1, 3), "spatial_bins_y": d.size(1, 3)}
    return model(type, since, data, rois, offsets, trans_std=d.pick(None, 0.1, 0.5), **attributes, **bins)
