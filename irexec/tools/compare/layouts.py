"""Recorded tensors in another layout than the model's: channels last or first, flattened, or without axes of size 1."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from irexec.ir.dims import PartialShape, Size, high, low
from irexec.runtime.inputs import channel_orders
from irexec.tools.compare.observe import Facts
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.sides import RecordedSide

_LETTERS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}

Layout = tuple[int, ...] | None
"""The order of the recorded axes that gives those of the model; None for the recorded elements in the model's shape."""


def layout_of(recorded: Sequence[int], shape: Sequence[int]) -> Layout | str:
    """How a recorded tensor becomes one of the model's shape; "" if it has this shape, or none is known."""
    one, other = tuple(recorded), tuple(shape)
    if one == other:
        return ""
    if len(one) == len(other):
        fitting = [order for order in channel_orders(len(one)) if tuple(one[axis] for axis in order) == other]
        return fitting[0] if len(fitting) == 1 else ""
    is_flat = len(one) == 1 or (len(one) == 2 and one[0] == other[0])
    without_ones = [size for size in one if size != 1] == [size for size in other if size != 1]
    return None if np.prod(one) == np.prod(other) and (is_flat or without_ones) else ""


def layouts_of(
    pairs: Sequence[TensorPair], recorded: Mapping[str, Sequence[int]], facts: Facts
) -> tuple[dict[str, Layout], list[str]]:
    """The layouts of recorded tensors that are not of the model's shape, and sentences about them.

    Tensors of sizes that fit in either layout, such as (1, 8, 8, 8), have the layout of the others of their rank, if
    none of these is as in the model.
    """
    found: dict[str, Layout] = {}
    as_in_model: Counter[int] = Counter()
    unclear: list[str] = []
    for pair in pairs:
        fact = facts.get(pair.b)
        if not isinstance(pair.a, str) or pair.a not in recorded or fact is None or not fact.is_static:
            continue
        own, shape = tuple(recorded[pair.a]), fact.static_shape
        layout = layout_of(own, shape)
        if not isinstance(layout, str):
            found[pair.a] = layout
        elif own == shape and any(tuple(own[axis] for axis in order) == shape for order in channel_orders(len(own))):
            unclear.append(pair.a)
        elif own == shape:
            as_in_model[len(own)] += 1
    for name in unclear:
        rank = len(recorded[name])
        others = Counter(layout for layout in found.values() if layout is not None and len(layout) == rank)
        if others and not as_in_model[rank]:
            found[name] = others.most_common(1)[0][0]
    return found, _sentences(found)


def _sentences(found: Mapping[str, Layout]) -> list[str]:
    texts = []
    for layout, count in Counter(found.values()).items():
        if layout is None:
            texts.append(f"A's tensors are B's flattened or without axes of size 1: {count} of them")
        else:
            first, letters = layout[1] == len(layout) - 1, _LETTERS[len(layout)]
            names = f"{letters[0]}{letters[2:]}{letters[1]}" if first else letters
            axes = ",".join(map(str, layout))
            texts.append(f"A's tensors are B's in {','.join(names)}: axes {axes} of {count}")
    return texts


def arrange_recorded(a: RecordedSide, pairs: Sequence[TensorPair], facts: Facts) -> list[str]:
    """Let recorded tensors be read in the layout of the model; returns sentences about them."""
    layouts, texts = layouts_of(pairs, a.shapes, facts)
    shapes = {pair.a: facts[pair.b].static_shape for pair in pairs if isinstance(pair.a, str) and pair.a in layouts}
    a.arrange({
        name: functools.partial(arranged_as, layout=layout, shape=shapes[name]) for name, layout in layouts.items()
    })  # fmt: skip
    return texts


def arranged_as(array: np.ndarray, layout: Layout, shape: Sequence[int]) -> np.ndarray:
    """A recorded array in the shape of the model's tensor."""
    return array.reshape(tuple(shape)) if layout is None else array.transpose(layout)


def as_declared(array: np.ndarray, shape: PartialShape) -> np.ndarray:
    """A recorded input with its channels at the axis where the model has them."""
    if shape is None or len(shape) != array.ndim or _fits(array.shape, shape):
        return array
    moved = [array.transpose(order) for order in channel_orders(array.ndim)]
    return next((one for one in moved if _fits(one.shape, shape)), array)


def _fits(sizes: Sequence[int], shape: Sequence[Size]) -> bool:
    return all(low(own) <= size <= (high(own) or size) for size, own in zip(sizes, shape, strict=True))
