"""GridSample."""

from __future__ import annotations

from irexec.testing import Case
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()


@RANDOM_CASES.row(("GridSample", 9))
def grid_sample(gen: CaseGenerator, type: str, since: int) -> Case:
    n, c, h, w, high, wide = gen.sizes(6, 1, 5)
    data = gen.tensor([n, c, h, w], ("f32", "f32", "f16", "bf16", "i32", "i64"), -50, 50)
    grid = gen.tensor([n, high, wide, 2], "f32", -2, 2)
    if gen.chance(0.2):
        grid = gen.steps([n, high, wide, 2], "f32", -2, 2)
    return model(
        type,
        since,
        data,
        grid,
        align_corners=gen.pick(None, True, False),
        mode=gen.pick(None, "bilinear", "nearest", "bicubic"),
        padding_mode=gen.pick(None, "zeros", "border", "reflection"),
    )
