"""Gathering, scattering, searching, sorting, generating, converting, sparse tables, text, matrix products."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import ELEMENTS
from irexec.testing import Case, typed
from irexec.testing.random_cases import FLOATS, INTEGERS, MOVED, NUMBERS, CaseGenerator, Table

RANDOM_CASES = Table()
_SORTED = ("f32", "f32", "f16", "i32", "i64", "u8")
_TYPES = ("i64", "i32", None)


@RANDOM_CASES.row(("Gather", 1), ("Gather", 7), ("Gather", 8))
def gather(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    axis = gen.size(0, len(shape) - 1)
    batch = gen.size(0, axis) if gen.since > 1 and gen.chance() else 0
    where = [*shape[:batch], *gen.shape(0, 2, 0)]
    indices = gen.indices(shape[axis], where, negative=gen.since == 8)
    written = batch - len(where) if batch and len(where) > batch and gen.chance(0.3) else batch
    extra = {} if gen.since == 1 else {"batch_dims": written}
    # A negative axis of Gather-1 brings the plugin down.
    index = axis if gen.since == 1 else gen.signed(axis, len(shape))
    return gen.model(gen.tensor(shape, MOVED), indices, gen.ints(index), **extra)


@RANDOM_CASES.row(("GatherElements", 6))
def gather_elements(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    axis = gen.axis(len(shape))
    where = list(shape)
    where[axis] = gen.size(1, 5)
    return gen.model(gen.tensor(shape, MOVED), gen.indices(shape[axis], where), axis=axis)


def _tuples(gen: CaseGenerator, sizes: list[int], shape: list[int], *, negative: bool) -> np.ndarray:
    """Indices into several axes at once, along a last axis."""
    return np.stack([gen.indices(size, shape, negative=negative).array for size in sizes], -1)


@RANDOM_CASES.row(("GatherND", 5), ("GatherND", 8))
def gather_nd(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    batch = gen.size(0, len(shape) - 1)
    depth = gen.size(1, len(shape) - batch)
    where = _tuples(gen, shape[batch : batch + depth], [*shape[:batch], *gen.shape(0, 2, 0)], negative=gen.since == 8)
    return gen.model(gen.tensor(shape, MOVED), gen.ints(where), batch_dims=batch)


@RANDOM_CASES.row(("GatherTree", 1))
def gather_tree(gen: CaseGenerator) -> Case:
    steps, batch, beams = gen.size(1, 5), gen.size(1, 3), gen.size(1, 4)
    kind = gen.pick("i32", "f32")
    ids = gen.tensor([steps, batch, beams], kind, 0, 9)
    rounded = typed(kind, np.floor(ids.array))
    parents = typed(kind, gen.rng.integers(0, beams, [steps, batch, beams]))
    lengths = typed(kind, gen.rng.integers(1, steps + 1, [batch]))
    return gen.model(rounded, parents, lengths, typed(kind, gen.size(0, 9)))


@RANDOM_CASES.row(("ScatterUpdate", 3))
def scatter_update(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(1, 4, 0), gen.pick(*MOVED)
    axis = gen.size(0, len(shape) - 1)
    # No index twice: which update is the last is not defined.
    chosen = gen.some(range(shape[axis]), 1)
    where = [[index] for index in chosen] if gen.chance(0.3) else chosen
    updates = [*shape[:axis], *np.shape(where), *shape[axis + 1 :]]
    return gen.model(
        gen.tensor(shape, kind), gen.ints(where), gen.tensor(updates, kind), gen.ints(gen.signed(axis, len(shape)))
    )


@RANDOM_CASES.row(("ScatterElementsUpdate", 3), ("ScatterElementsUpdate", 12))
def scatter_elements_update(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(1, 3, 0), gen.pick(*NUMBERS)
    axis = gen.size(0, len(shape) - 1)
    where = [gen.size(1, size) for size in shape]
    reduction = gen.pick(None, "none", "sum", "prod", "min", "max", "mean") if gen.since == 12 else None
    if reduction in (None, "none"):
        order = np.argsort(gen.rng.random([*where[:axis], shape[axis], *where[axis + 1 :]]), axis)
        indices = np.take(order, range(where[axis]), axis)
    else:
        where[axis] = gen.size(1, 5)
        indices = gen.indices(shape[axis], where).array
    extra = {} if gen.since == 3 else {"reduction": reduction, "use_init_val": gen.pick(None, True, False)}
    inputs = gen.tensor(shape, kind), gen.ints(indices), gen.tensor(where, kind), gen.ints(gen.signed(axis, len(shape)))
    return gen.model(*inputs, **extra)


@RANDOM_CASES.row(("ScatterNDUpdate", 4), ("ScatterNDUpdate", 15))
def scatter_nd_update(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(1, 4, 0), gen.pick(*NUMBERS)
    depth = gen.size(1, len(shape))
    reduction = gen.pick(None, "none", "sum", "sub", "prod", "min", "max") if gen.since == 15 else None
    positions = np.stack(np.unravel_index(gen.rng.permutation(int(np.prod(shape[:depth]))), shape[:depth]), -1)
    count = gen.size(1, min(4, len(positions)))
    where = positions[:count]
    if reduction not in (None, "none") and gen.chance():
        where = positions[gen.rng.integers(0, len(positions), [2, count])]
    updates = gen.tensor([*where.shape[:-1], *shape[depth:]], kind)
    return gen.model(gen.tensor(shape, kind), gen.ints(where), updates, reduction=reduction)


@RANDOM_CASES.row(("TopK", 1), ("TopK", 3), ("TopK", 11))
def top_k(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 4, 0)
    axis = gen.size(0, len(shape) - 1)
    # Which of equal values comes first is only defined where it is asked to be stable.
    stable = gen.since == 11 and gen.chance()
    data = gen.steps(shape, _SORTED) if stable else gen.distinct(shape, _SORTED)
    sort = gen.pick("value", "value" if stable else "index")
    extra = {"index_element_type": gen.pick(None, *_TYPES)}
    if gen.since == 11:
        extra["stable"] = stable
    k = typed(gen.pick("i64", "i32", "i8"), gen.size(1, shape[axis]))
    return gen.model(data, k, axis=gen.signed(axis, len(shape)), mode=gen.pick("max", "min"), sort=sort, **extra)


@RANDOM_CASES.row(("CumSum", 3))
def cumulated(gen: CaseGenerator) -> Case:
    shape = gen.shape(1)
    axis = None if gen.chance(0.2) else gen.ints(gen.axis(len(shape)))
    return gen.model(
        gen.tensor(shape, NUMBERS), axis, exclusive=gen.pick(None, True, False), reverse=gen.pick(None, True, False)
    )


@RANDOM_CASES.row(("NonZero", 3))
def non_zero(gen: CaseGenerator) -> Case:
    return gen.model(gen.steps(gen.shape(), MOVED, -1, 1), output_type=gen.pick(*_TYPES))


@RANDOM_CASES.row(("Unique", 10))
def unique(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 3, 0)
    axis = gen.ints(gen.axis(len(shape))) if gen.chance(0.6) else None
    kinds = {f"{name}_element_type": gen.pick(*_TYPES) for name in ("index", "count")}
    return gen.model(gen.steps(shape, _SORTED, 0, 2), axis, sorted=gen.pick(None, True, False), **kinds)


@RANDOM_CASES.row(("Bucketize", 3))
def bucketize(gen: CaseGenerator) -> Case:
    buckets = gen.steps([gen.size(0, 5)], ("f32", "i32", "i64", "f16"))
    ordered = typed(buckets.element.name, np.sort(buckets.array))
    data = gen.steps(gen.shape(), ("f32", "i32", "i64", "f16", "u8"))
    return gen.model(data, ordered, output_type=gen.pick("i32", "i64"), with_right_bound=gen.pick(None, True, False))


@RANDOM_CASES.row(("SearchSorted", 15))
def search_sorted(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(1, 3, 0), gen.pick(*_SORTED)
    ordered = typed(kind, np.sort(gen.steps(shape, kind).array, -1))
    values = gen.steps([*shape[:-1], gen.size()] if len(shape) > 1 else gen.shape(1, 3, 0), kind)
    return gen.model(ordered, values, right_mode=gen.pick(None, True, False), output_type=gen.pick(*_TYPES))


@RANDOM_CASES.row(("Range", 1), ("Range", 4))
def range_(gen: CaseGenerator) -> Case:
    kind = gen.pick("f32", "f32", "i32", "i64", "f16")
    whole = kind[0] == "i"
    ends = [gen.size(-9, 9) if whole or gen.chance() else round(float(gen.rng.uniform(-9, 9)), 2) for _ in range(2)]
    step = gen.pick(1, 2, 3, -1, -2) if whole else gen.pick(1, 2, 3, -1, -2, 0.5, 0.1, -0.3)
    extra = {} if gen.since == 1 else {"output_type": gen.pick("f32", "i32", "i64", "f16", kind)}
    # All three become numbers of the result's type first, and the step must not become 0.
    step = step if abs(step) >= 1 or extra.get("output_type", kind)[0] == "f" else 1
    return gen.model(*(typed(kind, number) for number in (*ends, step)), **extra)


@RANDOM_CASES.row(("OneHot", 1), ("OneHot", 16))
def one_hot(gen: CaseGenerator) -> Case:
    shape, kind = gen.shape(0, 3, 0), gen.pick(*MOVED)
    mode = {} if gen.since == 1 else {"negative_indices_mode": gen.pick(None, "ignore_negative", "normalize")}
    indices = gen.tensor(shape, ("i64", "i32"), -3, 5)
    return gen.model(
        indices, gen.ints(gen.size()), gen.tensor([], kind), gen.tensor([], kind), axis=gen.axis(len(shape) + 1), **mode
    )


@RANDOM_CASES.row(("Eye", 9))
def eye(gen: CaseGenerator) -> Case:
    batch = gen.ints(gen.sizes(gen.size(0, 2), 1, 3)) if gen.chance() else None
    inputs = [
        gen.ints(number if gen.chance() else [number]) for number in (gen.size(0, 5), gen.size(0, 5), gen.size(-4, 4))
    ]
    return gen.model(*inputs, batch, output_type=gen.pick("f32", "f16", "i32", "i64", "u8", "i8", "bf16", "f64"))


_CONVERTED = tuple(e.name for e in ELEMENTS if e.kind != "string")
_WHOLE = {"u1": 1, "u2": 3, "u3": 7, "u4": 15, "u6": 63, "i4": 7, "nf4": 1, "f4e2m1": 6, "f8e8m0": 100}


@RANDOM_CASES.row(("Convert", 1), ("ConvertLike", 1))
def convert(gen: CaseGenerator) -> Case:
    source, target = gen.pick(*_CONVERTED), gen.pick(*_CONVERTED)
    # Values outside the range of the target are not defined.
    maximum = min(_WHOLE.get(source, 100), _WHOLE.get(target, 100))
    signed = target[0] not in "u" and "e8m0" not in source + target
    data = gen.tensor(gen.shape(), source, -maximum if signed else 0.02, maximum)
    if gen.type == "ConvertLike":
        return gen.model(data, gen.tensor(gen.shape(), target, 0, 1))
    return gen.model(data, destination_type=target)


@RANDOM_CASES.row(("EmbeddingBagOffsetsSum", 3), ("EmbeddingBagOffsets", 15))
def embedding_bag_offsets(gen: CaseGenerator) -> Case:
    table = gen.tensor([gen.size(1, 5), *gen.shape(0, 2, 0)], ("f32", "f32", "f16", "i32"))
    count, bags = gen.size(1, 6), gen.size(1, 4)
    kind = gen.pick(("i64",), ("i32",))
    indices = gen.ints(gen.rng.integers(0, table.array.shape[0], [count]), kind)
    # The last bag is not empty: OpenVINO reads beyond its indices there.
    offsets = gen.ints([0, *sorted(gen.sizes(bags - 1, 0, count - 1))], kind)
    reduction = gen.pick(None, "sum", "mean") if gen.since == 15 else None
    default = gen.ints(gen.size(-1, table.array.shape[0] - 1), kind) if gen.chance() else None
    has_weights = default is not None and reduction != "mean" and gen.chance()
    weights = gen.tensor([count], table.element.name) if has_weights else None
    return gen.model(table, indices, offsets, default, weights, reduction=reduction)


@RANDOM_CASES.row(("EmbeddingBagPackedSum", 3), ("EmbeddingBagPacked", 15))
def embedding_bag_packed(gen: CaseGenerator) -> Case:
    table = gen.tensor([gen.size(1, 5), *gen.shape(1, 2, 0)], ("f32", "f32", "f16", "i32"))
    indices = gen.ints(gen.rng.integers(0, table.array.shape[0], gen.sizes(2)))
    reduction = gen.pick(None, "sum", "mean") if gen.since == 15 else None
    weights = gen.tensor(indices.array.shape, table.element.name) if reduction != "mean" and gen.chance() else None
    return gen.model(table, indices, weights, reduction=reduction)


@RANDOM_CASES.row(("EmbeddingSegmentsSum", 3))
def embedding_segments_sum(gen: CaseGenerator) -> Case:
    table = gen.tensor([gen.size(1, 5), *gen.shape(1, 2, 0)], ("f32", "f32", "f16", "i32"))
    count, segments = gen.size(1, 6), gen.size(1, 5)
    kind = gen.pick(("i64",), ("i32",))
    indices = gen.ints(gen.rng.integers(0, table.array.shape[0], [count]), kind)
    ids = gen.ints(np.sort(gen.rng.integers(0, segments, [count])), kind)
    default = gen.ints(gen.size(-1, table.array.shape[0] - 1), kind) if gen.chance() else None
    weights = gen.tensor([count], table.element.name) if default is not None and gen.chance() else None
    return gen.model(table, indices, ids, gen.ints(segments, kind), default, weights)


@RANDOM_CASES.row(("SegmentMax", 16))
def segment_max(gen: CaseGenerator) -> Case:
    shape = gen.shape(1, 3, 0)
    ids = np.sort(gen.rng.integers(0, 5, [shape[0]]))
    count = gen.ints(gen.size(1, 6)) if gen.chance() else None
    return gen.model(gen.tensor(shape, _SORTED), gen.ints(ids), count, fill_mode=gen.pick("zero", "lowest"))


@RANDOM_CASES.row(("SparseFillEmptyRows", 16))
def sparse_fill_empty_rows(gen: CaseGenerator) -> Case:
    rows, columns, kind = gen.size(1, 5), gen.size(1, 4), gen.pick(*_SORTED)
    positions = sorted(gen.some([(row, column) for row in range(rows) for column in range(columns)], 0, 6))
    indices = gen.ints(np.array(positions, np.int64).reshape(-1, 2), ("i64",))
    return gen.model(
        gen.tensor([len(positions)], kind), gen.ints([rows, columns], ("i64",)), indices, gen.tensor([], kind)
    )


@RANDOM_CASES.row(("StringTensorPack", 15))
def string_tensor_pack(gen: CaseGenerator) -> Case:
    shape, letters = gen.shape(0, 2), gen.size(0, 9)
    # OpenVINO wants one text after the other.
    cuts = np.sort(gen.rng.integers(0, letters + 1, [2 * int(np.prod(shape))]))
    kind = gen.pick(("i64",), ("i32",))
    begins, ends = (gen.ints(cuts[side::2].reshape(shape), kind) for side in (0, 1))
    return gen.model(begins, ends, typed("u8", gen.rng.integers(97, 123, [letters])))


@RANDOM_CASES.row(("StringTensorUnpack", 15))
def string_tensor_unpack(gen: CaseGenerator) -> Case:
    return gen.model(gen.tensor(gen.shape(0, 2), "string"))


@RANDOM_CASES.row(("MatMul", 1))
def matmul(gen: CaseGenerator) -> Case:
    rows, inner, columns = gen.sizes(3)
    transposed = [gen.pick(None, True, False) for _ in range(2)]
    batch = gen.pair(2)
    kind = gen.pick(*FLOATS, *INTEGERS[-4:])
    shapes = []
    for index, (pair, turn) in enumerate(zip(((rows, inner), (inner, columns)), transposed, strict=True)):
        shapes.append([inner] if gen.chance(0.1) else [*batch[index], *(reversed(pair) if turn else pair)])
    return gen.model(
        gen.tensor(shapes[0], kind), gen.tensor(shapes[1], kind), transpose_a=transposed[0], transpose_b=transposed[1]
    )
