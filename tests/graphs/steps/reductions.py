"""Reductions, normalizations, softmax, and what finds indices."""

from __future__ import annotations

from tests.graphs.growth import Growth
from tests.graphs.steps import step
from tests.graphs.steps.movement import images

_REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceMean",
    "ReduceSum",
)  # fmt: skip


@step(5)
def reduction(g: Growth) -> None:
    x = g.floats((1, 5), 1)
    axes = g.gen.axes(x.rank)
    name = g.gen.pick(*_REDUCTIONS)
    if name == "ReduceProd":
        x = g.between(x, -1, 1)
    y = g.one(name, x, g.ints(axes), keep_dims=g.gen.chance())
    g.add(y)
    if y.rank == x.rank and y.is_sound and g.gen.chance(0.4):
        g.add(g.one(g.gen.pick("Subtract", "Add", "Multiply"), *g.gen.some([x, y], 2)))


@step(1)
def logical_reduction(g: Growth) -> None:
    x = g.some(["boolean"], (1, 5), 1)
    g.add(
        g.one(
            g.gen.pick("ReduceLogicalAnd", "ReduceLogicalOr"), x, g.ints(g.gen.axes(x.rank)), keep_dims=g.gen.chance()
        )
    )


@step(3)
def softmax(g: Growth) -> None:
    x = g.floats((1, 5), 1)
    g.add(g.one(g.gen.pick("Softmax", "Softmax", "LogSoftmax"), x, axis=g.gen.axis(x.rank)))


@step(4)
def normalization(g: Growth) -> None:
    x = images(g, g.floats(minimum=1), (2, 5))
    choice = g.gen.size(0, 5)
    if choice <= 1:
        x = g.one(
            "MVN",
            x,
            g.ints(g.gen.axes(x.rank)),
            normalize_variance=g.gen.chance(0.8),
            eps=1e-3,
            eps_mode=g.gen.pick("inside_sqrt", "outside_sqrt"),
        )
        if g.gen.chance():
            x = g.one("Multiply", x, g.random(x.shape[-1:], x.kind))
            x = g.one("Add", x, g.random(x.shape[-1:], x.kind))
    elif choice == 2:
        x = g.one("NormalizeL2", x, g.ints(g.gen.axes(x.rank)), eps=1e-3, eps_mode=g.gen.pick("add", "max"))
    elif choice == 3:
        groups = [n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0]
        scale, bias = g.random([x.shape[1]], x.kind), g.random([x.shape[1]], x.kind)
        x = g.one("GroupNormalization", x, scale, bias, num_groups=g.gen.pick(*groups), epsilon=1e-3)
    elif choice == 4:
        x = g.one("LRN", x, g.ints([1]), alpha=0.5, beta=0.75, bias=1.0, size=g.gen.pick(1, 3, 5))
    else:
        channels = x.shape[1:2]
        gamma, beta, mean = (g.random(channels, x.kind, -1, 1) for _ in range(3))
        x = g.one(
            "BatchNormInference",
            x,
            gamma,
            beta,
            mean,
            g.constant(g.gen.rng.uniform(0.3, 2, channels), x.kind),
            epsilon=1e-3,
            since=5,
        )
    g.add(x)


@step(2)
def found(g: Growth) -> None:
    x = g.floats((1, 4), 1)
    axis = g.gen.size(0, x.rank - 1)
    made = g.emit(
        "TopK", x, g.constant_i64(g.gen.size(1, x.shape[axis])), axis=axis, mode=g.gen.pick("max", "min"), sort=g.gen.pick("value", "index"),
        since=g.gen.pick(3, 11), index_element_type=g.gen.pick("i32", "i64"),
    )  # fmt: skip
    g.add(*g.gen.some(made, 1))


@step(1)
def running_sum(g: Growth) -> None:
    x = g.floats((1, 4), 1)
    g.add(g.one("CumSum", x, g.ints(g.gen.axis(x.rank)), exclusive=g.gen.chance(), reverse=g.gen.chance()))
