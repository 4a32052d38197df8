"""The laws that every row is run through. Each takes a Case and the expected arrays, and asserts."""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.evaluate import Precision, as_tuple, rounded, with_values
from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.model import Model
from irexec.api import compile_model, validate
from irexec.errors import NodeError, OpError
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.testing.kernels import mirrored
from irexec.testing.rows import (
    COUNTED_BY_LENGTH,
    FORMS,
    Case,
    FactsCase,
    Refusal,
    Row,
    bounded_facts,
    exact_facts,
    model_of,
    nothing,
    partial_facts,
    read_attributes,
    shape,
)

Arrays = Sequence[np.ndarray]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Share:
    """The share of a row in the combinations that all rows of its operation try together.

    Attributes:
        position: index of the row among the rows of its operation.
        rows: number of these rows.
        is_whole: True if the row tries every combination.
    """

    position: int
    rows: int
    is_whole: bool = False

    def of(self, combinations: Sequence[_T], size: int, limit: int | None = None) -> Sequence[_T]:
        """About ``size`` combinations; up to ``limit`` if the operation has too few rows for each to be tried."""
        if self.is_whole:
            return combinations
        most = self.rows if limit is None else max(self.rows, -(-len(combinations) // limit))
        parts = max(1, min(-(-len(combinations) // size), most))
        return combinations[self.position % parts :: parts]


ALL = Share(0, 1, is_whole=True)
"""The share of a row that tries every combination."""

COARSE = {"f16": 2e-3, "bf16": 1e-2, "f64": 1e-5, "f8e4m3": 0.13, "f8e5m2": 0.26}
"""Relative error allowed in coarser types than f32; expected f64 values come from an engine that computes in f32."""

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
"""Operations whose output shape depends on the elements, so that exact facts can only bound it."""

_TYPE_BY_RANK = {"ConvertPromoteTypes"}
"""A scalar takes the type of the tensor, so that the rank decides the type of the result."""


def infer(row: Row, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts of the outputs that the shape rule of a row gives for facts of its inputs."""
    definition = row.definition
    return as_tuple(
        definition.infer(facts, read_attributes(definition, row.attributes, [fact.element for fact in facts]))
    )


def attributes_of(row: Case) -> dict[str, Any]:
    """The attributes of a row as its kernel takes them."""
    return read_attributes(row.definition, row.attributes, [x.element for x in row.inputs])


def kernel(row: Case, arrays: Arrays) -> tuple[np.ndarray, ...]:
    """The results of the reference kernel, rounded to the element types that the shape rule names."""
    definition = row.definition
    results = as_tuple(definition(*arrays, **attributes_of(row)))
    facts = infer(row, exact_facts(row))
    return tuple(rounded(result, fact.element) for result, fact in zip(results, facts, strict=True))


def read_only(row: Case) -> list[np.ndarray]:
    """Copies of the inputs that cannot be written."""
    arrays = [x.array.copy() for x in row.inputs]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def assert_same(actual: Arrays, expected: Arrays, row: Case, kinds: Sequence[Any] = ()) -> None:
    """Assert the same shapes and types, and values as near as the operation's tolerance allows."""
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
        # The error of a sum of products depends on the size of its terms, not on that of the result.
        floor = tolerance * (scale if tolerance >= 1e-5 else min(scale, 1.0))
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=tolerance, atol=floor + 1e-30)


def _by_chance(row: Case) -> bool:
    """True if the results differ each time: random values without a seed."""
    seeds = [row.attributes.get(name, "0") for name in ("global_seed", "op_seed")]
    return not row.definition.deterministic and seeds == ["0", "0"]


def law_1_gives(row: Case, expected: Arrays) -> None:
    """The kernel gives the expected result, dtype exact."""
    assert_same(kernel(row, read_only(row)), expected, row)


def law_2_leaves_inputs_alone(row: Case, expected: Arrays) -> None:
    """The kernel leaves its inputs alone and returns none of them unless the operation is flagged a view."""
    arrays = read_only(row)
    results = as_tuple(row.definition(*arrays, **attributes_of(row)))
    for array, x in zip(arrays, row.inputs, strict=True):
        np.testing.assert_array_equal(array, x.array, err_msg="the kernel changed an input")
    if not row.definition.view:
        for result, array in itertools.product(results, arrays):
            assert not np.shares_memory(result, array), "the result is memory of an input"


def law_3_exact_facts(row: Case, expected: Arrays) -> None:
    """Facts of exact inputs are exactly the result's type and shape."""
    for fact, result in zip(infer(row, exact_facts(row)), as_tuple(kernel(row, read_only(row))), strict=True):
        assert fact.element is not None, "the shape rule gives no element type"
        assert fact.element.carrier == result.dtype, f"the shape rule gives {fact.element}, the kernel {result.dtype}"
        if row.type not in _BY_VALUE and not row.by_value:
            assert fact.shape == result.shape, f"the shape rule gives {fact}, the kernel {list(result.shape)}"
        assert fact.admits(result), f"the shape rule gives {fact}, the kernel {result.dtype}{list(result.shape)}"


def law_4_facts_admit(row: Case, expected: Arrays, share: Share = ALL) -> None:
    """However little is known, the rule never raises, the facts admit the true result, and known element types stay
    known."""
    results = kernel(row, read_only(row))
    for facts in partial_facts(row, lambda combinations: share.of(combinations, 12, 60)):
        if row.type in COUNTED_BY_LENGTH and not facts[-1].is_static:
            continue
        _assert_admitted(infer(row, facts), results, facts, row.type in _TYPE_BY_RANK)
    if row.definition.symbolic:
        attributes = attributes_of(row)
        for facts in bounded_facts(row):
            _assert_admitted(
                with_values(row.definition, facts, attributes, infer(row, facts)), results, facts, by_rank=False
            )


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


def law_5_layouts(row: Case, expected: Arrays, share: Share = ALL) -> None:
    """Strided, Fortran-ordered, reversed and transposed inputs give the same."""
    for lay in share.of((_strided, _fortran, mirrored, _transposed), 1):
        arrays = [lay(x.array) for x in row.inputs]
        assert_same(kernel(row, arrays), expected, row)


_GAPS = {"f": np.nan, "b": True, "O": "gap"}


def _strided(array: np.ndarray) -> np.ndarray:
    """Every second element along every axis of an array that has others between."""
    wide = np.full([2 * size + 1 for size in array.shape], _GAPS.get(array.dtype.kind, 77), array.dtype)
    inside: tuple[Any, ...] = (..., *(slice(1, None, 2) for _ in array.shape))
    wide[inside] = array
    return wide[inside]


def _fortran(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array).reshape(array.shape, order="F")


def _transposed(array: np.ndarray) -> np.ndarray:
    """The array with its last axis first in memory, as after a change to channels-last."""
    if array.ndim < 2:
        return array
    return np.moveaxis(np.array(np.moveaxis(array, -1, 0), order="C"), 0, -1)


def forms_and_options(row: Case, share: Share = ALL) -> Sequence[tuple[int, tuple[bool, int, Precision]]]:
    """Indices of ``FORMS``, each with an option that law 6 compiles the form with.

    The rows of an operation try each form and each option together, and all pairs if there are as many rows as pairs.
    """
    options, first = _options(row), zlib.crc32(row.type.encode())
    pairs = [
        (form, options[(form + first + turn) % len(options)])
        for turn in range(len(options))
        for form in range(len(FORMS))
    ]
    return sorted(share.of(pairs if share.is_whole else pairs[: max(share.rows, len(FORMS))], 1))


def law_6_runs(row: Case, expected: Arrays, share: Share = ALL) -> None:
    """Model, written, read, compiled with every option, run: the same; reference and fast kernels agree; the inputs of
    the run are left alone."""
    for form, pairs in itertools.groupby(forms_and_options(row, share), lambda pair: pair[0]):
        first_constant, known = FORMS[form]
        model, fed = model_of(row, first_constant, known)
        read = io.read_text(*io.write_text(model))
        # Overflows, NaN and infinities of a model are none of the caller's arithmetic, and raise nothing.
        with np.errstate(all="raise"):
            found = validate(Model.of(read), weights=True)
        errors = [finding for finding in found if finding.severity == "error"]
        assert not errors, f"validate finds {errors}"
        for _, (optimize, threads, precision) in pairs:
            with np.errstate(all="raise"):
                compiled = compile_model(read, optimize=optimize, threads=threads, precision=precision)
                results = list(compiled(fed).values())
            assert_same(results, expected, row)
            for array, x in zip(fed, row.inputs, strict=False):
                np.testing.assert_array_equal(array, x.array, err_msg="a run changed an input")
        has_types = all(port.element is not None for port in compiled.outputs)
        assert row.type in _TYPE_BY_RANK or has_types, "an output of the compiled model has no element type"


_OPTIONS: tuple[tuple[bool, int, Precision], ...] = ((False, 1, "f32"), (True, 1, "f32"), (True, 2, "f32"))
_OF_HALVES: tuple[tuple[bool, int, Precision], ...] = ((False, 1, "as-written"), (True, 2, "as-written"))


def _options(row: Case) -> Sequence[tuple[bool, int, Precision]]:
    """Whether to optimize, number of threads, and precision: both where that makes a difference to the row."""
    if not any(fact.element in HALVES for fact in (*exact_facts(row), *infer(row, exact_facts(row)))):
        return _OPTIONS
    # Random values of f32 are not those of f16, and FakeConvert rounds its steps to the type of the data.
    return _OF_HALVES if row.type in ("RandomUniform", "FakeConvert") else (*_OPTIONS, *_OF_HALVES)


def law_7_again(row: Case, expected: Arrays, share: Share = ALL) -> None:
    """Twice in a row, and from two threads at once, gives the same, and no run touches the results of another; one row
    in six of the rows of an operation."""
    if share.position % 6:
        return
    model, fed = model_of(row, 1)
    compiled = compile_model(model)

    def run(_: int) -> list[np.ndarray]:
        return list(compiled(fed).values())

    first = run(0)
    kept = [array.copy() for array in first]
    if sys.platform == "emscripten":
        # It has no threads.
        found = [first, *map(run, range(4))]
    else:
        with ThreadPoolExecutor(2) as pool:
            found = [first, *pool.map(run, range(4))]
    for arrays in found:
        for a, b in zip(arrays, kept, strict=True):
            assert a.shape == b.shape, f"a later run gives shape {a.shape}, the first {b.shape}"
            if arrays is first or not _by_chance(row):
                np.testing.assert_array_equal(a, b, err_msg="two runs differ, or a run changed an earlier result")


Law = Callable[..., None]
"""``law(row, expected)``; laws 4 to 7 also take the share of the row."""

LAWS: tuple[Law, ...] = (
    law_1_gives,
    law_2_leaves_inputs_alone,
    law_3_exact_facts,
    law_4_facts_admit,
    law_5_layouts,
    law_6_runs,
    law_7_again,
)
_SHARED = (law_4_facts_admit, law_5_layouts, law_6_runs, law_7_again)


def every_law(row: Case, expected: Arrays, laws: Iterable[Law] = LAWS, share: Share = ALL) -> None:
    """Run a row through all laws.

    One test for each law would take longer to collect and set up than to run.

    Args:
        row: the row.
        expected: the expected results.
        laws: the laws.
        share: of the row in the combinations of laws 4 to 7.

    Raises:
        Exception: the row breaks a law, whose name is in the notes; an ExceptionGroup for several laws.
    """
    broken: list[Exception] = []
    for law in laws:
        try:
            law(row, expected, *([share] if law in _SHARED else []))
        except Exception as error:
            error.add_note(f"{row.id} breaks {law.__name__}")
            broken.append(error)
    if len(broken) > 1:
        raise ExceptionGroup(f"{row.id} breaks {len(broken)} laws", broken)
    for only in broken:
        raise only


def inferred(row: FactsCase) -> None:
    """Shape inference gives the facts that the row has."""
    found = [f"{fact.element or '?'}{shape_text(fact.shape)}" for fact in infer(row, row.inputs)]
    assert found == list(row.gives or ()), f"the shape rule gives {found}, expected {list(row.gives or ())}"


def refusal(row: Refusal) -> None:
    """The shape rule refuses the inputs with a sentence that contains ``says``."""
    try:
        found = infer(row, row.inputs)
    except OpError as error:
        assert row.says in str(error), f"the refusal is {str(error)!r}, expected {row.says!r} in it"
    else:
        raise AssertionError(f"the shape rule gives {found}, expected a refusal that says {row.says!r}")


def can_run(row: Refusal) -> bool:
    """True if there are arrays of the types, shapes and values of all inputs."""
    return all(
        fact.element is not None and fact.is_static and (fact.value is None or fact.known is not None)
        for fact in row.inputs
    )


def refused_when_it_runs(row: Refusal) -> None:
    """The operation on Parameters whose ranks, sizes or values are known only when the model runs: NodeError, compiled
    with any option."""
    for known in (nothing, shape):
        builder = Builder("refused")
        operands = [
            builder.parameter(fact.element, known(fact.shape), f"input{i}")
            for i, fact in enumerate(row.inputs)
            if fact.element is not None
        ]
        try:
            attributes = row.definition.ungrouped(read_attributes(row.definition, row.attributes))
            values = builder.emit(row.type, *operands, version=row.since, **attributes)
        except OpError:
            continue
        for value in values if isinstance(values, tuple) else (values,):
            builder.result(value)
        for optimize in (False, True):
            compiled = compile_model(builder.model(), optimize=optimize)
            try:
                compiled([_array_of(fact) for fact in row.inputs])
            except NodeError:
                continue
            raise AssertionError(f"a run gives a result, expected a refusal that says {row.says!r}")


def _array_of(fact: Fact) -> np.ndarray:
    """The value, or ones of the type and shape."""
    if fact.known is not None:
        return fact.known
    return np.full(fact.static_shape, "a", object) if fact.dtype == object else np.ones(fact.static_shape, fact.dtype)
