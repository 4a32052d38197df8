"""Plans: constants folded, what nobody needs left out, tensors freed at their last use, fast kernels selected."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.graph import CompileGraph, Operation
from irexec.compile.plan import Compilation, plan
from irexec.dtypes.elements import BF16, F32, I64, U4, Element
from tests.support.memory import traced_peak
from tests.support.paths import IRS

MEGABYTE = 1 << 20


def _chain(length: int, size: int) -> irexec.Model:
    builder = irexec.Builder("chain")
    value = builder.parameter(F32, (size,), "x")
    for _ in range(length):
        value = builder.emit("Negative", value)
    builder.result(value)
    return builder.model()


def test_tensors_are_freed_at_their_last_use() -> None:
    compiled = irexec.compile_model(_chain(50, MEGABYTE // 4))
    x = np.ones(MEGABYTE // 4, np.float32)
    compiled([x])
    assert traced_peak(lambda: compiled([x])) < 4 * MEGABYTE


def test_constants_are_folded_only_when_asked() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    scale = builder.emit("Multiply", builder.constant([2.0, 3.0]), builder.constant([1.0, 1.0]))
    builder.emit("Relu", x, name="nobody needs it")
    builder.result(builder.emit("Multiply", x, scale))
    model = builder.model()
    inference = infer_shapes(model)
    assert [step.node.type for step in plan(model, inference).steps] == ["Multiply"]
    assert [step.node.type for step in plan(model, inference, compilation=Compilation(optimize=False)).steps] == [
        "Multiply",
        "Multiply",
    ]


def test_random_numbers_of_constants_are_drawn_in_each_run() -> None:
    builder = irexec.Builder("m")
    drawn = builder.emit("RandomUniform", [64], 0.0, 1.0, output_type=F32, global_seed=0, op_seed=0)
    builder.result(builder.emit("Add", builder.parameter(F32, (1,), "x"), drawn))
    compiled = irexec.compile_model(builder.model())
    first, second = (compiled([np.zeros(1, np.float32)])[0] for _ in range(2))
    assert (first != second).any()


def test_shapes_of_known_tensors_need_no_step() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2, 6), "x")
    target = builder.emit("Concat", builder.emit("ShapeOf", x), builder.constant([1]), axis=0)
    builder.result(builder.emit("Reshape", x, target, special_zero=False))
    model = builder.model()
    assert [step.node.type for step in plan(model, infer_shapes(model)).steps] == []


def test_views_of_parameters_and_of_results_of_reference_kernels_need_no_step() -> None:
    """Nor do views of views; what would copy (a Reshape after a Transpose) does."""
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2, 3), "x")
    whole = builder.emit(
        "Concat",
        builder.emit("Unsqueeze", builder.emit("Transpose", x, [1, 0]), [0]),
        builder.constant([[[1.0, 2.0]]]),
        axis=1,
    )
    transposed = builder.emit("Transpose", whole, [2, 1, 0])
    for value in (
        builder.emit("Squeeze", transposed, [2]),
        builder.emit("Reshape", transposed, [8], special_zero=False),
        whole,
    ):
        builder.result(value)
    model = builder.model()
    assert [step.report.type for step in plan(model, infer_shapes(model)).steps] == ["Concat", "Reshape"]
    assert len(plan(model, infer_shapes(model), compilation=Compilation(optimize=False)).steps) == 6
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array, expected in zip(
        *(irexec.compile_model(model, optimize=flag)([given]).values() for flag in (True, False)), strict=True
    ):
        np.testing.assert_array_equal(array, expected)


def test_a_view_keeps_memory_no_longer_than_it_is_read() -> None:
    """Each Gather gives 1 MiB of its own, read as a view by the next one; all of them would be 20 MiB."""
    builder = irexec.Builder("m")
    value = builder.parameter(F32, (MEGABYTE // 4,), "x")
    for _ in range(20):
        index = builder.constant(np.arange(MEGABYTE // 4, dtype=np.int32))
        value = builder.emit(
            "Reshape", builder.emit("Gather", value, index, builder.constant(0)), [-1], special_zero=False
        )
        value = builder.emit("Reshape", builder.emit("Unsqueeze", value, [0]), [MEGABYTE // 4], special_zero=False)
    builder.result(value)
    compiled = irexec.compile_model(builder.model())
    x = np.ones(MEGABYTE // 4, np.float32)
    compiled([x])
    assert traced_peak(lambda: compiled([x])) < 10 * MEGABYTE


@pytest.mark.parametrize("element", [BF16, U4], ids=str)
def test_no_chain_hangs_on_what_has_no_fast_kernel(element: Element) -> None:
    """NumPy lacks these types, so that the reference kernel converts them."""
    builder = irexec.Builder("m")
    x = builder.parameter(element, (2, 3), "x")
    builder.result(builder.emit("Add", builder.emit("Convert", x, destination_type=F32), 1.5))
    compiled = irexec.compile_model(builder.model())
    (result,) = compiled([np.full((2, 3), 2, element.carrier)]).values()
    np.testing.assert_array_equal(result, np.full((2, 3), 3.5, np.float32))


@pytest.mark.parametrize("optimize", [False, True])
def test_results_that_share_memory_are_told_apart(optimize: bool) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2, 3), "x")
    transposed = builder.emit("Transpose", x, [1, 0])
    for value in (
        x,
        transposed,
        transposed,
        builder.emit("Reshape", transposed, [6], special_zero=False),
        builder.constant([1.0]),
    ):
        builder.result(value)
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = list(irexec.compile_model(builder.model(), optimize=optimize)([given]).values())
    for i, array in enumerate(arrays):
        assert not np.shares_memory(array, given)
        assert not any(np.shares_memory(array, other) for other in arrays[i + 1 :])


def test_a_graph_that_cannot_run_says_where() -> None:
    builder = irexec.Builder("m")
    x, shape = builder.parameter(F32, (irexec.Dim(),), "x"), builder.parameter(I64, (1,), "shape")
    builder.result(builder.emit("Reshape", x, shape, special_zero=False, name="here"))
    compiled = irexec.compile_model(builder.model())
    with pytest.raises(irexec.NodeError, match=r"'here' \(Reshape of opset1\): \[5\] cannot be reshaped to \[4\]"):
        compiled([np.zeros(5, np.float32), np.array([4])])


def _kept_in_plans() -> irexec.Model:
    """Views, a constant that is computed when it is packed, weights that are scaled, joined parts, and kernels by shape."""
    builder = irexec.Builder("m")
    x, free = builder.parameter(F32, (64, 8), "x"), builder.parameter(F32, (irexec.Dim(), 8), "free")
    weights = builder.emit("Negative", builder.constant(np.ones((8, 3000), np.float32)))
    product = builder.emit("MatMul", builder.emit("Relu", x), weights)
    scaled = builder.emit("Multiply", product, builder.constant(np.arange(3000, dtype=np.float32)))
    transposed = builder.emit("Transpose", builder.emit("Softmax", scaled, axis=1), [1, 0])
    joined = builder.emit("Concat", transposed, builder.emit("Softmax", transposed, axis=0), axis=0)
    for value in (
        builder.emit("Unsqueeze", x, [0]),
        builder.emit("Softmax", joined, axis=1),
        builder.emit("Softmax", free, axis=1),
    ):
        builder.result(value)
    return builder.model()


@pytest.mark.parametrize(
    "make",
    [_kept_in_plans, *(functools.partial(irexec.read_model, IRS / f"{name}.xml") for name in ("branch", "loop"))],
)
def test_plans_keep_nothing_of_the_compile_graph(
    make: Callable[[], irexec.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[weakref.ref[Operation]] = []
    insert = CompileGraph.insert

    def recorded(graph: CompileGraph, operation: Operation) -> Operation:
        seen.append(weakref.ref(operation))
        return insert(graph, operation)

    monkeypatch.setattr(CompileGraph, "insert", recorded)
    compiled = irexec.compile_model(make())
    assert compiled.plan.steps
    gc.collect()
    assert len(seen) > 3
    assert [reference() for reference in seen if reference() is not None] == []
