"""RegionYolo and ReorgYolo."""

from __future__ import annotations

from irexec.testing import Case
from irexec.testing.case_generator import MOVED, CaseGenerator, Table, model

RANDOM_CASES = Table()


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
