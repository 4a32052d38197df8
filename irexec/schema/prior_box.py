"""Attributes of prior boxes, and the boxes of a cell, which the kernels and the exporter share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from irexec.schema.attributes import Floats


@dataclass(frozen=True, kw_only=True)
class PriorBoxAttributes:
    """Attributes of version 1."""

    min_size: Floats = ()
    max_size: Floats = ()
    aspect_ratio: Floats = ()
    flip: bool = False
    clip: bool = False
    step: float = 0.0
    offset: float
    variance: Floats = ()
    scale_all_sizes: bool = True
    fixed_ratio: Floats = ()
    fixed_size: Floats = ()
    density: Floats = ()


@dataclass(frozen=True, kw_only=True)
class PriorBox8Attributes(PriorBoxAttributes):
    """Attributes of version 8."""

    min_max_aspect_ratios_order: bool = True


@dataclass(frozen=True, kw_only=True)
class PriorBoxClusteredAttributes:
    """Attributes of PriorBoxClustered."""

    width: Floats = (1.0,)
    height: Floats = (1.0,)
    clip: bool = True
    step: float = 0.0
    step_w: float = 0.0
    step_h: float = 0.0
    offset: float
    variance: Floats = ()


class CellBox(NamedTuple):
    """A box of every cell, in pixels.

    Attributes:
        back, forward: subtracted from the centre of the cell, then added to it, along both axes.
        column, row: added to the centre, along x and y.
        half_width, half_height: of the box.
        clipped: whether it is clipped at the borders of the image.
    """

    back: float
    forward: float
    column: float
    row: float
    half_width: float
    half_height: float
    clipped: bool


def ratios_of(aspect_ratio: Sequence[float], flip: bool) -> list[np.float32]:
    """1 and the other ratios without repetition, each followed by its inverse with ``flip``."""
    found = [np.float32(1)]
    for ratio in map(np.float32, aspect_ratio):
        if all(abs(float(ratio - other)) >= 1e-6 for other in found):
            found += [ratio, 1 / ratio] if flip else [ratio]
    return found


def fixed_boxes(attributes: PriorBoxAttributes) -> list[CellBox]:
    """The boxes of fixed sizes; a size, half of it and a shift are truncated, as in the reference. The plugin halves
    exactly."""
    half = np.float32(0.5)
    boxes: list[CellBox] = []
    for size, density in zip(map(np.float32, attributes.fixed_size), map(int, attributes.density), strict=False):
        whole, shift = int(size), int(size / np.float32(density))
        ratios = attributes.fixed_ratio or ratios_of(attributes.aspect_ratio, attributes.flip)[1:]
        roots = [np.sqrt(np.float32(ratio)) for ratio in ratios]
        shapes = [(float(size * half * root), float(size * half / root)) for root in roots]
        if not attributes.fixed_ratio:
            shapes.insert(0, (whole / 2, whole / 2))
        shifts = [(column * shift, row * shift) for row in range(density) for column in range(density)]
        boxes += [CellBox(whole // 2, shift / 2, *moved, *shape, True) for shape in shapes for moved in shifts]
    return boxes


def centred_boxes(min_sizes: Sequence[float], attributes: PriorBoxAttributes) -> list[CellBox]:
    """The boxes of ``min_sizes``, in pixels, in the centre of the cell."""
    half, shapes, scale_all = np.float32(0.5), [], attributes.scale_all_sizes
    max_first = getattr(attributes, "min_max_aspect_ratios_order", True)
    ratios = ratios_of(attributes.aspect_ratio, attributes.flip)[1:]
    for i, size in enumerate(map(np.float32, min_sizes)):
        larger = [np.sqrt(size * np.float32(maximum)) * half for maximum in attributes.max_size[i : i + 1] if scale_all]
        with_ratios = scale_all or i == len(min_sizes) - 1
        side = (size if scale_all else np.float32(min_sizes[0])) * half
        squares = [(side, side) for side in larger]
        others = [(side * np.sqrt(ratio), side / np.sqrt(ratio)) for ratio in ratios if with_ratios]
        shapes += [(size * half, size * half), *(squares + others if max_first else others + squares)]
    return [CellBox(0, 0, 0, 0, float(width), float(height), False) for width, height in shapes]
