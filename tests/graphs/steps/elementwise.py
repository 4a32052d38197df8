"""Element-wise operations: one input, two with broadcasting, choices, conversions, and the formulas that are recognised."""

from __future__ import annotations

import numpy as np

from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step

# The values for which a function is computed.
_UNARY: dict[str, tuple[float, float] | None] = {
    "Abs": None, "Negative": None, "Relu": None, "Sign": None, "Sigmoid": None, "Tanh": None, "Erf": None, "Atan": None, "Asinh": None,
    "Sin": None, "Cos": None, "SoftPlus": None, "SoftSign": None, "Mish": None, "HSwish": None, "HSigmoid": None, "Gelu": None,
    "Exp": (-9, 5), "Sinh": (-5, 5), "Cosh": (-5, 5), "Tan": (-1.2, 1.2), "Acos": (-0.95, 0.95), "Asin": (-0.95, 0.95),
    "Atanh": (-0.9, 0.9), "Acosh": (1.1, 9), "Log": (0.05, 99), "Sqrt": (0.01, 99), "Floor": None, "Ceiling": None,
}  # fmt: skip
_BINARY = (
    "Add", "Add", "Multiply", "Multiply", "Subtract", "Maximum", "Minimum", "SquaredDifference", "Divide", "Power",
    "FloorMod", "Mod",
)  # fmt: skip
_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
_CONVERTED = ("f32", "f32", "f16", "bf16", "f64", "i32", "i64", "u8", "i8", "boolean", "i16", "u32")


def unary_of(g: Growth, x: Tensor) -> Tensor:
    """A function of one tensor."""
    name = g.gen.pick(*_UNARY)
    limits = _UNARY[name]
    return g.one(name, x if limits is None else g.between(x, *limits))


@step(5)
def unary(g: Growth) -> None:
    x = g.floats()
    for _ in range(g.gen.size(1, 3)):
        x = unary_of(g, x)
    g.add(x)


@step(3)
def parametric(g: Growth) -> None:
    x = g.floats()
    choice = g.gen.size(0, 7)
    if choice == 0:
        x = g.one("Clamp", x, min=g.gen.pick(-1.0, 0.0, float("-inf")), max=g.gen.pick(1.0, 6.0, float("inf")))
    elif choice == 1:
        x = g.one("Elu", x, alpha=g.gen.pick(0.5, 1.0))
    elif choice == 2:
        x = g.one("Swish", x, g.constant(g.gen.pick(0.5, 1.0, 1.7), x.kind) if g.gen.chance() else None)
    elif choice == 3:
        x = g.one("PRelu", x, slope(g, x))
    elif choice == 4:
        x = g.one("HardSigmoid", x, g.constant(0.2, x.kind), g.constant(0.5, x.kind))
    elif choice == 5:
        x = g.one("Selu", x, g.constant(1.5, x.kind), g.constant(1.1, x.kind))
    elif choice == 6:
        x = g.one("Round", x, mode=g.gen.pick("half_to_even", "half_away_from_zero"))
    else:
        x = g.one("Gelu", x, approximation_mode=g.gen.pick("ERF", "TANH"), since=7)
    g.add(x)


def slope(g: Growth, x: Tensor) -> Tensor:
    """The slope of a PRelu."""
    options = [[1], *([[x.shape[1]]] if x.rank > 1 else []), g.gen.shrunk(list(x.shape))]
    return g.random(g.gen.pick(*options), x.kind, -1, 1)


def partner(g: Growth, x: Tensor) -> tuple[Tensor, Tensor]:
    """The tensor, perhaps repeated to a larger shape, and another that broadcasts with it; in any order."""
    shape = list(x.shape)
    choice = g.gen.rng.random()
    same = [
        other for other in g.pool if other.kind == x.kind and other.value is not x.value and _fits(other.shape, x.shape)
    ]
    if same and choice < 0.55:
        other: Tensor = g.gen.pick(*same)
    elif choice < 0.62:
        other = x
    elif choice < 0.7 and x.rank >= 2 and x.shape[-1] == x.shape[-2]:
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        other = g.one("Transpose", x, g.ints(order))
    elif choice < 0.78 and x.rank < 5:
        other = g.random([g.gen.pick(1, 2), *shape], x.kind)
    else:
        other = g.random(g.gen.pick(g.gen.shrunk(shape), shape, [], [1]), x.kind)
    return (x, other) if g.gen.chance() else (other, x)


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def binary_of(g: Growth, x: Tensor) -> Tensor:
    """A function of the tensor and another."""
    first, second = partner(g, x)
    name = g.gen.pick(*_BINARY)
    if name in ("Divide", "Mod", "FloorMod"):
        second = g.one(
            "Add", g.one("Abs", second), g.constant(0.5 if second.array.dtype.kind == "f" else 1, second.kind)
        )
    if name == "Power":
        first, second = (
            g.one("Add", g.one("Abs", first), g.constant(0.5, first.kind)),
            g.constant(g.gen.pick(2.0, 0.5, 3.0, -1.0), first.kind),
        )
    return g.one(name, first, second)


@step(9)
def binary(g: Growth) -> None:
    g.add(binary_of(g, g.floats()))


@step(2)
def of_integers(g: Growth) -> None:
    x = g.some(["i32", "i64", "u8", "i8", "i16", "u32", "u16", "u64"])
    first, second = partner(g, x)
    g.add(g.one(g.gen.pick("Add", "Subtract", "Multiply", "Maximum", "Minimum"), first, second))


@step(4)
def chain(g: Growth) -> None:
    """Several element-wise operations, of which one or two are read by others as well."""
    x = g.floats()
    made = []
    for _ in range(g.gen.size(2, 6)):
        x = unary_of(g, x) if g.gen.chance(0.5) else binary_of(g, x)
        if not x.is_sound:
            x = g.one("Tanh", g.between(x, -9, 9))
        made.append(x)
    g.add(*(other for other in made[:-1] if g.gen.chance(0.25)), made[-1])


@step(2)
def choice(g: Growth) -> None:
    x = g.floats()
    first, second = partner(g, x)
    condition = g.one(g.gen.pick(*_COMPARISONS), *partner(g, x))
    if g.gen.chance(0.3):
        other = g.one(g.gen.pick(*_COMPARISONS), *partner(g, x))
        condition = g.one(g.gen.pick("LogicalAnd", "LogicalOr", "LogicalXor"), condition, other)
    if g.gen.chance(0.2):
        condition = g.one("LogicalNot", condition)
    g.add(condition, g.one("Select", condition, first, second))


@step(2)
def conversion(g: Growth) -> None:
    x = g.some()
    if x.kind == "string":
        return
    kind = g.gen.pick(*_CONVERTED)
    if x.array.dtype.kind == "f" and kind[0] in "iu":
        x = g.between(x, 0 if kind[0] == "u" else -100, 100)
    x = g.one("Convert", x, destination_type=kind)
    g.add(x)
    if x.kind != g.kind and g.gen.chance(0.7):
        g.add(g.one("Convert", x, destination_type=g.kind))


@step(2)
def quantized(g: Growth) -> None:
    x = g.some(["f32", "f16", "f64", "bf16"])
    shape = g.gen.pick([], [1] * x.rank, g.gen.shrunk(list(x.shape)))
    low, high = g.random(shape, x.kind, -3, -0.1), g.random(shape, x.kind, 0.1, 3)
    out = (low, high) if g.gen.chance(0.7) else (g.random(shape, x.kind, -2, 0), g.random(shape, x.kind, 0, 2))
    g.add(g.one("FakeQuantize", x, low, high, *out, levels=g.gen.pick(2, 16, 255, 256)))


@step(2)
def formula(g: Growth) -> None:
    """A formula for an activation or a normalization, as exporters write it."""
    x = g.floats((1, 5), 1)
    one, half = g.constant(1.0, x.kind), g.constant(0.5, x.kind)
    choice = g.gen.size(0, 5)
    if choice == 0:
        scaled = g.one("Divide", x, g.constant(np.sqrt(2), x.kind))
        x = g.one("Multiply", g.one("Multiply", x, half), g.one("Add", g.one("Erf", scaled), one))
    elif choice == 1:
        x = g.one("Multiply", *_mixed(g, x, g.one("Sigmoid", x)))
    elif choice == 2:
        x = g.one("Multiply", x, g.one("Tanh", g.one("SoftPlus", x)))
    elif choice == 3:
        six = g.one("Clamp", g.one("Add", x, g.constant(3.0, x.kind)), min=0.0, max=6.0)
        x = g.one("Divide", g.one("Multiply", x, six), g.constant(6.0, x.kind))
    elif choice == 4:
        cube = g.one("Multiply", g.constant(0.044715, x.kind), g.one("Power", x, g.constant(3.0, x.kind)))
        inner = g.one("Tanh", g.one("Multiply", g.constant(np.sqrt(2 / np.pi), x.kind), g.one("Add", x, cube)))
        x = g.one("Multiply", g.one("Multiply", half, x), g.one("Add", one, inner))
    else:
        axes = g.ints([-1] if g.gen.chance(0.7) else g.gen.axes(x.rank))
        centred = g.one("Subtract", x, g.one("ReduceMean", x, axes, keep_dims=True))
        variance = g.one("ReduceMean", g.one("Multiply", centred, centred), axes, keep_dims=True)
        root = g.one("Sqrt", g.one("Add", variance, g.constant(1e-3, x.kind)))
        x = g.one("Divide", centred, root)
        if g.gen.chance(0.6):
            x = g.one("Add", g.one("Multiply", x, g.random(x.shape[-1:], x.kind)), g.random(x.shape[-1:], x.kind))
    g.add(x)


def _mixed(g: Growth, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    return (first, second) if g.gen.chance() else (second, first)
