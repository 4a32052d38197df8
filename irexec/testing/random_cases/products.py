"""Random models of products, reductions, Fourier transforms and connectionist temporal classification.

What the CPU plugin gets wrong is left out: a signal_size above the dimension or of -1 in RDFT and IRDFT.
"""

from __future__ import annotations

import string

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.random_cases import NUMBERS, CaseGenerator, Table

RANDOM_CASES = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@RANDOM_CASES.row(("Einsum", 7))
def einsum(gen: CaseGenerator) -> Case:
    letters = gen.some(string.ascii_letters, 2, 5)
    sizes = {letter: gen.size(1, 4) for letter in letters}
    hidden = gen.sizes(gen.size(0, 2)) if gen.chance(0.4) else None
    many = gen.size(1, 3)
    # OpenVINO rounds to f16 after each pair of operands.
    kind = gen.pick("f32", "f32", "f32", "i32", "f16" if many < 3 else "f32")
    subscripts, inputs = [], []
    for _ in range(many):
        labels = gen.some(letters, 1, 3)
        if gen.chance(0.15):
            labels.append(labels[0])
        shape = [[sizes[letter]] for letter in labels]
        if hidden is not None and gen.chance(0.7):
            index = gen.size(0, len(labels))
            labels.insert(index, "...")
            shape.insert(index, gen.shrunk(hidden))
        subscripts.append("".join(labels))
        inputs.append(gen.tensor([size for part in shape for size in part], kind, -3, 3))
    return gen.model(*inputs, equation=",".join(subscripts) + _result(gen, subscripts))


def _result(gen: CaseGenerator, subscripts: list[str]) -> str:
    """An arrow and some of the labels; or nothing, where no subscript has a label twice.

    Without an arrow OpenVINO takes a label that occurs twice for one of the result.
    """
    whole = "".join(subscripts)
    present = sorted(set(whole) - {"."})
    plain = all(len(set(one) - {"."}) == len(one.replace(".", "")) for one in subscripts)
    if plain and gen.chance(0.2):
        return ""
    labels = gen.some(present, 0)
    if "..." in whole:
        labels.insert(gen.size(0, len(labels)), "...")
    return "->" + "".join(labels)


@RANDOM_CASES.row(("ScaledDotProductAttention", 13))
def attention(gen: CaseGenerator) -> Case:
    kind, batch = gen.pick(*_FLOATS), gen.sizes(gen.size(1, 3), 1, 3)
    rows, columns, width, depth = gen.size(1, 5), gen.size(1, 6), gen.size(1, 8), gen.size(1, 8)
    query = gen.tensor([*batch, rows, width], kind, -2, 2)
    key, value = gen.tensor([*batch, columns, width], kind, -2, 2), gen.tensor([*batch, columns, depth], kind, -2, 2)
    mask = scale = None
    if gen.chance(0.7):
        shape = [*[gen.pick(1, size) for size in batch], gen.pick(1, rows), columns]
        mask = gen.pick(typed(kind, 0), gen.tensor(shape, kind, -3, 3), typed("boolean", gen.rng.random(shape) < 0.8))
        scale = typed(kind, gen.rng.uniform(0.1, 1)) if gen.chance() else None
    return gen.model(query, key, value, mask, scale, causal=gen.chance(0.3))


@RANDOM_CASES.row(("Inverse", 14))
def inverse(gen: CaseGenerator) -> Case:
    side = gen.size(1, 6)
    shape = [*gen.sizes(gen.size(0, 2), 1, 3), side, side]
    matrices = gen.rng.uniform(-1, 1, shape) + np.diag(gen.rng.choice([-3, 3], side) * side)
    return gen.model(typed(gen.pick("f32", "f32", "f16", "bf16"), matrices), adjoint=gen.pick(None, True, False))


@RANDOM_CASES.row(("GroupedMatMul", 17))
def grouped(gen: CaseGenerator) -> Case:
    groups, rows, inner, columns = gen.sizes(4, 1, 6)
    kind = gen.pick("f32", "f16", "i32")
    matrices = gen.tensor([groups, columns, inner], kind)
    if gen.chance(0.3):
        return gen.model(gen.tensor([groups, rows, inner], kind), matrices)
    ends = np.sort(gen.rng.integers(0, rows + 1, groups))
    return gen.model(gen.tensor([rows, inner], kind), matrices, gen.ints(ends))


_REDUCED = ("Max", "Mean", "Min", "Prod", "Sum", "LogicalAnd", "LogicalOr")


@RANDOM_CASES.row(("ReduceL1", 4), ("ReduceL2", 4), *((f"Reduce{kind}", 1) for kind in _REDUCED))
def reduce(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    axes = gen.axes(len(shape), 0)
    given = gen.ints(axes[0] if len(axes) == 1 and gen.chance() else axes)
    data = gen.tensor(shape, "boolean" if "Logical" in gen.type else NUMBERS, -3, 3)
    return gen.model(data, given, keep_dims=gen.pick(None, True, False))


@RANDOM_CASES.row(("DFT", 7), ("IDFT", 7))
def complex_transform(gen: CaseGenerator) -> Case:
    shape = gen.sizes(gen.size(1, 3), 1, 9)
    axes = gen.axes(len(shape))
    sizes = [gen.pick(-1, gen.size(1, 12)) for _ in axes]
    data = gen.tensor([*shape, 2], _FLOATS, -2, 2)
    return gen.model(data, gen.ints(axes), gen.ints(sizes) if gen.chance() else None)


@RANDOM_CASES.row(("RDFT", 9), ("IRDFT", 9))
def real_transform(gen: CaseGenerator) -> Case:
    pair = [2] if gen.type == "IRDFT" else []
    shape = gen.sizes(gen.size(1, 3), 2, 9)
    axes = gen.axes(len(shape))
    sizes = [gen.size(1, shape[axis]) for axis in axes]
    data = gen.tensor([*shape, *pair], _FLOATS, -2, 2)
    return gen.model(data, gen.ints(axes), gen.ints(sizes) if gen.chance() else None)


def _frames(gen: CaseGenerator) -> tuple[int, int, int]:
    size = gen.size(2, 17)
    return size, gen.size(1, 20), gen.size(1, size)


@RANDOM_CASES.row(("STFT", 15))
def short_time(gen: CaseGenerator) -> Case:
    size, step, window = _frames(gen)
    kind = gen.pick(*_FLOATS)
    signal = gen.tensor([*gen.pick([], [gen.size(1, 3)]), gen.size(size, 60)], kind, -2, 2)
    return gen.model(
        signal, gen.tensor([window], kind, 0, 1), gen.ints(size), gen.ints(step), transpose_frames=gen.chance()
    )


@RANDOM_CASES.row(("ISTFT", 16))
def inverse_short_time(gen: CaseGenerator) -> Case:
    size, step, window = _frames(gen)
    kind = gen.pick("f32", "f32", "f16")
    data = gen.tensor([*gen.pick([], [gen.size(1, 3)]), size // 2 + 1, gen.size(1, 6), 2], kind, -2, 2)
    # A window that nearly vanishes would make what rounding leaves there large.
    shape = typed(kind, np.where(gen.rng.random(window) < 0.1, 0, gen.rng.uniform(0.5, 1, window)))
    length = gen.ints(gen.pick(gen.size(1, 90), [gen.size(1, 90)])) if gen.chance() else None
    return gen.model(data, shape, gen.ints(size), gen.ints(step), length, center=gen.chance(), normalized=gen.chance())


@RANDOM_CASES.row(("CTCGreedyDecoder", 1))
def greedy(gen: CaseGenerator) -> Case:
    steps, batch, classes = gen.size(1, 9), gen.size(1, 4), gen.size(2, 5)
    kind = gen.pick("f32", "f32", "f16")
    mask = np.arange(steps)[:, None] < gen.rng.integers(0, steps + 1, batch)
    return gen.model(
        gen.distinct([steps, batch, classes], kind), typed(kind, mask), ctc_merge_repeated=gen.pick(True, False)
    )


@RANDOM_CASES.row(("CTCGreedyDecoderSeqLen", 6))
def greedy_lengths(gen: CaseGenerator) -> Case:
    batch, steps, classes = gen.size(1, 4), gen.size(1, 9), gen.size(2, 5)
    kind = gen.pick("i32", "i64")
    blank = typed(kind, gen.pick(gen.size(0, classes - 1), [gen.size(0, classes - 1)])) if gen.chance() else None
    return gen.model(
        gen.distinct([batch, steps, classes], gen.pick("f32", "f16")),
        gen.tensor([batch], kind, 0, steps),
        blank,
        merge_repeated=gen.pick(True, False),
        classes_index_type=gen.pick("i32", "i64"),
        sequence_length_type=gen.pick("i32", "i64"),
    )


@RANDOM_CASES.row(("CTCLoss", 4))
def loss(gen: CaseGenerator) -> Case:
    """Sequences of at least one step and one label: the plugin reads beside its memory otherwise."""
    batch, steps, classes = gen.size(1, 3), gen.size(1, 8), gen.size(2, 5)
    kind, last = gen.pick("i32", "i64"), classes - 1
    lengths = gen.rng.integers(1, steps + 1, batch)
    counts = [gen.size(1, int(length)) for length in lengths]
    blank = typed(kind, last) if gen.chance() else None
    return gen.model(
        gen.tensor([batch, steps, classes], gen.pick("f32", "f16"), -3, 3),
        typed(kind, lengths),
        typed(kind, gen.rng.integers(0, last, (batch, steps))),
        typed(kind, counts),
        blank,
        preprocess_collapse_repeated=gen.chance(),
        ctc_merge_repeated=gen.chance(),
        unique=gen.chance(),
    )
