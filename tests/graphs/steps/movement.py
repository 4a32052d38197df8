"""Operations that move data: most of them may be views, and views of views."""

from __future__ import annotations

import math

from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step


@step(8)
def transpose(g: Growth) -> None:
    x = g.some(rank=(2, 6))
    for _ in range(g.gen.pick(1, 1, 2)):
        order = g.gen.some(range(x.rank), x.rank)
        if x.rank in (3, 4, 5) and g.gen.chance(0.5):
            to_last = [0, *range(2, x.rank), 1]
            order = g.gen.pick(to_last, [0, x.rank - 1, *range(1, x.rank - 1)])
        x = g.one("Transpose", x, g.ints(order))
    g.add(x)


def divided(g: Growth, count: int) -> list[int]:
    """A shape with this number of elements."""
    shape: list[int] = []
    for _ in range(g.gen.size(0, 4)):
        size = g.gen.pick(*[n for n in range(1, count + 1) if count % n == 0][:8])
        shape.append(size)
        count //= size
    return [*shape, count] if count > 1 or not shape else shape


@step(7)
def reshape(g: Growth) -> None:
    x = g.some(minimum=1)
    shape = divided(g, x.size)
    if g.gen.chance(0.4):
        shape[g.gen.size(0, len(shape) - 1)] = -1
    special = g.gen.chance()
    if special and x.rank and g.gen.chance(0.4):
        rest = math.prod(x.shape[1:])
        shape = [0, *([-1] if g.gen.chance() else divided(g, rest))]
    g.add(g.one("Reshape", x, g.ints(shape), special_zero=special))


@step(3)
def ones(g: Growth) -> None:
    x = g.some(rank=(0, 5))
    axes = [axis for axis, size in enumerate(x.shape) if size == 1]
    if axes and g.gen.chance():
        g.add(g.one("Squeeze", x, g.ints(g.gen.some(axes, 1))))
    else:
        count = g.gen.size(1, 2)
        g.add(g.one("Unsqueeze", x, g.ints(g.gen.axes(x.rank + count, count, count))))


@step(5)
def concat(g: Growth) -> None:
    x = g.some(rank=(1, 5))
    axis = g.gen.size(0, x.rank - 1)
    parts = [x]
    fitting = [
        other
        for other in g.pool
        if other.kind == x.kind
        and other.rank == x.rank
        and all(m == n or k == axis for k, (m, n) in enumerate(zip(other.shape, x.shape, strict=True)))
    ]
    for _ in range(g.gen.size(0, 3)):
        if fitting and g.gen.chance(0.7):
            parts.append(g.gen.pick(*fitting))
        elif x.kind != "string":
            shape = list(x.shape)
            shape[axis] = g.gen.size(1, 3)
            parts.append(g.random(shape, x.kind, -2 if x.kind[0] != "u" else 0))
    order = g.gen.some(range(len(parts)), len(parts))
    g.add(g.one("Concat", *(parts[i] for i in order), axis=g.gen.signed(axis, x.rank)))


@step(5)
def parts(g: Growth) -> None:
    x = g.some(rank=(1, 5))
    axis = g.gen.size(0, x.rank - 1)
    size = x.shape[axis]
    if g.gen.chance():
        counts = [n for n in range(1, size + 1) if size % n == 0]
        check(bool(counts), "the axis is empty")
        made = g.emit("Split", x, g.ints(g.gen.signed(axis, x.rank)), num_splits=g.gen.pick(*counts[:5]))
    else:
        first = g.gen.size(0, size)
        lengths = [first, g.gen.pick(-1, size - first)]
        made = g.emit("VariadicSplit", x, g.ints(axis), g.ints(lengths))
    chosen = g.gen.some(made, 1)
    g.add(*chosen)
    if len(chosen) > 1 and g.gen.chance(0.4):
        g.add(g.one("Concat", *chosen, axis=axis))
    elif len(made) > 1 and made[0].kind != "string" and made[0].shape == made[-1].shape and g.gen.chance(0.5):
        g.add(
            g.one(
                "Multiply" if made[0].kind != "boolean" else "LogicalAnd",
                made[0],
                g.one("Sigmoid", made[-1]) if made[0].kind == g.kind else made[-1],
            )
        )


@step(5)
def sliced(g: Growth) -> None:
    x = g.some(rank=(1, 5), minimum=1)
    axes = g.gen.some(range(x.rank), 1)
    starts, stops, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        by = g.gen.pick(1, 1, 1, 2, 3, -1, -2)
        start = g.gen.size(0, size - 1)
        length = g.gen.size(0 if g.gen.chance(0.05) else 1, 4) * abs(by)
        stop = start + length if by > 0 else start - length
        starts.append(start if g.gen.chance(0.7) else start - size)
        stops.append(stop if 0 <= stop <= size else (1 << 30 if by > 0 else -(1 << 30)))
        steps.append(by)
    if g.gen.chance():
        g.add(g.one("Slice", x, g.ints(starts), g.ints(stops), g.ints(steps), g.ints(axes)))
        return
    whole = {axis: i for i, axis in enumerate(axes)}
    last = max(axes) + 1
    numbers = [
        [list_[whole[k]] if k in whole else other for k in range(last)]
        for list_, other in ((starts, 0), (stops, 0), (steps, 1))
    ]
    mask = [0 if k in whole else 1 for k in range(last)]
    shrink = [1 if k in whole and numbers[2][k] == 1 and g.gen.chance(0.2) else 0 for k in range(last)]
    g.add(
        g.one(
            "StridedSlice", x, *map(g.constant_i64, numbers), begin_mask=mask, end_mask=mask,
            shrink_axis_mask=shrink, new_axis_mask=[0] * last, ellipsis_mask=[0] * last,
        )
    )  # fmt: skip


@step(3)
def gathered(g: Growth) -> None:
    x = g.some(rank=(1, 4), minimum=1)
    axis = g.gen.size(0, x.rank - 1)
    size = x.shape[axis]
    indices = g.ints(g.gen.rng.integers(-size, size, g.gen.pick([], [1], [3], [2, 2], [size])))
    if g.depth == 0 and g.gen.chance(0.2):
        indices = g.parameter(indices.array, indices.kind)
    g.add(g.one("Gather", x, indices, g.ints(g.gen.signed(axis, x.rank))))


@step(2)
def repeated(g: Growth) -> None:
    x = g.some(rank=(1, 4), minimum=1)
    if g.gen.chance():
        g.add(g.one("Tile", x, g.ints([g.gen.pick(1, 1, 2, 3) for _ in range(g.gen.size(1, x.rank))])))
        return
    shape = [g.gen.pick(2, 3) if size == 1 and g.gen.chance(0.6) else size for size in x.shape]
    if g.gen.chance(0.4):
        shape = [g.gen.pick(1, 2), *shape]
    g.add(g.one("Broadcast", x, g.ints(shape), mode=g.gen.pick("numpy", "bidirectional")))


@step(3)
def padded(g: Growth) -> None:
    x = g.some(rank=(1, 5), minimum=1)
    check(x.kind not in ("string",), "no pads of text")
    mode = g.gen.pick("constant", "constant", "edge", "reflect", "symmetric")
    limits = [{"constant": 2, "edge": 2, "reflect": size - 1, "symmetric": size}[mode] for size in x.shape]
    sides = [[g.gen.pick(0, 0, 1, min(2, limit)) if limit > 0 else 0 for limit in limits] for _ in range(2)]
    if mode == "constant" and g.gen.chance(0.15):
        sides[0][-1] = -1 if x.shape[-1] > 2 else 0
    value = g.constant(g.gen.pick(0, 1), x.kind) if mode == "constant" and g.gen.chance(0.7) else None
    g.add(g.one("Pad", x, g.ints(sides[0]), g.ints(sides[1]), value, pad_mode=mode))


@step(2)
def exchanged(g: Growth) -> None:
    x = g.some(rank=(2, 5), minimum=1)
    choice = g.gen.size(0, 4)
    if choice == 0:
        groups = [n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0]
        g.add(g.one("ShuffleChannels", x, axis=1, group=g.gen.pick(*groups)))
    elif choice == 1:
        g.add(g.one("Roll", x, g.ints([g.gen.size(-3, 3)]), g.ints([g.gen.axis(x.rank)])))
    elif choice == 2:
        g.add(g.one("Reverse", x, g.ints([g.gen.size(0, x.rank - 1)]), mode="index"))
    elif choice == 3:
        axis = g.gen.size(0, x.rank - 1)
        shape = list(x.shape)
        shape[axis] = g.gen.size(1, 3)
        g.add(g.one("GatherElements", x, g.ints(g.gen.rng.integers(0, x.shape[axis], shape)), axis=axis))
    else:
        image = images(g, x)
        block = g.gen.pick(1, 2)
        mode = g.gen.pick("blocks_first", "depth_first")
        spatial = [size * block for size in image.shape[2:]]
        if image.shape[1] % block ** (image.rank - 2) == 0 and g.gen.chance():
            g.add(g.one("DepthToSpace", image, mode=mode, block_size=block))
        elif math.prod(spatial) <= 512:
            image = g.as_shape(image, [*image.shape[:2], *spatial])
            g.add(g.one("SpaceToDepth", image, mode=mode, block_size=block))


def images(g: Growth, x: Tensor, rank: tuple[int, int] = (3, 5)) -> Tensor:
    """The tensor as images with channels: of a rank from 3 to 5."""
    if rank[0] <= x.rank <= rank[1] and x.size:
        return x
    count = g.gen.size(*rank)
    return g.as_shape(x, [g.gen.size(1, 2), g.gen.pick(1, 2, 3, 4, 8), *g.gen.sizes(count - 2, 1, 6)])


@step(2)
def shape_arithmetic(g: Growth) -> None:
    """A reshape, broadcast or slice by numbers that are computed from shapes."""
    x = g.some(rank=(1, 4), minimum=1)
    sizes = g.one("ShapeOf", x, output_type=g.gen.pick("i32", "i64"))
    first = g.one("Gather", sizes, g.ints(g.gen.pick([0], 0)), g.ints(0))
    if not first.rank:
        first = g.one("Unsqueeze", first, g.ints([0]))
    choice = g.gen.size(0, 2)
    if choice == 0:
        target = g.one("Concat", first, g.constant([-1], sizes.kind), axis=0)
        g.add(g.one("Reshape", x, target, special_zero=False))
    elif choice == 1:
        target = g.one("Concat", g.constant([g.gen.size(1, 2)], sizes.kind), sizes, axis=0)
        g.add(g.one("Broadcast", x, target))
    else:
        stop = g.one("Divide", g.one("Add", first, g.constant([1], sizes.kind)), g.constant([2], sizes.kind))
        g.add(
            g.one(
                "Slice", x, g.constant([0], sizes.kind), stop, g.constant([1], sizes.kind), g.constant([0], sizes.kind)
            )
        )
    if g.gen.chance(0.3):
        g.add(sizes)
