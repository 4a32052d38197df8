"""Rules: for each operation the function that gives the intervals of its outputs.

    @rule("Softmax", "LogSoftmax")
    def softmax(layer: Layer, x: Interval, *rest: Interval) -> Interval: ...

A rule takes the layer and an Interval for each input (None for one that is left out), and returns an Interval or
Unbounded for each output; the OpError that it raises is the reason why no output has a bound. It computes exact results
with the reference kernel on f64 arrays (``layer.run``), and intervals by the operations of ``layer.algebra``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.bounds.interval import Algebra, Arithmetic, Bound, Interval, floats
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.schema.opdef import OpDef

EDGES = frozenset(
    {"FakeQuantize", "Round", "Floor", "Ceiling", "Sign", "TopK", "NonMaxSuppression", "Equal", "NotEqual", "Less",
     "LessEqual", "Greater", "GreaterEqual", "Mod", "FloorMod", "Bucketize"}
)  # fmt: skip
"""Operations whose result jumps where their input crosses an edge."""
Rule = Callable[..., Bound | tuple[Bound, ...]]
_RULES: dict[str, Rule] = {}
_OF_INTEGERS: set[str] = set()


@dataclass(frozen=True, eq=False, slots=True)
class Layer:
    """One layer as rules see it.

    Attributes:
        definition: the version of the operation.
        attributes: by the kernel's parameter, injected ones included.
        inputs: facts of the inputs, with their shapes.
        outputs: facts of the outputs; their shapes may be unknown.
        arithmetic: the arithmetic of the runtime.
    """

    definition: OpDef
    attributes: Mapping[str, Any]
    inputs: Sequence[Fact | None]
    outputs: Sequence[Fact]
    arithmetic: Arithmetic

    @property
    def algebra(self) -> Algebra:
        """Operations on intervals with the roundings of the arithmetic."""
        return Algebra(self.arithmetic)

    @property
    def element(self) -> Element | None:
        """Element type of the first output."""
        return self.outputs[0].element

    @property
    def is_float(self) -> bool:
        """Whether the first output has floating-point numbers; False where its type is not known."""
        return self.element is not None and self.element.is_float

    def run(self, *inputs: np.ndarray | Interval | None) -> tuple[np.ndarray, ...]:
        """The outputs of the reference kernel for the layer's attributes; f64 arrays give f64 results.

        Args:
            inputs: an Interval stands for its exact array.
        """
        arrays = (one.exact if isinstance(one, Interval) else one for one in inputs)
        return tuple(np.asarray(one) for one in as_tuple(self.definition(*arrays, **self.attributes)))

    def certain(self, *inputs: Interval | None) -> tuple[Bound, ...]:
        """The outputs, which are known."""
        return tuple(Interval.certain(out) for out in self.run(*inputs))

    def function(self, *rest: np.ndarray | Interval | None) -> Callable[..., np.ndarray]:
        """The first output as a function of the inputs before ``rest``; both are f64."""

        def run(*arrays: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                return floats(self.run(*map(floats, arrays), *rest)[0])

        return run


def rule(*types: str, integers: bool = False) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these operations, of every version.

    Args:
        types: the operations.
        integers: whether the rule also gives the bounds of integers that are known; without it the results of the
            reference kernel are the only ones allowed.
    """

    def register(function: Rule) -> Rule:
        for type in types:
            if type in _RULES:
                raise ValueError(f"{type} has two rules")
            _RULES[type] = function
            if integers:
                _OF_INTEGERS.add(type)
        return function

    return register


def rule_of(type: str) -> Rule | None:
    """The rule of an operation; None if there is none."""
    _load()
    return _RULES.get(type)


def rules_integers(type: str) -> bool:
    """Whether the rule of an operation also is that of integers that are known."""
    _load()
    return type in _OF_INTEGERS


@functools.cache
def _load() -> None:
    import irexec.bounds.rules as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
