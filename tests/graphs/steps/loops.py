"""Loops in loops, states that grow from one iteration to the next, and recurrent cells in a TensorIterator."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.ir.graph import BackEdge, Body, PortMap
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.bodies import carried, inside, result

_ALL = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}


def _iterations(
    g: Growth, trips: Tensor, inner: Growth, after: Tensor, collected: Tensor | None, others: list[Tensor]
) -> list[Tensor]:
    """The outputs of a Loop around a body that was grown: its first Parameter is the state, a second one of i64 the iteration.

    Args:
        after: what the state becomes.
        collected: what every iteration appends to the second output.
        others: the inputs of the Loop for the Parameters: the state first, then all but the iteration.
    """
    more = inner.constant(np.array(True), "boolean")
    state, iteration, *rest = inner.parameters
    maps = [
        PortMap("input", 2, state.value.node.id),
        PortMap("input", -1, iteration.value.node.id, {"purpose": "current_iteration"}),
    ]
    maps += [PortMap("input", 3 + i, x.value.node.id) for i, x in enumerate(rest)]
    results = [result(inner, x) for x in (more, after)]
    first = 2 + len(others)
    maps += [
        PortMap("output", -1, results[0].id, {"purpose": "execution_condition"}),
        PortMap("output", first, results[1].id),
    ]
    if collected is not None:
        each = inner.one("Unsqueeze", collected, inner.ints([0]))
        maps.append(PortMap("output", first + 1, result(inner, each).id, _ALL))
    body = Body(inner.builder.graph, maps, [BackEdge(results[1].id, state.value.node.id)])
    return g.with_bodies("Loop", [trips, g.constant(np.array(True), "boolean"), *others], {"body": body})


def _counted(g: Growth, given: list[Tensor], count: int) -> Growth:
    """The graph of a body with a state, the number of the iteration, and others; grown by some steps."""
    number = Tensor(given[0].value, I64, np.array(0, np.int64))
    return inside(g, [given[0], number, *given[1:]], count)


def _sized(g: Growth, iteration: Tensor) -> Tensor:
    """A number of iterations that changes with the iteration around; 0 is possible."""
    if g.gen.chance():
        table = g.constant_i64(g.gen.rng.integers(0, 4, 5))
        return g.one("Gather", table, iteration, g.constant_i64(0))
    return g.one("Mod", g.one("Add", iteration, g.constant_i64(g.gen.size(0, 2))), g.constant_i64(3))


@step(2)
def nested(g: Growth) -> None:
    """A Loop around a Loop whose number of iterations changes with the iteration around."""
    start, other = g.floats((0, 3), 1), g.floats((0, 3), 1)
    trips = g.constant_i64(g.gen.size(1, 4))
    if g.depth == 0 and g.gen.chance(0.3):
        trips = g.parameter(trips.array, "i64")
    outer = _counted(g, [start, other], g.gen.size(0, 2))
    state, iteration, second = outer.parameters
    inner = _counted(outer, [state, second], g.gen.size(0, 3))
    collected = inner.floats((0, 2), 1) if g.gen.chance() else None
    after = carried(inner, inner.parameters[0])
    made = _iterations(outer, _sized(outer, iteration), inner, after, collected, [state, second])
    after = outer.one("Tanh", made[0])
    if collected is not None:
        # It has as many rows as there were iterations.
        total = outer.one("ReduceSum", made[1], outer.ints([0]), keep_dims=False)
        outer.add(total)
        if total.shape == state.shape:
            after = outer.one("Tanh", outer.one("Add", after, total))
    outer.add(made[0])
    each = outer.floats((0, 2), 1) if g.gen.chance() else None
    g.add(*_iterations(g, trips, outer, after, each, [start, other]))


@step(1)
def growing(g: Growth) -> None:
    """A Loop whose state gets longer along an axis in each iteration."""
    start, other = g.floats((1, 3), 1), g.floats((0, 2), 1)
    axis = g.gen.size(0, start.rank - 1)
    check(start.size <= 256, "it gets longer")
    inner = Growth(g.gen.rng, inside=g)
    # The size of the axis is not known in the body.
    shape = ["?" if k == axis else str(size) for k, size in enumerate(start.shape)]
    value = inner.builder.parameter(start.element, f"[{','.join(shape)}]", "p0")
    state = Tensor(value, start.element, start.array)
    inner.parameters.append(state)
    iteration = inner.parameter(np.array(0, np.int64), "i64")
    second = inner.parameter(other.array, other.kind)
    part = inner.as_shape(second, [1 if k == axis else size for k, size in enumerate(start.shape)])
    if inner.gen.chance():
        part = inner.one("Add", part, inner.one("Convert", iteration, destination_type=part.kind))
    after = inner.one("Concat", *inner.gen.some([state, part], 2), axis=axis)
    collected = inner.one("ReduceMax", after, inner.ints([axis]), keep_dims=False) if inner.gen.chance() else None
    made = _iterations(g, g.constant_i64(g.gen.size(1, 4)), inner, after, collected, [start, other])
    g.add(made[0], g.one("ReduceSum", made[0], g.ints([axis]), keep_dims=g.gen.chance()), *made[1:])


_CELLS = {"LSTMCell": (4, 2), "GRUCell": (3, 1), "RNNCell": (1, 1)}


@step(2)
def cell(g: Growth) -> None:
    """A TensorIterator around a recurrent cell, as converters write a sequence; or the cell alone."""
    check(g.kind in ("f32", "f16", "f64"), "cells of f32, f16 and f64")
    type = g.gen.pick(*_CELLS)
    gates, count = _CELLS[type]
    batch, steps, inputs, size = g.gen.sizes(4, 1, 5)
    axis = g.gen.size(0, 1)
    x = g.between(
        g.as_shape(g.floats(minimum=1), [steps, batch, inputs] if axis == 0 else [batch, steps, inputs]), -3, 3
    )
    states = [g.between(g.as_shape(g.floats(minimum=1), [batch, size]), -2, 2) for _ in range(count)]
    reset = type == "GRUCell" and g.gen.chance()

    def emitted(one: Growth, data: Tensor, before: list[Tensor]) -> list[Tensor]:
        shapes = [gates * size, inputs], [gates * size, size], [(gates + reset) * size]
        weights = [one.constant(g.gen.rng.uniform(-1, 1, shape), one.kind) for shape in shapes]
        extra = {"linear_before_reset": reset} if type == "GRUCell" else {}
        return one.emit(type, data, *before, *weights, hidden_size=size, **extra)

    if g.gen.chance(0.3):
        g.add(
            *emitted(
                g,
                g.one("Squeeze", g.one("Gather", x, g.constant_i64([0]), g.constant_i64(axis)), g.ints([axis])),
                states,
            )
        )
        return
    inner = Growth(g.gen.rng, inside=g)
    data = inner.parameter(np.take(x.array, [0], axis), x.kind)
    before = [inner.parameter(one.array, one.kind) for one in states]
    after = emitted(inner, inner.one("Squeeze", data, inner.ints([axis])), before)
    each = inner.one("Unsqueeze", after[0], inner.ints([axis]))
    backwards = g.gen.chance(0.4)
    way = {"start": "-1", "end": "0", "stride": "-1"} if backwards else {"start": "0", "end": "-1", "stride": "1"}
    way |= {"axis": str(axis), "part_size": "1"}
    ends = [result(inner, one) for one in (*after, each)]
    maps = [PortMap("input", i, one.value.node.id, {} if i else way) for i, one in enumerate((data, *before))]
    maps += [PortMap("output", 1 + count + k, end.id, way if k == count else {}) for k, end in enumerate(ends)]
    back = [BackEdge(end.id, one.value.node.id) for end, one in zip(ends, before, strict=False)]
    made = g.with_bodies("TensorIterator", [x, *states], {"body": Body(inner.builder.graph, maps, back)})
    g.add(*g.gen.some(made, 1))
