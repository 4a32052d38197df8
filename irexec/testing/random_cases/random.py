"""Random models of random numbers; always with a seed, and of element types that the plugin computes as such."""

from __future__ import annotations

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()


@RANDOM_CASES.row(("RandomUniform", 8))
def random_uniform(gen: CaseGenerator, type: str, since: int) -> Case:
    kind = gen.pick("f32", "f32", "i32", "i64")
    low = gen.size(-50, 50)
    limits = [typed(kind, limit if gen.chance() else [limit]) for limit in (low, low + gen.size(1, 80))]
    shape = gen.ints(gen.sizes(gen.size(1, 3), 1, 30))
    seeds = {"global_seed": gen.size(1, 2**31), "op_seed": gen.size(0, 1000)}
    return model(
        type, since, shape, *limits, output_type=kind, alignment=gen.pick(None, "TENSORFLOW", "PYTORCH"), **seeds
    )


@RANDOM_CASES.row(("Multinomial", 13))
def multinomial(gen: CaseGenerator, type: str, since: int) -> Case:
    """Distributions that leave no choice: the generator is not specified."""
    batch, classes = gen.size(1, 4), gen.size(1, 6)
    sure = np.eye(classes)[gen.rng.integers(0, classes, batch)] * 3
    logarithms = gen.chance(0.3)
    many, again = (gen.size(1, 7), True) if gen.chance(0.7) else (1, False)
    with np.errstate(divide="ignore"):
        probs = typed(gen.pick("f32", "f16"), np.log(sure) if logarithms else sure)
    return model(
        type,
        since,
        probs,
        gen.ints(gen.pick(many, [many])),
        convert_type=gen.pick("i32", "i64"),
        with_replacement=again,
        log_probs=logarithms,
        global_seed=gen.size(1, 99),
        op_seed=gen.size(0, 99),
    )
