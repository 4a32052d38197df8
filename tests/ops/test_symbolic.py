"""Values that are propagate_value through a graph before it runs: by the kernels themselves, on objects."""

import numpy as np
import pytest

from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import F32
from irexec.ir.dims import ANY, Dim
from irexec.testing import Case
from irexec.testing.rows import read_attributes
from tests.support.cases import families

_FAMILIES = ("shape", "movement", "slicing", "gather", "scatter", "broadcasting")
_ROWS = [
    pytest.param(row, id=row.id)
    for family, rows in families().items()
    for row in rows
    if family in _FAMILIES
    and isinstance(row, Case)
    and row.definition.symbolic
    and row.inputs[0].array.dtype.kind in "iu"
]


@pytest.mark.parametrize("row", _ROWS)
def test_objects_give_the_same_numbers(row: Case) -> None:
    attributes = read_attributes(row.definition, row.attributes)
    plain = as_tuple(row.definition.kernel(*(x.array for x in row.inputs), **attributes))
    objects = as_tuple(row.definition.kernel(*(x.array.astype(object) for x in row.inputs), **attributes))
    for a, b in zip(plain, objects, strict=True):
        assert b.dtype == object
        assert a.shape == b.shape
        # Objects do not wrap.
        assert a.tolist() == b.astype(np.int64).astype(a.dtype).tolist()


BATCH, TIME = Dim(0, None, "batch"), Dim(1, 9, "time")


@pytest.fixture
def builder() -> Builder:
    return Builder("shapes")


def _sizes_of(builder, shape=(BATCH, 3, TIME)):
    data = builder.parameter(F32, shape, "data")
    return data, builder.emit("ShapeOf", data)


def test_gather_concat_reshape(builder):
    data, sizes = _sizes_of(builder)
    batch = builder.emit("Gather", sizes, [0], 0)
    target = builder.emit("Concat", batch, [-1], axis=0)
    assert builder.fact(builder.emit("Reshape", data, target, special_zero=False)).shape[0] is BATCH


@pytest.mark.parametrize("rounding", ["Floor", "Ceiling", "Abs"])
def test_rounding_whole_numbers_keeps_their_bounds(builder, rounding):
    """As PyTorch's expand to a number of windows is written."""
    _, sizes = _sizes_of(builder)
    windows = builder.emit(rounding, builder.emit("Divide", sizes, 1))
    assert builder.fact(windows).value.tolist() == [BATCH, 3, TIME]


def test_what_is_found_among_constants_is_counted(builder):
    places = builder.emit("NonZero", np.array([[0, 3, 0], [4, 0, 5]]))
    assert builder.fact(places).shape == (2, 3)
    assert builder.fact(builder.emit("Unique", np.array([2.0, 1.0, 2.0]))[0]).value.tolist() == [1.0, 2.0]


def test_strided_slice_unsqueeze_broadcast(builder):
    _, sizes = _sizes_of(builder)
    one = builder.emit("StridedSlice", sizes, [2], [3], begin_mask=(0,), end_mask=(0,), shrink_axis_mask=(1,))
    assert builder.fact(one).shape == ()
    target = builder.emit("Concat", builder.emit("Unsqueeze", one, [0]), [4], axis=0)
    assert builder.fact(builder.emit("Broadcast", np.float32(1), target)).shape == (TIME, 4)


def test_split_squeeze_range(builder):
    _, sizes = _sizes_of(builder)
    parts = builder.emit("Split", sizes, 0, num_splits=3)
    stop = builder.emit("Squeeze", parts[2], [0])
    numbers = builder.emit("Range", np.int64(0), stop, np.int64(1), output_type="i64")
    assert builder.fact(numbers).shape == (TIME,)


def test_range_between_bounds(builder):
    _, sizes = _sizes_of(builder)
    stop = builder.emit("Gather", sizes, 2, 0)
    up = builder.emit("Range", np.int64(-1), stop, np.int64(3), output_type="i64")
    down = builder.emit("Range", stop, np.int64(4), np.int64(-2), output_type="i64")
    assert builder.fact(up).shape == (Dim(1, 4),)
    assert builder.fact(down).shape == (Dim(0, 3),)


def test_variadic_split_slice_reverse_scatter(builder):
    _, sizes = _sizes_of(builder)
    head, tail = builder.emit("VariadicSplit", sizes, 0, [1, -1])
    reversed_tail = builder.emit("Reverse", tail, [0], mode="index")
    back = builder.emit("Slice", reversed_tail, [1], [-3], [-1])
    joined = builder.emit("Concat", head, back, axis=0)
    patched = builder.emit("ScatterUpdate", joined, [1], [7], 0)
    again = builder.emit("ScatterNDUpdate", patched, np.array([2]), builder.emit("Gather", sizes, 2, 0))
    assert builder.fact(builder.emit("Broadcast", np.float32(1), again)).shape == (BATCH, 7, TIME)
    ones = builder.emit("Broadcast", np.float32(1), patched)
    assert builder.fact(ones).shape == (BATCH, 7, TIME)


def test_tile_by_a_size_and_slice_to_one(builder):
    _, sizes = _sizes_of(builder)
    time = builder.emit("Gather", sizes, [2], 0)
    tiled = builder.emit("Tile", np.zeros((2,), np.float32), time)
    assert builder.fact(tiled).shape == (Dim(2, 18),)
    part = builder.emit("Slice", np.zeros((20,), np.float32), [0], time, [1])
    assert builder.fact(part).shape == (TIME,)


def test_top_k_of_a_size(builder):
    _, sizes = _sizes_of(builder)
    k = builder.emit("Gather", sizes, 2, 0)
    values, indices = builder.emit("TopK", np.zeros((2, 6), np.float32), k, axis=1, mode="max", sort="value")
    assert builder.fact(values).shape == (2, Dim(1, 6))
    assert builder.fact(indices).shape == (2, Dim(1, 6))


def test_what_must_be_ordered_is_unknown(builder):
    _, sizes = _sizes_of(builder)
    picked = builder.emit("Gather", np.arange(4), builder.emit("Gather", sizes, [0], 0), 0)
    assert builder.fact(picked).value is None
    assert builder.fact(builder.emit("Broadcast", np.float32(1), picked)).shape == (ANY,)
