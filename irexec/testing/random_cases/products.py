"""Random models of Einsum, attention, inverses and grouped products."""

from __future__ import annotations

import string

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@RANDOM_CASES.row(("Einsum", 7))
def einsum(gen: CaseGenerator, type: str, since: int) -> Case:
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
    return model(type, since, *inputs, equation=",".join(subscripts) + _result(gen, subscripts))


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
def attention(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, batch = gen.pick(*_FLOATS), gen.sizes(gen.size(1, 3), 1, 3)
    rows, columns, width, depth = gen.size(1, 5), gen.size(1, 6), gen.size(1, 8), gen.size(1, 8)
    query = gen.tensor([*batch, rows, width], kind, -2, 2)
    key, value = gen.tensor([*batch, columns, width], kind, -2, 2), gen.tensor([*batch, columns, depth], kind, -2, 2)
    mask = scale = None
    if gen.chance(0.7):
        shape = [*[gen.pick(1, size) for size in batch], gen.pick(1, rows), columns]
        mask = gen.pick(typed(kind, 0), gen.tensor(shape, kind, -3, 3), typed("boolean", gen.rng.random(shape) < 0.8))
        scale = typed(kind, gen.rng.uniform(0.1, 1)) if gen.chance() else None
    return model(type, since, query, key, value, mask, scale, causal=gen.chance(0.3))


@RANDOM_CASES.row(("Inverse", 14))
def inverse(gen: CaseGenerator, type: str, since: int) -> Case:
    side = gen.size(1, 6)
    shape = [*gen.sizes(gen.size(0, 2), 1, 3), side, side]
    matrices = gen.rng.uniform(-1, 1, shape) + np.diag(gen.rng.choice([-3, 3], side) * side)
    return model(
        type, since, typed(gen.pick("f32", "f32", "f16", "bf16"), matrices), adjoint=gen.pick(None, True, False)
    )


@RANDOM_CASES.row(("GroupedMatMul", 17))
def grouped(gen: CaseGenerator, type: str, since: int) -> Case:
    groups, rows, inner, columns = gen.sizes(4, 1, 6)
    kind = gen.pick("f32", "f16", "i32")
    matrices = gen.tensor([groups, columns, inner], kind)
    if gen.chance(0.3):
        return model(type, since, gen.tensor([groups, rows, inner], kind), matrices)
    ends = np.sort(gen.rng.integers(0, rows + 1, groups))
    return model(type, since, gen.tensor([rows, inner], kind), matrices, gen.ints(ends))
