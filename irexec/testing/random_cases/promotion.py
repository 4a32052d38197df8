"""Random models of types promoted and simulated, and of the inverse error function."""

from __future__ import annotations

from irexec.testing import Case, typed
from irexec.testing.case_generator import INTEGERS, CaseGenerator, Table, model

RANDOM_CASES = Table()


@RANDOM_CASES.row(("ConvertPromoteTypes", 14))
def promotion(gen: CaseGenerator, type: str, since: int) -> Case:
    first, second = (
        gen.tensor(gen.shape(0, 3), (*INTEGERS, "f16", "f32", "f64", "bf16", "boolean"), 0, 100) for _ in range(2)
    )
    target = gen.pick(None, "f32", "i64", "f64")
    return model(
        type,
        since,
        first,
        second,
        promote_unsafe=gen.chance(0.7),
        pytorch_scalar_promotion=gen.chance(),
        u64_integer_promotion_target=target,
    )


@RANDOM_CASES.row(("FakeConvert", 13))
def fake_convert(gen: CaseGenerator, type: str, since: int) -> Case:
    """Numbers of the middle of the range: at its ends the plugin and the reference part, and rows say who is right."""
    kind, shape = gen.pick("f32", "f32", "f16", "bf16"), gen.shape(1, 4)
    data = gen.tensor(shape, kind, 1, 200)
    some = gen.shrunk(shape)
    scale = typed(kind, gen.rng.choice([0.25, 0.5, 1, 2], some))
    shift = typed(kind, gen.rng.choice([-0.5, 0, 0.25], some)) if gen.chance() else None
    return model(type, since, data, scale, shift, destination_type=gen.pick(None, "f8e4m3", "f8e5m2"))


@RANDOM_CASES.row(("ErfInv", 17))
def erfinv(gen: CaseGenerator, type: str, since: int) -> Case:
    return model(type, since, gen.tensor(gen.shape(0, 4), ("f32", "f32", "f16", "bf16"), -0.9, 0.9))
