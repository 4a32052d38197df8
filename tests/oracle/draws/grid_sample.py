"""GridSample."""

from __future__ import annotations

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case

DRAWS = Table()


@DRAWS.row(("GridSample", 9))
def grid_sample(d: Draw, type: str, since: int) -> Case:
    n, c, h, w, high, wide = d.sizes(6, 1, 5)
    data = d.tensor([n, c, h, w], ("f32", "f32", "f16", "bf16", "i32", "i64"), -50, 50)
    grid = d.tensor([n, high, wide, 2], "f32", -2, 2)
    if d.chance(0.2):
        grid = d.steps([n, high, wide, 2], "f32", -2, 2)
    return model(
        type,
        since,
        data,
        grid,
        align_corners=d.pick(None, True, False),
        mode=d.pick(None, "bilinear", "nearest", "bicubic"),
        padding_mode=d.pick(None, "zeros", "border", "reflection"),
    )
