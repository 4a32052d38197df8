"""Matrix products in every orientation, attention, recurrent layers, compressed weights."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.elementwise import unary_of
from tests.graphs.steps.windows import followed


def _matrix(g: Growth, rank: tuple[int, int] = (1, 4)) -> Tensor:
    x = g.floats(rank, 1) if g.gen.chance(0.7) else g.floats(minimum=1)
    if not 1 <= x.rank <= 5:
        x = g.as_shape(x, [g.gen.size(1, 6), g.gen.size(1, 6)])
    if x.rank >= 2 and g.gen.chance(0.35):
        order = g.gen.some(range(x.rank), x.rank)
        x = g.one("Transpose", x, g.ints(order))
        if g.gen.chance(0.3):
            g.add(x)
    return x


def product_of(g: Growth, x: Tensor) -> Tensor:
    """The product of a tensor and another one: a constant, the tensor itself, one of the graph."""
    x_first, transposed = g.gen.chance(0.65), g.gen.chance(0.4)
    inner = x.shape[0] if x.rank == 1 else x.shape[-2 if transposed == x_first else -1]
    if not x_first and x.rank > 1:
        inner = x.shape[-1 if transposed else -2]
    elif x.rank > 1:
        inner = x.shape[-2 if transposed else -1]
    other_transposed, width = g.gen.chance(), g.gen.pick(1, 2, 3, 5, 8, 16)
    # As the second operand the inner axis is the first one, unless it is transposed.
    shape = [width, inner] if other_transposed == x_first else [inner, width]
    batch = [] if g.gen.chance(0.7) or x.rank < 3 else [g.gen.pick(1, size) for size in x.shape[:-2]]
    if g.gen.chance(0.08):
        shape, batch, other_transposed = [inner], [], False
    choice = g.gen.rng.random()
    if choice < 0.55:
        other = (
            compressed(g, shape)
            if not batch and len(shape) == 2 and g.gen.chance(0.2)
            else _constant(g, [*batch, *shape])
        )
    elif choice < 0.75:
        other = g.as_shape(g.floats(minimum=1), [*batch, *shape])
    else:
        other = g.random([*batch, *shape], g.kind, -1, 1)
    if x_first:
        return g.one("MatMul", x, other, transpose_a=transposed, transpose_b=other_transposed)
    return g.one("MatMul", other, x, transpose_a=other_transposed, transpose_b=transposed)


def _constant(g: Growth, shape: list[int]) -> Tensor:
    return g.constant(g.gen.rng.uniform(-1, 1, shape), g.kind)


def compressed(g: Growth, shape: list[int]) -> Tensor:
    """A matrix of weights that is stored in fewer bits: decompressed by Convert, Subtract, Multiply, sometimes in groups."""
    kind = g.gen.pick("i8", "u8", "i4", "u4", "f16", "bf16", "nf4", "f8e4m3", "u2", "f8e5m2")
    if g.kind != "f32":
        kind = "i8"
    rows, columns = shape
    groups = [n for n in range(1, columns + 1) if columns % n == 0]
    count = g.gen.pick(1, 1, *groups)
    stored = [rows, count, columns // count] if count > 1 else [rows, columns]
    scales = [rows, count, 1] if count > 1 else g.gen.pick([rows, 1], [rows, 1], [1, columns], [])
    if kind[0] in "iu":
        bits = int(kind[1:])
        low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        raw = g.constant(g.gen.rng.integers(low, high + 1, stored), kind)
    else:
        raw = g.constant(g.gen.rng.uniform(-1, 1, stored), kind)
    middle = "f16" if g.kind == "f32" and g.gen.chance(0.3) and kind != "bf16" else g.kind
    x = g.one("Convert", raw, destination_type=middle)
    factor = 1.0 if kind[0] not in "iu" else 1 / (2 ** int(kind[1:]))
    if kind[0] in "iu" and g.gen.chance(0.6):
        zero = g.constant(g.gen.rng.integers(0, 2, scales) + (2 ** (int(kind[1:]) - 1) if kind[0] == "u" else 0), kind)
        x = g.one("Subtract", x, g.one("Convert", zero, destination_type=middle))
    if kind[0] in "iu" or g.gen.chance():
        x = g.one("Multiply", x, g.constant(g.gen.rng.uniform(0.5, 1.5, scales) * factor, middle))
    if count > 1:
        x = g.one("Reshape", x, g.ints(shape), special_zero=False)
    return g.as_kind(x, g.kind)


@step(9)
def product(g: Growth) -> None:
    x = product_of(g, _matrix(g))
    if g.gen.chance(0.6):
        if x.rank and g.gen.chance(0.6):
            x = g.one(
                "Add", *g.gen.some([x, g.random(g.gen.pick([x.shape[-1]], [1] * x.rank, list(x.shape)), x.kind)], 2)
            )
        if g.gen.chance(0.6):
            x = unary_of(g, x)
    elif x.rank >= 3:
        x = followed(g, x)
    g.add(x)
    if x.rank >= 2 and g.gen.chance(0.3):
        g.add(g.one("Transpose", x, g.ints(g.gen.some(range(x.rank), x.rank))))


@step(3)
def products(g: Growth) -> None:
    """Several products of one tensor, as for queries, keys and values; sometimes side by side again."""
    x = _matrix(g)
    made = []
    for _ in range(g.gen.size(2, 3)):
        y = product_of(g, x)
        made.append(y if y.is_sound else g.one("Tanh", g.between(y, -9, 9)))
    g.add(*made)
    if made[0].shape[:-1] == made[-1].shape[:-1] and made[0].rank and g.gen.chance():
        g.add(g.one("Concat", made[0], made[-1], axis=-1))


@step(4)
def attention(g: Growth) -> None:
    """Heads, scores, a mask, a softmax: as an exporter writes it, or as one operation."""
    heads, width, rows = g.gen.pick(1, 2, 3), g.gen.pick(1, 2, 4, 5), g.gen.size(1, 6)
    batch = g.gen.size(1, 2)
    x = g.as_shape(g.floats(minimum=1), [batch, rows, heads * width])
    x = g.between(x, -3, 3)

    def projected() -> Tensor:
        y = g.one(
            "MatMul",
            x,
            g.constant(g.gen.rng.uniform(-0.6, 0.6, [heads * width] * 2), x.kind),
            transpose_b=g.gen.chance(),
        )
        if g.gen.chance():
            y = g.one("Add", y, g.random([heads * width], x.kind, -1, 1))
        return g.one("Reshape", y, g.ints([batch, rows, heads, width]), special_zero=False)

    query, key, value = projected(), projected(), projected()
    query = g.one("Transpose", query, g.ints([0, 2, 1, 3]))
    value = g.one("Transpose", value, g.ints([0, 2, 1, 3]))
    if g.gen.chance(0.3):
        key = g.one("Transpose", key, g.ints([0, 2, 1, 3]))
        made = g.one("ScaledDotProductAttention", query, key, value, causal=g.gen.chance(0.4))
    else:
        direct = g.gen.chance()
        key = g.one("Transpose", key, g.ints([0, 2, 3, 1] if direct else [0, 2, 1, 3]))
        if g.gen.chance(0.3):
            query = g.one("Multiply", query, g.constant(width**-0.5, x.kind))
        scores = g.one("MatMul", query, key, transpose_b=not direct)
        if g.gen.chance(0.6):
            scores = g.one(g.gen.pick("Multiply", "Divide"), scores, g.constant(g.gen.pick(0.5, 2.0), x.kind))
        if g.gen.chance(0.4):
            mask = np.where(g.gen.rng.random([batch, 1, 1, rows]) < 0.7, 0, -50)
            scores = g.one("Add", scores, g.constant(mask, x.kind))
        weights = g.one("Softmax", scores, axis=g.gen.pick(-1, 3), since=8)
        if g.gen.chance(0.15):
            g.add(weights)
        made = g.one("MatMul", weights, value)
    if g.gen.chance(0.85):
        made = g.one("Transpose", made, g.ints([0, 2, 1, 3]))
        made = g.one("Reshape", made, g.ints([batch, rows, heads * width]), special_zero=False)
    g.add(made)


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@step(2)
def recurrent(g: Growth) -> None:
    family = g.gen.pick("RNN", "GRU", "LSTM")
    batch, steps, inputs, size = g.gen.sizes(4, 1, 4)
    gates, ways = _GATES[family], 1
    direction = g.gen.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    x = g.between(g.as_shape(g.floats(minimum=1), [batch, steps, inputs]), -3, 3)
    reset = g.gen.chance() if family == "GRU" else False
    states = [
        g.between(g.as_shape(g.floats(minimum=1), [batch, ways, size]), -2, 2)
        for _ in range(2 if family == "LSTM" else 1)
    ]
    shapes = [ways, gates * size, inputs], [ways, gates * size, size], [ways, (gates + reset) * size]
    weights = [_constant(g, shape) for shape in shapes]
    lengths = g.ints(np.full(batch, steps) if g.gen.chance(0.7) else g.gen.rng.integers(1, steps + 1, batch))
    activations = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}[family]
    extra = {"linear_before_reset": reset} if family == "GRU" else {}
    check(x.kind in ("f32", "f16"), "recurrent layers of f32 and f16")
    made = g.emit(
        f"{family}Sequence",
        x,
        *states,
        lengths,
        *weights,
        hidden_size=size,
        direction=direction,
        activations=activations,
        **extra,
    )
    g.add(*g.gen.some(made, 1))


@step(1)
def einsum(g: Growth) -> None:
    x = g.floats((2, 4), 1)
    letters = "abcd"[: x.rank]
    width = g.gen.size(1, 4)
    other = g.random([x.shape[-1], width], x.kind, -1, 1)
    out = g.gen.some([*letters[:-1], "z"], x.rank)
    g.add(g.one("Einsum", x, other, equation=f"{letters},{letters[-1]}z->{''.join(out)}"))
