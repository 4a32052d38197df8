"""Patches of images: taken apart into columns, and summed back into an image. Arrays are (N, C, spatial...)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.windows import Pads, pad, tap_slices, window_counts, windows

Sizes = Sequence[int]


def unfold(image: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> np.ndarray:
    """A read-only view (N, C, counts..., kernel...) of the image padded by zeros."""
    counts = window_counts(image.shape[2:], kernel, strides, dilations, pads)
    if 0 in counts:
        return np.zeros((*image.shape[:2], *counts, *kernel), image.dtype)
    return windows(pad(image, pads), kernel, strides, dilations, counts)


def fold(columns: np.ndarray, sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> np.ndarray:
    """The image (N, C, sizes...) in which every column (N, C * prod(kernel), windows) is added where it was taken.

    What falls into the padding is dropped.
    """
    counts = window_counts(sizes, kernel, strides, dilations, pads)
    channels = columns.shape[1] // math.prod(kernel)
    taps = columns.reshape(columns.shape[0], channels, *kernel, *counts)
    padded = [size + b + e for size, b, e in zip(sizes, *pads, strict=True)]
    every = (slice(None), slice(None))
    image = np.zeros((columns.shape[0], channels, *padded), columns.dtype)
    for tap in np.ndindex(*kernel):
        image[(*every, *tap_slices(tap, counts, strides, dilations))] += taps[(*every, *tap)]
    return image[(*every, *(slice(b, b + size) for b, size in zip(pads[0], sizes, strict=True)))]
