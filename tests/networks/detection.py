"""Detectors: bodies from PyTorch, proposals and suppression by OpenVINO's own operations."""

from __future__ import annotations

import numpy as np
import openvino as ov
import torch
from openvino import opset8, opset9, opset13
from torch import nn

from tests.networks.network import Network, RandomInput, convert, network, randomise


def stage(c_in: int, c_out: int, stride: int = 1, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), act())


class Ssd(nn.Module):
    """Boxes and scores from two levels (Liu et al. 2015)."""

    def __init__(self, c: int, anchors: int, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.body = nn.Sequential(stage(3, c, 2), stage(c, 2 * c, 2), stage(2 * c, 4 * c, 2))
        self.extra = stage(4 * c, 4 * c, 2)
        self.boxes = nn.ModuleList(nn.Conv2d(4 * c, 4 * anchors, 3, padding=1) for _ in range(2))
        self.scores = nn.ModuleList(nn.Conv2d(4 * c, classes * anchors, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.body(x)
        levels = [first, self.extra(first)]
        boxes = torch.cat(
            [head(y).permute(0, 2, 3, 1).flatten(1) for head, y in zip(self.boxes, levels, strict=True)], 1
        )
        scores = [
            head(y).permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, self.classes))
            for head, y in zip(self.scores, levels, strict=True)
        ]
        return boxes, torch.cat(scores, 1).softmax(-1).flatten(1)


def prior_levels(size: int) -> list[np.ndarray]:
    return [np.array([size >> level] * 2, np.int64) for level in (3, 4)]


@network("ssd")
def ssd(wide: bool) -> Network:
    """SSD with PriorBoxClustered and DetectionOutput, as OpenVINO's detection models have it."""
    size, c, classes = (320, 32, 21) if wide else (32, 4, 4)
    widths = [size * f for f in (0.2, 0.4, 0.3)]
    body = convert(randomise(Ssd(c, len(widths), classes)), [torch.randn(1, 3, size, size)], [[-1, 3, size, size]])
    boxes, scores = (result.input_value(0) for result in body.get_results())
    image = opset13.constant(np.array([size, size], np.int64))
    priors = [
        opset13.unsqueeze(
            opset13.prior_box_clustered(
                opset13.constant(level), image,
                {"width": widths, "height": widths[::-1], "clip": False, "offset": 0.5, "step": float(8 << i), "variance": [0.1, 0.1, 0.2, 0.2]},
            ), opset13.constant(np.array([0], np.int64)))
        for i, level in enumerate(prior_levels(size))
    ]  # fmt: skip
    found = opset8.detection_output(
        boxes, scores, opset13.concat(priors, 2),
        {
            "background_label_id": 0, "top_k": 50, "keep_top_k": [20], "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": True,
            "nms_threshold": 0.45, "confidence_threshold": 0.05, "normalized": True, "variance_encoded_in_target": False,
        },
    )  # fmt: skip
    model = ov.Model([opset13.result(found)], body.get_parameters(), "ssd")
    return Network(model, [[RandomInput((n, 3, size, size))] for n in ((1,) if wide else (1, 3))])


class CrossStage(nn.Module):
    """The C2f block of YOLOv8."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.enter, half = stage(c_in, c_out, act=nn.SiLU), c_out // 2
        self.inner = nn.Sequential(stage(half, half, act=nn.SiLU), stage(half, half, act=nn.SiLU))
        self.leave = nn.Sequential(nn.Conv2d(c_out + half, c_out, 1, bias=False), nn.BatchNorm2d(c_out), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.enter(x).chunk(2, 1)
        return self.leave(torch.cat([a, b, b + self.inner(b)], 1))


class Yolo(nn.Module):
    """Two levels with spatial pyramid pooling and up-sampling, boxes by the mean of a distribution (YOLOv8)."""

    def __init__(self, c: int, classes: int, bins: int = 16) -> None:
        super().__init__()
        self.bins, self.classes = bins, classes
        self.first = nn.Sequential(
            stage(3, c, 2, nn.SiLU),
            stage(c, 2 * c, 2, nn.SiLU),
            CrossStage(2 * c, 2 * c),
            stage(2 * c, 4 * c, 2, nn.SiLU),
        )
        self.second = nn.Sequential(stage(4 * c, 4 * c, 2, nn.SiLU), CrossStage(4 * c, 4 * c))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.merge, self.after = nn.Conv2d(16 * c, 4 * c, 1), CrossStage(8 * c, 4 * c)
        self.heads = nn.ModuleList(nn.Conv2d(4 * c, 4 * bins + classes, 1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        near = self.first(x)
        far = self.second(near)
        pools = [far]
        for _ in range(3):
            pools.append(self.pool(pools[-1]))
        far = self.merge(torch.cat(pools, 1))
        near = self.after(torch.cat([near, nn.functional.interpolate(far, scale_factor=2.0, mode="nearest")], 1))
        boxes, scores = [], []
        for head, y, step in zip(self.heads, (near, far), (8.0, 16.0), strict=True):
            where, what = head(y).flatten(2).split([4 * self.bins, self.classes], 1)
            ltrb = where.unflatten(1, (4, self.bins)).softmax(2).mul(torch.arange(self.bins).view(1, 1, -1, 1)).sum(2)
            rows, columns = torch.meshgrid(
                torch.arange(y.shape[2]) + 0.5, torch.arange(y.shape[3]) + 0.5, indexing="ij"
            )
            centres = torch.stack([columns, rows]).flatten(1)[None]
            boxes.append(torch.cat([centres - ltrb[:, :2], centres + ltrb[:, 2:]], 1) * step)
            scores.append(what.sigmoid())
        return torch.cat(boxes, 2).transpose(1, 2), torch.cat(scores, 2)


@network("yolo")
def yolo(wide: bool) -> Network:
    """A YOLOv8-like detector and its NonMaxSuppression; then the boxes chosen, gathered."""
    size, c, classes = (320, 24, 80) if wide else (64, 4, 3)
    body = convert(randomise(Yolo(c, classes)), [torch.randn(1, 3, size, size)], [[-1, 3, -1, -1]])
    boxes, scores = (result.input_value(0) for result in body.get_results())
    chosen = opset9.non_max_suppression(
        boxes, scores, opset13.constant(np.int64(10)), opset13.constant(np.float32(0.5)), opset13.constant(np.float32(0.55)),
        box_encoding="corner", sort_result_descending=True, output_type="i64",
    )  # fmt: skip
    columns = opset13.constant(np.array([0, 2], np.int64))
    where = opset13.gather(chosen.output(0), columns, opset13.constant(np.int64(1)))
    picked = opset13.gather_nd(boxes, where)
    results = [opset13.result(chosen.output(i)) for i in range(3)] + [opset13.result(picked)]
    model = ov.Model(results, body.get_parameters(), "yolo")
    sizes = [(1, size, size)] if wide else [(1, 64, 64), (2, 96, 64)]
    return Network(model, [[RandomInput((n, 3, h, w))] for n, h, w in sizes])


class Region(nn.Module):
    """Features, objectness and box shifts of a region proposal network (Ren et al. 2015)."""

    def __init__(self, c: int, anchors: int) -> None:
        super().__init__()
        self.body = nn.Sequential(stage(3, c, 2), stage(c, 2 * c, 2), stage(2 * c, 4 * c, 2))
        self.near = stage(4 * c, 4 * c)
        self.object, self.shift = nn.Conv2d(4 * c, anchors, 1), nn.Conv2d(4 * c, 4 * anchors, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = self.body(x)
        near = self.near(features)
        return features, self.object(near), self.shift(near)


class BoxHead(nn.Module):
    """Scores and shifts for each region."""

    def __init__(self, c: int, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(c * 9, 8 * classes), nn.ReLU())
        self.score, self.shift = nn.Linear(8 * classes, classes), nn.Linear(8 * classes, 4 * classes)

    def forward(self, regions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.hidden(regions)
        return self.score(hidden).softmax(-1), self.shift(hidden)


def constant(values: object, kind: type = np.int64) -> ov.Node:
    return opset13.constant(np.array(values, kind))


@network("faster_rcnn")
def faster_rcnn(wide: bool) -> Network:
    """Regions by TopK and NonMaxSuppression, ROIAlign, a head for each, MulticlassNms: data-dependent sizes throughout."""
    size, c, classes, anchors, most = (256, 32, 21, 3, 100) if wide else (64, 3, 4, 2, 12)
    body = convert(randomise(Region(c, anchors)), [torch.randn(1, 3, size, size)], [[1, 3, size, size]])
    features, score, shift = (result.input_value(0) for result in body.get_results())
    side = size // 8
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1)[..., ::-1] * 8.0 + 4
    halves = np.array([8.0, 16.0, 24.0])[:anchors, None]
    boxes = np.concatenate([grid[:, :, None] - halves, grid[:, :, None] + halves], -1).reshape(-1, 4)
    moves = opset13.reshape(
        opset13.transpose(opset13.reshape(shift, constant([anchors, 4, side, side]), False), constant([2, 3, 0, 1])),
        constant([-1, 4]),
        False,
    )
    moved = opset13.clamp(
        opset13.add(constant(boxes, np.float32), opset13.multiply(moves, constant(4, np.float32))), 0.0, float(size)
    )
    flat = opset13.sigmoid(opset13.reshape(opset13.transpose(score, constant([0, 2, 3, 1])), constant([-1]), False))
    best = opset13.topk(flat, constant(4 * most), 0, "max", "value", index_element_type="i64")
    top = opset13.gather(moved, best.output(1), constant(0))
    kept = opset9.non_max_suppression(
        opset13.unsqueeze(top, constant([0])), opset13.unsqueeze(best.output(0), constant([0, 1])),
        constant(most), constant(0.7, np.float32), constant(0.0, np.float32), box_encoding="corner", output_type="i64",
    )  # fmt: skip
    rois = opset13.gather(top, opset13.gather(kept.output(0), constant(2), constant(1)), constant(0))
    batch = opset13.broadcast(constant(0), opset13.gather(opset13.shape_of(rois), constant([0]), constant(0)))
    cut = opset9.roi_align(features, rois, batch, 3, 3, 2, 1 / 8, "avg", "half_pixel_for_nn")
    head = convert(randomise(BoxHead(4 * c, classes)), [torch.randn(2, 4 * c, 3, 3)], [[-1, 4 * c, 3, 3]])
    for consumer in head.inputs[0].get_target_inputs():
        consumer.replace_source_output(cut.output(0))
    scores, deltas = (result.input_value(0) for result in head.get_results())
    per_class = opset13.transpose(opset13.reshape(deltas, constant([-1, classes, 4]), False), constant([1, 0, 2]))
    refined = opset13.clamp(opset13.add(opset13.unsqueeze(rois, constant([0])), per_class), 0.0, float(size))
    last = opset9.multiclass_nms(
        refined, opset13.transpose(scores, constant([1, 0])), opset13.reshape(opset13.shape_of(opset13.reduce_sum(scores, constant(1))), constant([1]), False),
        sort_result_type="score", output_type="i64", iou_threshold=0.5, score_threshold=0.05, nms_top_k=10, keep_top_k=20, background_class=0,
    )  # fmt: skip
    results = [opset13.result(last.output(i)) for i in range(3)] + [opset13.result(rois)]
    return Network(ov.Model(results, body.get_parameters(), "faster_rcnn"), [[RandomInput((1, 3, size, size))]])
