"""Random models of types promoted and simulated, and of the inverse error function."""

from __future__ import annotations

from tests.oracle.draw import INTEGERS, Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()


@DRAWS.row(("ConvertPromoteTypes", 14))
def promotion(d: Draw, type: str, since: int) -> Case:
    first, second = (d.tensor(d.shape(0, 3), (*INTEGERS, "f16", "f32", "f64", "bf16", "boolean"), 0, 100) for _ in range(2))
    target = d.pick(None, "f32", "i64", "f64")
    return model(
        type, since, first, second, promote_unsafe=d.chance(0.7), pytorch_scalar_promotion=d.chance(), u64_integer_promotion_target=target
    )


@DRAWS.row(("FakeConvert", 13))
def fake_convert(d: Draw, type: str, since: int) -> Case:
    """Numbers of the middle of the range: at its ends the plugin and the reference part, and rows say who is right."""
    kind, shape = d.pick("f32", "f32", "f16", "bf16"), d.shape(1, 4)
    data = d.tensor(shape, kind, 1, 200)
    some = d.shrunk(shape)
    scale = typed(kind, d.rng.choice([0.25, 0.5, 1, 2], some))
    shift = typed(kind, d.rng.choice([-0.5, 0, 0.25], some)) if d.chance() else None
    return model(type, since, data, scale, shift, destination_type=d.pick(None, "f8e4m3", "f8e5m2"))


@DRAWS.row(("ErfInv", 17))
def erfinv(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(0, 4), ("f32", "f32", "f16", "bf16"), -0.9, 0.9))
