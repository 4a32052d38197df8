"""Patches of images: taken apart into columns, and summed back into an image. Arrays are (N, C, spatial...)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.reference.limits import check_memory, check_time
from irexec.reference.windows import SlidingWindows, pad, tap_slices, windows


def unfold(image: np.ndarray, placed: SlidingWindows) -> np.ndarray:
    """A read-only view (N, C, counts..., kernel...) of the image padded by zeros."""
    if 0 in placed.counts:
        return np.zeros((*image.shape[:2], *placed.counts, *placed.kernel), image.dtype)
    return windows(pad(image, placed.pads), placed.kernel, placed.strides, placed.dilations, placed.counts)


def fold(columns: np.ndarray, sizes: Sequence[int], placed: SlidingWindows) -> np.ndarray:
    """The image (N, C, sizes...) in which every column (N, C * prod(kernel), windows) is added where it was taken.

    What falls into the padding is dropped.
    """
    channels = columns.shape[1] // math.prod(placed.kernel)
    taps = columns.reshape(columns.shape[0], channels, *placed.kernel, *placed.counts)
    padded = [size + begin + end for size, begin, end in zip(sizes, *placed.pads, strict=True)]
    every = (slice(None), slice(None))
    check_memory((columns.shape[0], channels, *padded), columns.dtype, "the padded image")
    image = np.zeros((columns.shape[0], channels, *padded), columns.dtype)
    for tap in np.ndindex(*placed.kernel):
        check_time()
        image[(*every, *tap_slices(tap, placed.counts, placed.strides, placed.dilations))] += taps[(*every, *tap)]
    return image[(*every, *(slice(begin, begin + size) for begin, size in zip(placed.pads_begin, sizes, strict=True)))]
