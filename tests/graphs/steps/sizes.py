"""What depends on sizes, layouts and types that other steps seldom meet."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import ELEMENTS
from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.elementwise import binary_of, unary_of
from tests.graphs.steps.movement import images
from tests.graphs.steps.products import compressed, product_of
from tests.graphs.steps.windows import convolution_of, followed, weights_of


def _computed(g: Growth, shape: list[int]) -> Tensor:
    """A tensor that a kernel computes: of this shape but for the first axis."""
    choice = g.gen.size(0, 2)
    rows = g.gen.pick(1, 1, 2, 3)
    x = g.as_shape(g.floats(minimum=1), [rows, *shape[1:]])
    if choice == 0:
        x = g.one(
            "MatMul",
            x,
            g.constant(g.gen.rng.uniform(-1, 1, [shape[-1], shape[-1]]), x.kind),
            transpose_b=g.gen.chance(),
        )
    elif choice == 1:
        x = binary_of(g, unary_of(g, x))
    else:
        x = g.one("Softmax", x, axis=g.gen.axis(x.rank), since=8)
    # A partner of other axes may have enlarged it.
    x = g.as_shape(x, [rows, *shape[1:]]) if x.size else x
    return x if x.is_sound else g.one("Tanh", g.between(x, -9, 9))


@step(4)
def joined(g: Growth) -> None:
    """A concatenation of computed tensors along its outermost axis, so that they may be computed where they are to lie.

    Its inputs are read by others before and after, are views or are concatenated again.
    """
    shape = [1, *g.gen.sizes(g.gen.size(1, 3), 1, 5)]
    made = [_computed(g, shape) for _ in range(g.gen.size(2, 3))]
    if g.gen.chance(0.2):
        made.append(g.random(shape, made[0].kind))
    if g.gen.chance(0.15):
        made.append(made[0])
    parts = [*made]
    if g.gen.chance(0.3):
        # A part that is all of another tensor in several views, or in one of another shape.
        both = g.one("Concat", *(_computed(g, shape) for _ in range(2)), axis=0)
        half = both.shape[0] // 2
        lengths = g.ints([half, both.shape[0] - half])
        parts += g.emit("VariadicSplit", both, g.ints(0), lengths) if half and g.gen.chance() else [both]
    if g.gen.chance(0.3):
        g.add(g.gen.pick(*made))
    whole = g.one("Concat", *g.gen.some(parts, len(parts)), axis=0)
    if g.gen.chance(0.3):
        front = g.as_shape(g.floats(minimum=1), [g.gen.size(1, 2), *shape[1:]])
        whole = g.one("Concat", *g.gen.some([whole, unary_of(g, front)], 2), axis=0)
    if g.gen.chance(0.3):
        whole = g.one("Unsqueeze", whole, g.ints([0]))
        whole = g.one("Concat", whole, whole if g.gen.chance(0.3) else unary_of(g, whole), axis=1)
    g.add(whole)
    # Read after the concatenation, or written over.
    if g.gen.chance():
        g.add(unary_of(g, g.gen.pick(*made)))
    if g.gen.chance():
        g.add(unary_of(g, whole))


@step(4)
def few_windows(g: Growth) -> None:
    """A convolution with strides over axes of which there are one or two windows, as at the end of a network for small images."""
    x = images(g, g.floats(minimum=1))
    spatial = [g.gen.pick(1, 2, 2, 3, 4) for _ in x.shape[2:]]
    x = g.as_shape(x, [*x.shape[:2], *spatial])
    taps = [g.gen.pick(1, 1, 1, 2, 3) for _ in spatial]
    pads = [
        0 if size >= kernel and g.gen.chance(0.7) else kernel // 2 + (size < kernel)
        for size, kernel in zip(spatial, taps, strict=True)
    ]
    given = {
        "strides": [g.gen.pick(1, 2, 2, 3, 4, 7) for _ in spatial], "dilations": [1] * len(spatial), "pads_begin": pads,
        "pads_end": pads if g.gen.chance(0.7) else [0 if size >= kernel else kernel for size, kernel in zip(spatial, taps, strict=True)],
    }  # fmt: skip
    channels, out = x.shape[1], g.gen.pick(1, 2, 4, 8)
    if g.gen.chance(0.25):
        x = g.one("GroupConvolution", x, weights_of(g, [channels, g.gen.pick(1, 2), 1, *taps]), **given)
    else:
        x = g.one("Convolution", x, weights_of(g, [out, channels, *taps]), **given)
    g.add(followed(g, x))


@step(3)
def many_channels(g: Growth) -> None:
    """A convolution of 3 x 3 or 1 x 1 of as many channels and pixels as kernels for large ones ask for."""
    channels, side = g.gen.pick(16, 24, 32), g.gen.pick(7, 8, 9, 10, 11)
    x = g.as_shape(g.floats(minimum=1), [1, channels, side, g.gen.pick(side, 8)])
    taps, out = g.gen.pick(1, 3, 3, 3), g.gen.pick(8, 16, 30, 32)
    pad = [g.gen.pick(0, taps // 2)] * 2
    weights = g.constant(g.gen.rng.uniform(-1, 1, [out, channels, taps, taps]) / np.sqrt(channels * taps), x.kind)
    if g.gen.chance(0.3):
        # Channels with equal weights are computed once.
        same = weights.array.copy()
        same[g.gen.size(0, out - 1)] = same[0]
        weights = g.constant(same, x.kind)
    x = g.one("Convolution", x, weights, strides=[1, 1], dilations=[1, 1], pads_begin=pad, pads_end=pad)
    g.add(followed(g, x))


@step(3)
def long_rows(g: Growth) -> None:
    """Sums, normalizations and products over axes longer than most."""
    length = g.gen.pick(64, 127, 300, 1024, 2049)
    shape = [g.gen.size(1, 3), length] if g.gen.chance() else [length, g.gen.size(1, 3)]
    x = g.as_shape(g.floats(minimum=1), shape)
    choice = g.gen.size(0, 4)
    if choice == 0:
        g.add(
            g.one(
                g.gen.pick("ReduceSum", "ReduceMean", "ReduceL2", "ReduceMax"),
                x,
                g.ints(g.gen.axes(2)),
                keep_dims=g.gen.chance(),
            )
        )
    elif choice == 1:
        g.add(g.one("Softmax", x, axis=g.gen.axis(2), since=8))
    elif choice == 2:
        g.add(g.one("MVN", x, g.ints(g.gen.axes(2)), normalize_variance=True, eps=1e-3, eps_mode="inside_sqrt"))
    elif choice == 3:
        g.add(unary_of(g, product_of(g, x)))
    else:
        g.add(binary_of(g, unary_of(g, x)))


@step(2)
def large_table(g: Growth) -> None:
    """Compressed weights of as many elements as are kept compressed: a product with them, or rows of them."""
    inner, width = g.gen.pick(64, 96, 128), g.gen.pick(32, 64, 70)
    weights = compressed(g, [width, inner])
    choice = g.gen.size(0, 3)
    if choice == 0:
        indices = g.ints(g.gen.rng.integers(-width, width, g.gen.pick([], [2], [2, 3], [20])))
        if g.depth == 0 and g.gen.chance(0.4):
            indices = g.parameter(indices.array, indices.kind)
        g.add(g.one("Gather", weights, indices, g.ints(g.gen.pick(0, -2))))
        if g.gen.chance(0.3):
            return
    x = g.as_shape(g.floats(minimum=1), [g.gen.pick(1, 2, 5, 17), inner])
    made = (
        g.one("MatMul", x, weights, transpose_b=True)
        if g.gen.chance(0.8)
        else g.one("MatMul", weights, x, transpose_b=True)
    )
    if g.gen.chance():
        made = g.one("Add", made, g.random([made.shape[-1]], made.kind))
    g.add(made, unary_of(g, made))
    if g.gen.chance(0.2):
        g.add(weights)


@step(3)
def any_element(g: Growth) -> None:
    """A constant or tensor of any element type, converted, moved, compared or computed with in that type."""
    kind = g.gen.pick(*(element.name for element in ELEMENTS))
    low = 0 if kind[0] in "ub" or kind in ("string", "f8e8m0") else -2
    x = g.gen.tensor(g.gen.shape(0, 4), kind, low, 1 if kind in ("u1", "i4", "u2") else 3)
    x = g.parameter(x.array, kind) if g.depth == 0 and g.gen.chance(0.4) else g.constant(x.array, kind)
    if g.gen.chance(0.3) and kind != "string":
        x = g.one("Convert", g.as_shape(g.floats(minimum=1), x.shape) if x.size else x, destination_type=kind)
    choice = g.gen.size(0, 5)
    if choice == 0 and x.rank:
        x = g.one("Transpose", x, g.ints(g.gen.some(range(x.rank), x.rank)))
    elif choice == 1 and x.rank:
        x = g.one("Concat", x, x, axis=g.gen.axis(x.rank))
    elif choice == 2:
        x = g.one("Reshape", x, g.ints([-1] if x.size else [0]), special_zero=False)
    elif choice == 3:
        g.add(g.one(g.gen.pick("Equal", "Less", "NotEqual"), x, x))
    elif choice == 4:
        x = g.one(g.gen.pick("Add", "Multiply", "Maximum"), x, g.constant(np.ones([1] * x.rank), kind))
    g.pool.append(x)
    if kind not in ("string",) and g.gen.chance(0.6):
        g.add(g.one("Convert", x, destination_type=g.kind))


@step(1)
def passed_on(g: Growth) -> None:
    """A constant or an input that is a result, itself or through an operation that changes nothing."""
    x = g.random(g.gen.shape(0, 3), g.kind) if g.gen.chance() else g.gen.pick(*g.parameters)
    if g.gen.chance() and x.kind != "string":
        choice = g.gen.size(0, 3)
        if choice == 0:
            x = g.one("Reshape", x, g.ints(list(x.shape)), special_zero=False)
        elif choice == 1:
            x = g.one("Convert", x, destination_type=x.kind)
        elif choice == 2:
            x = g.one("Transpose", x, g.ints(list(range(x.rank))))
        else:
            x = g.one("Identity", x, since=16)
    if g.depth == 0:
        g.results.append(x)
    g.add(x)


@step(2)
def convolved_moves(g: Growth) -> None:
    """A product or convolution whose result and data lie in other orders than their axes."""
    x = g.as_shape(g.floats(minimum=1), [g.gen.size(1, 2), *g.gen.sizes(2, 2, 6), g.gen.pick(2, 3, 8)])
    x = g.one("Transpose", x, g.ints([0, 3, 1, 2]))
    x = convolution_of(g, x)
    check(x.rank == 4, "images")
    y = g.one("Transpose", unary_of(g, x), g.ints(g.gen.pick([0, 2, 3, 1], [0, 3, 2, 1], [3, 0, 1, 2])))
    y = g.one("MatMul", y, g.constant(g.gen.rng.uniform(-1, 1, [y.shape[-1], g.gen.pick(1, 3, 4)]), y.kind))
    if g.gen.chance():
        y = g.one("Transpose", y, g.ints(g.gen.pick([0, 3, 1, 2], [0, 2, 1, 3])))
    g.add(y, x)
