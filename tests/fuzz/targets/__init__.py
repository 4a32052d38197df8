"""What is fuzzed: a module for each target, with these functions.

- ``generate(rng, number) -> Case``: a case from random numbers; the same for the same numbers.
- ``run(case, observer)``: its steps, in a folder that holds the case's files alone.
- ``smaller(case) -> Iterator[Case]``: cases with less in them, the smallest first.

``QUICK`` is the number of cases that ``--quick`` runs.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from typing import Protocol

from tests.fuzz.case import Case
from tests.fuzz.findings import Observer

TARGETS = ("xml", "inputs", "bin", "onnx", "npy", "image", "cli", "graphs", "edits", "tokenizers", "bodies")


class Target(Protocol):
    """The functions of a target's module."""

    QUICK: int

    def generate(self, rng: random.Random, number: int) -> Case: ...

    def run(self, case: Case, observer: Observer) -> None: ...

    def smaller(self, case: Case) -> Iterator[Case]: ...


def load(name: str) -> Target:
    """The target of a name; raises ValueError where there is none."""
    if name not in TARGETS:
        raise ValueError(f"there is no target {name!r}, only {', '.join(TARGETS)}")
    return importlib.import_module(f"{__name__}.{name}")


def generate(name: str, seed: int, number: int) -> Case:
    """The case of a target, a seed and a number, whoever asks for it."""
    return load(name).generate(random.Random(f"{name} {seed} {number}"), number)
