"""Random models of Fourier transforms.

What the CPU plugin gets wrong is left out: a signal_size above the dimension or of -1 in RDFT and IRDFT.
"""

from __future__ import annotations

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@RANDOM_CASES.row(("DFT", 7), ("IDFT", 7))
def complex_transform(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = gen.sizes(gen.size(1, 3), 1, 9)
    axes = gen.axes(len(shape))
    sizes = [gen.pick(-1, gen.size(1, 12)) for _ in axes]
    data = gen.tensor([*shape, 2], _FLOATS, -2, 2)
    return model(type, since, data, gen.ints(axes), gen.ints(sizes) if gen.chance() else None)


@RANDOM_CASES.row(("RDFT", 9), ("IRDFT", 9))
def real_transform(gen: CaseGenerator, type: str, since: int) -> Case:
    pair = [2] if type == "IRDFT" else []
    shape = gen.sizes(gen.size(1, 3), 2, 9)
    axes = gen.axes(len(shape))
    sizes = [gen.size(1, shape[axis]) for axis in axes]
    data = gen.tensor([*shape, *pair], _FLOATS, -2, 2)
    return model(type, since, data, gen.ints(axes), gen.ints(sizes) if gen.chance() else None)


def _frames(gen: CaseGenerator) -> tuple[int, int, int]:
    size = gen.size(2, 17)
    return size, gen.size(1, 20), gen.size(1, size)


@RANDOM_CASES.row(("STFT", 15))
def short_time(gen: CaseGenerator, type: str, since: int) -> Case:
    size, step, window = _frames(gen)
    kind = gen.pick(*_FLOATS)
    signal = gen.tensor([*gen.pick([], [gen.size(1, 3)]), gen.size(size, 60)], kind, -2, 2)
    return model(
        type,
        since,
        signal,
        gen.tensor([window], kind, 0, 1),
        gen.ints(size),
        gen.ints(step),
        transpose_frames=gen.chance(),
    )


@RANDOM_CASES.row(("ISTFT", 16))
def inverse_short_time(gen: CaseGenerator, type: str, since: int) -> Case:
    size, step, window = _frames(gen)
    kind = gen.pick("f32", "f32", "f16")
    data = gen.tensor([*gen.pick([], [gen.size(1, 3)]), size // 2 + 1, gen.size(1, 6), 2], kind, -2, 2)
    # A window that nearly vanishes would make what rounding leaves there large.
    shape = typed(kind, np.where(gen.rng.random(window) < 0.1, 0, gen.rng.uniform(0.5, 1, window)))
    length = gen.ints(gen.pick(gen.size(1, 90), [gen.size(1, 90)])) if gen.chance() else None
    return model(
        type, since, data, shape, gen.ints(size), gen.ints(step), length, center=gen.chance(), normalized=gen.chance()
    )
