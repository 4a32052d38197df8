"""PriorBox and PriorBoxClustered."""

from __future__ import annotations

from typing import Any

from tests.oracle.draw import INTEGERS, Draw, Table, model
from tests.support.cases import Case, Typed

DRAWS = Table()


def _floats(d: Draw, count: int, low: float, high: float) -> list[float]:
    return [round(float(number), 3) for number in d.rng.uniform(low, high, count)]


def _sizes(d: Draw) -> tuple[Typed, Typed]:
    kind = (d.pick(*INTEGERS),)
    return d.ints(d.sizes(2, 1, 4), kind), d.ints(d.sizes(2, 10, 60), kind)


@DRAWS.row(("PriorBox", 1), ("PriorBox", 8))
def prior_box(d: Draw, type: str, since: int) -> Case:
    """Only attributes that make as many boxes as OpenVINO counts."""
    ratios = d.some([1.0, 2.0, 0.5, 3.0, 1.25, 0.4, 2.5], 0, 3)
    attributes: dict[str, Any] = {
        "aspect_ratio": ratios or d.pick(None, []),
        "flip": d.pick(None, False, True),
        "clip": d.pick(None, False, True),
        "step": d.pick(None, 0.0, -1.0, *_floats(d, 2, 0, 20)),
        "offset": d.pick(0.0, 0.5, *_floats(d, 2, 0, 2)),
        "variance": d.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    }
    if since == 8:
        attributes["min_max_aspect_ratios_order"] = d.pick(None, False, True)
    if d.chance(0.4):
        count = d.size(1, 2)
        attributes |= {
            "fixed_size": _floats(d, count, 0, 30),
            "density": d.sizes(count, 1, 3),
            "scale_all_sizes": d.pick(None, True, False),
        }
        if d.chance(0.4):
            attributes |= {"fixed_ratio": _floats(d, 1, 0.2, 3), "aspect_ratio": None}
    elif d.chance(0.7):
        count = d.size(0, 3)
        attributes |= {
            "min_size": _floats(d, count, 1, 30),
            "max_size": _floats(d, d.size(0, count), 1, 60),
            "scale_all_sizes": d.pick(None, True),
        }
    else:
        attributes |= {"min_size": _floats(d, d.size(1, 3), 0, 1), "scale_all_sizes": False}
    return model(type, since, *_sizes(d), **attributes)


@DRAWS.row(("PriorBoxClustered", 1))
def prior_box_clustered(d: Draw, type: str, since: int) -> Case:
    count = d.size(0, 3)
    return model(
        type,
        since,
        *_sizes(d),
        width=_floats(d, count, 0, 40),
        height=_floats(d, count, 0, 40),
        clip=d.pick(None, False, True),
        step=d.pick(None, *_floats(d, 1, 0, 20)),
        step_w=d.pick(None, *_floats(d, 1, 0, 20)),
        step_h=d.pick(None, *_floats(d, 1, 0, 20)),
        offset=d.pick(0.0, 0.5, *_floats(d, 1, 0, 2)),
        variance=d.pick(None, [], [0.2], [0.1, 0.1, 0.2, 0.3]),
    )
