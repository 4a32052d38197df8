"""Every row of every table, through every law."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from datetime import date
from typing import Any

import numpy as np
import pytest

from irexec.analysis.f32_arithmetic import HALVES
from irexec.ir.dims import shape_text
from irexec.ir.shape_text import parse_shape
from irexec.testing import Case, FactsCase, Refusal
from irexec.testing.laws import (
    ALL,
    Share,
    can_run,
    every_law,
    forms_and_options,
    infer,
    inferred,
    law_1_gives,
    law_3_exact_facts,
    law_4_facts_admit,
    law_6_runs,
    refusal,
    refused_when_it_runs,
)
from tests.support.cases import families
from tests.support.goldens import FOLDER, kept, recorded
from tests.support.intp_of_32_bits import intp_of_32_bits
from tests.support.passes import each_pass_alone

_ROWS = [(family, row) for family, rows in families().items() for row in rows]
_CASES = [pytest.param(family, row, id=row.id) for family, row in _ROWS if isinstance(row, Case)]
_FACTS = [pytest.param(family, row, id=row.id) for family, row in _ROWS if isinstance(row, FactsCase)]
_REFUSALS = [pytest.param(row, id=row.id) for _, row in _ROWS if isinstance(row, Refusal)]
_RUNNABLE_REFUSALS = [pytest.param(row, id=row.id) for _, row in _ROWS if isinstance(row, Refusal) and can_run(row)]

_PARTS = 60
"""Days in which each row is run with indices of 32 bits once."""


def _kind(row: Case) -> tuple[str, int | str, bool]:
    """The operation, and whether a 16-bit type is read or asked for, for which law 6 has more options."""
    names = {str(element) for element in HALVES}
    return (
        row.type,
        row.since,
        bool(names & {*(str(x.element) for x in row.inputs), *map(str, row.attributes.values())}),
    )


def _shares() -> dict[str, Share]:
    """The share of each row in the combinations of laws 4 to 7, by id."""
    kinds = defaultdict[Any, list[str]](list)
    for _, row in _ROWS:
        if isinstance(row, Case):
            kinds[_kind(row)].append(row.id)
    return {row_id: Share(i, len(ids)) for ids in kinds.values() for i, row_id in enumerate(ids)}


_SHARES = _shares()


def test_ids_are_unique() -> None:
    counts = Counter(row.id for _, row in _ROWS)
    assert not [row_id for row_id, count in counts.items() if count > 1]


def test_every_recorded_answer_is_to_a_row() -> None:
    asked = {
        (family, f"{row.id}|{row.digest}")
        for family, row in _ROWS
        if isinstance(row, Case | FactsCase) and row.gives is None
    }
    found = {(path.stem, name) for path in FOLDER.glob("*.npz") for name in kept(path.stem)}
    assert not found ^ asked, "run python -m tests.oracle.record"


def expected_of(family: str, row: Case, live: bool) -> tuple[np.ndarray, ...]:
    """The expected results of a row: written in it, recorded from OpenVINO, or with ``live`` asked of OpenVINO."""
    if row.gives is not None:
        return row.gives
    return _asked(row) if live else recorded(family, row.id, row.digest)


@functools.cache
def _asked(row: Case) -> tuple[np.ndarray, ...]:
    """OpenVINO's answer, asked for once for all the laws."""
    from tests.oracle.openvino_runner import run_case

    return run_case(row)


@pytest.mark.parametrize(("family", "row"), _CASES)
def test_laws(family: str, row: Case, live: bool, pytestconfig: pytest.Config) -> None:
    share = ALL if pytestconfig.getoption("--every-form") else _SHARES[row.id]
    every_law(row, expected_of(family, row, live), share=share)


def test_every_operation_is_compiled_in_every_form_with_every_option() -> None:
    met, wanted, count = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set), 0
    for _, row in _ROWS:
        if isinstance(row, Case):
            pairs, every = forms_and_options(row, _SHARES[row.id]), forms_and_options(row)
            for found, one in ((met, pairs), (wanted, every)):
                found["any"].update(one)
                found[row.type, row.since].update(part for pair in one for part in pair)
            count += len(pairs)
    assert met == wanted
    assert count < 2 * len(_CASES)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Another part of the rows each day, or all of them with ``--every-form``."""
    if "row_of_today" in metafunc.fixturenames:
        part = slice(None)
        if not metafunc.config.getoption("--every-form"):
            part = slice(date.today().toordinal() % _PARTS, None, _PARTS)
        metafunc.parametrize(("family", "row_of_today"), _CASES[part])


def test_laws_where_indices_have_32_bits(family: str, row_of_today: Case, live: bool) -> None:
    """A 32-bit NumPy makes indices and default integers of 32 bits, and takes no others as indices."""
    expected = expected_of(family, row_of_today, live)
    with intp_of_32_bits():
        laws = (law_1_gives, law_3_exact_facts, law_4_facts_admit, law_6_runs)
        every_law(row_of_today, expected, laws, _SHARES[row_of_today.id])


@pytest.mark.parametrize(("family", "row"), _CASES[::180])
@pytest.mark.sampled(2)
def test_each_pass_alone(family: str, row: Case, live: bool) -> None:
    each_pass_alone(row, expected_of(family, row, live))


@pytest.mark.parametrize(("family", "row"), _FACTS)
def test_facts(family: str, row: FactsCase, live: bool) -> None:
    if row.gives is not None:
        inferred(row)
        return
    facts = infer(row, row.inputs)
    if live:
        from tests.oracle.openvino_runner import infer_case

        texts = infer_case(row)
    else:
        texts = tuple(str(text) for text in recorded(family, row.id, row.digest))
    for fact, text in zip(facts, texts, strict=True):
        name, _, shape = text.partition("[")
        assert str(fact.element or "?") == name
        _assert_as_tight(fact.shape, parse_shape(shape.removesuffix("]")), text)


def _assert_as_tight(ours: object, theirs: object, text: str) -> None:
    """Nothing that we allow is excluded by OpenVINO's inference."""
    assert isinstance(theirs, tuple) <= isinstance(ours, tuple), f"our rank is unknown, OpenVINO's is that of {text}"
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        assert len(ours) == len(theirs), f"{shape_text(ours)}, OpenVINO has {text}"
        for a, b in zip(ours, theirs, strict=True):
            low_a, high_a = (a, a) if isinstance(a, int) else (a.lo, a.hi)
            low_b, high_b = (b, b) if isinstance(b, int) else (b.lo, b.hi)
            assert low_a >= low_b, f"{shape_text(ours)} is looser than OpenVINO's {text}"
            assert high_b is None or (high_a is not None and high_a <= high_b), (
                f"{shape_text(ours)} is looser than OpenVINO's {text}"
            )


@pytest.mark.parametrize("row", _RUNNABLE_REFUSALS)
def test_refused_when_it_runs(row: Refusal) -> None:
    """What cannot be known before a run is refused in it, by reference and fast kernels."""
    refused_when_it_runs(row)


@pytest.mark.parametrize("row", _REFUSALS)
def test_refusal(row: Refusal) -> None:
    refusal(row)
