"""A graph that grows step by step, with the array that every tensor has for the inputs it grows on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import as_tuple, evaluate, rounded
from irexec.dtypes.elements import Element
from irexec.errors import OpError
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Value
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.attributes import ElementTypes
from irexec.schema.registry import resolve
from irexec.testing import typed
from irexec.testing.random_cases import CaseGenerator

LARGEST = 4096
"""Elements of a tensor."""
_HIGHEST = 1000.0
"""The largest absolute value of a step's operand: its powers must be finite."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph, its element type, and its array for the inputs that the graph grows on."""

    value: Value
    element: Element
    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.array.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.array.size

    @property
    def kind(self) -> str:
        """The name of the element type."""
        return self.element.name

    @property
    def is_sound(self) -> bool:
        """True if a step may use the value: its elements are finite, not large and not too many."""
        if self.size > LARGEST:
            return False
        if self.array.dtype.kind != "f":
            return True
        values = self.array.astype(np.float64)
        return bool(np.isfinite(values).all() and np.abs(values).max(initial=0) < _HIGHEST)


class Growth:
    """A graph under construction.

    Args:
        rng: all choices come from it.
        inside: for the graph of a body, the growth of the graph around it.

    Attributes:
        gen: random choices.
        builder: the graph.
        pool: the tensors that a step may start from.
        kind: the element type of most floats.
        parameters: the inputs, in order.
        results: tensors that must be results, whatever else is.
        states: Assigns of the graph and their number.
    """

    def __init__(self, rng: np.random.Generator, inside: Growth | None = None) -> None:
        self.gen = CaseGenerator(rng)
        self.builder = Builder("graph", inside=None if inside is None else inside.builder)
        self.pool: list[Tensor] = []
        self.kind: str = self.gen.pick(*["f32"] * 10, "f16", "f16", "bf16", "f64") if inside is None else inside.kind
        self.parameters: list[Tensor] = []
        self.results: list[Tensor] = []
        self.depth: int = 0 if inside is None else inside.depth + 1
        self.variables = 0

    # What a graph is made of.

    def parameter(self, array: np.ndarray, kind: str) -> Tensor:
        """An input that has this array."""
        made = typed(kind, array)
        value = self.builder.parameter(made.element, array.shape, f"p{len(self.parameters)}")
        tensor = Tensor(value, made.element, made.array)
        self.parameters.append(tensor)
        return tensor

    def constant(self, array: Any, kind: str) -> Tensor:
        """A constant."""
        made = typed(kind, array)
        return Tensor(self.builder.constant(made.array, made.element), made.element, made.array)

    def ints(self, values: Any) -> Tensor:
        """A constant of integers."""
        return self.constant(np.array(values, np.int64), self.gen.pick("i64", "i64", "i32"))

    def constant_i64(self, values: Any) -> Tensor:
        """A constant of i64."""
        return self.constant(np.array(values, np.int64), "i64")

    def emit(
        self, type: str, *inputs: Tensor | None, since: int | str | None = None, **attributes: Any
    ) -> list[Tensor]:
        """The outputs of an operation; raises OpError where it refuses its inputs."""
        values = self.builder.emit(type, *(None if x is None else x.value for x in inputs), version=since, **attributes)
        made = as_tuple(values)
        node = made[0].node
        definition = resolve(node.type, node.version)
        arguments = typed_attributes(node, definition).require()
        # The builder refuses an absent input before the last.
        given = [x for x in inputs if x is not None]
        if definition.elements_parameter is not None:
            arguments[definition.elements_parameter] = ElementTypes([x.element for x in given])
        # Shapes that are not known in the graph may not fit for these arrays.
        definition.infer([Fact(x.element, x.shape, x.array) for x in given], arguments)
        facts = [self.builder.fact(value) for value in made]
        arrays = evaluate(definition, [x.array for x in given], arguments, facts)
        return [self._tensor(value, array) for value, array in zip(made, arrays, strict=True)]

    def one(self, type: str, *inputs: Tensor | None, since: int | str | None = None, **attributes: Any) -> Tensor:
        """The first output of an operation."""
        return self.emit(type, *inputs, since=since, **attributes)[0]

    def with_bodies(
        self, type: str, inputs: Sequence[Tensor], bodies: dict[str, Body], **attributes: Any
    ) -> list[Tensor]:
        """The outputs of an operation with bodies, computed by the reference kernels in a model of its own."""
        values = as_tuple(self.builder.emit(type, *(x.value for x in inputs), bodies=bodies, **attributes))
        alone = Builder("alone")
        fed = [alone.parameter(x.element, x.shape, f"p{i}") for i, x in enumerate(inputs)]
        for value in as_tuple(
            alone.emit(type, *fed, bodies={name: body.copied() for name, body in bodies.items()}, **attributes)
        ):
            alone.result(value)
        compiled = CompiledModel(alone.model(), optimize=False, threads=1)
        arrays = compiled([x.array for x in inputs]).values()
        return [self._tensor(value, array) for value, array in zip(values, arrays, strict=True)]

    def _tensor(self, value: Value, array: np.ndarray) -> Tensor:
        element = self.builder.fact(value).element
        if element is None:
            raise OpError("the element type of an output is not known")
        return Tensor(value, element, rounded(array, element))

    # What a step starts from.

    def add(self, *tensors: Tensor) -> None:
        """Let further steps start from these, if they are sound; of others one in twelve."""
        self.pool += [x for x in tensors if x.is_sound or (x.size <= LARGEST and self.gen.chance(0.08))]

    def some(self, kinds: Sequence[str] | None = None, rank: tuple[int, int] = (0, 8), minimum: int = 0) -> Tensor:
        """A tensor of the pool, more often a late one; raises OpError where there is none."""
        found = [
            x
            for x in self.pool
            if (kinds is None or x.kind in kinds) and rank[0] <= x.rank <= rank[1] and x.size >= minimum
        ]
        if not found:
            raise OpError("there is no such tensor")
        late = int(len(found) * (1 - self.gen.rng.random() ** 2))
        return found[min(late, len(found) - 1)]

    def floats(self, rank: tuple[int, int] = (0, 8), minimum: int = 0) -> Tensor:
        """A tensor of floats, of the element type of most."""
        return self.some([self.kind], rank, minimum)

    def random(self, shape: Sequence[int], kind: str | None = None, low: float = -2, high: float = 2) -> Tensor:
        """Random values: a constant, sometimes an input."""
        made = self.gen.tensor(shape, kind or self.kind, low, high)
        if self.depth == 0 and self.gen.chance(0.12):
            return self.parameter(made.array, made.element.name)
        return self.constant(made.array, made.element.name)

    # A tensor as a step wants it.

    def as_kind(self, x: Tensor, kind: str) -> Tensor:
        """The tensor converted to an element type."""
        return x if x.kind == kind else self.one("Convert", x, destination_type=kind)

    def as_shape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """A tensor of a shape, of the elements of another: cut or repeated, then reshaped; raises OpError for one without elements."""
        if list(x.shape) == list(shape):
            return x
        wanted = math.prod(shape)
        if not x.size or wanted > LARGEST:
            raise OpError("it has no elements")
        if x.size != wanted:
            x = self.one("Reshape", x, self.ints([-1]), special_zero=self.gen.chance())
            if x.size < wanted:
                x = self.one("Tile", x, self.ints([-(-wanted // x.size)]))
            if x.size > wanted:
                start = self.gen.size(0, x.size - wanted)
                x = self.one(
                    "Slice", x, self.ints([start]), self.ints([start + wanted]), self.ints([1]), self.ints([0])
                )
        return self.one("Reshape", x, self.ints(list(shape)), special_zero=False)

    def between(self, x: Tensor, low: float, high: float) -> Tensor:
        """The tensor with values from low to high."""
        values = x.array.astype(np.float64)
        if not values.size or (np.isfinite(values).all() and values.min() >= low and values.max() <= high):
            return x
        return self.one("Clamp", x, min=float(low), max=float(high))
