"""Usual differences between the images that two programs give to one model, tried when results differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

_CHANNELS = 3
_MEAN, _DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
"""Mean and standard deviation of ImageNet, red first, of values from 0 to 1."""


def change_that_agrees(inputs: Mapping[str, np.ndarray], agrees: Callable[[Mapping[str, np.ndarray]], bool]) -> str:
    """The change of one image with which results agree, as a sentence; "" if none does.

    Args:
        inputs: the arrays of a run by names of inputs.
        agrees: runs the model with other inputs; True if the results are then those of the reference.
    """
    for name, array in inputs.items():
        for text, changed in _changes(array):
            if agrees({**inputs, name: changed.astype(array.dtype)}):
                return f"the reference is that of input {name!r} {text}"
    return ""


def _changes(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Changes of an image of three channels."""
    axis = next((axis for axis in (-3, -1) if array.ndim in (3, 4) and array.shape[axis] == _CHANNELS), None)
    if axis is None or array.dtype.kind != "f":
        return
    shape = [1] * array.ndim
    shape[axis] = _CHANNELS
    mean, deviation = _MEAN.reshape(shape), _DEVIATION.reshape(shape)
    scaled = {
        "": array,
        "divided by 255": array / 255,
        "multiplied by 255": array * 255,
        "with the mean and standard deviation of ImageNet": (array - mean) / deviation,
        "divided by 255, with the mean and standard deviation of ImageNet": (array / 255 - mean) / deviation,
        "without the mean and standard deviation of ImageNet": array * deviation + mean,
    }
    for text, changed in scaled.items():
        if text:
            yield text, changed
        yield f"{text}{' and ' if text else ''}with reversed channels (RGB and BGR)", np.flip(changed, axis)
    other, order = (-3, "N,C,H,W") if axis == -1 else (-1, "N,H,W,C")
    stored = array.reshape(np.moveaxis(array, axis, other).shape)
    yield f"with its elements in the order {order}", np.moveaxis(stored, other, axis)
