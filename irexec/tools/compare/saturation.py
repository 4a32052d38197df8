"""Products of bytes on processors without VNNI: sums of two products saturate at 16 bits.

The instruction vpmaddubsw multiplies unsigned by signed bytes, and adds neighbouring products in 16 bits with
saturation: 255 * 127 twice is 64,770, and the sum is 32,767. The order of channels and taps in a library decides about
neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.reference.windows import SlidingWindows, pad, windows

_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1

Terms = tuple[np.ndarray, np.ndarray]
"""Factors of the products of each examined element: activations as unsigned bytes, and weights."""


def terms_of_matrices(x: np.ndarray, w: np.ndarray, at: tuple[np.ndarray, ...]) -> Terms:
    """The factors of elements of a matrix product.

    Args:
        x: [..., rows, terms].
        w: [..., terms, columns]; leading axes of both are broadcast.
        at: the index of each element, one array for each axis of the result.
    """
    lead = np.broadcast_shapes(x.shape[:-2], w.shape[:-2])
    left, right = np.broadcast_to(x, (*lead, *x.shape[-2:])), np.broadcast_to(w, (*lead, *w.shape[-2:]))
    return left[at[:-1]], np.swapaxes(right, -1, -2)[(*at[:-2], at[-1])]


def terms_of_windows(
    x: np.ndarray, w: np.ndarray, zero: int, at: tuple[np.ndarray, ...], taken: SlidingWindows
) -> Terms:
    """The factors of elements of a convolution, with axes of channels and of taps.

    Args:
        x: (N, C, spatial...).
        w: (groups, M / groups, C / groups, kernel...).
        zero: the value of the padding.
        at: as for ``terms_of_matrices``.
        taken: where the windows lie.
    """
    view = windows(pad(x, taken.pads, zero), taken.kernel, taken.strides, taken.dilations, taken.counts)
    outputs, channels = w.shape[1:3]
    group, output = np.divmod(at[1], outputs)
    chosen = group[:, None] * channels + np.arange(channels)
    positions = (at[0][:, None], chosen, *(axis[:, None] for axis in at[2:]))
    return view[positions], w[group, output]


def lost(terms: Terms) -> Iterator[np.ndarray]:
    """The amount that saturation adds to each sum, for each order of channels and taps in libraries."""
    x, w = (array.astype(np.int32) for array in terms)
    yield _lost(x, w)
    if x.ndim > 2:
        # Channels are the innermost axis: all terms one after the other, or the terms of each tap.
        yield _lost(np.moveaxis(x, 1, -1), np.moveaxis(w, 1, -1))
        last_x, last_w = (np.moveaxis(array, 1, -1).reshape(-1, array.shape[1]) for array in (x, w))
        yield _lost(last_x, last_w).reshape(len(x), -1).sum(axis=1)


def _lost(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    products = x.reshape(len(x), -1) * w.reshape(len(w), -1)
    if products.shape[1] % 2:
        products = np.concatenate([products, np.zeros_like(products[:, :1])], axis=1)
    sums = products[:, ::2] + products[:, 1::2]
    found: np.ndarray = (np.clip(sums, _LOWEST, _HIGHEST) - sums).sum(axis=1, dtype=np.int64)
    return found
