"""Padding, which a time limit can stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from irexec.reference.limits import check_time

Mode = Literal["constant", "edge", "reflect", "symmetric"]
Pads = Sequence[tuple[int, int]]

_BLOCK = 1 << 22
"""Elements of the result that are written at once."""


def padded(data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> np.ndarray:
    """np.pad with pads of 0 and more, and ``value`` for "constant"; the time of the run is looked at between blocks of
    the result."""
    shape = [size + before + after for size, (before, after) in zip(data.shape, pads, strict=True)]
    if math.prod(shape) <= _BLOCK:
        return _padded(data, pads, mode, value)
    result = np.empty(shape, data.dtype)
    _fill(result, data, pads, mode, value)
    return result


def _padded(data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> np.ndarray:
    if not pads:
        # np.pad takes no empty list of pads.
        return data.copy()
    return np.pad(data, pads, mode, constant_values=value) if mode == "constant" else np.pad(data, pads, mode)


def _fill(out: np.ndarray, data: np.ndarray, pads: Pads, mode: Mode, value: Any) -> None:
    """Write the padded data, in blocks along the first axis, or the next one where an entry of it is more than a
    block."""
    step = max(1, len(out) * _BLOCK // out.size)
    for start in range(0, len(out), step):
        check_time()
        target = out[start : start + step]
        rows = _source(np.arange(start, start + len(target)) - pads[0][0], len(data), mode)
        inside = (rows >= 0) & (rows < len(data))
        if target.size > _BLOCK:
            # No axis has an index for an entry outside of the data.
            _fill(
                target[0],
                data[rows[0]] if inside[0] else np.empty((0, *data.shape[2:]), data.dtype),
                pads[1:],
                mode,
                value,
            )
            continue
        target[~inside] = value
        target[inside] = _padded(data[rows[inside]], [(0, 0), *pads[1:]], mode, value)


def _source(positions: np.ndarray, size: int, mode: Mode) -> np.ndarray:
    """The index in an axis that each position is a copy of, before the axis from -1 down; for "constant" the position
    itself."""
    if mode == "edge" or (mode == "reflect" and size == 1):
        return positions.clip(0, size - 1)
    if mode == "constant":
        return positions
    period = 2 * size - (2 if mode == "reflect" else 0)
    within = positions % period
    return np.minimum(within, period - within - (0 if mode == "reflect" else 1))
