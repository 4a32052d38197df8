"""Rows of one layer each, with values that NumPy gives by the formulae of the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.converters.legacy_ir.files import single

RNG = np.random.default_rng(11)


@dataclass(frozen=True)
class Row:
    """One layer.

    Attributes:
        name: of the row.
        type, inputs, attributes, options: as for files.single.
        gives: the expected outputs.
        shapes: their declared sizes, if they are others.
    """

    name: str
    type: str
    inputs: Sequence[np.ndarray]
    gives: Sequence[np.ndarray]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    shapes: Sequence[Sequence[int]] | None = None

    def file(self) -> Any:
        """The file, and its inputs."""
        shapes = [array.shape for array in self.gives] if self.shapes is None else self.shapes
        return single(self.type, self.inputs, shapes, self.attributes, **self.options)


def row(
    name: str, type: str, inputs: Sequence[np.ndarray], gives: Any, attributes: Mapping[str, Any] | None = None,
    shapes: Sequence[Sequence[int]] | None = None, **options: Any,
) -> Row:  # fmt: skip
    """A row; ``gives`` is one array or a list of them."""
    outputs = gives if isinstance(gives, list) else [gives]
    return Row(name, type, inputs, outputs, attributes or {}, options, shapes)


def random(*shape: int) -> np.ndarray:
    """Random f32."""
    return RNG.standard_normal(shape).astype(np.float32)


def patches(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> np.ndarray:
    """The windows of the last axes of an array: [..., outputs, kernel]."""
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(-len(kernel), 0))
    found = np.lib.stride_tricks.sliding_window_view(x, extent, axes)
    steps = tuple(slice(None, None, s) for s in strides)
    inside = tuple(slice(None, None, d) for d in dilations)
    return found[(..., *steps, *inside)]


def padded(x: np.ndarray, begin: Sequence[int], end: Sequence[int], value: float = 0.0) -> np.ndarray:
    """Pads of the last axes."""
    widths = [(0, 0)] * (x.ndim - len(begin)) + list(zip(begin, end, strict=True))
    return np.pad(x, widths, constant_values=value)


def convolved(
    x: np.ndarray, w: np.ndarray, strides: Sequence[int], dilations: Sequence[int], group: int = 1
) -> np.ndarray:
    """Convolution of padded [N, C, H, W] with [O, C/group, Y, X]."""
    parts = np.split(patches(x, w.shape[2:], strides, dilations), group, 1)
    filters = np.split(w, group, 0)
    sums = [np.einsum("nchwyx,ocyx->nohw", p, f) for p, f in zip(parts, filters, strict=True)]
    return np.concatenate(sums, 1).astype(np.float32)


def transposed(x: np.ndarray, w: np.ndarray, strides: Sequence[int], group: int = 1) -> np.ndarray:
    """The whole transposed convolution of [N, C, H, W] with [C, O/group, Y, X], without pads."""
    n, c, h, wide = x.shape
    outputs = w.shape[1] * group
    sizes = [(a - 1) * s + k for a, s, k in zip((h, wide), strides, w.shape[2:], strict=True)]
    y = np.zeros((n, outputs, *sizes), np.float64)
    for channel in range(c):
        block = channel // (c // group) * w.shape[1]
        for i in range(h):
            for j in range(wide):
                top, left = i * strides[0], j * strides[1]
                y[:, block : block + w.shape[1], top : top + w.shape[2], left : left + w.shape[3]] += (
                    x[:, channel, i, j, None, None, None] * w[channel]
                )
    return y.astype(np.float32)
