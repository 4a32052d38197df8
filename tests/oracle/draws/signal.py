"""Random models of Fourier transforms.

What the CPU plugin gets wrong is left out: a signal_size above the dimension or of -1 in RDFT and IRDFT.
"""

from __future__ import annotations

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@DRAWS.row(("DFT", 7), ("IDFT", 7))
def complex_transform(d: Draw, type: str, since: int) -> Case:
    shape = d.sizes(d.size(1, 3), 1, 9)
    axes = d.axes(len(shape))
    sizes = [d.pick(-1, d.size(1, 12)) for _ in axes]
    data = d.tensor([*shape, 2], _FLOATS, -2, 2)
    return model(type, since, data, d.ints(axes), d.ints(sizes) if d.chance() else None)


@DRAWS.row(("RDFT", 9), ("IRDFT", 9))
def real_transform(d: Draw, type: str, since: int) -> Case:
    pair = [2] if type == "IRDFT" else []
    shape = d.sizes(d.size(1, 3), 2, 9)
    axes = d.axes(len(shape))
    sizes = [d.size(1, shape[axis]) for axis in axes]
    data = d.tensor([*shape, *pair], _FLOATS, -2, 2)
    return model(type, since, data, d.ints(axes), d.ints(sizes) if d.chance() else None)


def _frames(d: Draw) -> tuple[int, int, int]:
    size = d.size(2, 17)
    return size, d.size(1, 20), d.size(1, size)


@DRAWS.row(("STFT", 15))
def short_time(d: Draw, type: str, since: int) -> Case:
    size, step, window = _frames(d)
    kind = d.pick(*_FLOATS)
    signal = d.tensor([*d.pick([], [d.size(1, 3)]), d.size(size, 60)], kind, -2, 2)
    return model(type, since, signal, d.tensor([window], kind, 0, 1), d.ints(size), d.ints(step), transpose_frames=d.chance())


@DRAWS.row(("ISTFT", 16))
def inverse_short_time(d: Draw, type: str, since: int) -> Case:
    size, step, window = _frames(d)
    kind = d.pick("f32", "f32", "f16")
    data = d.tensor([*d.pick([], [d.size(1, 3)]), size // 2 + 1, d.size(1, 6), 2], kind, -2, 2)
    # A window that nearly vanishes would make what rounding leaves there large.
    shape = typed(kind, np.where(d.rng.random(window) < 0.1, 0, d.rng.uniform(0.5, 1, window)))
    length = d.ints(d.pick(d.size(1, 90), [d.size(1, 90)])) if d.chance() else None
    return model(type, since, data, shape, d.ints(size), d.ints(step), length, center=d.chance(), normalized=d.chance())
