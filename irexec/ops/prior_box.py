"""Boxes from which detectors start: PriorBox and PriorBoxClustered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import ANY, Size, at_least, may_equal
from irexec.ir.facts import Fact
from irexec.reference.detection import Edges, grid_of_boxes, spread
from irexec.schema.attributes import Floats
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, check_vector

# How far a centre goes back and then forth, by column and by row, half the width and the height of a box, and whether it is cut.
Box = tuple[float, float, float, float, float, float, bool]


@op("PriorBox", since=1)
def prior_box_1(
    output_size: np.ndarray,
    image_size: np.ndarray,
    *,
    min_size: Floats = (),
    max_size: Floats = (),
    aspect_ratio: Floats = (),
    flip: bool = False,
    clip: bool = False,
    step: float = 0.0,
    offset: float,
    variance: Floats = (),
    scale_all_sizes: bool = True,
    fixed_ratio: Floats = (),
    fixed_size: Floats = (),
    density: Floats = (),
) -> np.ndarray:
    """Boxes around the places of a grid, and their variances: f32 [2, 4 * height * width * boxes of a place].

    As PriorBox-8 with ``min_max_aspect_ratios_order``. Source: PriorBox-1.
    """
    fixed = (aspect_ratio, flip, fixed_ratio, fixed_size, density)
    sizes = (min_size, max_size, scale_all_sizes, True)
    return _prior_box(output_size, image_size, fixed, sizes, step, offset, clip, variance)


@op("PriorBox", since=8)
def prior_box_8(
    output_size: np.ndarray,
    image_size: np.ndarray,
    *,
    min_size: Floats = (),
    max_size: Floats = (),
    aspect_ratio: Floats = (),
    flip: bool = False,
    clip: bool = False,
    step: float = 0.0,
    offset: float,
    variance: Floats = (),
    scale_all_sizes: bool = True,
    fixed_ratio: Floats = (),
    fixed_size: Floats = (),
    density: Floats = (),
    min_max_aspect_ratios_order: bool = True,
) -> np.ndarray:
    """Boxes around the places of a grid, and their variances: f32 [2, 4 * height * width * boxes of a place].

    First come the boxes of ``fixed_size``, ``density`` by ``density`` of them for each of ``fixed_ratio``, or else of 1 and
    ``aspect_ratio``; each is cut at the borders of the image. Then for each of ``min_size`` a square, one of sqrt(min * max), and
    one box for each ratio (in the other order without ``min_max_aspect_ratios_order``). Without ``scale_all_sizes`` sizes and step are
    parts of the image's height, max_size means nothing, and the ratios belong to the first of ``min_size``, behind the last.
    Step 0 spreads the places over the image, centred whatever ``offset`` is; -1 does without ``scale_all_sizes``.
    Source: PriorBox-8 and OpenVINO's reference, all in f32. Attributes that make another number of boxes than they are counted
    for (OpenVINO then writes beyond its memory, or leaves some of it as it was) are refused.
    """
    fixed = (aspect_ratio, flip, fixed_ratio, fixed_size, density)
    sizes = (min_size, max_size, scale_all_sizes, min_max_aspect_ratios_order)
    return _prior_box(output_size, image_size, fixed, sizes, step, offset, clip, variance)


def _ratios(aspect_ratio: Sequence[float], flip: bool) -> list[np.float32]:
    """1 and the ratios that are not there yet, each followed by its inverse with ``flip``."""
    found = [np.float32(1)]
    for ratio in map(np.float32, aspect_ratio):
        if all(abs(float(ratio - other)) >= 1e-6 for other in found):
            found += [ratio, 1 / ratio] if flip else [ratio]
    return found


def _fixed(aspect_ratio: Floats, flip: bool, fixed_ratio: Floats, fixed_size: Floats, density: Floats) -> list[Box]:
    """The boxes of fixed sizes; a size, half of it and a shift lose their fractions, as in the reference. The plugin halves exactly."""
    half = np.float32(0.5)
    boxes: list[Box] = []
    for size, dense in zip(map(np.float32, fixed_size), map(int, density), strict=False):
        whole, shift = int(size), int(size / np.float32(dense))
        roots = [np.sqrt(np.float32(ratio)) for ratio in fixed_ratio or _ratios(aspect_ratio, flip)[1:]]
        shapes = [(float(size * half * root), float(size * half / root)) for root in roots]
        if not fixed_ratio:
            shapes.insert(0, (whole / 2, whole / 2))
        places = [(column * shift, row * shift) for row in range(dense) for column in range(dense)]
        boxes += [(whole // 2, shift / 2, *place, *shape, True) for shape in shapes for place in places]
    return boxes


def _around(min_size: Sequence[float], max_size: Floats, ratios: list[np.float32], scale_all_sizes: bool, max_first: bool) -> list[Box]:
    """The boxes of the sizes themselves, all about the centre."""
    half, shapes = np.float32(0.5), []
    for i, size in enumerate(map(np.float32, min_size)):
        largest = [np.sqrt(size * np.float32(most)) * half for most in max_size[i : i + 1] if scale_all_sizes]
        last = scale_all_sizes or i == len(min_size) - 1
        side = (size if scale_all_sizes else np.float32(min_size[0])) * half
        squares, others = [(side, side) for side in largest], [(side * np.sqrt(r), side / np.sqrt(r)) for r in ratios if last]
        shapes += [(size * half, size * half), *(squares + others if max_first else others + squares)]
    return [(0, 0, 0, 0, float(width), float(height), False) for width, height in shapes]


def _prior_box(
    output_size: np.ndarray,
    image_size: np.ndarray,
    fixed: tuple[Any, ...],
    sizes: tuple[Any, ...],
    step: float,
    offset: float,
    clip: bool,
    variance: Floats,
) -> np.ndarray:
    grid, image = [int(size) for size in output_size], image_size.astype(np.float32)
    if 0 in grid:
        return np.empty((2, 0), np.float32)
    min_size, max_size, scale_all_sizes, max_first = sizes
    with np.errstate(all="ignore"):
        apart = np.float32(step)
        if not scale_all_sizes:
            apart = image[0] / np.float32(grid[0]) if step == -1 else apart * image[0]
            min_size = [np.float32(size) * image[0] for size in min_size]
        about = _around(min_size, max_size, _ratios(*fixed[:2])[1:], scale_all_sizes, max_first)
        boxes = np.array(_fixed(*fixed) + about, np.float32).reshape(-1, 7)
        if not len(boxes):
            return np.empty((2, 0), np.float32)
        steps = [apart if apart else size / np.float32(count) for size, count in zip(image, grid, strict=True)]
        centres = [spread(count, each, offset if apart else 0.5) for count, each in zip(grid, steps, strict=True)]
        rows, columns = (_edges(centres[axis], boxes, axis, image[axis]) for axis in (0, 1))
    return grid_of_boxes(rows, columns, clip, variance)


def _edges(centres: np.ndarray, boxes: np.ndarray, axis: int, image: np.float32) -> Edges:
    """Where each box of each place begins and ends along y (axis 0) or x, as parts of the image."""
    back, forth, shift, half, cut = (boxes[:, i] for i in (0, 1, 3 - axis, 5 - axis, 6))
    middle = centres[:, None] - back + forth + shift
    first, last = (middle - half) * (1 / image), (middle + half) * (1 / image)
    return np.where(cut > 0, np.maximum(first, 0), first), np.where(cut > 0, np.minimum(last, 1), last)


@prior_box_1.shape_rule
@prior_box_8.shape_rule
def _prior_box_facts(output_size: Fact, image_size: Fact, **attributes: Any) -> Fact:
    return _grid_facts(output_size, image_size, _boxes_of_a_place(**attributes), attributes["variance"])


def _boxes_of_a_place(
    *,
    min_size: Floats,
    max_size: Floats,
    aspect_ratio: Floats,
    flip: bool,
    scale_all_sizes: bool,
    fixed_ratio: Floats,
    fixed_size: Floats,
    density: Floats,
    **others: Any,
) -> int:
    """How many boxes OpenVINO counts; OpError if that is not how many there are."""
    for name, numbers, least in (("aspect_ratio", aspect_ratio, 1e-6), ("fixed_ratio", fixed_ratio, 1e-6), ("density", density, 1)):
        check(all(least <= number < 1e9 for number in numbers), f"{name} has numbers that are not positive, or below {least:g}")
    check(all(0 <= size < 1e9 for size in fixed_size), f"fixed_size {fixed_size} has numbers that are no sizes")
    check(len(density) == len(fixed_size) or not fixed_size, f"density has {len(density)} numbers for {len(fixed_size)} fixed sizes")
    ratios = len(_ratios(aspect_ratio, flip))
    squares = [int(number) ** 2 for number in density]
    made = sum(squares) * len(fixed_ratio or range(ratios)) if fixed_size else 0
    if scale_all_sizes:
        made += len(min_size) * ratios + min(len(min_size), len(max_size))
    elif min_size:
        made += len(min_size) + ratios - 1
    counted = _counted(_distinct(aspect_ratio, flip), len(min_size), len(max_size), scale_all_sizes, len(fixed_size))
    counted += (len(fixed_ratio) or _distinct(aspect_ratio, flip)) * sum(square - 1 for square in squares)
    check(made == counted, f"the sizes and ratios make {made} boxes at each place, but count as {counted}")
    return counted


def _counted(ratios: int, least: int, most: int, scale_all_sizes: bool, fixed: int) -> int:
    if fixed:
        return ratios * fixed
    return ratios * least + most if scale_all_sizes else ratios + least - 1


def _distinct(aspect_ratio: Floats, flip: bool) -> int:
    """How many ratios there are, 1 among them, when they are rounded to six digits."""
    every = [number for ratio in aspect_ratio for number in ((ratio, 1 / ratio) if flip else (ratio,))]
    return len({1.0, *(math.floor(number * 1e6 + 0.5) / 1e6 for number in every)})


@op("PriorBoxClustered", since=1)
def prior_box_clustered_1(
    output_size: np.ndarray,
    image_size: np.ndarray,
    *,
    width: Floats = (1.0,),
    height: Floats = (1.0,),
    clip: bool = True,
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float,
    variance: Floats = (),
) -> np.ndarray:
    """Boxes of given widths and heights around the places of a grid, and their variances: f32 [2, 4 * rows * columns * boxes].

    A step of 0 along an axis is ``step``; if then both are 0, the places are spread over the image. All is in f32.
    Source: PriorBoxClustered-1; OpenVINO's reader takes absent sizes for none, the specification for 1, and it wants the image's size.
    """
    grid, image = [int(size) for size in output_size], image_size.astype(np.float32)
    if 0 in grid or not width:
        return np.empty((2, 0), np.float32)
    edges = []
    with np.errstate(all="ignore"):
        apart = [np.float32(step_h or step), np.float32(step_w or step)]
        if not any(apart):
            apart = [size / np.float32(count) for size, count in zip(image, grid, strict=True)]
        for axis, sizes in ((0, height), (1, width)):
            half = np.array(sizes, np.float32) / 2
            middle = spread(grid[axis], apart[axis], offset)[:, None]
            edges.append(((middle - half) / image[axis], (middle + half) / image[axis]))
    return grid_of_boxes(edges[0], edges[1], clip, variance)


@prior_box_clustered_1.shape_rule
def _prior_box_clustered_1_facts(
    output_size: Fact, image_size: Fact, *, width: Floats, height: Floats, variance: Floats, **others: Any
) -> Fact:
    check(len(width) == len(height), f"width has {len(width)} numbers, height {len(height)}")
    return _grid_facts(output_size, image_size, len(width), variance)


def _grid_facts(output_size: Fact, image_size: Fact, boxes: int, variance: Floats) -> Fact:
    for name, fact in (("output_size", output_size), ("image_size", image_size)):
        check_integers(fact, name)
        check_vector(fact, name)
        check(not fact.shape or may_equal(fact.shape[0], 2), f"{name} has shape {fact}, expected 2 numbers")
    check(len(variance) in (0, 1, 4), f"variance has {len(variance)} numbers, expected 0, 1 or 4")
    total: Size = 4 * boxes
    for size in output_size.sizes() or (ANY, ANY):
        check(not isinstance(size, int) or size >= 0, f"output_size has {size}, expected a size")
        total = total * at_least(size, 0)
    return Fact(F32, (2, total))
