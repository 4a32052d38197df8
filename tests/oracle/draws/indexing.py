"""Gathering, scattering, searching, sorting, generating, converting, sparse tables, text, matrix products."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import ELEMENTS
from tests.oracle.draw import FLOATS, INTEGERS, MOVED, NUMBERS, Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()
_SORTED = ("f32", "f32", "f16", "i32", "i64", "u8")
_TYPES = ("i64", "i32", None)


@DRAWS.row(("Gather", 1), ("Gather", 7), ("Gather", 8))
def gather(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    axis = d.size(0, len(shape) - 1)
    batch = d.size(0, axis) if since > 1 and d.chance() else 0
    where = [*shape[:batch], *d.shape(0, 2, 0)]
    indices = d.indices(shape[axis], where, negative=since == 8)
    written = batch - len(where) if batch and len(where) > batch and d.chance(0.3) else batch
    extra = {} if since == 1 else {"batch_dims": written}
    # A negative axis of Gather-1 brings the plugin down.
    place = axis if since == 1 else d.signed(axis, len(shape))
    return model(type, since, d.tensor(shape, MOVED), indices, d.ints(place), **extra)


@DRAWS.row(("GatherElements", 6))
def gather_elements(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    axis = d.axis(len(shape))
    where = list(shape)
    where[axis] = d.size(1, 5)
    return model(type, since, d.tensor(shape, MOVED), d.indices(shape[axis], where), axis=axis)


def _tuples(d: Draw, sizes: list[int], shape: list[int], *, negative: bool) -> np.ndarray:
    """Indices into several axes at once, along a last axis."""
    return np.stack([d.indices(size, shape, negative=negative).array for size in sizes], -1)


@DRAWS.row(("GatherND", 5), ("GatherND", 8))
def gather_nd(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    batch = d.size(0, len(shape) - 1)
    depth = d.size(1, len(shape) - batch)
    where = _tuples(d, shape[batch : batch + depth], [*shape[:batch], *d.shape(0, 2, 0)], negative=since == 8)
    return model(type, since, d.tensor(shape, MOVED), d.ints(where), batch_dims=batch)


@DRAWS.row(("GatherTree", 1))
def gather_tree(d: Draw, type: str, since: int) -> Case:
    steps, batch, beams = d.size(1, 5), d.size(1, 3), d.size(1, 4)
    kind = d.pick("i32", "f32")
    ids = d.tensor([steps, batch, beams], kind, 0, 9)
    rounded = typed(kind, np.floor(ids.array))
    parents = typed(kind, d.rng.integers(0, beams, [steps, batch, beams]))
    lengths = typed(kind, d.rng.integers(1, steps + 1, [batch]))
    return model(type, since, rounded, parents, lengths, typed(kind, d.size(0, 9)))


@DRAWS.row(("ScatterUpdate", 3))
def scatter_update(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(1, 4, 0), d.pick(*MOVED)
    axis = d.size(0, len(shape) - 1)
    # No index twice: which update is the last is not defined.
    chosen = d.some(range(shape[axis]), 1)
    where = [[index] for index in chosen] if d.chance(0.3) else chosen
    updates = [*shape[:axis], *np.shape(where), *shape[axis + 1 :]]
    return model(type, since, d.tensor(shape, kind), d.ints(where), d.tensor(updates, kind), d.ints(d.signed(axis, len(shape))))


@DRAWS.row(("ScatterElementsUpdate", 3), ("ScatterElementsUpdate", 12))
def scatter_elements_update(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(1, 3, 0), d.pick(*NUMBERS)
    axis = d.size(0, len(shape) - 1)
    where = [d.size(1, size) for size in shape]
    reduction = d.pick(None, "none", "sum", "prod", "min", "max", "mean") if since == 12 else None
    if reduction in (None, "none"):
        order = np.argsort(d.rng.random([*where[:axis], shape[axis], *where[axis + 1 :]]), axis)
        indices = np.take(order, range(where[axis]), axis)
    else:
        where[axis] = d.size(1, 5)
        indices = d.indices(shape[axis], where).array
    extra = {} if since == 3 else {"reduction": reduction, "use_init_val": d.pick(None, True, False)}
    inputs = d.tensor(shape, kind), d.ints(indices), d.tensor(where, kind), d.ints(d.signed(axis, len(shape)))
    return model(type, since, *inputs, **extra)


@DRAWS.row(("ScatterNDUpdate", 4), ("ScatterNDUpdate", 15))
def scatter_nd_update(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(1, 4, 0), d.pick(*NUMBERS)
    depth = d.size(1, len(shape))
    reduction = d.pick(None, "none", "sum", "sub", "prod", "min", "max") if since == 15 else None
    places = np.stack(np.unravel_index(d.rng.permutation(int(np.prod(shape[:depth]))), shape[:depth]), -1)
    count = d.size(1, min(4, len(places)))
    where = places[:count]
    if reduction not in (None, "none") and d.chance():
        where = places[d.rng.integers(0, len(places), [2, count])]
    updates = d.tensor([*where.shape[:-1], *shape[depth:]], kind)
    return model(type, since, d.tensor(shape, kind), d.ints(where), updates, reduction=reduction)


@DRAWS.row(("TopK", 1), ("TopK", 3), ("TopK", 11))
def top_k(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    axis = d.size(0, len(shape) - 1)
    # Which of equal numbers comes first is only defined where it is asked to be stable.
    stable = since == 11 and d.chance()
    data = d.steps(shape, _SORTED) if stable else d.distinct(shape, _SORTED)
    sort = d.pick("value", "value" if stable else "index")
    extra = {} if since == 1 else {"index_element_type": d.pick(*_TYPES)}
    if since == 11:
        extra["stable"] = stable
    k = typed(d.pick("i64", "i32", "i8"), d.size(1, shape[axis]))
    return model(type, since, data, k, axis=d.signed(axis, len(shape)), mode=d.pick("max", "min"), sort=sort, **extra)


@DRAWS.row(("CumSum", 3))
def cumulated(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    axis = None if d.chance(0.2) else d.ints(d.axis(len(shape)))
    return model(type, since, d.tensor(shape, NUMBERS), axis, exclusive=d.pick(None, True, False), reverse=d.pick(None, True, False))


@DRAWS.row(("NonZero", 3))
def non_zero(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.steps(d.shape(), MOVED, -1, 1), output_type=d.pick(*_TYPES))


@DRAWS.row(("Unique", 10))
def unique(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 3, 0)
    axis = d.ints(d.axis(len(shape))) if d.chance(0.6) else None
    kinds = {f"{name}_element_type": d.pick(*_TYPES) for name in ("index", "count")}
    return model(type, since, d.steps(shape, _SORTED, 0, 2), axis, sorted=d.pick(None, True, False), **kinds)


@DRAWS.row(("Bucketize", 3))
def bucketize(d: Draw, type: str, since: int) -> Case:
    buckets = d.steps([d.size(0, 5)], ("f32", "i32", "i64", "f16"))
    ordered = typed(buckets.element.name, np.sort(buckets.array))
    data = d.steps(d.shape(), ("f32", "i32", "i64", "f16", "u8"))
    return model(type, since, data, ordered, output_type=d.pick("i32", "i64"), with_right_bound=d.pick(None, True, False))


@DRAWS.row(("SearchSorted", 15))
def search_sorted(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(1, 3, 0), d.pick(*_SORTED)
    ordered = typed(kind, np.sort(d.steps(shape, kind).array, -1))
    values = d.steps([*shape[:-1], d.size()] if len(shape) > 1 else d.shape(1, 3, 0), kind)
    return model(type, since, ordered, values, right_mode=d.pick(None, True, False), output_type=d.pick(*_TYPES))


@DRAWS.row(("Range", 1), ("Range", 4))
def range_(d: Draw, type: str, since: int) -> Case:
    kind = d.pick("f32", "f32", "i32", "i64", "f16")
    whole = kind[0] == "i"
    ends = [d.size(-9, 9) if whole or d.chance() else round(float(d.rng.uniform(-9, 9)), 2) for _ in range(2)]
    step = d.pick(1, 2, 3, -1, -2) if whole else d.pick(1, 2, 3, -1, -2, 0.5, 0.1, -0.3)
    extra = {} if since == 1 else {"output_type": d.pick("f32", "i32", "i64", "f16", kind)}
    # All three become numbers of the result's type first, and the step must not become 0.
    step = step if abs(step) >= 1 or extra.get("output_type", kind)[0] == "f" else 1
    return model(type, since, *(typed(kind, number) for number in (*ends, step)), **extra)


@DRAWS.row(("OneHot", 1), ("OneHot", 16))
def one_hot(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(0, 3, 0), d.pick(*MOVED)
    mode = {} if since == 1 else {"negative_indices_mode": d.pick(None, "ignore_negative", "normalize")}
    indices = d.tensor(shape, ("i64", "i32"), -3, 5)
    return model(type, since, indices, d.ints(d.size()), d.tensor([], kind), d.tensor([], kind), axis=d.axis(len(shape) + 1), **mode)


@DRAWS.row(("Eye", 9))
def eye(d: Draw, type: str, since: int) -> Case:
    batch = d.ints(d.sizes(d.size(0, 2), 1, 3)) if d.chance() else None
    inputs = [d.ints(number if d.chance() else [number]) for number in (d.size(0, 5), d.size(0, 5), d.size(-4, 4))]
    return model(type, since, *inputs, batch, output_type=d.pick("f32", "f16", "i32", "i64", "u8", "i8", "bf16", "f64"))


_CONVERTED = tuple(e.name for e in ELEMENTS if e.kind != "string")
_WHOLE = {"u1": 1, "u2": 3, "u3": 7, "u4": 15, "u6": 63, "i4": 7, "nf4": 1, "f4e2m1": 6, "f8e8m0": 100}


@DRAWS.row(("Convert", 1), ("ConvertLike", 1))
def convert(d: Draw, type: str, since: int) -> Case:
    source, target = d.pick(*_CONVERTED), d.pick(*_CONVERTED)
    # What lies outside the range of the target is not defined.
    most = min(_WHOLE.get(source, 100), _WHOLE.get(target, 100))
    signed = target[0] not in "u" and "e8m0" not in source + target
    data = d.tensor(d.shape(), source, -most if signed else 0.02, most)
    return model(
        type,
        since,
        data,
        *([d.tensor(d.shape(), target, 0, 1)] if type == "ConvertLike" else []),
        **({} if type == "ConvertLike" else {"destination_type": target}),
    )


@DRAWS.row(("EmbeddingBagOffsetsSum", 3), ("EmbeddingBagOffsets", 15))
def embedding_bag_offsets(d: Draw, type: str, since: int) -> Case:
    table = d.tensor([d.size(1, 5), *d.shape(0, 2, 0)], ("f32", "f32", "f16", "i32"))
    count, bags = d.size(1, 6), d.size(1, 4)
    kind = d.pick(("i64",), ("i32",))
    indices = d.ints(d.rng.integers(0, table.array.shape[0], [count]), kind)
    # The last bag is not empty: OpenVINO reads beyond its indices there.
    offsets = d.ints([0, *sorted(d.sizes(bags - 1, 0, count - 1))], kind)
    reduction = d.pick(None, "sum", "mean") if since == 15 else None
    default = d.ints(d.size(-1, table.array.shape[0] - 1), kind) if d.chance() else None
    weights = d.tensor([count], table.element.name) if default is not None and reduction != "mean" and d.chance() else None
    return model(type, since, table, indices, offsets, default, weights, reduction=reduction)


@DRAWS.row(("EmbeddingBagPackedSum", 3), ("EmbeddingBagPacked", 15))
def embedding_bag_packed(d: Draw, type: str, since: int) -> Case:
    table = d.tensor([d.size(1, 5), *d.shape(1, 2, 0)], ("f32", "f32", "f16", "i32"))
    indices = d.ints(d.rng.integers(0, table.array.shape[0], d.sizes(2)))
    reduction = d.pick(None, "sum", "mean") if since == 15 else None
    weights = d.tensor(indices.array.shape, table.element.name) if reduction != "mean" and d.chance() else None
    return model(type, since, table, indices, weights, reduction=reduction)


@DRAWS.row(("EmbeddingSegmentsSum", 3))
def embedding_segments_sum(d: Draw, type: str, since: int) -> Case:
    table = d.tensor([d.size(1, 5), *d.shape(1, 2, 0)], ("f32", "f32", "f16", "i32"))
    count, segments = d.size(1, 6), d.size(1, 5)
    kind = d.pick(("i64",), ("i32",))
    indices = d.ints(d.rng.integers(0, table.array.shape[0], [count]), kind)
    ids = d.ints(np.sort(d.rng.integers(0, segments, [count])), kind)
    default = d.ints(d.size(-1, table.array.shape[0] - 1), kind) if d.chance() else None
    weights = d.tensor([count], table.element.name) if default is not None and d.chance() else None
    return model(type, since, table, indices, ids, d.ints(segments, kind), default, weights)


@DRAWS.row(("SegmentMax", 16))
def segment_max(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 3, 0)
    ids = np.sort(d.rng.integers(0, 5, [shape[0]]))
    count = d.ints(d.size(1, 6)) if d.chance() else None
    return model(type, since, d.tensor(shape, _SORTED), d.ints(ids), count, fill_mode=d.pick("zero", "lowest"))


@DRAWS.row(("SparseFillEmptyRows", 16))
def sparse_fill_empty_rows(d: Draw, type: str, since: int) -> Case:
    rows, columns, kind = d.size(1, 5), d.size(1, 4), d.pick(*_SORTED)
    places = sorted(d.some([(row, column) for row in range(rows) for column in range(columns)], 0, 6))
    indices = d.ints(np.array(places, np.int64).reshape(-1, 2), ("i64",))
    return model(type, since, d.tensor([len(places)], kind), d.ints([rows, columns], ("i64",)), indices, d.tensor([], kind))


@DRAWS.row(("StringTensorPack", 15))
def string_tensor_pack(d: Draw, type: str, since: int) -> Case:
    shape, letters = d.shape(0, 2), d.size(0, 9)
    # OpenVINO wants one text after the other.
    cuts = np.sort(d.rng.integers(0, letters + 1, [2 * int(np.prod(shape))]))
    kind = d.pick(("i64",), ("i32",))
    begins, ends = (d.ints(cuts[side::2].reshape(shape), kind) for side in (0, 1))
    return model(type, since, begins, ends, typed("u8", d.rng.integers(97, 123, [letters])))


@DRAWS.row(("StringTensorUnpack", 15))
def string_tensor_unpack(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(0, 2), "string"))


@DRAWS.row(("MatMul", 1))
def matmul(d: Draw, type: str, since: int) -> Case:
    rows, inner, columns = d.sizes(3)
    turned = [d.pick(None, True, False) for _ in range(2)]
    batch = d.pair(2)
    kind = d.pick(*FLOATS, *INTEGERS[-4:])
    shapes = []
    for place, (pair, turn) in enumerate(zip(((rows, inner), (inner, columns)), turned, strict=True)):
        shapes.append([inner] if d.chance(0.1) else [*batch[place], *(reversed(pair) if turn else pair)])
    return model(type, since, d.tensor(shapes[0], kind), d.tensor(shapes[1], kind), transpose_a=turned[0], transpose_b=turned[1])
