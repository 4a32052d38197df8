"""No value is overwritten, or its memory taken, while something still reads it. What is expected is computed by NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irexec
from irexec.analysis.builder import Builder
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.kernel import KernelOptions
from irexec.backend.scratch import ALIGNMENT
from irexec.compile.plan import Compilation, plan
from irexec.compile.steps import SlotArray
from irexec.compile.storage.layout import STAGED
from irexec.compile.storage.planned import Buffer, assign_offsets
from irexec.ir.graph import Value

ROWS, SIZE = 48, 64


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


X, A, B, C = _random(ROWS, 3), _random(3, SIZE), _random(SIZE, 2), _random(3, SIZE + 1)[:, :SIZE]
D, E = _random(SIZE, 5), _random(SIZE, 3)
x, a, b, c, d, e = (array.astype(np.float64) for array in (X, A, B, C, D, E))
SCALED, WHOLE = x @ a * (x @ a).mean(1, keepdims=True), np.concatenate([x @ a, x @ c])

Make = Callable[[Builder, Value], list[Value]]


def product(builder: Builder, left: Value, right: np.ndarray) -> Value:
    """A step that no element-wise operation after several readers joins."""
    made: Value = builder.emit("MatMul", left, builder.constant(np.ascontiguousarray(right)))
    return made


def read_again(builder: Builder, given: Value) -> list[Value]:
    """The last reader of the product is not the Exp, which could be computed over it."""
    data = product(builder, given, A)
    other = builder.emit("Exp", data)
    return [product(builder, other, B), product(builder, data, D)]


def overwritten_and_read_late(builder: Builder, given: Value) -> list[Value]:
    """What is computed over the product is read again when another product of its size is computed."""
    data = product(builder, given, A)
    scaled = builder.emit("Multiply", data, builder.emit("ReduceMean", data, np.array([1]), keep_dims=True))
    other = product(builder, product(builder, scaled, E), C)
    return [product(builder, builder.emit("Add", other, scaled), D)]


def part_overwritten_after(builder: Builder, given: Value) -> list[Value]:
    """A part of a concatenation is read for the last time, and could be overwritten, when the concatenation is complete."""
    first, second = product(builder, given, A), product(builder, given, C)
    whole = builder.emit("Concat", first, second, axis=0)
    scaled = builder.emit("Multiply", first, builder.emit("ReduceMax", whole, np.array([0, 1]), keep_dims=True))
    return [builder.emit("MatMul", whole, scaled, transpose_b=True)]


def part_read_last(builder: Builder, given: Value) -> list[Value]:
    """A part of a concatenation is read after the concatenation is, and after a product that could take its memory."""
    first, second = product(builder, given, A), product(builder, given, C)
    other = product(builder, product(builder, builder.emit("Concat", first, second, axis=0), E), A)
    return [builder.emit("MatMul", first, other, transpose_b=True)]


def parts_before(builder: Builder, given: Value) -> list[Value]:
    """Between two parts of a concatenation other products come and go."""
    first = product(builder, given, A)
    other = product(builder, product(builder, given, C), B)
    whole = builder.emit("Concat", first, product(builder, given, C), axis=0)
    return [other, product(builder, whole, D)]


def inner_parts(builder: Builder, given: Value) -> list[Value]:
    """Parts that lie side by side along the second axis are not contiguous in memory."""
    rows = builder.emit("Reshape", given, np.array([2, ROWS // 2, 3]), special_zero=False)
    whole = builder.emit("Concat", product(builder, rows, A), product(builder, rows, C), axis=1)
    return [product(builder, whole, D)]


def every_second_row(builder: Builder, given: Value) -> list[Value]:
    data = product(builder, given, A)
    rows = builder.emit("Slice", data, np.array([1]), np.array([ROWS]), np.array([2]), np.array([0]))
    return [product(builder, rows, B), product(builder, data, D)]


CASES: list[tuple[Make, Callable[[], list[np.ndarray]]]] = [
    (read_again, lambda: [np.exp(x @ a) @ b, x @ a @ d]),
    (overwritten_and_read_late, lambda: [(SCALED @ e @ c + SCALED) @ d]),
    (part_overwritten_after, lambda: [WHOLE @ (x @ a * WHOLE.max()).T]),
    (part_read_last, lambda: [x @ a @ (WHOLE @ e @ a).T]),
    (parts_before, lambda: [x @ c @ b, WHOLE @ d]),
    (inner_parts, lambda: [np.concatenate([(x @ m).reshape(2, -1, SIZE) for m in (a, c)], axis=1) @ d]),
    (every_second_row, lambda: [(x @ a)[1::2] @ b, x @ a @ d]),
]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("make", "expected"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_results(make: Make, expected: Callable[[], list[np.ndarray]], threads: int, native: bool) -> None:
    compiled = irexec.compile_model(_model(make), threads=threads, native=native)
    for _ in range(2):
        for actual, values in zip(compiled(X).values(), expected(), strict=True):
            np.testing.assert_allclose(actual, values, rtol=1e-4, atol=1e-3)


def _model(make: Make) -> irexec.Model:
    builder = Builder("lifetimes")
    for value in make(builder, builder.parameter("f32", X.shape, "x")):
        builder.result(value)
    return builder.model()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("make", [make for make, _ in CASES], ids=lambda make: make.__name__)
def test_workspaces_of_all_threads_lie_apart_from_what_a_step_reads_and_writes(make: Make, threads: int) -> None:
    model = _model(make)
    found = plan(model, infer_shapes(model), compilation=Compilation(options=KernelOptions(threads)))
    places = {place.slot: place for place in found.arrays}
    for step in found.steps:
        offset, size = step.offset, step.workspace.size(threads)
        end = offset + size
        assert size >= step.workspace.shared + threads * step.workspace.each
        assert end <= found.arena
        for place in (places[slot] for slot in (*step.inputs, *step.outputs) if slot in places):
            assert _end(place) <= offset or end <= _start(place) or not size


def _start(place: SlotArray) -> int:
    assert place.offset is not None
    return place.offset


def _end(place: SlotArray) -> int:
    return _start(place) + place.size


@pytest.mark.parametrize("native", [True, False])
def test_small_tensors_reuse_the_memory_of_those_that_were_read(native: bool) -> None:
    builder = Builder("chain of products")
    value = builder.parameter("f32", (ROWS, SIZE), "x")
    square = _random(SIZE, SIZE)
    for _ in range(20):
        value = product(builder, value, square)
    builder.result(value)
    model = builder.model()
    options = KernelOptions(1, native=native)
    found = plan(model, infer_shapes(model), compilation=Compilation(options=options))
    starts = {_start(place) for place in found.arrays if place.offset is not None and place.size == 4 * ROWS * SIZE}
    assert len(starts) <= 3


@pytest.mark.parametrize("rows", [ROWS, STAGED // (4 * SIZE) + 1], ids=["copied", "larger than what is copied"])
def test_results_of_one_memory_belong_to_the_caller_each(rows: int) -> None:
    builder = Builder("views")
    given = _random(rows, 3)
    exact = given.astype(np.float64) @ a
    data = product(builder, builder.parameter("f32", given.shape, "x"), A)
    flat = builder.emit("Reshape", data, np.array([-1]), special_zero=False)
    for value in (data, data, builder.emit("Squeeze", data), flat, builder.emit("Transpose", data, np.array([1, 0]))):
        builder.result(value)
    outputs = irexec.compile_model(builder.model())(given)
    expected = [exact, exact, exact, exact.ravel(), exact.T]
    arrays = [outputs[i] for i in range(len(outputs))]
    for i, array in enumerate(arrays):
        np.testing.assert_allclose(array, expected[i], rtol=1e-4, atol=1e-4)
        assert not any(np.shares_memory(array, other) for other in arrays[i + 1 :])


# Placing buffers in an arena: what lives at once shares no byte, and what does not share little more than it must.


intervals = st.tuples(st.integers(0, 10_000), st.integers(0, 30), st.integers(0, 30)).map(
    lambda t: Buffer(t[0], min(t[1:]), max(t[1:]))
)


@given(st.lists(intervals, max_size=40))
def test_buffers_that_live_at_once_share_no_byte(buffers: list[Buffer]) -> None:
    size = assign_offsets(buffers)
    for i, a in enumerate(buffers):
        assert a.offset % ALIGNMENT == 0
        assert a.offset + a.size <= size
        for b in buffers[i + 1 :]:
            at_once = a.first <= b.last and b.first <= a.last
            assert not at_once or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_buffers_one_after_the_other_take_the_room_of_two() -> None:
    buffers = [Buffer(1000, i, i + 1) for i in range(20)]
    assert assign_offsets(buffers) == 2 * 1024


def test_a_large_buffer_takes_the_room_of_small_ones_that_are_gone() -> None:
    small = [Buffer(640, 0, 1) for _ in range(4)]
    assert assign_offsets([*small, Buffer(2560, 2, 3)]) == 2560
