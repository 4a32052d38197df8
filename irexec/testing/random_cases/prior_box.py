"""PriorBox and PriorBoxClustered."""

from __future__ import annotations

from typing import Any

from irexec.testing import Case, Typed
from irexec.testing.case_generator import INTEGERS, CaseGenerator, Table, model

RANDOM_CASES = Table()


def _floats(gen: CaseGenerator, count: int, low: float, high: float) -> list[float]:
    return [round(float(number), 3) for number in gen.rng.uniform(low, high, count)]


def _sizes(gen: CaseGenerator) -> tuple[Typed, Typed]:
    kind = (gen.pick(*INTEGERS),)
    return gen.ints(gen.sizes(2, 1, 4), kind), gen.ints(gen.sizes(2, 10, 60), kind)


@RANDOM_CASES.row(("PriorBox", 1), ("PriorBox", 8))
def prior_box(gen: CaseGenerator, type: str, since: int) -> Case:
    """Only attributes that make as many boxes as OpenVINO counts."""
    ratios = gen.some([1.0, 2.0, 0.5, 3.0, 1.25, 0.4, 2.5], 0, 3)
    attributes: dict[str, Any] = {
        "aspect_ratio": ratios or gen.pick(None, []),
        "flip": gen.pick(None, False, True),
        "clip": gen.pick(None, False, True),
        "step": gen.pick(None, 0.0, -1.0, *_floats(gen, 2, 0, 20)),
        "offset": gen.pick(0.0, 0.5, *_floats(gen, 2, 0, 2)),
        "variance": gen.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    }
    if since == 8:
        attributes["min_max_aspect_ratios_order"] = gen.pick(None, False, True)
    if gen.chance(0.4):
        count = gen.size(1, 2)
        attributes |= {
            "fixed_size": _floats(gen, count, 0, 30),
            "density": gen.sizes(count, 1, 3),
            "scale_all_sizes": gen.pick(None, True, False),
        }
        if gen.chance(0.4):
            attributes |= {"fixed_ratio": _floats(gen, 1, 0.2, 3), "aspect_ratio": None}
    elif gen.chance(0.7):
        count = gen.size(0, 3)
        attributes |= {
            "min_size": _floats(gen, count, 1, 30),
            "max_size": _floats(gen, gen.size(0, count), 1, 60),
            "scale_all_sizes": gen.pick(None, True),
        }
    else:
        attributes |= {"min_size": _floats(gen, gen.size(1, 3), 0, 1), "scale_all_sizes": False}
    return model(type, since, *_sizes(gen), **attributes)


@RANDOM_CASES.row(("PriorBoxClustered", 1))
def prior_box_clustered(gen: CaseGenerator, type: str, since: int) -> Case:
    count = gen.size(0, 3)
    return model(
        type,
        since,
        *_sizes(gen),
        width=_floats(gen, count, 0, 40),
        height=_floats(gen, count, 0, 40),
        clip=gen.pick(None, False, True),
        step=gen.pick(None, *_floats(gen, 1, 0, 20)),
        step_w=gen.pick(None, *_floats(gen, 1, 0, 20)),
        step_h=gen.pick(None, *_floats(gen, 1, 0, 20)),
        offset=gen.pick(0.0, 0.5, *_floats(gen, 1, 0, 2)),
        variance=gen.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    )
