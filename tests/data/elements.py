"""What OpenVINO makes of every element type, as tests.oracle.elements recorded it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np


@functools.cache
def _load() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "elements.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def elements(name: str) -> np.ndarray:
    """The array recorded under a name such as "encoded nf4"."""
    return _load()[name]
