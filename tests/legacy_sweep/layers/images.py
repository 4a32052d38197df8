"""Layers of images: resizing, regions of interest, mean values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)


@generates("Resample")
def resample(net: Network) -> None:
    linear = chance(net)
    axes = 3 if linear and net.version >= 5 and chance(net, 0.3) else 2
    shape = shape_of(net, axes + 2, 2, 5)
    if linear:
        factor = int(pick(net, 1, 2, 2, 3))
        out = tuple(n * factor for n in shape[2:])
        if chance(net, 0.3):
            out = tuple(size(net, 1, 8) for _ in out)
        data: dict[str, Any] = {"antialias": size(net, 0, 1)}
    else:
        # With a broken ratio the releases differ.
        factor = size(net, 1, 3)
        out = tuple(n * factor for n in shape[2:])
        data = {"antialias": 0} if chance(net) else {}
    if chance(net, 0.7) and out == tuple(n * factor for n in shape[2:]):
        data["factor"] = float(factor)
    data["type"] = f"caffe.ResampleParameter.{'LINEAR' if linear else 'NEAREST'}"
    net.layer("Resample", [net.input(values(net, shape))], [(*shape[:2], *out)], data)


@generates("Interp", versions=(3, 4, 5, 6, 7))
def interp(net: Network) -> None:
    shape = shape_of(net, 4, 2, 6)
    height, width = size(net, 1, 9), size(net, 1, 9)
    data: dict[str, Any] = {"height": height, "width": width, "pad_beg": 0, "pad_end": 0}
    if chance(net, 0.3) and min(shape[2:]) > 3:
        data |= {"pad_beg": -size(net, 0, 1), "pad_end": -size(net, 0, 1)}
    if chance(net, 0.7):
        data["align_corners"] = size(net, 0, 1)
    if chance(net, 0.2):
        data |= {"factor": 1.0, "shrink_factor": 1.0, "zoom_factor": 1.0}
    net.layer("Interp", [net.input(values(net, shape))], [(*shape[:2], height, width)], data)


@generates("RegionYolo", versions=(3, 4, 5, 6, 7))
def region_yolo(net: Network) -> None:
    coords, classes, regions = 4, size(net, 1, 4), size(net, 1, 3)
    height, width = shape_of(net, 2, 1, 4)
    softmax = chance(net)
    channels = regions * (coords + classes + 1)
    anchors = [1.5, 2, 3, 4, 5, 6]
    data: dict[str, Any] = {
        "anchors": anchors, "axis": 1, "coords": coords, "classes": classes, "end_axis": 3, "num": regions,
    }  # fmt: skip
    if not softmax:
        data |= {"do_softmax": 0, "mask": list(range(regions)), "num": regions + size(net, 0, 3)}
    elif chance(net):
        data["do_softmax"] = 1
    shape = (1, channels, height, width)
    out = (1, channels * height * width) if softmax else shape
    net.layer("RegionYolo", [net.input(values(net, shape, -4, 4))], [out], data)


def _rois(net: Network, count: int, images: int, high: float) -> np.ndarray:
    """Boxes as image, x0, y0, x1, y1."""
    corners = net.rng.uniform(0, high, (count, 4)).astype(np.float16).astype(np.float32)
    ordered = np.concatenate(
        [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
    )
    batch = net.rng.integers(0, images, (count, 1)).astype(np.float32)
    return np.concatenate([batch, ordered], 1).astype(np.float32)


@generates("ROIPooling", versions=(3, 4, 5, 6, 7))
def roi_pooling(net: Network) -> None:
    batch, channels, height, width = shape_of(net, 4, 2, 6)
    count, bilinear = size(net, 1, 4), chance(net)
    # One bilinear bin ends the process of the engines.
    pooled = shape_of(net, 2, 2 if bilinear else 1, 3)
    if bilinear:
        rois, scale = _rois(net, count, batch, 1.0), 1.0
        rois[:, 3:] = np.minimum(rois[:, 3:] + 0.1, 0.98)
    else:
        rois, scale = np.round(_rois(net, count, batch, 32.0)), 0.125
    data = {
        "method": "bilinear" if bilinear else "max",
        "pooled_h": pooled[0],
        "pooled_w": pooled[1],
        "spatial_scale": scale,
    }
    x = net.input(values(net, (batch, channels, height, width)))
    net.layer("ROIPooling", [x, net.input(rois)], [(count, channels, *pooled)], data)


@generates("PSROIPooling", versions=(3, 4, 5, 6, 7))
def psroi_pooling(net: Network) -> None:
    group, out, count, batch = size(net, 1, 3), size(net, 1, 3), size(net, 1, 4), size(net, 1, 2)
    bilinear = net.version >= 5 and chance(net)
    height, width = shape_of(net, 2, 4, 8)
    data: dict[str, Any] = {"output_dim": out, "group_size": group}
    if bilinear:
        bins = shape_of(net, 2, 1, 3)
        data |= {"mode": "bilinear", "spatial_bins_x": bins[1], "spatial_bins_y": bins[0], "spatial_scale": 1.0}
        rois, channels = _rois(net, count, batch, 1.0), out * bins[0] * bins[1]
        rois[:, 3:] = np.minimum(rois[:, 3:] + 0.1, 0.98)
    else:
        data |= {"spatial_scale": 0.25, **({"mode": "average"} if net.version >= 5 else {})}
        rois, channels = np.round(_rois(net, count, batch, 20.0)), out * group * group
        rois[:, 3:] += 4
    x = net.input(values(net, (batch, channels, height, width)))
    net.layer("PSROIPooling", [x, net.input(rois)], [(count, out, group, group)], data)


@generates("pre-process")
def pre_process(net: Network) -> None:
    shape = (size(net, 1, 2), size(net, 1, 3), size(net, 2, 4), size(net, 2, 4))
    u8 = chance(net, 0.3)
    x = net.rng.integers(0, 256, shape).astype(np.float32) if u8 else values(net, shape)
    port = net.input(x, name="data")
    if u8:
        net.feeds[0]["data"] = x.astype(np.uint8)
    net.layer("Power", [port], [shape], {"power": 1, "scale": 2, "shift": 0})
    order = net.rng.permutation(shape[1])
    if chance(net):
        inner = "".join(
            f'<channel id="{i}"><mean value="{round(float(net.rng.uniform(0, 100)), 2)}"/></channel>\n' for i in order
        )
        name = ' mean-precision="FP32"' if chance(net) else ""
    else:
        mean = net.rng.uniform(0, 100, shape[1:]).astype(np.float32)
        data, start = mean.tobytes(), len(net.blob)
        net.blob.extend(data)
        step = len(data) // shape[1]
        inner = "".join(
            f'<channel id="{i}"><mean offset="{start + i * step}" size="{step}"/></channel>\n' for i in range(shape[1])
        )
        name = ' mean-precision="FP32"'
    reference = ' reference-layer-name="data"' if chance(net, 0.7) else ""
    net.head = f"<pre-process{reference}{name}>\n{inner}</pre-process>\n"
