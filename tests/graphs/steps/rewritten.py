"""What passes rewrite, and what looks nearly like it: scales beside products, operations that may change nothing, equal constants."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.elementwise import unary_of
from tests.graphs.steps.movement import images


def _scaled(g: Growth, x: Tensor, shape: list[int]) -> Tensor:
    """A scale or shift by a constant, which is either operand."""
    factor = g.constant(g.gen.rng.uniform(0.4, 1.6, shape) * g.gen.pick(-1, 1), x.kind)
    choice = g.gen.size(0, 4)
    values = np.abs(x.array.astype(np.float64))
    if choice == 0 and values.min(initial=1) > 0.02:
        return g.one("Divide", factor, x)
    if choice <= 1:
        return g.one("Divide", x, factor)
    if choice == 2:
        return g.one("Subtract", *g.gen.some([x, factor], 2))
    return g.one(g.gen.pick("Multiply", "Add"), *g.gen.some([x, factor], 2))


@step(3)
def scaled_product(g: Growth) -> None:
    """A product with square weights, transposed or not, on either side, with scales and shifts along one of its axes."""
    size = g.gen.size(2, 5)
    x = g.as_shape(g.floats(minimum=1), [*([2] if g.gen.chance(0.3) else []), size, size])
    weights = g.constant(g.gen.rng.uniform(-1, 1, [size, size]), x.kind)
    first, second = (x, weights) if g.gen.chance(0.6) else (weights, x)
    y = g.one("MatMul", first, second, transpose_a=g.gen.chance(), transpose_b=g.gen.chance())
    for _ in range(g.gen.size(1, 3)):
        y = _scaled(g, y, g.gen.pick([size], [1, size], [size, 1], [1], []))
    g.add(y)


@step(2)
def scaled_convolution(g: Growth) -> None:
    """Scales and shifts of channels before and after a convolution, padded or not."""
    x = images(g, g.floats(minimum=1), (3, 4))
    axes = x.rank - 2
    per_channel = [1, x.shape[1], *[1] * axes]
    for _ in range(g.gen.size(0, 2)):
        x = _scaled(g, x, per_channel)
    groups = g.gen.pick(1, x.shape[1])
    out = g.gen.pick(1, 2, 3) * groups
    taps = [g.gen.pick(1, min(3, size)) for size in x.shape[2:]]
    pads = [g.gen.pick(0, kernel // 2) for kernel in taps]
    given = {"strides": [1] * axes, "dilations": [1] * axes, "pads_begin": pads, "pads_end": pads}
    shape = [out, x.shape[1], *taps] if groups == 1 else [groups, out // groups, 1, *taps]
    weights = g.constant(g.gen.rng.uniform(-1, 1, shape), x.kind)
    x = g.one("Convolution" if groups == 1 else "GroupConvolution", x, weights, **given)
    for _ in range(g.gen.size(0, 3)):
        x = _scaled(g, x, g.gen.pick([1, x.shape[1], *[1] * axes], [1] * x.rank))
    g.add(x)


@step(2)
def nearly_nothing(g: Growth) -> None:
    """An operation that would change nothing with another attribute or input."""
    x = g.floats((1, 4), 1)
    axis = g.gen.size(0, x.rank - 1)
    choice = g.gen.size(0, 5)
    if choice == 0:
        y = g.one("Slice", x, g.ints([-1]), g.ints([-(1 << 30)]), g.ints([-1]), g.ints([axis]))
    elif choice == 1:
        y = g.one("Slice", x, g.ints([0]), g.ints([1 << 30]), g.ints([1]), g.ints([axis]))
    elif choice == 2:
        y = g.one("Roll", x, g.ints([g.gen.pick(0, x.shape[axis], 1)]), g.ints([axis]))
    elif choice == 3:
        y = g.one(g.gen.pick("Add", "Subtract"), x, g.constant(np.zeros(g.gen.pick([], [1] * x.rank)), x.kind))
    elif choice == 4:
        y = g.one(
            g.gen.pick("Multiply", "Divide", "Power"), x, g.constant(np.ones(g.gen.pick([], [1] * x.rank)), x.kind)
        )
    else:
        y = g.one(
            "Gather",
            x,
            g.ints(np.arange(x.shape[axis]) if g.gen.chance() else np.arange(x.shape[axis])[::-1]),
            g.ints(axis),
        )
    g.add(y, unary_of(g, y))


@step(2)
def equal_constants(g: Growth) -> None:
    """Constants of equal bytes in two shapes or two types, and operations that are written twice."""
    rows, columns = g.gen.size(1, 4), g.gen.size(1, 4)
    values = (
        np.full([rows, columns], g.gen.pick(0.0, 1.0)) if g.gen.chance() else g.gen.rng.uniform(-1, 1, [rows, columns])
    )
    x = g.as_shape(g.floats(minimum=1), [g.gen.size(1, 2), rows, columns])
    y = g.as_shape(g.floats(minimum=1), [g.gen.size(1, 2), columns, rows])
    first = g.one("Add", x, g.constant(values, x.kind))
    second = g.one("Add", y, g.constant(values.reshape(columns, rows), x.kind))
    g.add(first, second)
    if g.gen.chance():
        g.add(g.one("MatMul", first, second))
    if g.gen.chance():
        again = g.one("Add", x, g.constant(values, x.kind))
        other = g.one(g.gen.pick("Subtract", "Multiply"), again, first)
        check(other.size > 0, "it has elements")
        g.add(other)
