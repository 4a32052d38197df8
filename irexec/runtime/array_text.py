"""Arrays by name, in short, for a repr."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

NamedArrays = Iterable[tuple[str, np.ndarray | None]]


def arrays_text(arrays: NamedArrays) -> str:
    """The type and shape of each: "'a': float32[1, 3], 'b': int64[]"."""
    return ", ".join(f"{name!r}: {type_and_shape(array)}" for name, array in arrays)


def type_and_shape(array: np.ndarray | None) -> str:
    """NumPy's name of the type, and the shape: "float32[1, 3]"; "nothing" for None."""
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
