"""Random models of Einsum, attention, inverses and grouped products."""

from __future__ import annotations

import string

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@DRAWS.row(("Einsum", 7))
def einsum(d: Draw, type: str, since: int) -> Case:
    letters = d.some(string.ascii_letters, 2, 5)
    sizes = {letter: d.size(1, 4) for letter in letters}
    hidden = d.sizes(d.size(0, 2)) if d.chance(0.4) else None
    many = d.size(1, 3)
    # OpenVINO rounds to f16 after each pair of operands.
    kind = d.pick("f32", "f32", "f32", "i32", "f16" if many < 3 else "f32")
    subscripts, inputs = [], []
    for _ in range(many):
        labels = d.some(letters, 1, 3)
        if d.chance(0.15):
            labels.append(labels[0])
        shape = [[sizes[letter]] for letter in labels]
        if hidden is not None and d.chance(0.7):
            place = d.size(0, len(labels))
            labels.insert(place, "...")
            shape.insert(place, d.shrunk(hidden))
        subscripts.append("".join(labels))
        inputs.append(d.tensor([size for part in shape for size in part], kind, -3, 3))
    return model(type, since, *inputs, equation=",".join(subscripts) + _result(d, subscripts))


def _result(d: Draw, subscripts: list[str]) -> str:
    """An arrow and some of the labels; or none, where no label is twice in a subscript, which OpenVINO then takes for one of the result's."""
    whole = "".join(subscripts)
    present = sorted(set(whole) - {"."})
    plain = all(len(set(one) - {"."}) == len(one.replace(".", "")) for one in subscripts)
    if plain and d.chance(0.2):
        return ""
    labels = d.some(present, 0)
    if "..." in whole:
        labels.insert(d.size(0, len(labels)), "...")
    return "->" + "".join(labels)


@DRAWS.row(("ScaledDotProductAttention", 13))
def attention(d: Draw, type: str, since: int) -> Case:
    kind, batch = d.pick(*_FLOATS), d.sizes(d.size(1, 3), 1, 3)
    rows, columns, width, depth = d.size(1, 5), d.size(1, 6), d.size(1, 8), d.size(1, 8)
    query = d.tensor([*batch, rows, width], kind, -2, 2)
    key, value = d.tensor([*batch, columns, width], kind, -2, 2), d.tensor([*batch, columns, depth], kind, -2, 2)
    mask = scale = None
    if d.chance(0.7):
        shape = [*[d.pick(1, size) for size in batch], d.pick(1, rows), columns]
        mask = d.pick(typed(kind, 0), d.tensor(shape, kind, -3, 3), typed("boolean", d.rng.random(shape) < 0.8))
        scale = typed(kind, d.rng.uniform(0.1, 1)) if d.chance() else None
    return model(type, since, query, key, value, mask, scale, causal=d.chance(0.3))


@DRAWS.row(("Inverse", 14))
def inverse(d: Draw, type: str, since: int) -> Case:
    side = d.size(1, 6)
    shape = [*d.sizes(d.size(0, 2), 1, 3), side, side]
    matrices = d.rng.uniform(-1, 1, shape) + np.diag(d.rng.choice([-3, 3], side) * side)
    return model(type, since, typed(d.pick("f32", "f32", "f16", "bf16"), matrices), adjoint=d.pick(None, True, False))


@DRAWS.row(("GroupedMatMul", 17))
def grouped(d: Draw, type: str, since: int) -> Case:
    groups, rows, inner, columns = d.sizes(4, 1, 6)
    kind = d.pick("f32", "f16", "i32")
    matrices = d.tensor([groups, columns, inner], kind)
    if d.chance(0.3):
        return model(type, since, d.tensor([groups, rows, inner], kind), matrices)
    ends = np.sort(d.rng.integers(0, rows + 1, groups))
    return model(type, since, d.tensor([rows, inner], kind), matrices, d.ints(ends))
