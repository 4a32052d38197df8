"""What a graph grows by: functions of a Growth, each of which adds some operations, or raises OpError.

@step(3)
def transpose(g: Growth) -> None: ...

The number is how often a step is chosen, beside the others.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from tests.graphs.growth import Growth

Step = Callable[[Growth], None]

_STEPS: dict[str, tuple[float, Step]] = {}


def step(weight: float) -> Callable[[Step], Step]:
    """Decorator: a graph may grow by this."""

    def register(function: Step) -> Step:
        assert function.__name__ not in _STEPS, f"{function.__name__} is registered twice"
        _STEPS[function.__name__] = weight, function
        return function

    return register


def steps() -> dict[str, tuple[float, Step]]:
    """Every step by name, with its weight."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return _STEPS
