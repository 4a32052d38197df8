"""Random models of random numbers; always with a seed, and of element types that the plugin computes as such."""

from __future__ import annotations

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()


@DRAWS.row(("RandomUniform", 8))
def random_uniform(d: Draw, type: str, since: int) -> Case:
    kind = d.pick("f32", "f32", "i32", "i64")
    low = d.size(-50, 50)
    limits = [typed(kind, limit if d.chance() else [limit]) for limit in (low, low + d.size(1, 80))]
    shape = d.ints(d.sizes(d.size(1, 3), 1, 30))
    seeds = {"global_seed": d.size(1, 2**31), "op_seed": d.size(0, 1000)}
    return model(type, since, shape, *limits, output_type=kind, alignment=d.pick(None, "TENSORFLOW", "PYTORCH"), **seeds)


@DRAWS.row(("Multinomial", 13))
def multinomial(d: Draw, type: str, since: int) -> Case:
    """Of distributions that leave no choice: the numbers drawn by are not specified."""
    batch, classes = d.size(1, 4), d.size(1, 6)
    sure = np.eye(classes)[d.rng.integers(0, classes, batch)] * 3
    logarithms = d.chance(0.3)
    many, again = (d.size(1, 7), True) if d.chance(0.7) else (1, False)
    with np.errstate(divide="ignore"):
        probs = typed(d.pick("f32", "f16"), np.log(sure) if logarithms else sure)
    return model(
        type, since, probs, d.ints(d.pick(many, [many])), convert_type=d.pick("i32", "i64"), with_replacement=again,
        log_probs=logarithms, global_seed=d.size(1, 99), op_seed=d.size(0, 99),
    )  # fmt: skip
