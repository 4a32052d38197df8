"""The generators of random networks, by layer type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network, Shape

Generator = Callable[[Network], None]

GENERATORS: dict[str, Generator] = {}
"""Functions that fill a network with a random use of a layer type. They read the version and draw from ``rng``."""
VERSIONS: dict[str, Sequence[int]] = {}
"""The versions that have the layer, by type."""


def generates(*types: str, versions: Sequence[int] = range(2, 8)) -> Callable[[Generator], Generator]:
    """Register a generator under the names of layer types."""

    def register(function: Generator) -> Generator:
        for name in types:
            GENERATORS[name] = function
            VERSIONS[name] = versions
        return function

    return register


def values(net: Network, shape: Shape, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Random f32 values, rounded to what f16 holds so that both precisions store the same."""
    drawn = net.rng.uniform(low, high, shape).astype(np.float16).astype(np.float32)
    return np.asarray(drawn, np.float32)


def shape_of(net: Network, rank: int, low: int = 1, high: int = 6) -> Shape:
    """A random shape."""
    return tuple(int(size) for size in net.rng.integers(low, high + 1, rank))


def pick(net: Network, *choices: Any) -> Any:
    """One of the choices."""
    return choices[int(net.rng.integers(len(choices)))]


def chance(net: Network, probability: float = 0.5) -> bool:
    """True with a probability."""
    return bool(net.rng.random() < probability)


def size(net: Network, low: int, high: int) -> int:
    """An integer from ``low`` to ``high``, both included."""
    return int(net.rng.integers(low, high + 1))
