"""Random models of one operation, by family.

Every module has RANDOM_CASES, a table from (type, since) to a function of a random generator. Random shapes, element
types, axes and attributes are small enough for thousands of models::

    RANDOM_CASES = Table()

    @RANDOM_CASES.row(("Gather", 7), ("Gather", 8))
    def gather(gen: CaseGenerator) -> Case:
        data = gen.shape(1, 4)
        return gen.model(gen.tensor(data), gen.indices(data[0], gen.shape(0, 2)), gen.ints(0))
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.testing import Case, Typed, case, typed

Generators = dict[tuple[str, int], Callable[[np.random.Generator], Case]]

# A model of one operation cannot show these: graphs with bodies and state have tests of their own.
EXEMPT = {
    ("Parameter", 1): "every model has one",
    ("Constant", 1): "every model has one",
    ("Result", 1): "every model has one",
    ("ReadValue", 3): "needs its Assign",
    ("ReadValue", 6): "needs its Assign",
    ("Assign", 3): "needs its ReadValue",
    ("Assign", 6): "needs its ReadValue",
    ("If", 8): "has bodies",
    ("Loop", 5): "has bodies",
    ("TensorIterator", 1): "has bodies",
}


def seeded(type: str, since: int, seed: int) -> np.random.Generator:
    """The generator of a random case: the same for the same operation, version and seed, on every machine."""
    return np.random.default_rng([zlib.crc32(f"{type}-{since}".encode()), seed])


def random_cases() -> Generators:
    """Every function that makes a random case, by type and the opset in which the version first appeared."""
    found: Generators = {}
    for module in pkgutil.iter_modules(__path__):
        table: Generators = importlib.import_module(f"{__name__}.{module.name}").RANDOM_CASES
        assert not found.keys() & table.keys(), (
            f"{module.name} makes cases that another module makes too: {found.keys() & table.keys()}"
        )
        found.update(table)
    return found


FLOATS = ("f32", "f32", "f16", "bf16", "f64")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
NUMBERS = ("f32", "f32", "f32", "f16", "bf16", "f64", "i32", "i64", "u8", "i8")
# Operations that only move data take any type.
MOVED = ("f32", "f16", "bf16", "f64", "i32", "i64", "u8", "i8", "i16", "u32", "boolean")
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan)

Shape = list[int]


class CaseGenerator:
    """Random choices from one generator.

    Attributes:
        type, since: the operation of the model.
    """

    def __init__(self, rng: np.random.Generator, type: str = "", since: int = 0) -> None:
        self.rng, self.type, self.since = rng, type, since

    def model(self, *inputs: Typed | None, **attributes: Any) -> Case:
        """The operation; attributes are Python values, None ones are left out."""
        given = {name: value for name, value in attributes.items() if value is not None}
        return case(self.type, self.since, *inputs, id="random", **given)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def some(self, options: Sequence[Any], minimum: int = 0, maximum: int | None = None) -> list[Any]:
        """Different ones of the options, in random order."""
        count = self.size(minimum, len(options) if maximum is None else min(maximum, len(options)))
        return [options[i] for i in self.rng.permutation(len(options))[:count]]

    def size(self, low: int = 1, high: int = 4) -> int:
        """A number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def sizes(self, count: int, low: int = 1, high: int = 4) -> Shape:
        return [self.size(low, high) for _ in range(count)]

    def shape(self, minimum: int = 0, maximum: int = 4, empty: float = 0.02) -> Shape:
        """A shape of a rank from minimum to maximum; each size is 0 with the probability ``empty``."""
        return [0 if self.chance(empty) else size for size in self.sizes(self.size(minimum, maximum))]

    def shrunk(self, shape: Sequence[int]) -> Shape:
        """A shape that broadcasts to the given one: sizes become 1, leading axes go."""
        ones = [1 if self.chance(0.3) else size for size in shape]
        return ones[self.size(0, len(ones)) if self.chance(0.4) else 0 :]

    def pdpd_axis(self, shape: Sequence[int]) -> int | None:
        """``auto_broadcast_axis`` for a first input of this shape."""
        return self.pick(None, -1, *range(len(shape)))

    def aligned(self, shape: Sequence[int], axis: int | None) -> Shape:
        """A shape that pdpd broadcasts to the given one from ``axis`` on: sizes become 1, axes at the other end go."""
        if axis == -1:
            return self.shrunk(shape)
        return self.shrunk(shape[axis or 0 :][::-1])[::-1]

    def pair(self, maximum: int = 4) -> tuple[Shape, Shape]:
        """Two shapes that broadcast together."""
        whole = self.shape(0, maximum)
        first, second = (whole, self.shrunk(whole)) if self.chance() else (self.shrunk(whole), self.shrunk(whole))
        return (first, second) if self.chance() else (second, first)

    def tensor(
        self, shape: Sequence[int], kinds: Sequence[str] | str = NUMBERS, low: float = -5, high: float = 5
    ) -> Typed:
        """Numbers from low to high, both possible; of unsigned types none below 0."""
        kind = kinds if isinstance(kinds, str) else self.pick(*kinds)
        if kind == "boolean":
            return typed(kind, self.rng.integers(0, 2, shape).astype(bool))
        if kind[0] in "iu":
            lowest = int(max(low, 0) if kind[0] == "u" else low)
            return typed(kind, self.rng.integers(lowest, int(high) + 1, shape))
        if kind == "string":
            return typed(kind, np.array(["", "a", "bc", "def", "größer"], object)[self.rng.integers(0, 5, shape)])
        return typed(kind, self.rng.uniform(low, high, shape))

    def steps(
        self, shape: Sequence[int], kinds: Sequence[str] | str = NUMBERS, low: float = -5, high: float = 5
    ) -> Typed:
        """Like ``tensor``, with floats that are multiples of a half, so that some are equal."""
        made = self.tensor(shape, kinds, low, high)
        return typed(made.element.name, np.rint(made.array * 2) / 2) if made.array.dtype.kind == "f" else made

    def special(
        self, shape: Sequence[int], kinds: Sequence[str] | str = FLOATS, low: float = -5, high: float = 5
    ) -> Typed:
        """Like ``tensor``, with some infinities, NaN, zeros and ones among the floats, in a third of the cases."""
        made = self.tensor(shape, kinds, low, high)
        # The plugin computes f64 in f32, and makes infinities its largest number.
        if made.array.dtype.kind != "f" or made.element.name == "f64" or self.chance(0.67):
            return made
        odd = np.array(_SPECIAL)[self.rng.integers(0, len(_SPECIAL), shape)]
        return typed(made.element.name, np.where(self.rng.random(shape) < 0.3, odd, made.array))

    def distinct(self, shape: Sequence[int], kinds: Sequence[str] | str = NUMBERS) -> Typed:
        """Numbers of which no two are equal."""
        count = int(np.prod(shape))
        kind = kinds if isinstance(kinds, str) else self.pick(*kinds)
        return typed(kind, self.rng.permutation(count).reshape(shape))

    def ints(self, values: Any, kinds: Sequence[str] = ("i64", "i64", "i32")) -> Typed:
        return typed(self.pick(*kinds), np.array(values, np.int64))

    def indices(
        self, size: int, shape: Sequence[int], kinds: Sequence[str] = ("i64", "i32"), *, negative: bool = True
    ) -> Typed:
        """Indices into an axis of a size, also from its end."""
        return self.ints(self.rng.integers(-size if negative and self.chance() else 0, max(size, 1), shape), kinds)

    def axis(self, rank: int) -> int:
        """An axis of data of a rank, counted from either end."""
        return self.signed(self.size(0, rank - 1), rank)

    def axes(self, rank: int, minimum: int = 1, maximum: int | None = None) -> Shape:
        """Different axes, each counted from either end."""
        return [self.signed(axis, rank) for axis in self.some(range(rank), minimum, maximum)]

    def signed(self, axis: int, rank: int) -> int:
        return axis - rank if self.chance(0.3) else axis

    def window(
        self, rank: int, *, kernel: int = 3, stride: int = 3, dilation: int = 2, pad: int = 1
    ) -> dict[str, Shape]:
        """Sizes, strides, dilations and pads of windows over ``rank`` axes, as the attributes are named."""
        return {
            "kernel": self.sizes(rank, 1, kernel),
            "strides": self.sizes(rank, 1, stride),
            "dilations": self.sizes(rank, 1, dilation),
            "pads_begin": self.sizes(rank, 0, pad),
            "pads_end": self.sizes(rank, 0, pad),
        }


CaseFunction = Callable[[CaseGenerator], Case]


def _made(function: CaseFunction, type: str, since: int, rng: np.random.Generator) -> Case:
    return function(CaseGenerator(rng, type, since))


class Table(Generators):
    """The random cases of a family, by type and version."""

    def row(self, *pairs: tuple[str, int]) -> Callable[[CaseFunction], CaseFunction]:
        """Decorator: the function makes cases of these types and versions."""

        def register(function: CaseFunction) -> CaseFunction:
            for type, since in pairs:
                assert (type, since) not in self, f"{type}-{since} is registered twice"
                self[type, since] = functools.partial(_made, function, type, since)
            return function

        return register
