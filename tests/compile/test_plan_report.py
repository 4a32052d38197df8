"""The report of a plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.native.library import description, library
from tests.support.paths import IRS


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
        ("product",),
        ("folded",),
        ("added",),
        ("active",),
        ("reshaped",),
        ("last",),
    ]
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
