"""Plans: constants folded, what nobody needs left out, tensors freed at their last use, fast kernels selected; and the report of a plan."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.graph import KNOWN_BYTES, CompileGraph, Operation
from irexec.compile.lower import lower
from irexec.compile.passes.fold_constants import fold_constants
from irexec.compile.plan import Compilation, plan
from irexec.compile.rewriting import Rewriting, computation, create
from irexec.dtypes.elements import BF16, F32, I4, I8, I64, U4, Element
from irexec.errors import NodeError
from irexec.native.library import description, library
from irexec.tools.inspect import summary as inspect
from irexec.tools.inspect.weights import weights
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


# The report of a plan.


def product(size: str = "4") -> irexec.Model:
    """MatMul, Add, Relu, Reshape, MatMul; beside them an Add of two constants."""
    builder = Builder("product")
    x = builder.parameter("f32", f"{size},8", "x")
    product = builder.emit(
        "MatMul", x, np.ones((8, 6), np.float32), transpose_a=False, transpose_b=False, name="product"
    )
    folded = builder.emit("Add", np.ones(6, np.float32), builder.constant(np.ones(6, np.float32)), name="folded")
    added = builder.emit("Add", product, folded, name="added")
    active = builder.emit("Relu", added, name="active")
    reshaped = builder.emit("Reshape", active, np.array([-1, 3], np.int64), special_zero=False, name="reshaped")
    builder.result(
        builder.emit("MatMul", reshaped, np.ones((3, 2), np.float32), transpose_a=False, transpose_b=False, name="last")
    )
    return builder.model()


def test_layers_are_in_steps_are_views_or_are_gone() -> None:
    plan = irexec.compile_model(product()).plan
    assert plan.layers == 6
    layers = [layer for row in plan.steps for layer in row.layers]
    assert sorted(layers) == ["active", "added", "last", "product"]
    assert (plan.computed, plan.viewed, plan.removed) == (4, 1, 1)


def test_a_row_says_what_the_step_gives() -> None:
    last = irexec.compile_model(product()).plan.steps[-1]
    assert (last.operation, last.layers, last.output, last.bytes) == ("MatMul", ("last",), "f32[8,2]", 64)
    assert last.layout == ""


def test_without_optimisation_every_layer_is_a_step_of_the_reference_kernel() -> None:
    plan = irexec.compile_model(product(), optimize=False).plan
    assert [row.layers for row in plan.steps] == [
        ("product",), ("folded",), ("added",), ("active",), ("reshaped",), ("last",),
    ]  # fmt: skip
    assert {row.algorithm for row in plan.steps} == {"reference"}
    assert (plan.passes, plan.arena) == ({}, 0)


def test_the_kernels_are_named() -> None:
    alone = irexec.compile_model(product(), native=False).plan
    assert (alone.kernels, alone.native) == ("NumPy alone (native is False)", 0)
    assert "NumPy alone (native is False)" in str(alone).splitlines()
    plan = irexec.compile_model(product()).plan
    assert plan.kernels == description()
    assert plan.native == sum(row.algorithm.startswith("C, ") for row in plan.steps)
    if library() is not None:
        assert f"{plan.kernels}: {plan.native} steps" in str(plan).splitlines()


def test_memory_is_counted() -> None:
    builder = Builder("two")
    x = builder.parameter("f32", "100,30", "x")
    sums = builder.emit("MatMul", x, np.ones((30, 50), np.float32), transpose_a=False, transpose_b=False, name="sums")
    flat = builder.emit("Reshape", sums, np.array([-1], np.int64), special_zero=False, name="flat")
    builder.result(builder.emit("Softmax", flat, axis=0, name="softmax"))
    plan = irexec.compile_model(builder.model()).plan
    # The product, the same seen as a vector, and the Softmax, which a run gives away and so is not in the arena.
    assert plan.intermediate == 3 * 4 * 5000
    assert plan.arena >= 4 * 5000
    assert plan.packed + plan.kept >= 4 * 30 * 50


def test_outputs_that_nobody_reads_take_no_memory() -> None:
    builder = Builder("indices")
    x = builder.parameter("f32", "100,30", "x")
    _, indices = builder.emit("TopK", x, np.int64(5), axis=1, mode="max", sort="value")
    builder.result(builder.emit("Relu", indices))
    plan = irexec.compile_model(builder.model()).plan
    assert [row.bytes for row in plan.steps] == [4 * 500, 4 * 500]
    assert plan.intermediate == 2 * 4 * 500


def test_a_dynamic_model_has_a_plan_for_any_shape_and_one_for_each() -> None:
    compiled = irexec.compile_model(product("?"))
    assert {row.bytes for row in compiled.plan.steps} == {None}
    assert compiled.plan_for({"x": (2, 8)}).steps[-1].output == "f32[4,2]"
    assert compiled.plan_for((6, 8)).steps[-1].output == "f32[12,2]"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (2, 9)}, r"shape \[2,9\] does not fit input x: f32\[\?,8\]"),
        ({"y": (2, 8)}, "there is no input 'y'"),
        ({}, r"no shape is given for input x: f32\[\?,8\]"),
        ({"x": (-1, 8)}, r"shape \[-1,8\] does not fit"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str | int, tuple[int, ...]], message: str) -> None:
    with pytest.raises(irexec.InputError, match=message):
        irexec.compile_model(product("?")).plan_for(shapes)


def test_it_is_printable() -> None:
    plan = irexec.compile_model(product()).plan
    assert repr(plan) == f"<PlanReport 'product': {len(plan.steps)} steps for 6 layers>"
    lines = str(plan).splitlines()
    assert lines[0].split()[:3] == ["step", "layers", "operation"]
    assert len(lines) == 2 + len(plan.steps) + 1 + len(plan.passes) + 5


def test_steps_of_bodies_follow_the_step_that_has_them() -> None:
    rows = irexec.compile_model(IRS / "branch.xml").plan.steps
    branch = next(i for i, row in enumerate(rows) if row.operation == "If")
    inside = rows[branch + 1]
    assert inside.path == f"{rows[branch].layers[0]}/then_body/"
    assert inside.number == 1


def test_every_constant_of_a_mapped_file_counts(tmp_path: Path) -> None:
    builder = Builder("two weights")
    value = builder.parameter("f32", "8,64", "x")
    for seed in (0, 1):
        weights = np.random.default_rng(seed).random((64, 64), np.float32)
        value = builder.emit("MatMul", value, weights, transpose_a=False, transpose_b=True)
    builder.result(value)
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    plan = irexec.compile_model(tmp_path / "m.xml").plan
    assert plan.packed + plan.kept == 2 * 4 * 64 * 64


# Constants that passes make: which of them are the same.


@pytest.mark.parametrize(
    ("array", "elements"), [(np.float32([1, 2]), (F32, BF16)), (np.int8([1, 2]), (I8, I4))], ids=["floats", "integers"]
)
def test_equal_bytes_of_two_types_are_two_literals(array: np.ndarray, elements: tuple[Element, Element]) -> None:
    rewriting = Rewriting()
    literals = [rewriting.literal(array, element) for element in (*elements, *elements)]
    assert [value.fact.element for value in literals] == [*elements, *elements]
    assert literals[0].constant is literals[2].constant
    assert literals[1].constant is literals[3].constant


def test_operations_that_were_made_of_one_layer_fold_to_constants_of_their_own() -> None:
    """They may differ in their type, or in an attribute alone."""
    given = np.arange(KNOWN_BYTES, dtype=np.float32).reshape(-1, 4)
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant(given)))
    model = builder.model()
    graph, rewriting = lower(model, infer_shapes(model), {}), Rewriting()
    (layer,) = graph
    weights, axis = layer.inputs[0], rewriting.literal(np.array(0), I64)
    made = [
        create(graph, "Negative", "opset1", [weights], {}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": False}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": True}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": True}, [layer]),
    ]
    graph.targets = [operation.output for operation in made]
    fold_constants(graph, rewriting)
    constants = [value.constant for value in graph.targets]
    assert constants[2] is constants[3]
    results = [constant.array() for constant in constants if constant is not None]
    np.testing.assert_array_equal(results[0], -given)
    np.testing.assert_allclose(results[1][:2], [given[0], given[0] + given[1]])
    np.testing.assert_allclose(results[2][-2:], [given[-2] + given[-1], given[-1]])


def test_each_output_of_a_folded_operation_is_a_constant_of_its_own() -> None:
    given = np.arange(KNOWN_BYTES, dtype=np.float32).reshape(-1, 4)
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (1, 2), "x")
    for part in builder.emit("Split", builder.constant(given), builder.constant(1), num_splits=2):
        builder.result(builder.emit("Add", part, x))
    results = irexec.compile_model(builder.model())(np.float32([[0.5, 1.5]])).values()
    for result, part in zip(results, (given[:, :2], given[:, 2:]), strict=True):
        np.testing.assert_array_equal(result, part + np.float32([[0.5, 1.5]]))


def test_attributes_that_cannot_be_hashed_are_equal_to_none() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (2,), "x")))
    model = builder.model()
    (operation,) = lower(model, infer_shapes(model), {})
    assert computation(operation) == computation(operation)
    operation.attributes = {"what": np.zeros(2)}
    assert computation(operation) != computation(operation)


# What the caller asks of NumPy for overflows and NaN is for the caller's own arithmetic: nothing that irexec computes
# warns or raises.


def _normalized_images() -> irexec.Model:
    """A convolution and a normalization by infinite, negative and zero statistics, and a square of 1e38, which are folded."""
    builder = irexec.Builder("odd statistics")
    x = builder.parameter(F32, (1, 2, 4, 4), "x")
    filter = builder.constant(np.full((3, 2, 1, 1), 3e38, np.float32))
    lists = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = builder.emit("Convolution", x, filter, **lists)
    statistics = [[np.inf, 1.0, 3e38], [0.0, np.nan, 1.0], [1.0, 2.0, 3e38], [-1.0, 0.0, 1e-40]]
    y = builder.emit(
        "BatchNormInference", y, *(builder.constant(np.array(values, np.float32)) for values in statistics), epsilon=0.0
    )
    large = builder.constant(np.full((3, 1, 1), 1e38, np.float32))
    builder.result(builder.emit("Divide", y, builder.emit("Multiply", large, large)))
    return builder.model()


@pytest.mark.parametrize("optimize", [False, True])
def test_nothing_warns_or_raises(optimize: bool) -> None:
    model = _normalized_images()
    with np.errstate(all="raise"):
        assert [finding for finding in irexec.validate(model, weights=True) if finding.severity == "error"] == []
        assert inspect.summarize(model).layers == len(inspect.layers(model)) and weights(model)
        result = irexec.compile_model(model, optimize=optimize)([np.ones((1, 2, 4, 4), np.float32)])[0]
    assert result.shape == (1, 3, 4, 4) and not np.isfinite(result[:, 1]).any()
    assert np.geterr()["over"] == "warn"


def test_a_rule_says_what_is_too_large() -> None:
    builder = irexec.Builder("vast")
    x = builder.parameter(F32, (1, 1, 7, 8), "x")
    scales = builder.constant(np.array([3.4e38, 1.0], np.float32))
    axes = builder.constant(np.array([2, 3]))
    with np.errstate(all="raise"), pytest.raises(NodeError, match=r"scale 3.4e\+38 of an axis of 7 gives no size"):
        builder.emit("Interpolate", x, scales, axes, mode="cubic", shape_calculation_mode="scales", version=11)
