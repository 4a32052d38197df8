"""Any operation of the registry: a random case of it, of which the floats come from the graph where they can."""

from __future__ import annotations

import functools

from irexec.errors import OpError
from irexec.testing import Case, Typed
from irexec.testing.random_cases import Generators, random_cases
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step

_FLOATS = ("f32", "f16", "bf16", "f64")


@functools.cache
def _table() -> Generators:
    return dict(sorted(random_cases().items(), key=str))


@step(18)
def any_operation(g: Growth) -> None:
    pairs = list(_table())
    pair = pairs[g.gen.size(0, len(pairs) - 1)]
    case = _table()[pair](g.gen.rng)
    if _is_by_chance(case):
        return
    inputs = [_input(g, x) for x in case.inputs]
    attributes = case.definition.ungrouped(case.definition.parse(case.attributes).require())
    try:
        made = g.emit(case.type, *inputs, since=case.since, **attributes)
    except OpError:
        # Values that come from the graph may be none that the operation takes.
        inputs = [g.constant(x.array, x.element.name) for x in case.inputs]
        made = g.emit(case.type, *inputs, since=case.since, **attributes)
    g.add(*(x for x in made if g.gen.chance(0.8)))


def _is_by_chance(case: Case) -> bool:
    """Whether the values differ each time: random ones without a seed."""
    seeds = [case.attributes.get(name, "0") for name in ("global_seed", "op_seed")]
    return not case.definition.deterministic and seeds == ["0", "0"]


def _input(g: Growth, x: Typed) -> Tensor:
    if x.element.name in _FLOATS and x.array.size > 1 and g.pool and g.gen.chance(0.7):
        values = x.array.astype("f8")
        try:
            found = g.as_shape(g.as_kind(g.some(_FLOATS, minimum=1), x.element.name), x.array.shape)
            return g.between(found, float(values.min()), float(values.max()))
        except OpError:
            pass
    if g.depth == 0 and g.gen.chance(0.4):
        return g.parameter(x.array, x.element.name)
    return g.constant(x.array, x.element.name)
