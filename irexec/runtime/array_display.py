"""Arrays by name, in short: as text for a repr and as HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from irexec.html import ROWS, Amount, Column, Content, Html, histogram, table

_BINS = 30
_LOOKED_AT = 1_000_000
"""Elements of an array that statistics are made of at most, evenly spaced: showing a result takes no time."""

NamedArrays = Iterable[tuple[str, np.ndarray | None]]


def arrays_text(arrays: NamedArrays) -> str:
    """The type and shape of each: "'a': float32[1, 3], 'b': int64[]"."""
    return ", ".join(f"{name!r}: {type_and_shape(array)}" for name, array in arrays)


def type_and_shape(array: np.ndarray | None) -> str:
    """As NumPy calls the type: "float32[1, 3]"; "nothing" for None."""
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"


def arrays_table(arrays: NamedArrays) -> Html:
    """A row for each array: its type, shape, statistics and histogram; those of long arrays are of a million elements."""
    numbers = [Column(title, is_number=True) for title in ("minimum", "maximum", "mean", "NaN, infinities")]
    columns = ["name", Column("type", is_code=True), Column("shape", is_code=True), *numbers, "histogram"]
    return table(columns, [_row(name, array) for name, array in arrays], limit=ROWS, hide_empty=True)


def _row(name: str, array: np.ndarray | None) -> list[Content]:
    if array is None:
        return [name, "not computed", "", "", "", "", "", ""]
    general = [name, "string" if array.dtype == object else str(array.dtype), f"[{','.join(map(str, array.shape))}]"]
    if array.size == 0 or array.dtype.kind not in "fiub":
        return [*general, "", "", "", "", ""]
    # Of a signalling NaN the conversion is an invalid operation.
    with np.errstate(all="ignore"):
        values = array.reshape(-1)[:: math.ceil(array.size / _LOOKED_AT)].astype(np.float64)
        finite = values[np.isfinite(values)]
    others = values.size - finite.size
    if finite.size == 0:
        return [*general, "", "", "", others, ""]
    low, high = float(finite.min()), float(finite.max())
    figures = [Amount(value, f"{value:.6g}") for value in (low, high, float(finite.mean()))]
    return [*general, *figures, others or "", _histogram(finite, low, high)]


def _histogram(values: np.ndarray, low: float, high: float) -> Html | None:
    """None where all values are the same, or their range is more than a float holds."""
    if not 0 < high - low < math.inf:
        return None
    # By hand: NumPy's refuses ranges that are too narrow for its bins.
    bins = np.minimum(((values - low) / (high - low) * _BINS).astype(np.int64), _BINS - 1)
    return histogram(np.bincount(bins, minlength=_BINS).tolist(), low, high)
