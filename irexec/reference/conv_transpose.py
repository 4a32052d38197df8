"""Layouts of oneDNN Graph's ConvTranspose.

X stands for the spatial axes, I for all input channels, O for the output channels of a group.
"""

from __future__ import annotations

import numpy as np


def filter_order(rank: int, layout: str) -> tuple[int, ...]:
    """The axes I, O and X of a filter of ``layout`` ("XIO", "OIX", ...) with ``rank`` spatial axes, in this order."""
    axes: dict[str, list[int]] = {}
    first = 0
    for letter in layout:
        axes[letter] = list(range(first, first + (rank if letter == "X" else 1)))
        first += len(axes[letter])
    return (*axes["I"], *axes["O"], *axes["X"])


def filter_by_group(filter: np.ndarray, groups: int, layout: str) -> np.ndarray:
    """The filter as (G, I of the group, O of the group, kernel...)."""
    order = filter_order(filter.ndim - 2, layout)
    channels, *others = (filter.shape[axis] for axis in order)
    return filter.transpose(order).reshape(groups, channels // groups, *others)


def channels_first(input: np.ndarray, data_format: str) -> np.ndarray:
    """Data of "NXC" or "NCX" as (N, C, spatial...)."""
    return input if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(input, -1, 1))


def add_bias(result: np.ndarray, bias: np.ndarray | None, data_format: str) -> np.ndarray:
    """(N, C, spatial...), which is overwritten, with a bias for each channel, in ``data_format``."""
    if bias is not None:
        result += bias.reshape(-1, *[1] * (result.ndim - 2))
    return result if data_format == "NCX" else np.ascontiguousarray(np.moveaxis(result, 1, -1))
