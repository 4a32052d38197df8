"""The laws that every row is run through. Each takes a Case and the expected arrays, and asserts."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import irexec
from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import as_tuple, rounded
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from tests.support.cases import Case

Arrays = Sequence[np.ndarray]

# The relative error allowed where numbers are coarser than f32; f64 answers come from an engine that computes in f32.
_COARSE = {"f16": 2e-3, "bf16": 1e-2, "f64": 1e-5, "f8e4m3": 0.13, "f8e5m2": 0.26}


def exact_facts(row: Case) -> list[Fact]:
    return [Fact(x.element, x.array.shape, x.array) for x in row.inputs]


def infer(row: Case, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What the facts rule says of the row's operation."""
    definition = row.definition
    rule = definition.facts_rule
    assert rule is not None
    return as_tuple(rule(*facts, **definition.read_attributes(row.attributes)))


def kernel(row: Case, arrays: Arrays) -> tuple[np.ndarray, ...]:
    """What the plain kernel gives, rounded to the element types that the facts rule names."""
    definition = row.definition
    results = as_tuple(definition(*arrays, **definition.read_attributes(row.attributes)))
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
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, e)
            continue
        tolerance = row.tolerance if row.tolerance is not None else max(row.definition.tolerance, _COARSE.get(str(kind), 0))
        finite = e[np.isfinite(e)]
        scale = float(np.abs(finite.astype(np.float64)).max(initial=0))
        # Sums of products err by the size of their terms, not of their result.
        floor = tolerance * (scale if tolerance >= 1e-5 else min(scale, 1.0))
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=tolerance, atol=floor + 1e-30)


def law_1_gives(row: Case, expected: Arrays) -> None:
    """The kernel gives the expected result, dtype exact."""
    assert_same(kernel(row, read_only(row)), expected, row)


def law_2_leaves_inputs_alone(row: Case, expected: Arrays) -> None:
    """It leaves its inputs alone and returns none of them unless flagged a view."""
    arrays = read_only(row)
    results = as_tuple(row.definition(*arrays, **row.definition.read_attributes(row.attributes)))
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
_BY_VALUE = {"NonZero", "Unique", "NonMaxSuppression", "MatrixNms", "MulticlassNms", "SparseFillEmptyRows"}


def law_4_facts_admit(row: Case, expected: Arrays) -> None:
    """However little is known, the facts still admit the true result, and the rule never raises."""
    results = kernel(row, read_only(row))
    for facts in itertools.islice(_knowledge(row), 40):
        if row.type in _COUNTED_BY_LENGTH and not facts[-1].is_static:
            continue
        for fact, result in zip(infer(row, facts), results, strict=True):
            assert Fact(fact.element, fact.shape).admits(result), f"{fact} from {facts} does not admit {result.dtype}{list(result.shape)}"


# How many outputs they have is the length of their last input, without which there is no answer.
_COUNTED_BY_LENGTH = {"VariadicSplit"}


def _levels(fact: Fact) -> list[Fact]:
    shape = tuple(fact.shape or ())
    sizes = [int(size) for size in shape if isinstance(size, int)]
    return [
        fact,
        Fact(fact.element, shape),
        Fact(fact.element, tuple(Dim(max(size - 1, 0), size + 2) for size in sizes)),
        Fact(fact.element, (ANY,) * len(sizes)),
        Fact(fact.element, None),
        Fact(None, None),
    ]


def _knowledge(row: Case) -> Iterator[list[Fact]]:
    exact = exact_facts(row)
    levels = [_levels(fact) for fact in exact]
    for level in range(len(_levels(Fact(None, ())))):
        yield [options[level] for options in levels]
    for i, options in enumerate(levels):
        for option in options[1:]:
            yield [*exact[:i], option, *exact[i + 1 :]]
        for option in options[1:4]:
            yield [fact if j == i else Fact(fact.element, fact.shape) for j, fact in enumerate([*exact[:i], option, *exact[i + 1 :]])]


def law_5_layouts(row: Case, expected: Arrays) -> None:
    """Strided, Fortran-ordered and reversed inputs give the same."""
    for lay in (_strided, _fortran, _reversed):
        arrays = [lay(x.array) for x in row.inputs]
        assert_same(kernel(row, arrays), expected, row)


def _fortran(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array).reshape(array.shape, order="F")


def _strided(array: np.ndarray) -> np.ndarray:
    if array.ndim == 0:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _reversed(array: np.ndarray) -> np.ndarray:
    if array.ndim == 0:
        return array
    return np.ascontiguousarray(array[::-1])[::-1]


def law_6_runs(row: Case, expected: Arrays) -> None:
    """Model, written, read, compiled with every option, run: the same; plain and fast ways agree."""
    for constant in (False, True):
        model, fed = build(row, constant=constant)
        read = io.read_text(*io.write_text(model))
        for optimize, threads in ((False, 1), (True, 1), (True, 2)):
            compiled = irexec.compile_model(read, optimize=optimize, threads=threads)
            results = list(compiled(fed).values())
            assert_same(results, expected, row)
        if constant:
            facts = [port.element for port in compiled.outputs]
            assert all(kind is not None for kind in facts)


def build(row: Case, *, constant: bool) -> tuple[irexec.Model, list[np.ndarray]]:
    """The one-operation model: every input a Parameter, or all but the first constant."""
    builder = Builder("case")
    fed, operands = [], []
    for i, x in enumerate(row.inputs):
        if constant and i > 0:
            operands.append(builder.constant(x.array, x.element))
        else:
            operands.append(builder.parameter(x.element, x.array.shape, f"input{i}"))
            fed.append(x.array)
    texts = row.definition.read_attributes(row.attributes)
    if row.type == "Result":
        builder.result(operands[0])
        return builder.model(), fed
    values = builder.emit(row.type, *operands, version=row.since, **texts)
    for value in values if isinstance(values, tuple) else (values,):
        builder.result(value)
    return builder.model(), fed


def law_7_again(row: Case, expected: Arrays) -> None:
    """Twice in a row, and from two threads at once, gives the same."""
    model, fed = build(row, constant=True)
    compiled = irexec.compile_model(model)
    first = [array.copy() for array in compiled(fed).values()]
    found: list[list[np.ndarray]] = []

    def work() -> None:
        for _ in range(2):
            found.append(list(compiled(fed).values()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for again in found:
        for a, b in zip(again, first, strict=True):
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
