"""Operations that are computed in blocks, against the reference kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.analysis.builder import Builder
from irexec.backend import reduction, registry
from irexec.backend.chain import Chain, Instruction
from irexec.backend.constants import ConstantSource
from irexec.backend.fake_quantize import _Levels
from irexec.backend.kernel import Task
from irexec.backend.registry import BlockOperation, find_block_operation, is_element_wise
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import element, element_of
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve
from irexec.testing import Case
from irexec.testing.kernels import candidates, check_kernels, task_of
from irexec.testing.laws import assert_same, attributes_of, infer, kernel
from irexec.testing.rows import exact_facts, read_attributes
from tests.support.cases import families
from tests.support.exact_levels import fake_quantize
from tests.support.passes import run_kernel

_ROWS = [row for rows in families().values() for row in rows if isinstance(row, Case)]


def _task(row: Case, constants: bool) -> Task:
    """The row's operation, with the inputs from 1 on constant if asked for."""
    facts = tuple(Fact(x.element, x.array.shape) for x in row.inputs)
    sources = tuple(
        ConstantSource.of(x.array, x.element) if constants and i else None for i, x in enumerate(row.inputs)
    )
    outputs = infer(row, exact_facts(row))
    return Task(
        row.definition, row.definition.arguments(attributes_of(row)), facts, sources, outputs, (True,) * len(outputs)
    )


def _found() -> Iterator[tuple[Case, bool]]:
    for row in _ROWS:
        if is_element_wise(row.definition):
            for constants in (False, True):
                if find_block_operation(_task(row, constants)) is not None:
                    yield row, constants


_FOUND = list(_found())


def _chain(operation: BlockOperation, dtypes: list[np.dtype], result: np.dtype) -> Chain:
    count = len(operation.reads)
    instruction = Instruction(
        "it", operation.function, tuple(range(count)), result, operation.in_place, operation.temporaries
    )
    return Chain(count, dtypes[0], (instruction,))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("row", "constants"), _FOUND, ids=[f"{row.id}{' constant' if constants else ''}" for row, constants in _FOUND]
)
def test_a_block_operation_gives_what_the_reference_kernel_gives(row: Case, constants: bool) -> None:
    task = _task(row, constants)
    operation = find_block_operation(task)
    assert operation is not None
    (expected,) = kernel(row, [x.array for x in row.inputs])
    arguments = []
    for i, shape in zip(operation.reads, operation.shapes or (None,) * len(operation.reads), strict=True):
        array = row.inputs[i].array
        arguments.append(array if shape is None else array.reshape(shape))
    chain = _chain(operation, [a.dtype for a in arguments], expected.dtype)
    with np.errstate(all="ignore"):
        for out, given, shared in _forms(arguments, expected):
            chain.run(Scratch.of_size(chain.workspace(out.size)), out, given, shared)
            result = np.ascontiguousarray(out).reshape(expected.shape)
            assert_same([result], [expected], row)
            if _is_exact(row):
                np.testing.assert_array_equal(result, expected)


def _is_exact(row: Case) -> bool:
    """Whether the operation is one that has nothing to approximate."""
    return row.definition.tolerance == 1e-6 and not row.definition.widen


def _forms(arguments: list[np.ndarray], expected: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray], int]]:
    """The output, the arguments, the index of the argument that is the output's memory."""
    given = [a.copy() for a in arguments]
    for a in given:
        a.flags.writeable = False
    yield _garbage(expected), given, -1
    yield _strided(_garbage(expected)), [_strided(a) for a in given], -1
    full = [np.broadcast_to(a, expected.shape) for a in given]
    yield _garbage(expected), full, -1
    # Rows of a block are axes that were merged, so that every argument has one element or all.
    yield _garbage(expected.reshape(-1)), [a.reshape(-1) for a in full], -1
    for i, a in enumerate(arguments):
        if a.shape == expected.shape and a.dtype == expected.dtype:
            own = a.copy()
            yield own, [own if i == j else other for j, other in enumerate(given)], i


def _garbage(like: np.ndarray) -> np.ndarray:
    return np.full(like.shape, np.nan if like.dtype.kind == "f" else 77, like.dtype)


def _strided(array: np.ndarray) -> np.ndarray:
    wide = np.full([*array.shape[:-1], 2 * array.shape[-1] + 3] if array.ndim else [], 0, array.dtype)
    inside = (..., slice(1, 2 * array.shape[-1] + 1, 2)) if array.ndim else ()
    wide[inside] = array
    return wide[inside] if array.ndim else wide


_EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "swish": lambda x: x / (1 + np.exp(-x)),
    "hswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}
_ATTRIBUTES = {"elu": {"alpha": 1.0}, "gelu": {"approximation_mode": "tanh"}}


@pytest.mark.parametrize("name", _EXACT)
def test_an_activation_is_as_exact_where_it_is_small(name: str) -> None:
    """A formula that cancels below zero is off by a multiple of the value, and within any absolute tolerance."""
    x = np.linspace(-5 if name == "gelu" else -30, 30, 4001, dtype=np.float32)
    data = opset.parameter(x.shape, "f32", "x")
    made = getattr(opset, name)(data, **_ATTRIBUTES.get(name, {}))
    model = irexec.Model([opset.result(made)], [data])
    (result,) = irexec.compile_model(model)({"x": x}).values()
    np.testing.assert_allclose(result, _EXACT[name](x.astype(np.float64)), rtol=4e-6, atol=1e-30)


def test_every_block_operation_has_a_row() -> None:
    registry.loader.load()
    # Those of the compiler, on levels, have tests of their own.
    own = {("Quantize", "irexec"), ("Dequantize", "irexec"), ("AddLevels", "irexec")}
    assert {(row.type, row.since) for row, _ in _FOUND} == set(registry._BLOCK_OPERATIONS) - own


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_element_wise_operations(threads: int) -> None:
    """As the runtime asks for them where shapes are known only then; in types that NumPy lacks too."""
    elements = set()
    for row in _ROWS:
        if not is_element_wise(row.definition):
            continue
        task = dataclasses.replace(_task(row, True), output_orders=(None,), threads=threads)
        for candidate in candidates(task):
            (result,) = run_kernel(candidate, task, [x.array for x in row.inputs])
            assert_same([result], kernel(row, [x.array for x in row.inputs]), row)
            elements |= {x.element.name for x in row.inputs}
    assert {"f32", "f16", "bf16", "f64", "i32", "i64", "u8", "boolean"} <= elements


# Element-wise operations whose blocks are strided in memory, and whose arguments are one array.


_ONE_INPUT = (
    "Abs", "Negative", "Sign", "Ceiling", "Floor", "Sqrt", "Exp", "Sigmoid", "Tanh", "Relu", "IsNaN", "IsInf",
    "IsFinite",
)  # fmt: skip
_TWO_INPUTS = (
    "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference", "Power", "FloorMod", "Mod",
    "Equal", "Less",
)  # fmt: skip


def _operation(type: str, inputs: int, kind: str, shape: tuple[int, ...]) -> tuple[Chain, Task]:
    definition = resolve(type, "opset16")
    facts = tuple(Fact(element("boolean" if type == "Select" and i == 0 else kind), shape) for i in range(inputs))
    out = definition.infer(facts, attributes := read_attributes(definition, {}, [fact.element for fact in facts]))
    task = Task(definition, attributes, facts, (None,) * inputs, (out,), (True,))
    made = find_block_operation(task)
    assert made is not None
    dtype = np.dtype(out.element.carrier)
    step = Instruction(type, made.function, tuple(range(inputs)), dtype, made.in_place, made.temporaries, made.passes)
    return Chain(inputs, facts[0].dtype, (step,)), task


@pytest.mark.parametrize("distance", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64", "u32"])
@pytest.mark.parametrize("type", _ONE_INPUT)
@pytest.mark.covering(2)
def test_of_elements_that_are_apart(type: str, kind: str, distance: int) -> None:
    if kind[0] != "f" and type in ("Sqrt", "Exp", "Sigmoid", "Tanh", "IsNaN", "IsInf", "IsFinite"):
        return
    values = np.array([1, 2, 3, 0, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8], element(kind).carrier)
    if kind[0] == "f":
        values[[1, 4, 9]] = np.inf, np.nan, -np.inf
    chain, task = _operation(type, 1, kind, values.shape)
    expected = np.asarray(task.definition(values, **task.attributes))
    given = np.repeat(values, distance)[::distance]
    out = np.zeros(values.size * distance, expected.dtype)[::distance]
    with np.errstate(all="ignore"):
        chain.run(Scratch.of_size(1 << 16), out, [given])
        np.testing.assert_allclose(out, expected, rtol=1e-5)
        if chain.result == values.dtype and chain.instructions[0].in_place:
            chain.run(Scratch.of_size(1 << 16), given, [given], 0)
            np.testing.assert_allclose(given, expected, rtol=1e-5)


@pytest.mark.parametrize("type", [*_TWO_INPUTS, "Select"])
def test_of_one_array_for_all_arguments(type: str) -> None:
    values = np.array([1.5, -2, 3, 0.25, 5, -6, 7], np.float32)
    count = 3 if type == "Select" else 2
    chain, task = _operation(type, count, "f32", values.shape)
    condition = [values > 0] if type == "Select" else []
    with np.errstate(all="ignore"):
        expected = np.asarray(task.definition(*condition, values, values, **task.attributes))
        for shared in ((), tuple(range(len(condition), count))):
            if shared and (chain.result != values.dtype or not chain.instructions[0].in_place):
                continue
            given = values.copy()
            out = given if shared else np.full(values.shape, 99, chain.result)
            chain.run(Scratch.of_size(1 << 16), out, [*condition, *[given] * 2], shared or -1)
            np.testing.assert_allclose(out, expected, rtol=1e-6)


# FakeQuantize by blocks: exact arithmetic, rounded once, for many ranges.


_LEVELS = (2, 3, 16, 255, 256, 1024)
_KINDS = ("any", "zero is a level", "symmetric", "from zero", "signed")


def _range(kind: str, levels: int, rng: np.random.Generator) -> tuple[float, float]:
    """A range as training and calibration make them."""
    low, high = -rng.uniform(0.01, 50), rng.uniform(0.01, 50)
    if kind == "symmetric":
        return -high, high
    if kind == "from zero":
        return 0.0, high
    if kind == "signed" and levels > 2:
        return -high * (levels // 2) / (levels - 1 - levels // 2), high
    if kind == "zero is a level" and levels > 2:
        zero = min(max(round(-low / (high - low) * (levels - 1)), 1), levels - 2)
        return zero / (zero - (levels - 1)) * high, high
    return low, high


def _data(low: np.ndarray, high: np.ndarray, levels: int, rng: np.random.Generator) -> np.ndarray:
    """Values of a row for each range: on levels, on and next to the thresholds between them, anywhere, infinities."""
    index, dtype = rng.integers(0, levels - 1, (low.size, 30)), low.dtype
    step = (high.astype(float) - low) / (levels - 1)
    thresholds = (low + (index + 0.5) * step).astype(dtype)
    # Next to 0 exact arithmetic tells values apart that f64 does not once a bound is subtracted.
    thresholds[abs(thresholds) < 1e-12] = 0
    beside = [np.where(thresholds == 0, 0, np.nextafter(thresholds, dtype.type(to))) for to in (-np.inf, np.inf)]
    anywhere = rng.uniform(-55, 55, (low.size, 30)).astype(dtype)
    ends = np.broadcast_to(np.array([0, np.inf, -np.inf], dtype), (low.size, 3))
    return np.concatenate([thresholds, *beside, (low + index * step).astype(dtype), anywhere, ends], axis=1).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("levels", _LEVELS)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("ranges", [1, 3])
@pytest.mark.sampled(8)
def test_both_kernels_give_the_exact_levels(kind: str, levels: int, dtype: type, ranges: int) -> None:
    rng = np.random.default_rng([_KINDS.index(kind), levels, ranges])
    low, high = np.array([_range(kind, levels, rng) for _ in range(ranges)], dtype).T.reshape(2, ranges, 1)
    x = _data(low, high, levels, rng)
    for factor in (1.0, 0.37):
        bounds = low, high, low * dtype(factor), high * dtype(factor)
        expected = fake_quantize(np.clip(x, -6e4, 6e4), *bounds, levels=levels)
        reference = resolve("FakeQuantize", "opset1")(x, *bounds, levels=levels, auto_broadcast="numpy")
        np.testing.assert_array_equal(reference, expected)
        builder = Builder("m")
        data = builder.parameter(element_of(np.dtype(dtype)), x.shape, "x")
        builder.result(builder.emit("FakeQuantize", data, *bounds, levels=levels))
        compiled = irexec.compile_model(builder.model(), precision="as-written")
        assert "chain of element-wise operations" in str(compiled.plan)
        (result,) = compiled({"x": x}).values()
        np.testing.assert_array_equal(result, expected)


def test_levels_do_not_keep_the_memory_of_their_bounds() -> None:
    """Levels are cached for all threads, and the bounds of a block may lie in the scratch of one."""
    bounds = [np.full((1, 4), value, np.float32) for value in (-1, 1, -1, 1)]
    levels = _Levels.of(bounds, 255)
    assert levels is not None
    for values in (levels.low, levels.high):
        assert not any(np.shares_memory(values, bound) for bound in bounds)


# Fast reductions against the reference kernels.


TYPES = [("ReduceSum", "opset1"), ("ReduceMean", "opset1"), ("ReduceMax", "opset1"), ("ReduceMin", "opset1"),
         ("ReduceProd", "opset1"), ("ReduceL1", "opset4"), ("ReduceL2", "opset4")]  # fmt: skip

# Shape, axes.
ROWS = [
    ((1, 6, 7, 7), (2, 3)), ((2, 40, 5, 9), (2, 3)), ((2, 3, 5, 70), (3,)), ((2, 3, 5, 70), (-1, 1)),
    ((3, 4, 5), (0,)), ((3, 4, 5), (1,)), ((3, 4, 5), (0, 1, 2)), ((1, 4, 1, 5), (1,)), ((300,), (0,)),
    ((1, 5, 9), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize(("type", "version"), TYPES)
@pytest.mark.parametrize("cached", [1, 256 << 10])
@pytest.mark.covering(2)
@pytest.mark.sampled(12)
def test_rows(monkeypatch: pytest.MonkeyPatch, type: str, version: str, row: tuple, keep: bool, cached: int) -> None:
    monkeypatch.setattr(reduction, "_CACHED", cached)
    shape, axes = row
    for dtype in (np.float32, np.float64, np.float16):
        x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
        inputs = [x, np.array(axes, np.int64)]
        check_kernels(type, version, inputs, {"keep_dims": keep}, constants=[1], only=False)
    task_has_one = check_kernels(
        type, version, [x.astype(np.float32), inputs[1]], {"keep_dims": keep}, constants=[1], only=False
    )
    assert task_has_one or row == ROWS[3]


@pytest.mark.parametrize(("shape", "axis"), [((2, 9001), 1), ((9001, 3), 0), ((1, 4097), 1)])
def test_long_sums(shape: tuple[int, int], axis: int) -> None:
    """They are added in parts, of which the last one may be short."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    task = task_of("ReduceSum", "opset1", [x, np.array([axis])], {"keep_dims": False}, constants=[1])
    for one in candidates(task):
        (result,) = run_kernel(one, task, [x, np.array([axis])])
        np.testing.assert_allclose(result, x.astype(np.float64).sum(axis), rtol=1e-6)


def test_nan_is_ignored_by_extremes() -> None:
    x = np.array([[np.nan, 1, 2], [np.nan, np.nan, np.nan]], np.float32)
    for type in ("ReduceMax", "ReduceMin"):
        check_kernels(type, "opset1", [x, np.array([1])], {"keep_dims": False}, constants=[1])


# Concat in NumPy against the reference kernel.


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int64, np.int8, np.float16, np.bool_])
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3, 4), (2, 5, 4)], 1), ([(1, 3), (2, 3), (3, 3)], 0), ([(2, 3, 4, 5)] * 2, -1), ([(3,)], 0)],
)
def test_concat(dtype: type, shapes: list[tuple[int, ...]], axis: int) -> None:
    rng = np.random.default_rng(0)
    inputs: list[np.ndarray] = [(rng.standard_normal(shape) * 9).astype(dtype) for shape in shapes]
    found = check_kernels("Concat", "opset1", inputs, {"axis": axis})
    assert "copies side by side" in {kernel.algorithm for kernel in found}
