"""RegionYolo and ReorgYolo."""

from __future__ import annotations

from tests.oracle.draw import MOVED, Draw, Table, model
from tests.support.cases import Case

DRAWS = Table()


@DRAWS.row(("RegionYolo", 1))
def region_yolo(d: Draw, type: str, since: int) -> Case:
    classes, regions, softmax = d.size(1, 4), d.size(1, 3), d.chance()
    # Without coords the CPU plugin takes the softmax of bf16 after the logistic function, that of f32 before.
    coords = d.size(1 if softmax else 0, 5)
    # OpenVINO mixes up the images of a batch where channels are left over.
    images, more = (1, d.size(1, 3)) if d.chance(0.2) else (d.size(1, 3), 0)
    data = d.special([images, regions * (coords + 1 + classes) + more, d.size(), d.size()], ("f32", "f32", "f16", "bf16"))
    axis = d.size(0, 3)
    return model(
        type,
        since,
        data,
        anchors=d.pick(None, [1.5, 2.0]),
        axis=d.signed(axis, 4),
        end_axis=d.signed(d.size(axis, 3), 4),
        coords=coords,
        classes=classes,
        num=regions if softmax else d.size(0, 9),
        do_softmax=softmax,
        mask=None if softmax else d.sizes(regions, 0, 9),
    )


@DRAWS.row(("ReorgYolo", 2))
def reorg_yolo(d: Draw, type: str, since: int) -> Case:
    stride = d.size(1, 3)
    channels = d.pick(stride * stride, 2 * stride * stride, stride * stride + d.size(0, 9))
    data = d.tensor([d.size(), channels, d.size(1, 3) * stride, d.size(1, 3) * stride], MOVED)
    return model(type, since, data, stride=stride)
