"""If, Loop and TensorIterator around graphs of their own, which may have bodies again."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from irexec.ir.graph import BackEdge, Body, Node, PortMap
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step

_DEEPEST = 3


def inside(g: Growth, given: list[Tensor], steps: int) -> Growth:
    """The graph of a body with these for its Parameters, grown by some steps."""
    from tests.graphs.making import grow

    check(g.depth < _DEEPEST, "bodies are as deep as they may be")
    inner = Growth(g.gen.rng, inside=g)
    inner.pool += [inner.parameter(x.array, x.kind) for x in given]
    grow(inner, steps)
    return inner


def _taken(g: Growth, count: int) -> list[Tensor]:
    return [g.floats((0, 4), 1) for _ in range(count)]


def result(g: Growth, x: Tensor) -> Node:
    return g.builder.result(x.value)


@step(2)
def condition(g: Growth) -> None:
    given = _taken(g, g.gen.size(1, 3))
    flag = _flag(g)
    count = g.gen.size(1, 2)
    shapes = [list(g.gen.pick(*given).shape) for _ in range(count)]
    bodies = {}
    for name in ("then_body", "else_body"):
        chosen = g.gen.some(range(len(given)), 1)
        inner = inside(g, [given[i] for i in chosen], g.gen.size(1, 4))
        maps = [PortMap("input", 1 + i, x.value.node.id) for i, x in zip(chosen, inner.parameters, strict=True)]
        for k, shape in enumerate(shapes):
            same = [x for x in inner.pool if x.kind == g.kind and list(x.shape) == shape]
            x = g.gen.pick(*same) if same else inner.as_shape(inner.floats(minimum=1), shape)
            maps.append(PortMap("output", 1 + len(given) + k, result(inner, x).id))
        bodies[name] = Body(inner.builder.graph, maps)
    g.add(*g.with_bodies("If", [flag, *given], bodies))


def _flag(g: Growth) -> Tensor:
    """A condition: computed, an input, or a constant."""
    choice = g.gen.rng.random()
    if choice < 0.5:
        x = g.floats(minimum=1)
        x = g.as_shape(x, [1])
        return g.one("Greater", x, g.constant([g.gen.pick(-0.5, 0.5)], x.kind))
    value = np.array(g.gen.chance()) if g.gen.chance() else np.array([g.gen.chance()])
    return g.parameter(value, "boolean") if choice < 0.8 and g.depth == 0 else g.constant(value, "boolean")


def carried(inner: Growth, before: Tensor) -> Tensor:
    """What a state becomes: a tensor of its shape and type."""
    same = [x for x in inner.pool if x.kind == before.kind and x.shape == before.shape and x.value is not before.value]
    after = inner.gen.pick(*same) if same else inner.as_shape(inner.floats(minimum=1), before.shape)
    # It stays finite however often it goes round.
    return inner.one("Tanh", after)


@step(2)
def iterator(g: Growth) -> None:
    """A TensorIterator over an axis of one tensor, with a state, and another tensor that every iteration has."""
    cut, other = g.floats((1, 4), 1), g.floats((0, 3), 1)
    axis = g.gen.size(0, cut.rank - 1)
    check(1 <= cut.shape[axis] <= 8, "few iterations")
    start = g.floats((0, 3), 1)
    backwards = g.gen.chance(0.3)
    part = np.take(cut.array, [-1 if backwards else 0], axis)
    inner = inside(g, [Tensor(cut.value, cut.element, part), start, other], g.gen.size(1, 4))
    first, before, _ = inner.parameters
    after = carried(inner, before)
    each = inner.as_shape(inner.floats((1, 4), 1), inner.floats((1, 4), 1).shape)
    out_axis = g.gen.size(0, each.rank - 1)
    if each.shape[out_axis] != 1:
        each = inner.one("Unsqueeze", each, inner.ints([out_axis]))
    way = (
        {"axis": str(axis), "start": "-1", "end": "0", "stride": "-1", "part_size": "1"}
        if backwards
        else {"axis": str(axis), "part_size": "1"}
    )
    out = {"axis": str(out_axis), "part_size": "1"}
    if g.gen.chance(0.3):
        out |= {"start": "-1", "end": "0", "stride": "-1"}
    results = [result(inner, x) for x in (after, each)]
    maps = [
        PortMap("input", i, x.value.node.id, way if i == 0 else {})
        for i, x in enumerate((first, before, inner.parameters[2]))
    ]
    maps += [PortMap("output", 3, results[0].id), PortMap("output", 4, results[1].id, out)]
    body = Body(inner.builder.graph, maps, [BackEdge(results[0].id, before.value.node.id)])
    g.add(*g.with_bodies("TensorIterator", [cut, start, other], {"body": body}))


@step(2)
def loop(g: Growth) -> None:
    """A Loop of some iterations, that a condition of its body may end before."""
    start, other = g.floats((0, 3), 1), g.floats((0, 3), 1)
    times = g.gen.size(0 if g.gen.chance(0.1) else 1, 4)
    trips = g.constant_i64(times)
    if g.gen.chance(0.3) and g.depth == 0:
        trips = g.parameter(trips.array, "i64")
    first = g.constant(np.array(True), "boolean")
    inner = inside(g, [start, other], g.gen.size(1, 4))
    before = inner.parameters[0]
    after = carried(inner, before)
    more = inner.constant(np.array([True]), "boolean")
    if g.gen.chance(0.3):
        more = inner.one("Less", inner.as_shape(after, [1]), inner.constant([0.9], after.kind))
    results = [result(inner, x) for x in (more, after)]
    maps = [PortMap("input", 2, before.value.node.id), PortMap("input", 3, inner.parameters[1].value.node.id)]
    maps += [
        PortMap("output", -1, results[0].id, {"purpose": "execution_condition"}),
        PortMap("output", 4, results[1].id),
    ]
    if g.gen.chance() and times:
        each = inner.one("Unsqueeze", inner.floats((0, 3), 1), inner.ints([0]))
        maps.append(
            PortMap(
                "output",
                5,
                result(inner, each).id,
                {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"},
            )
        )
    body = Body(inner.builder.graph, maps, [BackEdge(results[1].id, before.value.node.id)])
    g.add(*g.with_bodies("Loop", [trips, first, start, other], {"body": body}))
