"""Products of pixels that are channels last."""

from __future__ import annotations

import numpy as np

from irexec.backend.products import multiply_rows
from irexec.backend.scratch import Scratch


def copied_pixels(scratch: Scratch, data: np.ndarray, dtype: np.dtype, channels_last: bool) -> np.ndarray:
    """A copy of (channels, pixels) that is contiguous, or whose transpose is if ``channels_last``."""
    copy = scratch.take(data.shape[::-1], dtype).T if channels_last else scratch.take(data.shape, dtype)
    scratch.do(np.copyto, copy, data)
    return copy


def multiply_groups(scratch: Scratch, rows: np.ndarray, weights: np.ndarray, result: np.ndarray) -> None:
    """Write (groups * outputs, pixels) from rows (groups, pixels, inputs) and weights (groups, outputs, inputs)."""
    groups, pixels, _ = rows.shape
    is_direct = result.strides[0] == result.itemsize
    values = result.T if is_direct else scratch.take(result.T.shape, result.dtype)
    if groups == 1:
        multiply_rows(scratch, rows[0], weights[0], values)
    else:
        multiply_rows(scratch, rows, weights, values.reshape(pixels, groups, -1).swapaxes(0, 1))
    if not is_direct:
        scratch.do(np.copyto, result, values.T)
