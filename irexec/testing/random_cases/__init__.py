"""Random models of one operation, by family.

Every module has RANDOM_CASES, a table from (type, since) to a function of a random generator.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable

import numpy as np

from irexec.testing import Case

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
