"""The laws that every row is run through. Each takes a Case and the expected arrays, and asserts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import as_tuple, rounded, with_values
from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.model import Model
from irexec.analysis.precision import Precision
from irexec.errors import NodeError, OpError
from irexec.ir.dims import ANY, Dim, PartialShape
from irexec.ir.facts import Fact
from irexec.runtime.compiled_model import CompiledModel
from tests.support.attributes import read_attributes
from tests.support.cases import Case, Refusal, Row
from tests.support.passes import ALONE

Arrays = Sequence[np.ndarray]

# The relative error allowed where numbers are coarser than f32; f64 answers come from an engine that computes in f32.
COARSE = {"f16": 2e-3, "bf16": 1e-2, "f64": 1e-5, "f8e4m3": 0.13, "f8e5m2": 0.26}


def exact_facts(row: Case) -> list[Fact]:
    return [Fact(x.element, x.array.shape, x.array) for x in row.inputs]


def infer(row: Row, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What shape inference says of the row's operation."""
    definition = row.definition
    return as_tuple(
        definition.infer(facts, read_attributes(definition, row.attributes, [fact.element for fact in facts]))
    )


def attributes_of(row: Case) -> dict[str, Any]:
    return read_attributes(row.definition, row.attributes, [x.element for x in row.inputs])


def kernel(row: Case, arrays: Arrays) -> tuple[np.ndarray, ...]:
    """What the reference kernel gives, rounded to the element types that the shape rule names."""
    definition = row.definition
    results = as_tuple(definition(*arrays, **attributes_of(row)))
    facts = infer(row, exact_facts(row))
    return tuple(rounded(result, fact.element) for result, fact in zip(results, facts, strict=True))


def read_only(row: Case) -> list[np.ndarray]:
    arrays = [x.array.copy() for x in row.inputs]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def assert_same(actual: Arrays, expected: Arrays, row: Case, kinds: Sequence[Any] = ()) -> None:
    """The same shapes and types, and numbers as near as the operation's tolerance asks."""
    assert len(actual) == len(expected), f"{len(actual)} outputs, expected {len(expected)}"
    kinds = kinds or [fact.element for fact in infer(row, exact_facts(row))]
    for a, e, kind in zip(actual, expected, kinds, strict=True):
        assert a.shape == e.shape, f"shape {a.shape}, expected {e.shape}"
        assert a.dtype == e.dtype, f"type {a.dtype}, expected {e.dtype}"
        if _by_chance(row):
            continue
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, e)
            continue
        tolerance = (
            row.tolerance if row.tolerance is not None else max(row.definition.tolerance, COARSE.get(str(kind), 0))
        )
        finite = e[np.isfinite(e)]
        scale = float(np.abs(finite.astype(np.float64)).max(initial=0))
        # Sums of products err by the size of their terms, not of their result.
        floor = tolerance * (scale if tolerance >= 1e-5 else min(scale, 1.0))
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=tolerance, atol=floor + 1e-30)


def _by_chance(row: Case) -> bool:
    """Whether the numbers differ each time: random ones without a seed."""
    seeds = [row.attributes.get(name, "0") for name in ("global_seed", "op_seed")]
    return not row.definition.deterministic and seeds == ["0", "0"]


def law_1_gives(row: Case, expected: Arrays) -> None:
    """The kernel gives the expected result, dtype exact."""
    assert_same(kernel(row, read_only(row)), expected, row)


def law_2_leaves_inputs_alone(row: Case, expected: Arrays) -> None:
    """It leaves its inputs alone and returns none of them unless flagged a view."""
    arrays = read_only(row)
    results = as_tuple(row.definition(*arrays, **attributes_of(row)))
    for array, x in zip(arrays, row.inputs, strict=True):
        np.testing.assert_array_equal(array, x.array)
    if not row.definition.view:
        for result, array in itertools.product(results, arrays):
            assert not np.shares_memory(result, array), "the result is memory of an input"


def law_3_exact_facts(row: Case, expected: Arrays) -> None:
    """Facts of exact inputs are exactly the result's type and shape."""
    for fact, result in zip(infer(row, exact_facts(row)), as_tuple(kernel(row, read_only(row))), strict=True):
        assert fact.element is not None
        assert fact.element.carrier == result.dtype
        if row.definition.type not in _BY_VALUE:
            assert fact.shape == result.shape
        assert fact.admits(result)


# Their output's shape depends on the numbers themselves, so that exact facts can only bound it.
_BY_VALUE = {
    "NonZero",
    "Unique",
    "NonMaxSuppression",
    "NMSRotated",
    "MatrixNms",
    "MulticlassNms",
    "SparseFillEmptyRows",
    "GenerateProposals",
}


def law_4_facts_admit(row: Case, expected: Arrays) -> None:
    """However little is known, the rule never raises, the facts admit the true result, and known element types stay known."""
    results = kernel(row, read_only(row))
    for facts in _knowledge(row):
        if row.type in COUNTED_BY_LENGTH and not facts[-1].is_static:
            continue
        _assert_admitted(infer(row, facts), results, facts, row.type in _TYPE_BY_RANK)
    if row.definition.symbolic:
        attributes = attributes_of(row)
        for facts in _bounds(row):
            _assert_admitted(
                with_values(row.definition, facts, attributes, infer(row, facts)), results, facts, by_rank=False
            )


# How many outputs they have is the length of their last input, without which there is no answer.
COUNTED_BY_LENGTH = {"VariadicSplit"}


# A scalar gives way to the type of a tensor, so that the rank says what comes of the types.
_TYPE_BY_RANK = {"ConvertPromoteTypes"}


def _assert_admitted(inferred: Sequence[Fact], results: Arrays, given: Sequence[Fact], by_rank: bool) -> None:
    for fact, result in zip(inferred, results, strict=True):
        if not fact.admits(result):
            raise AssertionError(
                f"{fact} {_text(fact)} from {[*map(_text, given)]} does not admit {result.dtype} {result.tolist()}"
            )
        open_type = any(one.element is None or (by_rank and one.rank is None) for one in given)
        assert fact.element is not None or open_type, f"the element type is lost, given {given}"


def _text(fact: Fact) -> str:
    return str(fact) if fact.value is None else f"{fact} = {[str(number) for number in fact.value.ravel().tolist()]}"


def _knowledge(row: Case) -> Iterator[list[Fact]]:
    """Every combination of what may be known of up to three inputs; of more, every combination for each two of them."""
    exact = exact_facts(row)
    levels = [_levels(fact) for fact in exact]
    if len(exact) <= 3:
        yield from map(list, itertools.product(*levels))
        return
    for level in range(_PLAIN_LEVELS):
        yield [options[level] for options in levels]
    for (i, j), base in itertools.product(itertools.combinations(range(len(exact)), 2), (0, 3)):
        for first, second in itertools.product(levels[i], levels[j]):
            yield [first if k == i else second if k == j else options[base] for k, options in enumerate(levels)]


_PLAIN_LEVELS = 6


def _levels(fact: Fact) -> list[Fact]:
    """From the exact fact to none, then what bounds may be known of its numbers."""
    shape = tuple(fact.shape or ())
    sizes = [int(size) for size in shape if isinstance(size, int)]
    plain = [
        fact,
        Fact(fact.element, shape),
        Fact(fact.element, tuple(Dim(max(size - 1, 0), size + 2) for size in sizes)),
        Fact(fact.element, (ANY,) * len(sizes)),
        Fact(fact.element, None),
        Fact(None, None),
    ]
    assert len(plain) == _PLAIN_LEVELS
    return plain + _bounded(fact)


_MOST_BOUNDED = 64


def _bounded(fact: Fact) -> list[Fact]:
    """The fact with integers known only by their bounds: all of them closed or open, or every second one."""
    value = fact.value
    if fact.element is None or not fact.element.is_integer or value is None or not 0 < value.size <= _MOST_BOUNDED:
        return []
    ways: list[Callable[[int, int], int | Dim]] = [
        lambda index, number: _around(number),
        lambda index, number: Dim(_around(number).lo),
        lambda index, number: number if index % 2 else _around(number),
        lambda index, number: _around(number) if index % 2 else number,
    ]
    found = []
    for way in ways[: 2 if value.size == 1 else None]:
        numbers = np.empty(value.size, object)
        numbers[:] = [way(index, number) for index, number in enumerate(value.ravel().tolist())]
        found.append(Fact(fact.element, fact.shape, numbers.reshape(value.shape)))
    return found


def _around(number: int) -> Dim:
    """An interval that does not reach below zero for a number above it, as of sizes."""
    return Dim(number - 1 if number > 0 else number, number + 2)


def _bounds(row: Case) -> Iterator[list[Fact]]:
    options = [[fact, *_bounded(fact)] for fact in exact_facts(row)]
    yield from map(list, itertools.islice(itertools.product(*options), 125))


def law_5_layouts(row: Case, expected: Arrays) -> None:
    """Strided, Fortran-ordered, reversed and transposed inputs give the same."""
    for lay in (_strided, _fortran, _reversed, _transposed):
        arrays = [lay(x.array) for x in row.inputs]
        assert_same(kernel(row, arrays), expected, row)


_GAPS = {"f": np.nan, "b": True, "O": "gap"}


def _strided(array: np.ndarray) -> np.ndarray:
    """Every second number along every axis of an array that has others between."""
    wide = np.full([2 * size + 1 for size in array.shape], _GAPS.get(array.dtype.kind, 77), array.dtype)
    inside = (..., *(slice(1, None, 2) for _ in array.shape))
    wide[inside] = array
    return wide[inside]


def _fortran(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array).reshape(array.shape, order="F")


def _reversed(array: np.ndarray) -> np.ndarray:
    backwards = (..., *(slice(None, None, -1) for _ in array.shape))
    return np.array(array[backwards], order="C")[backwards]


def _transposed(array: np.ndarray) -> np.ndarray:
    """Its last axis is the first in memory, as after a change to channels-last."""
    if array.ndim < 2:
        return array
    return np.moveaxis(np.array(np.moveaxis(array, -1, 0), order="C"), 0, -1)


def each_pass_alone(row: Case, expected: Arrays) -> None:
    """Law 6 with fast kernels and no pass, and with each pass alone."""
    for first_constant, known in _FORMS[:4]:
        model, fed = build(row, first_constant, known)
        for names in ALONE:
            assert_same(list(CompiledModel(model, optimize=names)(fed).values()), expected, row)


def law_6_runs(row: Case, expected: Arrays) -> None:
    """Model, written, read, compiled with every option, run: the same; reference and fast kernels agree; what was fed is left alone."""
    for first_constant, known in _FORMS:
        model, fed = build(row, first_constant, known)
        read = io.read_text(*io.write_text(model))
        # What the caller asks of NumPy for overflows, NaN and infinities is for the caller's own arithmetic.
        with np.errstate(all="raise"):
            assert [
                finding for finding in irexec.validate(Model.of(read), weights=True) if finding.severity == "error"
            ] == []
        for optimize, threads, precision in _options(row):
            with np.errstate(all="raise"):
                compiled = irexec.compile_model(read, optimize=optimize, threads=threads, precision=precision)
                results = list(compiled(fed).values())
            assert_same(results, expected, row)
            for array, x in zip(fed, row.inputs, strict=False):
                np.testing.assert_array_equal(array, x.array)
        assert row.type in _TYPE_BY_RANK or all(port.element is not None for port in compiled.outputs)


_OPTIONS: tuple[tuple[bool, int, Precision], ...] = ((False, 1, "f32"), (True, 1, "f32"), (True, 2, "f32"))
_OF_HALVES: tuple[tuple[bool, int, Precision], ...] = ((False, 1, "as-written"), (True, 2, "as-written"))


def _options(row: Case) -> Sequence[tuple[bool, int, Precision]]:
    """Whether to optimize, how many threads, and the precision: both where that makes a difference to the row."""
    if not any(fact.element in HALVES for fact in (*exact_facts(row), *infer(row, exact_facts(row)))):
        return _OPTIONS
    # Random numbers of f32 are others than those of f16, and FakeConvert rounds its steps to the type of the data.
    return _OF_HALVES if row.type in ("RandomUniform", "FakeConvert") else (*_OPTIONS, *_OF_HALVES)


def _shape(shape: PartialShape) -> PartialShape:
    return shape


def _rank(shape: PartialShape) -> PartialShape:
    return (ANY,) * len(shape or ())


def _nothing(shape: PartialShape) -> PartialShape:
    return None


# Which input is the first constant (None: none is), and what is known of the shapes of Parameters.
_FORMS: tuple[tuple[int | None, Callable[[PartialShape], PartialShape]], ...] = (
    (None, _shape), (1, _shape), (0, _shape), (None, _rank), (1, _rank), (1, _nothing),
)  # fmt: skip


def build(
    row: Case, first_constant: int | None = None, known: Callable[[PartialShape], PartialShape] = _shape
) -> tuple[irexec.Model, list[np.ndarray]]:
    """The one-operation model, and what to feed it: inputs from ``first_constant`` on are constants."""
    builder = Builder("case")
    if first_constant is None and known is not _shape and row.type in COUNTED_BY_LENGTH:
        first_constant = len(row.inputs) - 1
    fed, operands = [], []
    for i, x in enumerate(row.inputs):
        if first_constant is not None and i >= first_constant:
            operands.append(builder.constant(x.array, x.element))
        else:
            operands.append(builder.parameter(x.element, known(x.array.shape), f"input{i}"))
            fed.append(x.array.copy())
    if row.type == "Result":
        builder.result(operands[0])
        return builder.model(), fed
    values = builder.emit(row.type, *operands, version=row.since, **read_attributes(row.definition, row.attributes))
    for value in values if isinstance(values, tuple) else (values,):
        builder.result(value)
    return builder.model(), fed


def can_run(row: Refusal) -> bool:
    """Whether there are arrays of the types, shapes and values of all inputs."""
    return all(
        fact.element is not None and fact.is_static and (fact.value is None or fact.known is not None)
        for fact in row.inputs
    )


def refused_when_it_runs(row: Refusal) -> None:
    """The operation on Parameters whose ranks, sizes or values are known only when the model runs: NodeError, compiled with any option."""
    for known in (_nothing, _shape):
        builder = Builder("refused")
        operands = [
            builder.parameter(fact.element, known(fact.shape), f"input{i}") for i, fact in enumerate(row.inputs)
        ]
        try:
            attributes = row.definition.ungrouped(read_attributes(row.definition, row.attributes))
            values = builder.emit(row.type, *operands, version=row.since, **attributes)
        except OpError:
            continue
        for value in values if isinstance(values, tuple) else (values,):
            builder.result(value)
        for optimize in (False, True):
            compiled = irexec.compile_model(builder.model(), optimize=optimize)
            with pytest.raises(NodeError):
                compiled([_array_of(fact) for fact in row.inputs])


def _array_of(fact: Fact) -> np.ndarray:
    """The value, or ones of the type and shape."""
    if fact.known is not None:
        return fact.known
    return np.full(fact.static_shape, "a", object) if fact.dtype == object else np.ones(fact.static_shape, fact.dtype)


def law_7_again(row: Case, expected: Arrays) -> None:
    """Twice in a row, and from two threads at once, gives the same, and no run touches the results of another."""
    model, fed = build(row, 1)
    compiled = irexec.compile_model(model)

    def run(_: int) -> list[np.ndarray]:
        return list(compiled(fed).values())

    first = run(0)
    kept = [array.copy() for array in first]
    with ThreadPoolExecutor(2) as pool:
        found = [first, *pool.map(run, range(4))]
    for arrays in found:
        for a, b in zip(arrays, kept, strict=True):
            assert a.shape == b.shape
            if arrays is first or not _by_chance(row):
                np.testing.assert_array_equal(a, b)


LAWS = (
    law_1_gives,
    law_2_leaves_inputs_alone,
    law_3_exact_facts,
    law_4_facts_admit,
    law_5_layouts,
    law_6_runs,
    law_7_again,
)


def every_law(row: Case, expected: Arrays) -> None:
    """All laws for one row: a test of its own for each law would take longer to collect and set up than to run.

    Raises:
        Exception: that of the law that the row breaks, with the law in its notes; an ExceptionGroup for several laws.
    """
    broken: list[Exception] = []
    for law in LAWS:
        try:
            law(row, expected)
        except Exception as error:
            error.add_note(f"{row.id} breaks {law.__name__}")
            broken.append(error)
    if len(broken) > 1:
        raise ExceptionGroup(f"{row.id} breaks {len(broken)} laws", broken)
    for error in broken:
        raise error
